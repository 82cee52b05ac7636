"""The kinds of set: which one some words are, and building one from a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from numpy.typing import ArrayLike

from .builder import SetBuilder
from .interface import DamagedSet, SortedSet, Words, WordSource
from .partition_builder import MAGIC as PARTITIONED_MAGIC
from .partition_builder import PartitionedBuilder
from .partitioned import PartitionedEliasFano
from .sequence import MAGIC as SEQUENCE_MAGIC
from .sequence import EliasFano, SequenceBuilder

Kind = type[EliasFano] | type[PartitionedEliasFano]


def open_words(source: WordSource) -> SortedSet:
    """The set that some words hold, of whichever kind. Raises DamagedSet."""
    first = source[0:1]
    magic = int(first[0]) if len(first) else 0
    if magic == PARTITIONED_MAGIC:
        return PartitionedEliasFano(source)
    if magic == SEQUENCE_MAGIC:
        return EliasFano(source)
    raise DamagedSet("no set: the first word is the magic of none")


@contextmanager
def built_from(
    chunks: Iterable[ArrayLike],
    universe: int,
    kind: Kind,
    count: int | None,
    spool_directory: Path,
    options: dict[str, float],
) -> Iterator[tuple[int, Iterator[Words]]]:
    """(number of words, the words piece by piece) of the set of sorted chunks.

    What is finished meanwhile lies in nameless files in `spool_directory`, so that memory stays
    bounded by a chunk. Raises TypeError, ValueError for what cannot be a set, OSError.
    """
    builder: SetBuilder
    if kind is EliasFano:
        if count is None:
            raise ValueError("an EliasFano sequence is built for a `count` known beforehand")
        builder = SequenceBuilder(universe, count, spool_directory=spool_directory)
    else:
        builder = PartitionedBuilder(universe, spool_directory=spool_directory, **options)  # type: ignore[arg-type]
    with builder:
        for chunk in chunks:
            builder.push(chunk)
        yield builder.pieces(count)
