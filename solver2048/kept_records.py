"""What stays of a band where no sets are kept: its counts; where no values are, statistics too.

``counts/BAND.json`` stands for the sets of a band, and is written before they are dropped;
``values/OBJECTIVE/BAND.json`` stands for its values where only the start is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from .band_reader import MANIFEST
from .errors import NotSolved, SolutionDamaged
from .findings import Findings
from .layer import Band, LayerCounts
from .records import SETS
from .store import Store

COUNTS = "counts"

UNSTORED = "none"
"""The format of values that are not stored."""


def record_name(kind: str, band: Band) -> str:
    """Path of a band's record, below the solution; `kind` is `COUNTS` or an objective's values."""
    return f"{kind}/{band.name}.json"


def read_kept(store: Store, kind: str, band: Band) -> dict[str, Any] | None:
    """The record that stands for a band, None if there is none. Raises SolutionDamaged."""
    name = record_name(kind, band)
    record = store.read_record(name)
    if record is None:
        return None
    identity = store.kind_identity(SETS if kind == COUNTS else kind)
    if (record.get("kind"), record.get("band")) != (kind, [band.first, band.last]):
        raise SolutionDamaged(f"{store.path / name} is the record of another band")
    if record.get("identity") != identity:
        raise SolutionDamaged(f"{store.path / name} is of another solution")
    return record


def kept_counts(record: dict[str, Any]) -> list[LayerCounts]:
    """The counts of a band's ages, by its record."""
    return [LayerCounts.from_record(layer) for layer in record["layers"]]


def sound_records(store: Store, findings: Findings, kind: str, bands: Iterable[Band]) -> list[Band]:
    """The bands that a sound record stands for; what is wrong with others is noted."""
    return [
        band
        for band in bands
        if (store.path / record_name(kind, band)).exists()
        and findings.attempt(
            record_name(kind, band), functools.partial(_check_record, store, kind, band)
        )
    ]


def _check_record(store: Store, kind: str, band: Band) -> None:
    record = read_kept(store, kind, band)
    if record is None:
        raise SolutionDamaged(f"{record_name(kind, band)} is no file")
    if [layer["age"] for layer in record["layers"]] != list(band.ages):
        raise SolutionDamaged(f"{record_name(kind, band)} has other ages")


def band_bytes(store: Store, band: Band) -> dict[str, int]:
    """Bytes of each part of a stored band of sets, its manifest included."""
    manifest = store.path / SETS / band.name / MANIFEST
    return {**store.stored_bytes(SETS, band), MANIFEST: manifest.stat().st_size}


def drop_band(store: Store, band: Band) -> None:
    """Remove the sets of a complete band; its counts, and what it took, stay."""
    manifest = store.stored_manifest(SETS, band)
    if manifest is None:
        return
    if not manifest["is_complete"]:
        raise ValueError(f"{SETS}/{band.name} was cut short")
    keep_counts(store, store, band)
    store.discard(f"{SETS}/{band.name}")


def keep_counts(store: Store, source: Store, band: Band) -> None:
    """Write down a band's counts, and what its sets take in a source, unless they are there."""
    if (store.path / record_name(COUNTS, band)).exists():
        return
    if manifest := source.stored_manifest(SETS, band):
        layers, sizes = manifest["layers"], band_bytes(source, band)
    elif record := read_kept(source, COUNTS, band):
        layers, sizes = record["layers"], record["bytes"]
    else:
        raise NotSolved(f"{source.path}: {SETS}/{band.name} is not there, and no counts of it")
    store.write_record(
        record_name(COUNTS, band),
        {
            "kind": COUNTS,
            "band": [band.first, band.last],
            "identity": store.kind_identity(SETS),
            "bytes": sizes,
            "layers": [vars(LayerCounts.from_record(layer)) for layer in layers],
        },
    )
