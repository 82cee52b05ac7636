"""Sound copies of records that are lost: from a catalogue, or as they follow from a band."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import catalogue
from .band_reader import MANIFEST
from .catalogue import read_catalogue
from .errors import SolutionDamaged, SolverError
from .files import parse_record
from .layer_sets import stored_problem
from .lock import SOLUTION_NAME
from .options import STATES_MET
from .records import OBJECTIVE, SETS
from .span_pass import keeper_of
from .store import Store


def is_of_bands(store: Store, record: dict[str, Any]) -> bool:
    """Whether a stored band of sets, or a catalogue, is of this solution; or none is there."""
    identities = {copy.get("identity") for copy in _catalogued_identities(store)}
    for name in store.record_names(f"{SETS}/*/{MANIFEST}"):
        with contextlib.suppress(SolutionDamaged):
            identities.add((store.read_record(name) or {}).get("identity"))
    return not identities or record.get("identity") in identities


def sound_copy(store: Store, name: str) -> dict[str, Any] | None:
    """A record as a sound catalogue has it, or as it follows from a band; None if neither."""
    if name == SOLUTION_NAME:
        paths = [store.path / n for n in store.catalogue_names()]
    else:
        paths = [store.path / Path(name).parent / catalogue.NAME]
    for path in paths:
        with contextlib.suppress(SolverError):
            record = _catalogued(path, Path(name).name)
            if name != SOLUTION_NAME or is_of_bands(store, store.checked_identity(record)):
                return record
    return _objective_of_bands(store, name) if name.endswith(f"/{OBJECTIVE}") else None


def _catalogued(path: Path, name: str) -> dict[str, Any]:
    """A record as a catalogue has it. Raises SolutionDamaged if the catalogue is not sound."""
    parts = read_catalogue(path)
    if name not in parts:
        raise SolutionDamaged(f"{path} lacks {name}")
    return parse_record(parts[name], path)


def _catalogued_identities(store: Store) -> Iterator[dict[str, Any]]:
    """What was solved, as every sound catalogue has it."""
    for name in store.catalogue_names():
        with contextlib.suppress(SolverError):
            yield _catalogued(store.path / name, SOLUTION_NAME)


def _objective_of_bands(store: Store, name: str) -> dict[str, Any] | None:
    """What the values of a kind are, if its hash in one of the bands proves it."""
    kind = Path(name).parent.as_posix()
    name = Path(kind).name.replace("tile-", "tile:")
    if store.identity().get("reach") == STATES_MET:
        return None  # `pack` writes it
    if store.drops_sets:
        problem = stored_problem(store, name)
        return store.kind_record(keeper_of(store.keep, problem).facts)
    for manifest_name in store.record_names(f"{kind}/*/{MANIFEST}"):
        try:
            manifest = store.read_record(manifest_name) or {}
        except SolutionDamaged:
            continue
        facts = {"objective": name, "values": manifest.get("values")}
        record = store.kind_record(facts)
        if record["identity"] == manifest.get("identity"):
            return record
    return None
