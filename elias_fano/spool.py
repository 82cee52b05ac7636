"""Words that are appended piece by piece and read again in order, in memory or in a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

PIECE_WORDS = 1 << 17
"""Words of a piece read back from a file, 1 MiB."""


class Spool:
    """Words in the order in which they were appended.

    directory : where to keep them, in a nameless file; None: in memory
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._pieces: list[Words] = []
        self._file: IO[bytes] | None = None
        if directory is not None:
            self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, words: Words) -> None:
        """Append words, which must not change afterwards. Raises OSError on a full disk."""
        self._length += len(words)
        if self._file is None:
            self._pieces.append(words)
        else:
            self._file.write(words.astype("<u8", copy=False).tobytes())

    def pieces(self) -> Iterator[Words]:
        """All words, a piece after another."""
        if self._file is None:
            yield from self._pieces
            return
        self._file.seek(0)
        while piece := self._file.read(8 * PIECE_WORDS):
            yield np.frombuffer(piece, dtype="<u8")

    def close(self) -> None:
        """Drop the words."""
        self._pieces.clear()
        if self._file is not None:
            self._file.close()


def regrouped(pieces: Iterable[Words], size: int) -> Iterator[Words]:
    """The same words in blocks of `size`, the last maybe short; each lasts until the next."""
    block = np.empty(size, dtype=np.uint64)
    filled = 0
    for piece in pieces:
        while len(piece):
            part = piece[: size - filled]
            block[filled : filled + len(part)] = part
            piece = piece[len(part) :]
            filled += len(part)
            if filled == size:
                yield block
                filled = 0
    if filled:
        yield block[:filled]
