"""Checking a stored solution: what is there, its bytes, its sets and counts, and its values."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterable

import numpy as np

from .band_builder import NAMES
from .band_reader import MANIFEST
from .bands import bands_of
from .errors import SolutionDamaged, UsageError
from .findings import Findings, Problem
from .kept_records import COUNTS, record_name, sound_records
from .kernels.members import count_members, count_missing_images
from .layer import Band
from .layer_index import build_layer_index
from .layer_sets import LayerSets, stored_shape, wrong_parents
from .layer_values import NAME as VALUES_NAME
from .lock import SOLUTION_NAME
from .objective import parse_objective
from .options import DEFAULT_SAMPLE, DEFAULT_SHARE, LEVELS, STATES_MET
from .policy_bands import CODES, WEIGHTS
from .progress import Progress
from .records import OBJECTIVE, RESULT, SETS
from .report import check_published, make_report
from .solution import Solution
from .store import Store
from .tables import build_tables
from .verify_actions import check_actions, check_comparable
from .verify_catalogues import check_catalogue, check_strays, note_strays
from .verify_policy import check_policy
from .verify_values import check_values


def verify(
    store: Store,
    *,
    level: str = LEVELS[-1],
    sample: int = DEFAULT_SAMPLE,
    share: float = DEFAULT_SHARE,
    seed: int = 0,
    only: Collection[str] | None = None,
    against: str | None = None,
    show_progress: bool = False,
) -> Findings:
    """Check a solution, at one of the `LEVELS`; each checks all that the ones before do.

    quick : identity, manifests, catalogues, parents; every file is there, with its size
    sampled : a random `share` of the chunks is read, at least one of every array
    full : files are compared with their digests, sets are decoded and counted
    semantic : about `sample` afterstate values of every objective are computed again, by the slow
        rules, from the values two and four ages later; figures are compared with published ones
    only : bands, such as ``sets/00004-00300``, to check beyond `quick`; None means all
    against : a solution in which about `sample` actions of a policy table are looked up
    Raises NoSolution if there is none, UsageError for what cannot be asked.
    """
    # The files themselves are checked, and the catalogues against them.
    store = Store(store.path, uses_catalogues=False)
    _check_asked(store, level, share, against)
    findings = Findings()
    try:
        stored_shape(store)
    except SolutionDamaged as error:
        findings.problems.append(Problem(SOLUTION_NAME, error))
        return findings
    kinds = store.objective_kinds()
    is_long = show_progress and LEVELS.index(level) >= LEVELS.index("full")
    num_bytes = sum(_kind_bytes(store, kind) for kind in [SETS, *kinds]) if is_long else 0
    with Progress("verify", num_bytes, enabled=is_long) as progress:
        bands = _BandCheck(store, LEVELS.index(level), share, seed, only, progress)
        set_bands = _check_sets(store, findings, bands)
        for kind in kinds:
            _check_kind(store, findings, bands, kind, set_bands)
    check_strays(store, findings, kinds)
    if level == LEVELS[-1] and not findings.problems:
        for kind in kinds:
            check = functools.partial(_check_meaning, store, kind, sample, seed, show_progress)
            findings.attempt(kind, check)
            if against is not None:
                table, name = Store(store.path), _objective_name(store, kind)
                findings.attempt(
                    kind, functools.partial(check_actions, table, against, name, sample, seed)
                )
    return findings


def _check_asked(store: Store, level: str, share: float, against: str | None) -> None:
    if level not in LEVELS:
        raise UsageError(f"level {level!r} is none of {', '.join(LEVELS)}")
    if not 0 <= share <= 1:
        raise UsageError(f"share {share} does not lie between 0 and 1")
    if against is not None:
        if level != LEVELS[-1]:
            raise UsageError(f"level {level}: a solution is compared at level {LEVELS[-1]} alone")
        check_comparable(store, against)


def _objective_name(store: Store, kind: str) -> str:
    """The objective of a kind that is sound."""
    return str((store.read_record(f"{kind}/{OBJECTIVE}") or {})["objective"])


def _kind_bytes(store: Store, kind: str) -> int:
    """Bytes of the arrays of a kind, as far as manifests are sound."""
    num_bytes = 0
    for band in bands_of(stored_shape(store)):
        with contextlib.suppress(SolutionDamaged):
            num_bytes += sum(store.stored_bytes(kind, band).values())
    return num_bytes


class _BandCheck:
    """How much of a band is checked."""

    def __init__(self, store: Store, depth: int, share: float, seed: int,
                 only: Collection[str] | None, progress: Progress) -> None:  # fmt: skip
        self._store, self._progress = store, progress
        self._is_sampled = depth == LEVELS.index("sampled")
        self._is_full = depth >= LEVELS.index("full")
        self._share = share
        self._rng = np.random.default_rng(seed)
        self._only = only

    def is_full(self, kind: str, band: Band) -> bool:
        """Whether all bytes of a band are read."""
        return self._is_full and (self._only is None or f"{kind}/{band.name}" in self._only)

    def check_bytes(self, kind: str, band: Band, names: Iterable[str]) -> None:
        """Check a band's files, or some chunks of its arrays of the given names."""
        if self.is_full(kind, band):
            self._store.check_band(kind, band)
            num_bytes = sum(self._store.stored_bytes(kind, band).values())
            self._progress.advance(band.last, float(num_bytes), 0)
            return
        self._store.check_files(kind, band)
        for name in names if self._is_sampled else ():
            array = self._store.open_array(kind, band, name)
            count = min(array.num_chunks, max(1, round(self._share * array.num_chunks)))
            for number in self._rng.choice(array.num_chunks, count, replace=False):
                array.read_chunk(int(number))


