"""Amounts of memory and disk as people write them, and what this machine has."""

from __future__ import annotations

import os
import re
from pathlib import Path

from .errors import UsageError

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
         "KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30, "TI": 1 << 40}  # fmt: skip

MEMORY_MARGIN_SHARE, MEMORY_MARGIN_BYTES = 0.05, 256 << 20
"""What is left to everything else on the machine, unless told otherwise."""

CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def parse_bytes(text: str) -> int:
    """The number of bytes in a text such as 20GiB, 60 GB or 1.5T. Raises UsageError.

    >>> parse_bytes("20GiB"), parse_bytes("1.5 gb"), parse_bytes("4096")
    (21474836480, 1500000000, 4096)
    """
    match = re.fullmatch(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([KMGT]?I?)B?\s*", text.upper())
    if not match or match[2] not in UNITS:
        raise UsageError(f"{text!r} is no amount of bytes, such as 20GiB, 60GB or 500M")
    return int(float(match[1]) * UNITS[match[2]])


def memory_bytes() -> int:
    """Memory that this process may use: the machine's, or less where a container is limited."""
    amounts = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in CGROUP_LIMITS:
        try:
            amounts.append(int(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such limit, or "max"
            continue
    return min(amounts)


def default_memory_bytes() -> int:
    """What a solve may take unless told otherwise: the machine's memory, less a margin."""
    memory = memory_bytes()
    return memory - int(MEMORY_MARGIN_SHARE * memory) - MEMORY_MARGIN_BYTES
