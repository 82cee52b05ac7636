"""The lock on a solution's directory: whoever holds it is the one that writes there.

Nothing heavy is imported here: a second solve must find out before it has loaded anything else.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

from .errors import NoSolution, SolutionInUse, UsageError
from .location import check_directory

NAME = "lock"
SOLUTION_NAME = "solution.json"
OBJECTIVE_ROOTS = ("values", "policy")
"""Directories of the kinds of which each objective has one."""
KINDS = ("sets", *OBJECTIVE_ROOTS)
OURS_BEFORE_A_SOLUTION = {NAME, "scratch"}
"""What may be in a directory that holds no solution yet."""

NAME_SECONDS = 0.1
"""How long to wait for the holder's name: it writes it right after it has the lock."""


class DirectoryLock:
    """A `with` block in which no other process, and no other thread, writes to a directory.

    The same object may be entered again inside the block. The lock ends with the process, however
    that ends. Entering makes the directory, unless `is_made` says that a solution has to be there.
    Raises SolutionInUse, and NoSolution where there cannot be one.
    """

    def __init__(self, path: str | os.PathLike[str], *, is_made: bool = False) -> None:
        check_directory(path)
        self.path = Path(path)
        self._is_made = is_made
        self._file: TextIO | None = None
        self._depth = 0

    def __enter__(self) -> DirectoryLock:
        if self._file is None:
            self._check_place()
            self._file = self._acquire()
        self._depth += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self._depth -= 1
        if self._depth == 0 and self._file is not None:
            file, self._file = self._file, None
            with contextlib.suppress(OSError), file:
                file.truncate(0)

    def _check_place(self) -> None:
        """Make the directory, unless something else is there."""
        is_solution = (self.path / SOLUTION_NAME).is_file()
        if self._is_made:
            # What else there is of a solution may bring back a record that is lost.
            if not is_solution and not any((self.path / kind).is_dir() for kind in KINDS):
                raise NoSolution(f"no solution at {self.path}")
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = set(os.listdir(self.path)) - OURS_BEFORE_A_SOLUTION
        except OSError as error:
            raise NoSolution(f"{self.path} cannot be a solution: {error.strerror}") from None
        if others and not is_solution:
            raise NoSolution(
                f"{self.path} is not empty and holds no solution; choose another place"
            )

    def _acquire(self) -> TextIO:
        import fcntl

        try:
            file = open(self.path / NAME, "a+", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise NoSolution(f"{self.path} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with file:
                holder = _holder(file)
            raise SolutionInUse(f"{self.path} is in use by {holder}; nothing changed") from None
        except OSError as error:
            file.close()
            raise NoSolution(f"{self.path} cannot be locked: {error.strerror}") from None
        # Who holds it is for people; a disk too full to say so is no reason to stop here.
        with contextlib.suppress(OSError):
            file.truncate(0)
            file.write(f"process {os.getpid()} since {time.strftime('%Y-%m-%d %H:%M:%S')}")
            file.flush()
        return file


def check_source(source: str | os.PathLike[str], out: str | os.PathLike[str]) -> None:
    """Make sure that there is a solution to make another from, not in or below it.

    Looked at before `out` is made. Raises NoSolution, UsageError.
    """
    check_directory(source)
    place, target = Path(source).resolve(), Path(out).resolve()
    if not (place / SOLUTION_NAME).is_file():
        raise NoSolution(f"no solution at {source}")
    if place == target or place in target.parents:
        raise UsageError(f"{out} is what is to be packed, or below it: choose another directory")


def running_process(path: str | os.PathLike[str]) -> int | None:
    """The process that holds the lock on a directory, None if none does.

    Goes by what its holder wrote there, so that a solve that starts meanwhile is not disturbed.
    """
    try:
        words = (Path(path) / NAME).read_text(encoding="utf-8").split()
        process = int(words[1])
        os.kill(process, 0)  # whether it is there; no signal is sent
    except PermissionError:  # another user's
        return process
    except (OSError, ValueError, IndexError, OverflowError):
        return None
    return process


def _holder(file: TextIO) -> str:
    deadline = time.monotonic() + NAME_SECONDS
    while True:
        file.seek(0)
        name = file.read().strip()
        if name or time.monotonic() > deadline:
            return name or "another process"
        time.sleep(NAME_SECONDS / 10)