# --- sets and values --------------------------------------------------------------------------


def _check_sets(store: Store, findings: Findings, bands: _BandCheck) -> list[Band]:
    """Returns the bands whose manifests are sound."""
    shape = stored_shape(store)
    sound = _sound_bands(store, findings, SETS)
    kept = sound_records(store, findings, COUNTS, bands_of(shape))
    sets = LayerSets(store, sorted({*sound, *kept}))
    for band in sound:
        check = functools.partial(_check_set_band, sets, band, bands)
        findings.attempt(f"{SETS}/{band.name}", check)
        note_strays(store, findings, store.stray_files(SETS, band))
        _check_parents(store, findings, SETS, band)
    # Where sets are not kept, all counts are there once there is a result.
    reach = shape.top_age + 2 if _needs_all_counts(store) else sets.max_age
    expected = [b for b in bands_of(shape) if b.first < reach and b not in kept]
    _check_gaps(store, findings, SETS, COUNTS if store.drops_sets else None, expected)
    is_complete = sets.max_age == shape.top_age and sound == list(bands_of(shape))
    check_catalogue(store, findings, SETS, is_complete and not store.drops_sets)
    found = f"ages 4 to {sets.max_age}" if sets.max_age else "no age"
    findings.checks.append(f"{COUNTS if store.drops_sets else SETS}: {found} of {shape.top_age}")
    return sound


def _needs_all_counts(store: Store) -> bool:
    """Whether an objective is finished of which no sets are kept."""
    results = (store.path / kind / RESULT for kind in store.objective_kinds())
    return store.drops_sets and any(result.exists() for result in results)


def _check_kind(
    store: Store, findings: Findings, bands: _BandCheck, kind: str, set_bands: list[Band]
) -> None:
    check_objective = functools.partial(_check_objective, store, kind)
    if not findings.attempt(f"{kind}/{OBJECTIVE}", check_objective):
        return
    starts_alone = store.keeps_start_alone
    names = (CODES, WEIGHTS) if kind.startswith("policy/") else (VALUES_NAME,)
    every = list(bands_of(stored_shape(store)))
    if starts_alone:
        sound = sound_records(store, findings, kind, every)
    else:
        sound = _sound_bands(store, findings, kind)
    for band in () if starts_alone else sound:
        check = functools.partial(bands.check_bytes, kind, band, names)
        findings.attempt(f"{kind}/{band.name}", check)
        note_strays(store, findings, store.stray_files(kind, band))
        if band in set_bands:
            _check_parents(store, findings, kind, band)
    result = f"{kind}/{RESULT}"
    is_finished = (store.path / result).exists()
    if is_finished:
        findings.attempt(result, functools.partial(_check_result, store, kind))
    elif starts_alone and sound == every and not (store.path / SETS).exists():
        findings.add(result, f"{result} is missing, and nothing is left to do but that")
    # Values are written downward.
    is_upward = (store.read_record(f"{kind}/{OBJECTIVE}") or {}).get("reach") == STATES_MET
    lowest = every[0] if is_finished else None if is_upward else min(sound, default=None)
    expected = [b for b in every if ((lowest and b > lowest) or is_finished) and b not in sound]
    _check_gaps(store, findings, kind, kind if starts_alone else None, expected)
    check_catalogue(store, findings, kind, is_finished and sound == every and not starts_alone)
    state = "complete" if is_finished else "not complete yet"
    findings.checks.append(f"{kind}: {len(sound)} of {len(every)} bands, {state}")


