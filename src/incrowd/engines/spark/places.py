"""Places: what identifies a row on whichever machine it is read, its position or its id; and its secret rank."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.coins import Sample
from incrowd.engines.people import names_of
from incrowd.errors import InvalidParameter, SourceChanged, SourceInvalid, SourceUnreadable

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Column
    from incrowd.core.table import RowFilter

CHANGED = "a file of the source changed while it was in use. Start again when nobody writes to it."


@dataclass(frozen=True)
class Piece:
    """A file: its stamp, its path, and how many rows it has.

    The stamp is a number computed from path, size and time of the last change.  A later reader computes it again: a
    file that changed has another stamp.
    """

    stamp: int
    path: str
    rows: int


@dataclass(frozen=True)
class FilePieces:
    """The files of a source in the order of their names, which is the order of its rows.

    >>> pieces = FilePieces.of([Piece(11, "file:/data/b.parquet", 5), Piece(12, "file:/data/a.parquet", 3)])
    >>> pieces.positions(np.array([12, 12, 11]), np.array([0, 2, 4])).tolist()
    [0, 2, 7]
    """

    files: tuple[Piece, ...]

    @classmethod
    def of(cls, pieces: Iterable[Piece]) -> FilePieces:
        """Sort files by name; refuse two with the same stamp, since a row could be in either."""
        files = tuple(sorted(pieces, key=lambda piece: _parts(piece.path)))
        if len({piece.stamp for piece in files}) < len(files):
            raise SourceUnreadable("two files of the source have the same stamp. Give one of them another name.")
        return cls(files)

    @property
    def rows(self) -> int:
        """The number of rows in all files."""
        return sum(piece.rows for piece in self.files)

    @cached_property
    def _starts(self) -> dict[int, tuple[int, int]]:
        starts, start = {}, 0
        for piece in self.files:
            starts[piece.stamp] = start, piece.rows
            start += piece.rows
        return starts

    def start(self, stamp: int, rows: int) -> int:
        """Return the position of a file's first row; refuse a file with more rows than it had when it was listed."""
        start, listed = self._starts.get(stamp, (0, -1))
        if rows > listed:
            raise SourceChanged(CHANGED)
        return start

    def positions(self, stamps: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of rows from the stamp of each row's file and the row's number in it."""
        positions = rows.astype(np.int64)
        ends = [*(np.flatnonzero(np.diff(stamps)) + 1).tolist(), len(stamps)]
        begin = 0
        for end in ends:
            if end > begin:
                positions[begin:end] += self.start(int(stamps[begin]), int(rows[begin:end].max()) + 1)
            begin = end
        return positions


def read_in_full(pieces: FilePieces | None, rows: int) -> None:
    """Raise if a pass read another number of rows than the files have: a file was added or removed."""
    if pieces is not None and rows != pieces.rows:
        raise SourceChanged(CHANGED)


def unchanged(pieces: FilePieces | None, stamps: frozenset[int]) -> None:
    """Raise if the files have other stamps than when they were first listed."""
    if pieces is not None and stamps != {piece.stamp for piece in pieces.files}:
        raise SourceChanged(CHANGED)


def name_of(path: str) -> str:
    """Return the last part of a path.

    >>> name_of("s3a://bucket/visits/part%201.csv")
    'part 1.csv'
    """
    return _parts(path)[-1]


def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(unquote(path.partition("://")[2] or path.removeprefix("file:"))).parts or ("",)


@dataclass(frozen=True, eq=False)
class Positions:
    """The positions of rows in the order of a source: files by name, rows as they lie in each file.

    >>> [run for run in Positions(np.array([7, 8, 9, 3, 4])).runs()]
    [(0, 3), (3, 5)]
    """

    numbers: NDArray[np.int64]

    def runs(self) -> Iterator[tuple[int, int]]:
        """Return the ranges of this batch in which positions are consecutive."""
        ends = np.flatnonzero(np.diff(self.numbers) != 1) + 1
        starts = [0, *ends.tolist()]
        yield from zip(starts, [*ends.tolist(), len(self.numbers)], strict=True)

    def chosen(self, row_filter: RowFilter) -> NDArray[np.bool_]:
        """Return which of the rows a filter keeps."""
        mask = np.zeros(len(self.numbers), np.bool_)
        for start, stop in self.runs():
            if stop > start:
                first = int(self.numbers[start])
                part = row_filter.at(first, first + stop - start)
                if len(part) != stop - start:
                    raise SourceChanged("there are more rows than when they were first read. Start again.")
                mask[start:stop] = part
        return mask

    def where(self, mask: NDArray[np.bool_]) -> Positions:
        """Return the places of the rows in a mask."""
        return Positions(self.numbers[mask])

    def blocks(self) -> NDArray[np.uint64]:
        """Return 128 bits for each row, different for different rows."""
        return np.stack([self.numbers.astype(np.uint64), np.zeros(len(self.numbers), np.uint64)], axis=1)


@dataclass(frozen=True, eq=False)
class Ids:
    """The unique ids of rows: a whole number each, or for text the 128-bit hash of it."""

    words: NDArray[np.uint64]

    def chosen(self, row_filter: RowFilter) -> NDArray[np.bool_]:
        """Return which of the rows a filter keeps."""
        if not isinstance(row_filter, Sample):
            raise InvalidParameter("rows identified by an id have no positions: this filter needs positions.")
        return row_filter.of(self.words)

    def where(self, mask: NDArray[np.bool_]) -> Ids:
        """Return the places of the rows in a mask."""
        return Ids(self.words[mask])

    def blocks(self) -> NDArray[np.uint64]:
        """Return 128 bits for each row, different for different rows."""
        if self.words.ndim == 2:
            return self.words
        return np.stack([self.words, np.zeros(len(self.words), np.uint64)], axis=1)


Places = Positions | Ids


def ids_of(array: pa.Array) -> Ids:
    """Return the ids in a column of whole numbers or of text; a missing one is refused.

    Whole numbers are themselves.  Text is hashed to 128 bits (BLAKE2b): some two of n different ids have the same hash
    with probability at most n² / 2^129.

    >>> ids_of(pa.array([7, -1], pa.int32())).words.tolist()
    [7, 18446744073709551615]
    >>> ids_of(pa.array(["a", "b"])).words.shape
    (2, 2)
    """
    if array.null_count:
        raise SourceInvalid("the id column has rows without an id. Every row needs one, and no two the same.")
    if pa.types.is_integer(array.type):
        return Ids(pc.cast(array, pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64))
    hashes = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in array.to_pylist()]
    return Ids(np.frombuffer(b"".join(hashes), "<u8").reshape(-1, 2))


_KEY_BYTES = 32  # AES-256, as for samples
_WORD = 2**32


def fresh_key(coins: Coins) -> bytes:
    """Draw a key of 256 bits.

    >>> from incrowd.noise.system import SystemCoins
    >>> len(fresh_key(SystemCoins()))
    32
    """
    return coins.below(_WORD, _KEY_BYTES // 4).astype("<u4").tobytes()


def ranks(key: bytes, places: Places) -> pa.Array:
    """Return 16 bytes for each row that put rows in a secret random order, the same in every task.

    They are AES-256 blocks of the rows' places: a permutation, so that no two rows tie.

    >>> first = ranks(bytes(32), Positions(np.array([4, 5, 6])))
    >>> first[1:].equals(ranks(bytes(32), Positions(np.array([5, 6])))), first.type
    (True, DataType(binary))
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305  a permutation, not a message
    blocks = places.blocks()
    return fixed(cipher.update(blocks.astype("<u8").tobytes()), len(blocks))


def people(key: bytes, array: pa.Array, column: Column) -> pa.Array:
    """Return a keyed hash (BLAKE2b) of each row's person, 16 bytes; null where there is none.

    A person is an exact value of the column, read as its declared type.  Without the key, what lies on the disks of
    workers names nobody.  Some two of n people have the same hash with probability at most n² / 2^129.

    >>> from incrowd.core.schema import Column
    >>> hashes = people(bytes(32), pa.array(["a", None, "a", "b"]), Column("patient"))
    >>> hashes[0] == hashes[2], hashes[1].is_valid, hashes[0] == hashes[3]
    (True, False, False)
    """
    names = names_of(array, column)
    hashes = pa.array([hashed(key, name) for name in names.dictionary.to_pylist()], pa.binary())
    return hashes.take(names.indices)


def hashed(key: bytes, name: str) -> bytes:
    """Return the keyed hash of a person's id, 16 bytes.

    >>> len(hashed(bytes(32), "ann"))
    16
    """
    return hashlib.blake2b(name.encode(), key=key, digest_size=16).digest()


def fixed(content: bytes, length: int) -> pa.Array:
    """Return an array of `length` binary values of equal size that lie end to end.

    >>> fixed(b"abcd", 2).to_pylist()
    [b'ab', b'cd']
    """
    width = len(content) // length if length else 1
    whole = pa.Array.from_buffers(pa.binary(width), length, [None, pa.py_buffer(content)])
    return whole.cast(pa.binary())
