"""Checks of a solution's catalogues against its files, and of files that nothing accounts for."""

from __future__ import annotations

import functools

from . import catalogue
from .band_reader import MANIFEST
from .bands import bands_of
from .catalogue import read_catalogue
from .errors import SolutionDamaged
from .files import parse_record, read_file
from .findings import Findings
from .kept_records import COUNTS, record_name
from .layer_sets import stored_shape
from .lock import OBJECTIVE_ROOTS, SOLUTION_NAME
from .records import OBJECTIVE, RESULT, SETS
from .store import Store


def check_catalogue(store: Store, findings: Findings, kind: str, is_complete: bool) -> None:
    """Note where a catalogue differs from the files, or is missing of a kind that is complete."""
    name = f"{kind}/{catalogue.NAME}"
    if (store.path / name).exists():
        findings.attempt(name, functools.partial(_compare_catalogue, store, findings, kind))
    elif is_complete:
        findings.add(name, f"{store.path / name} is missing, though all bands are there")


def _compare_catalogue(store: Store, findings: Findings, kind: str) -> str:
    """Compare a catalogue that is sound in itself with what lies on the disk."""
    path = store.path / kind / catalogue.NAME
    parts = read_catalogue(path)
    own = SOLUTION_NAME if kind == SETS else OBJECTIVE
    expected = {own, *(f"{band.name}/{MANIFEST}" for band in bands_of(stored_shape(store)))}
    for name in sorted(expected - set(parts)):
        raise SolutionDamaged(f"{path} lacks {name}")
    record = parse_record(parts[own], f"{path}, {own}")
    if record.get("identity") != store.kind_identity(kind):
        raise SolutionDamaged(f"{path} is of another solution")
    for name, stored in parts.items():
        file = name if name == SOLUTION_NAME else f"{kind}/{name}"
        try:
            agrees = read_file(store.path / file) == stored
            message = f"{store.path / file} is not as in {kind}/{catalogue.NAME}"
        except SolutionDamaged as error:
            agrees, message = False, str(error)
        if not agrees:
            is_in_band = file.startswith(f"{kind}/") and "/" in name
            subject = f"{kind}/{name.split('/')[0]}" if is_in_band else file
            findings.add(subject, message, otherwise=f"{kind}/{catalogue.NAME}")
    return f"{kind}/{catalogue.NAME}: agrees with the files"


def check_strays(store: Store, findings: Findings, kinds: list[str]) -> None:
    """Files and directories that nothing accounts for."""
    ours = {f"{kind}/{band.name}" for kind in [SETS, *kinds]
            for band in bands_of(stored_shape(store))}  # fmt: skip
    ours |= {f"{kind}/{catalogue.NAME}" for kind in [SETS, *kinds]}
    ours |= {f"{kind}/{name}" for kind in kinds for name in (OBJECTIVE, RESULT)}
    objectives = [n for kinds in OBJECTIVE_ROOTS for n in store.record_names(f"{kinds}/*")]
    ours |= {name for name in objectives if (store.path / name).is_dir()}
    kept_kinds = [COUNTS, *(kinds if store.keeps_start_alone else [])] if store.drops_sets else []
    ours |= {record_name(kind, band) for kind in kept_kinds
             for band in bands_of(stored_shape(store))}  # fmt: skip
    found = [*store.record_names(f"{SETS}/*"), *store.record_names(f"{COUNTS}/*"), *objectives,
             *store.objective_names("*")]  # fmt: skip
    note_strays(store, findings, [name for name in found if name not in ours])


def note_strays(store: Store, findings: Findings, names: list[str]) -> None:
    """Note files, named below the solution, that do not belong there."""
    for name in names:
        findings.add(name, f"{store.path / name} does not belong there")
