"""Succinct sets of integers in numpy and numba; see README.md in this package."""

from .interface import DamagedSet, SortedSet
from .partitioned import Builder, PartitionedEliasFano, encode_bitmap, encode_members
from .sequence import EliasFano, SequenceBuilder

__all__ = [
    "Builder",
    "DamagedSet",
    "EliasFano",
    "PartitionedEliasFano",
    "SequenceBuilder",
    "SortedSet",
    "encode_bitmap",
    "encode_members",
]
