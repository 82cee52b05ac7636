"""Succinct sets of integers in numpy and numba; see README.md in this package."""

from .files import open_file, save_file, write_file
from .groups import open_group, write_group
from .interface import DamagedSet, SortedSet
from .partition_builder import PartitionedBuilder, encode_bitmap, encode_members
from .partitioned import PartitionedEliasFano
from .sequence import EliasFano, SequenceBuilder

__all__ = [
    "DamagedSet",
    "EliasFano",
    "PartitionedBuilder",
    "PartitionedEliasFano",
    "SequenceBuilder",
    "SortedSet",
    "encode_bitmap",
    "encode_members",
    "open_file",
    "open_group",
    "save_file",
    "write_file",
    "write_group",
]
