"""Places: what tells rows apart on whichever machine they are read, and the secret words that hang on it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.reading import as_dictionary, canonical, read
from incrowd.errors import InvalidParameter, SourceChanged, SourceInvalid

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Column
    from incrowd.core.table import RowFilter


@dataclass(frozen=True, eq=False)
class Positions:
    """The positions of rows in the one order of a source: files by name, rows as they lie in each file.

    >>> [run for run in Positions(np.array([7, 8, 9, 3, 4])).runs()]
    [(0, 3), (3, 5)]
    """

    numbers: NDArray[np.int64]

    def runs(self) -> Iterator[tuple[int, int]]:
        """Return from where to where, in this batch, positions follow each other."""
        ends = np.flatnonzero(np.diff(self.numbers) != 1) + 1
        starts = [0, *ends.tolist()]
        yield from zip(starts, [*ends.tolist(), len(self.numbers)], strict=True)

    def chosen(self, kept: RowFilter) -> NDArray[np.bool_]:
        """Return which of the rows are kept."""
        mask = np.zeros(len(self.numbers), np.bool_)
        for start, stop in self.runs():
            if stop > start:
                first = int(self.numbers[start])
                part = kept.at(first, first + stop - start)
                if len(part) != stop - start:
                    raise SourceChanged("there are more rows than when they were first read. Start again.")
                mask[start:stop] = part
        return mask

    def where(self, mask: NDArray[np.bool_]) -> Positions:
        """Return the places of some of the rows."""
        return Positions(self.numbers[mask])

    def blocks(self) -> NDArray[np.uint64]:
        """Return 128 bits for each row, no two rows the same."""
        return np.stack([self.numbers.astype(np.uint64), np.zeros(len(self.numbers), np.uint64)], axis=1)


@dataclass(frozen=True, eq=False)
class Ids:
    """The unique ids of rows: a whole number each, or for text the 128-bit hash of it."""

    words: NDArray[np.uint64]

    def chosen(self, kept: RowFilter) -> NDArray[np.bool_]:
        """Return which of the rows are kept."""
        of = getattr(kept, "of", None)
        if of is None:
            raise InvalidParameter("rows told apart by an id have no positions: this choice of rows cannot be applied.")
        mask: NDArray[np.bool_] = of(self.words)
        return mask

    def where(self, mask: NDArray[np.bool_]) -> Ids:
        """Return the places of some of the rows."""
        return Ids(self.words[mask])

    def blocks(self) -> NDArray[np.uint64]:
        """Return 128 bits for each row, no two rows the same."""
        if self.words.ndim == 2:
            return self.words
        return np.stack([self.words, np.zeros(len(self.words), np.uint64)], axis=1)


Places = Positions | Ids


def ids_of(array: pa.Array) -> Ids:
    """Return the ids in a column of whole numbers or of text; a missing one is refused.

    Whole numbers are themselves.  Text is hashed to 128 bits (BLAKE2b), where two of n different ids coincide with a
    chance of n² / 2^129.

    >>> ids_of(pa.array([7, -1], pa.int32())).words.tolist()
    [7, 18446744073709551615]
    >>> ids_of(pa.array(["a", "b"])).words.shape
    (2, 2)
    """
    if array.null_count:
        raise SourceInvalid("the id column has rows without an id. Every row needs one, and no two the same.")
    if pa.types.is_integer(array.type):
        return Ids(pc.cast(array, pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64))
    hashes = [hashlib.blake2b(each.encode(), digest_size=16).digest() for each in array.to_pylist()]
    return Ids(np.frombuffer(b"".join(hashes), "<u8").reshape(-1, 2))


_KEY_BYTES = 32
_WORD = 2**32


def fresh_key(coins: Coins) -> bytes:
    """Draw a key of 256 bits.

    >>> from incrowd.noise.system import SystemCoins
    >>> len(fresh_key(SystemCoins()))
    32
    """
    return coins.below(_WORD, _KEY_BYTES // 4).astype("<u4").tobytes()


def ranks(key: bytes, places: Places) -> pa.Array:
    """Return 16 bytes for each row by which rows can be put in a secret random order, the same wherever it is asked.

    They are AES-256 blocks of what tells rows apart: a permutation, so that no two rows tie.

    >>> from incrowd.engines.spark.places import Positions
    >>> first = ranks(bytes(32), Positions(np.array([4, 5, 6])))
    >>> first[1:].equals(ranks(bytes(32), Positions(np.array([5, 6])))), first.type
    (True, DataType(binary))
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305  a permutation, not a message
    blocks = places.blocks()
    return fixed(cipher.update(blocks.astype("<u8").tobytes()), len(blocks))


def people(key: bytes, array: pa.Array, column: Column) -> pa.Array:
    """Return 16 bytes for each row that stand for its person, null where there is none.

    People are told apart by the exact value of the column, read as its declared type.  The bytes are a keyed hash
    (BLAKE2b): what lies on the disks of workers names nobody.  Two of n people coincide with a chance of n² / 2^129.

    >>> from incrowd.core.schema import Column
    >>> found = people(bytes(32), pa.array(["a", None, "a", "b"]), Column("patient"))
    >>> found[0] == found[2], found[1].is_valid, found[0] == found[3]
    (True, False, False)
    """
    values, indices = as_dictionary(array)
    names = canonical(read(values, column.type).values).to_pylist()
    known = pa.array([None if name is None else hashed(key, name) for name in names], pa.binary())
    if indices is None:
        return known
    taken: NDArray[np.integer] = indices
    return known.take(pa.array(taken, mask=taken == len(values)))


def hashed(key: bytes, name: str) -> bytes:
    """Return the 16 bytes that stand under a key for a person of this name.

    >>> len(hashed(bytes(32), "ann"))
    16
    """
    return hashlib.blake2b(name.encode(), key=key, digest_size=16).digest()


def fixed(content: bytes, length: int) -> pa.Array:
    """Return an array of `length` binary values that lie end to end, all equally long.

    >>> fixed(b"abcd", 2).to_pylist()
    [b'ab', b'cd']
    """
    width = len(content) // length if length else 1
    whole = pa.Array.from_buffers(pa.binary(width), length, [None, pa.py_buffer(content)])
    return whole.cast(pa.binary())
