"""Repairing a solution: what is damaged goes into quarantine, what is missing is computed again."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from dataclasses import dataclass, field
from typing import Any

from . import catalogue
from .backward_pass import backward_pass
from .bands import bands_of
from .errors import NoSolution, NotSolved, SolutionDamaged, SolverError
from .findings import Findings
from .forward_pass import forward_pass
from .layer import Band
from .layer_sets import stored_problem, stored_shape
from .layer_values import ValueKeeper
from .lock import SOLUTION_NAME, DirectoryLock
from .options import STATES_MET, SolveOptions
from .record_copies import is_of_bands, sound_copy
from .records import OBJECTIVE, RESULT, SETS
from .shape import Shape
from .span_pass import keeper_of, span_pass
from .store import Store
from .value_format import parse_value_format
from .verify import verify
from .workers import Workers

EXTENT = "scratch/repair.json"
"""How far the solve was, while a repair is at work."""

MAX_ROUNDS = 3
"""First the likely culprits; then, where those were sound, what they disagree with."""


@dataclass
class Repairs:
    """What was done; paths below the solution.

    quarantined : where damaged files and bands are now
    restored : records put back from a catalogue's copy
    computed : bands and files made again
    errors : what is still wrong
    """

    quarantined: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)
    errors: list[SolverError] = field(default_factory=list)


def repair(
    path: str | os.PathLike[str],
    options: SolveOptions | None = None,
    *,
    lock: DirectoryLock | None = None,
) -> Repairs:
    """Check all of a solution, and make what is damaged or missing again, to the same bytes.

    Nothing is deleted: what is damaged is moved below ``quarantine/``. A solve that was not
    finished is as far as it was; `solve` goes on with it. Of `options` only threads and progress
    count. Raises NoSolution, SolutionInUse, NoSpace, and SolutionDamaged where nothing can be
    done without a guess.
    """
    with lock or DirectoryLock(path, is_made=True):
        return _Repair(Store(path), options or SolveOptions()).run()


class _Repair:
    def __init__(self, store: Store, options: SolveOptions) -> None:
        self.store = store
        self.options = options
        self.repairs = Repairs()
        self._blamed: set[str] = set()

    def run(self) -> Repairs:
        self.store.clean()
        self._restore_identity()
        if self.store.identity().get("reach") == STATES_MET:
            self._put_aside()
            return self.repairs
        findings = verify(self.store, level="full")
        for _ in range(MAX_ROUNDS):
            subjects = self._subjects(findings)
            if not subjects and not self._is_pending():
                break
            self._note_extent()
            self._remove(subjects)
            self._compute()
            made = [name for name in sorted(subjects) if (self.store.path / name).exists()]
            self.repairs.computed += [n for n in made if n not in self.repairs.restored]
            findings = verify(self.store, level="full", only=set(made))
        self.repairs.errors += findings.errors
        return self.repairs

    def _put_aside(self) -> None:
        """What was made from a complete policy table is not made here: `pack` goes on with it."""
        subjects = self._subjects(verify(self.store, level="full"))
        self._remove(subjects)
        lost = sorted(name for name in subjects if not (self.store.path / name).exists())
        for kind in self.store.objective_kinds():
            if any(name.startswith(f"{kind}/") for name in lost):
                # What says that all is there is made again with what is not.
                for name in (RESULT, catalogue.NAME):
                    self.store.discard(f"{kind}/{name}")
        if lost:
            self.repairs.errors.append(NotSolved(
                f"{', '.join(lost)}: made from a complete policy table; pack that into "
                f"{self.store.path} again, which writes the same bytes"
            ))  # fmt: skip

    def _subjects(self, findings: Findings) -> set[str]:
        """What to make again: what was not blamed yet, else what disagrees with it."""
        subjects = set()
        for problem in findings.problems:
            for subject in (problem.subject, problem.otherwise):
                if subject and subject not in self._blamed:
                    subjects.add(subject)
                    break
        self._blamed |= subjects
        return subjects

    def _remove(self, subjects: set[str]) -> None:
        """Put what is damaged aside, records that have a sound copy back."""
        copies = {name: sound_copy(self.store, name) for name in subjects if name.endswith(".json")}
        for name in sorted(subjects):
            if (self.store.path / name).exists():
                self.repairs.quarantined.append(self.store.quarantine(name))
        for name, record in copies.items():
            if record is not None:
                self.store.write_record(name, record)
                self.repairs.restored.append(name)

    # --- records ------------------------------------------------------------------------------

    def _restore_identity(self) -> None:
        """Without the right shape nothing can be done: a sound copy of it, or none."""
        try:
            stored_shape(self.store)
            if is_of_bands(self.store, self.store.identity()):
                return
            error: SolverError = SolutionDamaged(
                f"{self.store.path / SOLUTION_NAME} is of another solution than all bands"
            )
        except (NoSolution, SolutionDamaged) as found:
            error = found
        record = sound_copy(self.store, SOLUTION_NAME)
        if record is None:
            raise type(error)(
                f"{error}; no catalogue has a copy, and what was solved is not guessed: put a "
                f"sound {SOLUTION_NAME} back"
            )
        if self.store.exists():
            self.repairs.quarantined.append(self.store.quarantine(SOLUTION_NAME))
        self.store.write_record(SOLUTION_NAME, record)
        self.repairs.restored.append(SOLUTION_NAME)

    # --- how far it was -----------------------------------------------------------------------

    def _is_pending(self) -> bool:
        """Whether an earlier repair was stopped after it had put something aside."""
        return (self.store.path / EXTENT).exists()

    def _note_extent(self) -> None:
        """Write down how far the solve was, before anything that says so is put aside."""
        earlier: dict[str, Any] = {"reach": 0, "values": {}}
        with contextlib.suppress(SolutionDamaged):  # scratch is no part of the solution
            earlier = self.store.read_record(EXTENT) or earlier
        values = {kind: band and band.first for kind, band in self._stored_values().items()}
        for kind, first in earlier["values"].items():
            values[kind] = min(first, values.get(kind) or first) if first else None
        reach = max(self._reach(), earlier["reach"])
        self.store.write_record(EXTENT, {"reach": reach, "values": values})

    def _reach(self) -> int:
        """The age up to which sets were stored, damaged ones included."""
        shape = stored_shape(self.store)
        # Values come after all sets.
        if self.store.objective_kinds() or self.store.catalogue_names():
            return shape.top_age
        ages = [0]
        for band in (b for b in bands_of(shape) if (self.store.path / SETS / b.name).exists()):
            try:
                manifest = self.store.stored_manifest(SETS, band)
            except SolutionDamaged:
                manifest = None
            # Only the last band may have been cut short, and its manifest said where.
            known = manifest["layers"][-1]["age"] if manifest else self._last_asked(band)
            ages.append(int(known))
        return max(ages)

    def _last_asked(self, band: Band) -> int:
        """Where a band ended whose manifest is lost, by what was asked of the last run."""
        if asked := self.store.read_run().get("max_age"):
            return min(band.last, int(asked))
        self.repairs.errors.append(SolutionDamaged(
            f"{SETS}/{band.name} is lost, and how far it went is not guessed: "
            "`solve --max-age N` goes on from the band below"
        ))  # fmt: skip
        return band.first - 2

    def _stored_values(self) -> dict[str, Band | None]:
        """The lowest stored band of every objective; None where all of them were."""
        lowest: dict[str, Band | None] = {}
        bands = bands_of(stored_shape(self.store))
        for kind in self.store.objective_kinds():
            directory = self.store.path / kind
            if (directory / RESULT).exists() or (directory / catalogue.NAME).exists():
                lowest[kind] = None
            elif there := [band for band in bands if (directory / band.name).exists()]:
                lowest[kind] = there[0]
        return lowest

    # --- computing ----------------------------------------------------------------------------

    def _compute(self) -> None:
        """Make everything again that is missing up to where the solve was."""
        self.store.forget()
        shape = stored_shape(self.store)
        extent = self.store.read_record(EXTENT) or {}
        if self.store.drops_sets:
            self._compute_spans(shape, extent)
            return
        first_ages = {band.first: band for band in bands_of(shape)}
        with Workers(self.options.threads) as workers:
            forward_pass(self.store, shape, extent["reach"], self.options, workers)
            for kind, first in extent["values"].items():
                self._compute_values(shape, kind, first_ages.get(first), workers)
        self.store.forget()
        self.store.remove_record(EXTENT)

    def _compute_spans(self, shape: Shape, extent: dict[str, Any]) -> None:
        """Finish what was finished again; `solve` goes on with all else."""
        options = dataclasses.replace(self.options, disk=self.store.read_run().get("disk"))
        with Workers(self.options.threads) as workers:
            for kind in (kind for kind, first in extent["values"].items() if first is None):
                record = self.store.read_record(f"{kind}/{OBJECTIVE}") or {}
                problem = stored_problem(self.store, str(record["objective"]))
                keeper = keeper_of(self.store.keep, problem)
                span_pass(self.store, keeper, shape.top_age, options, workers)
        self.store.forget()
        self.store.remove_record(EXTENT)

    def _compute_values(
        self, shape: Shape, kind: str, lowest: Band | None, workers: Workers
    ) -> None:
        record = self.store.read_record(f"{kind}/{OBJECTIVE}")
        if record is None:
            raise SolutionDamaged(
                f"{kind}/{OBJECTIVE} is lost, and how its values are stored is not guessed; "
                "move the directory away and solve the objective again"
            )
        problem = stored_problem(self.store, str(record["objective"]))
        value_format = parse_value_format(str(record["values"]), problem.objective.max_value(shape))
        keeper = ValueKeeper(problem, value_format)
        backward_pass(self.store, keeper, self.options, workers, until=lowest)
