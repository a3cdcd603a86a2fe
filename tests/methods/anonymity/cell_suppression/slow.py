"""The fewest cells by trying everything, and the two senses of missing counted row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from incrowd.methods.anonymity.cell_suppression.cells import Parts, VisibleTuples

Row = tuple[int, ...]
"""What a row shows in each column; 0 stands for missing."""


def shown_of(rows: Sequence[Row]) -> VisibleTuples:
    """Return the tuples of rows."""
    tuples, counts = np.unique(np.array(rows), axis=0, return_counts=True)
    return VisibleTuples(np.ascontiguousarray(tuples.T).astype(np.int32), counts.astype(np.int64))


def rows_of(shown: VisibleTuples, parts: Parts | None = None) -> list[Row]:
    """Return one row for each row of the tuples, or of their parts."""
    codes, rows = shown.codes.T, shown.rows
    if parts is not None:
        codes, rows = np.where(parts.blank, 0, codes[parts.tuples]), parts.rows
    return [tuple(map(int, row)) for row in np.repeat(codes, rows, axis=0)]


def fewest_alike(rows: Sequence[Row], columns: Sequence[int] | None = None) -> int:
    """Return how often the rarest combination occurs."""
    named = range(len(rows[0])) if columns is None else columns
    return min(Counter(tuple(row[column] for column in named) for row in rows).values())


def matches(one: Row, other: Row, columns: Sequence[int] | None = None) -> bool:
    """Return whether two rows agree wherever both show something."""
    named = range(len(one)) if columns is None else columns
    return all(one[c] == other[c] or not one[c] or not other[c] for c in named)


def fewest_matching(rows: Sequence[Row], columns: Sequence[int] | None = None) -> int:
    """Return how many rows match the row that fewest match."""
    return min(sum(matches(one, other, columns) for other in rows) for one in rows)


def fewest_cells(rows: Sequence[Row], k: int) -> int:
    """Return the fewest cells that must be left out so that every combination occurs k times.

    Rows that then look alike are a class of k or more, and lose every cell in which they differ; so it is the cheapest
    of all ways to divide the rows into classes.
    """
    return min(
        sum(_cells([rows[place] for place in group]) for group in groups) for groups in _divided(range(len(rows)), k)
    )


def _cells(rows: Sequence[Row]) -> int:
    return sum(sum(map(bool, column)) for column in zip(*rows, strict=True) if len(set(column)) > 1)


def _divided(places: Sequence[int], k: int) -> Iterator[list[Sequence[int]]]:
    if not places:
        yield []
        return
    first, *rest = places
    for size in range(k - 1, len(rest) + 1):
        for others in combinations(rest, size):
            left = [place for place in rest if place not in others]
            if not left or len(left) >= k:
                yield from ([(first, *others), *more] for more in _divided(left, k))
