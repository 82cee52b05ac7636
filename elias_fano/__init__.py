"""Succinct sets of integers in numpy and numba; see README.md in this package."""

from .interface import DamagedSet, SortedSet
from .partitioned import Builder, PartitionedEliasFano, encode_bitmap, encode_members

__all__ = [
    "Builder",
    "DamagedSet",
    "PartitionedEliasFano",
    "SortedSet",
    "encode_bitmap",
    "encode_members",
]
