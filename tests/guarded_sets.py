"""Damaged sets right before a page that may not be read: a query out of bounds ends the process."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np

from elias_fano import DamagedSet, EliasFano, PartitionedEliasFano

LIBRARY = ctypes.CDLL(None, use_errno=True)
LIBRARY.mmap.restype = ctypes.c_void_p
LIBRARY.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
PROT_NONE = 0


def before_a_guard(words):
    """The words in memory whose last byte is the last that may be read."""
    pages = -(-words.nbytes // mmap.PAGESIZE)
    region = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(region))
    guard = ctypes.c_void_p(address + pages * mmap.PAGESIZE)
    if LIBRARY.mprotect(guard, ctypes.c_size_t(mmap.PAGESIZE), PROT_NONE):
        sys.exit("no guard page to be had")
    start = pages * mmap.PAGESIZE - words.nbytes
    guarded = np.frombuffer(region, dtype=np.uint64, count=len(words), offset=start)
    guarded[:] = words
    return guarded


def ask_everything(stored):
    if stored.universe > 10**7 or len(stored) > 10**7:
        return
    values = np.unique(np.linspace(0, max(stored.universe, 1) * 1.01, 4000).astype(np.uint64))
    for queries in (values, values[::-1], values[:20]):
        assert stored.rank(queries).max() <= len(stored)
        assert stored.index_of(queries).max() < len(stored)
        stored.succ(queries)
        stored.pred(queries)
    if len(stored):
        stored.get(np.arange(len(stored)))
        stored.get(np.arange(len(stored))[::-7])
    stored.decode()


def main():
    rng = np.random.default_rng(int(sys.argv[1]))
    num_refused = num_asked = 0
    for _ in range(int(sys.argv[2])):
        count = int(rng.integers(1, 3000))
        gaps = rng.integers(1, 2 ** int(rng.integers(1, 12)), count)
        members = np.cumsum(gaps).astype(np.uint64)
        for kind, options in ((EliasFano, {}), (PartitionedEliasFano, {"bitmap_bias": 3.0})):
            words = kind.from_members(members, **options).words.copy()
            for _ in range(int(rng.integers(0, 4))):
                at = int(rng.integers(0, len(words)))
                if rng.random() < 0.5:
                    at = len(words) - 1 - at // 8
                words[at] = rng.choice([0, 2**64 - 1, words[at] ^ (1 << int(rng.integers(64)))])
            try:
                stored = kind(before_a_guard(words))
                ask_everything(stored)
                num_asked += 1
            except DamagedSet:
                num_refused += 1
    print(num_asked, num_refused)


if __name__ == "__main__":
    main()
