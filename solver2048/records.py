"""The records of a solution: small JSON files that say what it is, each with a checksum.

`solution.json` says what is solved, and under `identity` has the hash of all of that; an
objective's `objective.json` has one of its own, of the solution's and what its values are. Every
band carries the hash of its kind, so that none can be put into another solution.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from .checkpoints import Checkpoint
from .errors import NoSolution, NoSpace, SolutionDamaged
from .files import (
    Directory,
    digest_of,
    dump_record,
    make_directory,
    move,
    parse_record,
    remove,
    write_file,
)
from .location import Location, check_directory, is_url
from .lock import OBJECTIVE_ROOTS, SOLUTION_NAME
from .remote import RemoteLocation

FORMAT = "solver2048 solution"
FORMAT_VERSION = 1

SETS = "sets"
OBJECTIVE, RESULT = "objective.json", "result.json"
QUARANTINE = "quarantine"
COMPLETE = "scratch/complete"
"""Where the complete policy lies that one of the states met is made from, if it is not kept."""


class Records:
    """A solution's directory, or the URL of one to be read.

    A *kind* of bands is ``sets``, ``values/OBJECTIVE`` or ``policy/OBJECTIVE``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._given = path
        self.location: Location = (
            RemoteLocation(str(path)) if is_url(path) else Directory(Path(path))
        )
        self._identity: dict[str, Any] | None = None
        self._identities: dict[str, str] = {}

    @property
    def path(self) -> Path:
        """The directory. Raises UsageError for a URL."""
        check_directory(self._given)
        return Path(self._given)

    def forget(self) -> None:
        """Let go of what was read, since it may be there no more."""
        self._identity = None
        self._identities.clear()

    def exists(self) -> bool:
        return self._identity is not None or self._read_identity() is not None

    def _read_identity(self) -> bytes | None:
        """`solution.json` as stored, None if there is no solution."""
        return self.location.read(SOLUTION_NAME)

    def identity(self) -> dict[str, Any]:
        """What is solved here. Raises NoSolution, SolutionDamaged."""
        if self._identity is None:
            stored = self._read_identity()
            if stored is None:
                raise NoSolution(f"no solution at {self.location}")
            # One of the two may be damaged.
            if FORMAT.encode() not in stored and b'"identity"' not in stored:
                raise NoSolution(f"{self.location} holds something else than a {FORMAT}")
            record = parse_record(stored, self.location.shown(SOLUTION_NAME))
            self._identity = self.checked_identity(record)
        return self._identity

    def checked_identity(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record of a solution, of a version that can be read and true to its own hash."""
        if int(record.get("version", 0)) > FORMAT_VERSION:
            raise NoSolution(
                f"{self.location} has format {record['version']}; "
                f"this program reads up to {FORMAT_VERSION}"
            )
        facts = {name: value for name, value in record.items() if name != "identity"}
        if record.get("identity") != digest_of(facts):
            raise SolutionDamaged(
                f"{self.location.shown(SOLUTION_NAME)}: its identity is another's"
            )
        return record

    def create(self, facts: dict[str, Any]) -> None:
        """Make the directory a solution of these facts, or make sure that it is one."""
        wanted = {"format": FORMAT, "version": FORMAT_VERSION, **facts}
        if self.exists():
            found = self.identity()
            for name, value in wanted.items():
                if found.get(name) != value:
                    raise NoSolution(
                        f"{self.path} is solved with {name} {found.get(name)}; "
                        f"you asked for {value}"
                    )
            return
        self.write_record(SOLUTION_NAME, {**wanted, "identity": digest_of(wanted)})

    def create_kind(self, kind: str, facts: dict[str, Any]) -> None:
        """Write down what an objective's values are, before the first of its bands."""
        wanted = self.kind_record(facts)
        found = self.read_record(f"{kind}/{OBJECTIVE}")
        if found is None:
            self.write_record(f"{kind}/{OBJECTIVE}", wanted)
        elif found != wanted:
            raise SolutionDamaged(f"{self.path / kind / OBJECTIVE} is of another solution")

    def kind_record(self, facts: dict[str, Any]) -> dict[str, Any]:
        """The record of an objective's values: its facts, and their identity in this solution."""
        return {**facts, "identity": self._values_identity(facts)}

    def _values_identity(self, facts: dict[str, Any]) -> str:
        return digest_of({**facts, "solution": self.identity()["identity"]})

    def kind_identity(self, kind: str) -> str:
        """The hash that every manifest of a kind carries: of the solution, and the objective."""
        if kind not in self._identities:
            if kind == SETS:
                self._identities[kind] = str(self.identity()["identity"])
            else:
                record = self.record(kind, OBJECTIVE)
                where = self.location.shown(f"{kind}/{OBJECTIVE}")
                if record is None:
                    raise SolutionDamaged(f"{where} is missing")
                self._identities[kind] = str(record.pop("identity", ""))
                if self._identities[kind] != self._values_identity(record):
                    raise SolutionDamaged(f"{where} is of another solution")
        return self._identities[kind]

    def record(self, kind: str, name: str) -> dict[str, Any] | None:
        """A record of a kind, None if it is not there."""
        return self.read_record(f"{kind}/{name}")

    def result(self, kind: str) -> dict[str, Any] | None:
        """What a finished objective says, None before. Raises SolutionDamaged."""
        record = self.record(kind, RESULT)
        if record is not None and record.get("identity") != self.kind_identity(kind):
            raise SolutionDamaged(f"{kind}/{RESULT} is of another solution")
        return record

    def is_finished(self, kind: str) -> bool:
        """Whether the result of an objective is stored."""
        return self.read_record(f"{kind}/{RESULT}") is not None

    def clean(self) -> None:
        """Remove what a killed run left behind; the lock is held."""
        remove(self._new)

    @property
    def keep(self) -> str:
        """What is kept of what is solved here: "solution", "start" or "policy"."""
        return str(self.identity().get("keep", "solution"))

    @property
    def keeps_start_alone(self) -> bool:
        """Whether only the start values, counts and statistics stay of what is solved here."""
        return self.exists() and self.keep == "start"

    @property
    def drops_sets(self) -> bool:
        """Whether sets lie here only while they are needed; their counts stay."""
        return self.exists() and self.keep != "solution"

    def discard(self, name: str) -> None:
        """Remove a file or directory of the solution, at once or not at all. Raises NoSpace."""
        discarded = self._new / "discarded"
        remove(discarded)
        try:
            make_directory(self._new)
            with contextlib.suppress(FileNotFoundError):
                move(self.path / name, discarded)
        except OSError as error:
            raise NoSpace(f"{self.path / name} could not be removed: {error.strerror}") from error
        remove(discarded)

    def read_record(self, name: str) -> dict[str, Any] | None:
        """A JSON record, None if it is not there."""
        stored = self.location.read(name)
        return None if stored is None else parse_record(stored, self.location.shown(name))

    def read_run(self) -> dict[str, Any]:
        """Times of the runs so far: no part of the solution, so nothing depends on them."""
        try:
            return self.read_record("run.json") or {}
        except SolutionDamaged:
            return {}

    def write_record(self, name: str, record: dict[str, Any]) -> None:
        """Write or replace a JSON record, at once or not at all. Raises NoSpace."""
        path = self.path / name
        try:
            write_file(path, dump_record(record), self._new)
        except OSError as error:
            raise NoSpace(f"{path} could not be written: {error.strerror}") from error

    def remove_record(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def record_names(self, pattern: str) -> list[str]:
        """Paths below the solution that fit a pattern, in order."""
        return sorted(p.relative_to(self.path).as_posix() for p in self.path.glob(pattern))

    def objective_names(self, pattern: str) -> list[str]:
        """Paths that fit a pattern below the directory of any objective."""
        places = (f"{kinds}/*/{pattern}" for kinds in OBJECTIVE_ROOTS)
        return [name for place in places for name in self.record_names(place)]

    def quarantine(self, name: str) -> str:
        """Move a file or directory out of the solution; returns where it is now."""
        if (self.path / QUARANTINE).is_file():
            raise NoSolution(f"{self.path / QUARANTINE} is a file; move it away")
        number = 0
        while (target := self.path / QUARANTINE / str(number) / name).exists():
            number += 1
        move(self.path / name, target)
        self.forget()
        return target.relative_to(self.path).as_posix()

    @property
    def _scratch(self) -> Path:
        return self.path / "scratch"

    @property
    def _new(self) -> Path:
        return self._scratch / "new"

    def checkpoint(self, kind: str, age: int | None = None) -> Checkpoint:
        """The checkpoint of the pass that makes a kind: the last one, or one kept at an age."""
        identity = {"identity": self.kind_identity(kind)}
        name = kind.rsplit("/", 1)[-1]
        return Checkpoint(self._scratch, name if age is None else f"{name}-{age}", identity)
