"""Places: what tells the rows of a batch apart on whichever machine they are read; coins hang on it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter, SourceChanged, SourceInvalid

if TYPE_CHECKING:
    from incrowd.core.table import Kept


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

    def chosen(self, kept: Kept) -> NDArray[np.bool_]:
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

    def blocks(self) -> NDArray[np.uint64]:
        """Return 128 bits for each row, no two rows the same."""
        return np.stack([self.numbers.astype(np.uint64), np.zeros(len(self.numbers), np.uint64)], axis=1)


@dataclass(frozen=True, eq=False)
class Ids:
    """The unique ids of rows: a whole number each, or for text the 128-bit hash of it."""

    words: NDArray[np.uint64]

    def chosen(self, kept: Kept) -> NDArray[np.bool_]:
        """Return which of the rows are kept."""
        of = getattr(kept, "of", None)
        if of is None:
            raise InvalidParameter("rows told apart by an id have no positions: this choice of rows cannot be applied.")
        mask: NDArray[np.bool_] = of(self.words)
        return mask

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
