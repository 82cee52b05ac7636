"""What may be asked of a solve, checked before heavy imports and before anything is written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .errors import UsageError
from .shape import Shape

DEFAULT_SPAWN4 = 0.1
DEFAULT_VALUES = "float32"
DEFAULT_IDS = "index"

KEEPS = ("solution", "start", "policy")
"""What stays of a solve: sets and values; the start values, counts and statistics; or a policy."""

EVERY_STATE, STATES_MET = REACHES = ("all", "optimal")
"""The states of a policy table: all, or those that optimal play meets from a random start."""
DEFAULT_DISK = 60 << 30
DEFAULT_CHECK = 0.01
CHECKPOINT_SECONDS = 300.0
"""Between two checkpoints of a backward pass."""

LEVELS = ("quick", "sampled", "full", "semantic")
"""How much `verify` checks."""
DEFAULT_SAMPLE = 2000
DEFAULT_SHARE = 0.01


@dataclass(frozen=True)
class SolveOptions:
    """What to solve and how; None takes what the directory has, else the default.

    memory_bytes : what it may take; force : go on even if it is forecast not to fit
    overlaps : whether bands are read and written beside the one computed; off where memory is short
    keep : one of `KEEPS`; disk : bytes that sets and checkpoints may take where no sets are kept
    check : share of the time that goes into computing samples of every layer again
    checkpoint_seconds : between two checkpoints of a pass downward, or over what is met
    """

    objective: str = "score"
    values: str | None = None
    spawn4: float | None = None
    ids: str | None = None
    keep: str | None = None
    disk: int | None = None
    check: float = DEFAULT_CHECK
    threads: int | None = None
    max_age: int | None = None
    memory_bytes: int | None = None
    force: bool = False
    overlaps: bool = True
    expected_counts: dict[int, int] = field(default_factory=dict)
    show_progress: bool = False
    checkpoint_seconds: float = CHECKPOINT_SECONDS


def check_options(
    shape: Shape,
    *,
    objective: str,
    values: str | None,
    spawn4: float | None,
    threads: int | None,
    max_age: int | None,
) -> None:
    """Raise UsageError for options that no solve of this shape can follow."""
    max_value = 1 if parse_tile_exponent(objective, shape) else shape.max_score
    if spawn4 is not None and not 0.0 < spawn4 < 1.0:
        raise UsageError(f"the probability of a 4 is {spawn4}; it must lie between 0 and 1")
    check_threads(threads)
    if max_age is not None and max_age < 4:
        raise UsageError(f"max age {max_age}: the first age is 4")
    parse_fraction_bits(values or DEFAULT_VALUES, max_value)


def check_mode(options: SolveOptions) -> None:
    """Raise UsageError for options of `keep`, `disk` and `check` that contradict each other."""
    if options.keep not in (None, *KEEPS):
        raise UsageError(f"keep {options.keep!r} is none of {', '.join(KEEPS)}")
    if options.keep in ("start", "policy") and options.values is not None:
        raise UsageError(f"values {options.values}: keep {options.keep} stores no other values")
    if options.keep == "policy" and options.max_age is not None:
        raise UsageError("a policy needs all ages: leave max age out")
    if options.keep == "solution" and options.disk is not None:
        raise UsageError("a budget of disk space is for keep start and keep policy")
    if options.disk is not None and options.disk < 1:
        raise UsageError(f"disk {options.disk}: a number of bytes is needed")
    if not 0 <= options.check <= 1:
        raise UsageError(f"check {options.check}: a share of the time lies between 0 and 1")


def check_threads(threads: int | None) -> None:
    """Raise UsageError for a number of threads that cannot be."""
    if threads is not None and threads < 1:
        raise UsageError(f"{threads} threads; at least 1 is needed")


def parse_tile_exponent(objective: str, shape: Shape) -> int:
    """The exponent of the tile in ``tile:N``, 0 for ``score``; an impossible tile is refused."""
    if objective == "score":
        return 0
    match = re.fullmatch(r"tile:([0-9]{1,9})", objective)
    if not match:
        raise UsageError(
            f"objective {objective!r} is neither 'score' nor 'tile:N', such as tile:256"
        )
    tile = int(match[1])
    if tile < 2 or tile & (tile - 1):
        raise UsageError(f"objective {objective}: {tile} is not a tile (2, 4, 8, ...)")
    if tile > 2**shape.max_exponent:
        raise UsageError(
            f"objective {objective}: no {shape.name} board can hold that tile; "
            f"the largest is {2**shape.max_exponent}"
        )
    return tile.bit_length() - 1


def parse_fraction_bits(values: str, max_value: int) -> int | None:
    """The K of ``fixed:K``, None for floats; refused where 32 bits do not hold `max_value`."""
    if values in ("float32", "float64"):
        return None
    match = re.fullmatch(r"fixed:([0-9]{1,2})", values)
    if not match:
        raise UsageError(
            f"values {values!r} are neither float32, float64 nor fixed:K (fixed:6, say)"
        )
    fraction_bits = int(match[1])
    # The largest 32-bit number marks what is missing.
    largest = 32 - (max_value + 1).bit_length()
    if fraction_bits > largest:
        raise UsageError(
            f"values {values}: 32 bits do not hold values up to {max_value:,} in steps of "
            f"2^-{fraction_bits}; the finest here is fixed:{largest}"
        )
    return fraction_bits
