"""FilePieces: the files of a source as they were first seen, and where in its one order each file begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import SourceChanged, SourceUnreadable

_CHANGED = "a file of the source changed while it was in use. Start again when nobody writes to it."


@dataclass(frozen=True)
class Piece:
    """A file: its stamp, its path, and how many rows it has.

    The stamp is a number made of path, size and time of the last change: who reads the file later makes it again, and a
    file that changed has another.
    """

    stamp: int
    path: str
    rows: int


@dataclass(frozen=True)
class FilePieces:
    """The files in the order of their names.

    >>> pieces = FilePieces.of([Piece(11, "file:/data/b.parquet", 5), Piece(12, "file:/data/a.parquet", 3)])
    >>> pieces.positions(np.array([12, 12, 11]), np.array([0, 2, 4])).tolist()
    [0, 2, 7]
    """

    files: tuple[Piece, ...]

    @classmethod
    def of(cls, found: Iterable[Piece]) -> FilePieces:
        """Put files in order; two with the same stamp could not be told apart, and are refused."""
        files = tuple(sorted(found, key=lambda piece: _parts(piece.path)))
        if len({piece.stamp for piece in files}) < len(files):
            raise SourceUnreadable("two files of the source cannot be told apart. Give one of them another name.")
        return cls(files)

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return sum(piece.rows for piece in self.files)

    @cached_property
    def _starts(self) -> dict[int, tuple[int, int]]:
        starts, start = {}, 0
        for piece in self.files:
            starts[piece.stamp] = start, piece.rows
            start += piece.rows
        return starts

    def start(self, stamp: int, rows: int) -> int:
        """Return where a file begins of which so many rows were read, or refuse one that is not as it was."""
        start, known = self._starts.get(stamp, (0, -1))
        if rows > known:
            raise SourceChanged(_CHANGED)
        return start

    def positions(self, stamps: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of rows, given the stamp of each one's file and its place in there."""
        positions = rows.astype(np.int64)
        ends = [*(np.flatnonzero(np.diff(stamps)) + 1).tolist(), len(stamps)]
        begin = 0
        for end in ends:
            if end > begin:
                positions[begin:end] += self.start(int(stamps[begin]), int(rows[begin:end].max()) + 1)
            begin = end
        return positions


def read_in_full(pieces: FilePieces | None, rows: int) -> None:
    """Raise if a pass read another number of rows than the files have: one was added, or removed."""
    if pieces is not None and rows != pieces.rows:
        raise SourceChanged(_CHANGED)


def unchanged(pieces: FilePieces | None, stamps: frozenset[int]) -> None:
    """Raise if files have other stamps after a pass than they had when they were first listed."""
    if pieces is not None and stamps != {piece.stamp for piece in pieces.files}:
        raise SourceChanged(_CHANGED)


def name_of(path: str) -> str:
    """Return the last part of the path of a file.

    >>> name_of("s3a://bucket/visits/part%201.csv")
    'part 1.csv'
    """
    return _parts(path)[-1]


def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(unquote(path.partition("://")[2] or path.removeprefix("file:"))).parts or ("",)
