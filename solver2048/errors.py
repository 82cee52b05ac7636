"""Every error this package raises on purpose, and the exit code the command line gives it.

SolverError
├── UsageError            2  a wrong option, shape or combination of them
├── BoardError            3  a board that is malformed
│   └── ImpossibleBoard   3  a board with a tile that its shape cannot hold
├── UnreachableBoard      4  a proper board that no game can come to
├── NotSolved             5  the solution does not reach this board (yet)
├── NoSolution            6  nothing there, or a solution of another kind
├── SolutionInUse         7  another process is solving into the directory
├── SolutionDamaged       8  a stored part is missing or fails its checksum
├── SelfCheckFailed       8  a layer just computed differs from what the slow rules say
├── NoSpace               9  not enough disk or memory, or a write that failed
├── PublishedMismatch    10  a result differs from a published figure
└── RemoteFailed         11  a solution far away could not be read
"""

from __future__ import annotations


class SolverError(Exception):
    """Base of all errors of this package; the message is one line for the user."""

    exit_code = 1


class UsageError(SolverError):
    exit_code = 2


class BoardError(SolverError):
    exit_code = 3


class ImpossibleBoard(BoardError):
    pass


class UnreachableBoard(SolverError):
    exit_code = 4


class NotSolved(SolverError):
    exit_code = 5


class NoSolution(SolverError):
    exit_code = 6


class SolutionInUse(SolverError):
    exit_code = 7


class SolutionDamaged(SolverError):
    """A stored part that is not what was written.

    place : the directory that `repair` is for, where that is not the PATH of a command
    """

    exit_code = 8
    place: str | None = None


class SelfCheckFailed(SolverError):
    exit_code = 8


class NoSpace(SolverError):
    exit_code = 9


class PublishedMismatch(SolverError):
    exit_code = 10


class RemoteFailed(SolverError):
    exit_code = 11


INTERRUPTED_EXIT_CODE = 130
