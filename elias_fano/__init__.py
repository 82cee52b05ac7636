"""Succinct sets of integers in numpy and numba; see README.md in this package."""

from .partitioned import DamagedSet, PartitionedEliasFano, encode_bitmap

__all__ = ["DamagedSet", "PartitionedEliasFano", "encode_bitmap"]
