"""Association: how far two columns are from independent, in rows, as a whole number that one row moves by two."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts

MOVED = 2
"""The most by which one row, added or removed, moves the association of two columns."""
_SQUARES_FIT = 2**31  # below it n² fits into 63 bits


def association(counts: Counts) -> int:
    """Return the association of the two columns that were counted, rounded down to whole rows.

    With n rows, n(a, b) of them showing a and b, it is S = Σ max(0, n(a, b) − n(a)·n(b)/n): half the distance between
    the table and the one that independent columns with the same counts would give; 0 if they are independent.

    One row moves it by at most `MOVED`.  Proof.  Let x(a, b) = n(a, b) − n(a)·n(b)/n, let the new row show (s, t), and
    u = n(s), v = n(t) before it came.  Write q = (n − u)(n − v)/(n(n + 1)).  A line of arithmetic for each kind of cell
    gives what the row adds to x: q at (s, t); −q·n(b)/(n − v) at (s, b) for b ≠ t, together −q; likewise together −q at
    (a, t) for a ≠ s; and n(a)·n(b)/(n(n + 1)) elsewhere, together q.  So all that rises adds up to 2q, as does all that
    falls, and S, a sum of positive parts, moves by at most 2q ≤ 2n/(n + 1) < 2.  The first row of a table moves S from
    0 to 0.  Two numbers less than 2 apart are at most 2 apart when rounded down.  For several rows, one after the
    other, the numbers before rounding move by less than 2 each.  ∎

    The bound cannot be improved: a row with two new values beside n rows of independent columns adds 2n/(n + 1).

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column
    >>> one, other = (Recoding(Column(name, hierarchy=Flat(Categories(("x", "y")))), 0).classes for name in "ab")
    >>> association(Counts((one, other), np.array([0, 5]), np.array([30, 30])))   # always alike: x with x, y with y
    30
    """
    total = counts.total
    if not total:
        return 0
    kind = np.int64 if total < _SQUARES_FIT else object
    first, second = counts.codes()
    together = counts.counts.astype(kind)
    ones, others = (_marginal(codes, counts.counts).astype(kind) for codes in (first, second))
    excess = np.maximum(together * total - ones[first] * others[second], 0)
    return int(excess.sum()) // total


def associations(counts: Counts) -> NDArray[np.int64]:
    """Return the associations of all pairs of the columns that were counted, as a symmetric table with an empty middle.

    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column
    >>> associations(Counts((Recoding(Column("zip"), 1).classes,), np.array([0]), np.array([7])))
    array([[0]])
    """
    found = np.zeros((len(counts.names), len(counts.names)), np.int64)
    for (i, one), (j, other) in combinations(enumerate(counts.names), 2):
        found[i, j] = found[j, i] = association(counts.marginal([one, other]))
    return found


def _marginal(codes: NDArray[np.integer], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    sums = np.zeros(int(codes.max()) + 1, np.int64)
    np.add.at(sums, codes, rows)
    return sums