def _check_objective(store: Store, kind: str) -> None:
    store.kind_identity(kind)
    record = store.read_record(f"{kind}/{OBJECTIVE}") or {}
    objective = parse_objective(str(record.get("objective")), stored_shape(store))
    if kind not in (objective.values_kind, objective.policy_kind):
        raise SolutionDamaged(f"{kind}/{OBJECTIVE} is that of {record.get('objective')}")


def _check_result(store: Store, kind: str) -> None:
    if store.result(kind) is None:
        raise SolutionDamaged(f"{kind}/{RESULT} is no file")


def _sound_bands(store: Store, findings: Findings, kind: str) -> list[Band]:
    """The bands that have a manifest of their own; what is wrong with others is noted."""
    return [
        band
        for band in bands_of(stored_shape(store))
        if (store.path / kind / band.name).exists()
        and findings.attempt(
            f"{kind}/{band.name}", functools.partial(_check_manifest, store, kind, band)
        )
    ]


def _check_manifest(store: Store, kind: str, band: Band) -> None:
    if store.stored_manifest(kind, band) is None:
        raise SolutionDamaged(f"{store.path / kind / band.name / MANIFEST} is missing")


def _check_gaps(
    store: Store, findings: Findings, kind: str, kept_kind: str | None, expected: list[Band]
) -> None:
    """Note what is missing; `kept_kind` is that of records that may stand for bands."""
    for band in expected:
        name = record_name(kept_kind, band) if kept_kind else f"{kind}/{band.name}"
        # A solve that goes on meanwhile may have written it by now.
        if not (store.path / kind / band.name).exists() and not (store.path / name).exists():
            findings.add(name, f"{name}: the band is missing")


def _check_parents(store: Store, findings: Findings, kind: str, band: Band) -> None:
    own = f"{kind}/{band.name}"
    try:
        parents = list(wrong_parents(store, kind, band))
    except SolutionDamaged:
        return  # a parent that is missing is found as such
    for parent in parents:
        findings.add(parent, f"{own} was made from another {parent}", otherwise=own)


def _check_set_band(sets: LayerSets, band: Band, bands: _BandCheck) -> str:
    """The band's files, and the members and counts of its layers."""
    bands.check_bytes(SETS, band, NAMES)
    if not bands.is_full(SETS, band):
        return f"{SETS}/{band.name}: files agree"
    tables = build_tables(sets.shape)
    stored = sets.read_band(band)
    for age in (age for age in band.ages if age <= sets.max_age):
        counts = sets.layer_counts(age)
        index = build_layer_index(sets.shape, age)
        for name in NAMES:
            bitmap = stored.bitmap(age, name)
            labelled = 4 * int(count_members(bitmap)) - int(
                count_missing_images(tables, index, bitmap)
            )
            if labelled != getattr(counts, f"{name}_labelled"):
                raise SolutionDamaged(
                    f"age {age}: {labelled} labelled {name} in the set, "
                    f"{getattr(counts, f'{name}_labelled')} in the record"
                )
    return f"{SETS}/{band.name}: files, members and counts agree"


def _check_meaning(store: Store, kind: str, sample: int, seed: int, show_progress: bool) -> str:
    """The values of an objective, read as anybody reads them, and the figures that came of them."""
    name = _objective_name(store, kind)
    if store.drops_sets:
        objective = parse_objective(name, stored_shape(store))
        check_published(make_report(LayerSets(store), objective))
    if store.keep == "policy":
        return check_policy(Store(store.path), name, show_progress)
    if store.keeps_start_alone:
        return f"{kind}: figures agree with the published ones"
    with Solution(Store(store.path), name) as solution:
        check_published(make_report(solution.sets, solution.objective))
        return check_values(solution, sample, seed)
