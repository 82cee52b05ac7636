"""What a check of a solution found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .errors import PublishedMismatch, SolutionDamaged, SolverError


@dataclass(frozen=True)
class Problem:
    """Something wrong.

    subject : path, below the solution, of the band or file that is damaged or missing
    otherwise : the path that is, where `subject` turns out to be what it should
    """

    subject: str
    error: SolverError
    otherwise: str = ""


@dataclass
class Findings:
    """What was checked, and what was found wrong."""

    checks: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def errors(self) -> list[SolverError]:
        return [problem.error for problem in self.problems]

    @property
    def subjects(self) -> set[str]:
        return {problem.subject for problem in self.problems}

    def gravest(self) -> SolverError | None:
        """The error to end with, damage before a differing figure; None if all is well."""
        return min(self.errors, key=lambda e: isinstance(e, PublishedMismatch), default=None)

    def add(self, subject: str, message: str, otherwise: str = "") -> None:
        """Note damage, unless some is known of the same subject."""
        if subject not in self.subjects:
            self.problems.append(Problem(subject, SolutionDamaged(message), otherwise))

    def attempt(self, subject: str, check: Callable[[], str | None]) -> bool:
        """Run a check that returns what it found in order, if that is worth a line."""
        try:
            found = check()
        except SolverError as error:
            self.problems.append(Problem(subject, error))
            return False
        if found:
            self.checks.append(found)
        return True
