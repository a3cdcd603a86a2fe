"""Matching rows: cells are left out until k rows match every row, where a missing cell matches every value.

This is how statistical offices often count, and it counts high: a row that shows nothing matches everyone, so k − 1 of
them would make any table k-anonymous in this sense, whatever the others show.  The fewest cells are therefore no aim
here.  Only a row that falls short itself loses cells, the cheapest that help it by its own; and what turns out not to
be needed is shown again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.suppression.cells import MISSING, Parts, Patterns, VisibleTuples

_PAIRS = 2**31
"""Cells are shown again where so many pairs of tuples, at most, have to be compared."""
_LOOKUP, _AT_ONCE = 2**18, 2**21
"""How many cells can be compared in the time of one lookup, and how many pairs are held in memory."""


def make_match(shown: VisibleTuples, k: int, weights: NDArray[np.float64]) -> Parts:
    """Return parts, whole tuples all of them, such that k rows or more match every row; there are k rows or more.

    Leaving out a cell makes no row match fewer others, so whoever has enough keeps enough.  Under a pattern, rows that
    agree in the other columns, k or more of them, match each of their number that follows it, and it matches them: of
    those who fall short, the ones that lack most follow it until those who do not have enough from them.  What was
    found is counted again exactly, and if cells that were missing before made the count too high, all is repeated.

    >>> import numpy as np
    >>> two = VisibleTuples(np.array([[1, 1], [1, 2]], np.int32), np.array([1, 4]))
    >>> make_match(two, 5, np.ones(2)).blank.tolist()
    [[False, True], [False, False]]
    """
    patterns = Patterns.of(weights.tolist())
    blank = np.zeros((len(shown), len(shown.codes)), np.bool_)
    while True:
        now = _blanked(shown, blank)
        short = k - count_matches(now, k)
        if not (short > 0).any():
            break
        blank |= _pass(now, short, k, patterns)
    blank &= (shown.codes != MISSING).T
    return Parts(np.arange(len(shown)), shown.rows, _needed(shown, blank, k, weights))


def count_matches(shown: VisibleTuples, enough: int) -> NDArray[np.int64]:
    """Return how many rows match each tuple, exactly where there are fewer than enough.

    Tuples that miss the same cells are looked up together: for two sets of missing cells, in the columns that both
    show.  Where a set of missing cells is rare, its tuples are compared one by one.  Whoever has enough takes no part
    in what follows.

    >>> import numpy as np
    >>> count_matches(VisibleTuples(np.array([[1, 1, 2], [1, 0, 3]], np.int32), np.array([1, 1, 1])), 9).tolist()
    [2, 2, 1]
    """
    kinds, kind = np.unique((shown.codes == MISSING).T, axis=0, return_inverse=True)
    kind, sizes, found = kind.reshape(-1), shown.sizes, np.zeros(len(shown), np.int64)
    rare = [np.zeros(0, np.intp)]
    for there in np.argsort(-np.bincount(kind, minlength=len(kinds)), kind="stable"):
        asking, members = np.flatnonzero(found < enough), np.flatnonzero(kind == there)
        here = np.unique(kind[asking])
        if len(asking) * len(members) * len(sizes) <= _LOOKUP * len(here):
            rare.append(members)
            continue
        for each in here:
            some = asking[kind[asking] == each]
            both = ~(kinds[each] | kinds[there])
            found[some] += _counted(_some(shown, members), _some(shown, some), both, sizes)
    _compare(shown, found, np.concatenate(rare), enough)
    return found


def _compare(shown: VisibleTuples, found: NDArray[np.int64], known: NDArray[np.intp], enough: int) -> None:
    """Add how many of the known rows match each tuple that has not enough, comparing every two."""
    asking = np.flatnonzero(found < enough)
    at_once = max(1, _AT_ONCE // max(1, len(known)))
    for start in range(0, len(asking) if len(known) else 0, at_once):
        some = asking[start : start + at_once]
        both = np.ones((len(some), len(known)), np.bool_)
        for column in shown.codes:
            mine, theirs = column[some][:, None], column[known][None, :]
            both &= (mine == theirs) | (mine == MISSING) | (theirs == MISSING)
        found[some] += (both @ shown.rows[known].astype(np.float64)).astype(np.int64)


def _counted(
    known: VisibleTuples, asking: VisibleTuples, columns: NDArray[np.bool_], sizes: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return for each asking tuple how many known rows agree with it in some columns."""
    keys, places = np.unique(known.keys(columns, sizes), return_inverse=True)
    rows = np.bincount(places, known.rows, len(keys)).astype(np.int64)
    asked = asking.keys(columns, sizes)
    at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return np.where(keys[at] == asked, rows[at], 0)


def _pass(shown: VisibleTuples, short: NDArray[np.int64], k: int, patterns: Patterns) -> NDArray[np.bool_]:
    """Return which cells to leave out, so that nobody falls short; `short` tells by how much each does."""
    blank = np.zeros((len(shown), len(shown.codes)), np.bool_)
    short = short.copy()
    for pattern in range(1, len(patterns)):
        if not (short > 0).any():
            break
        ids, rows = shown.alike(~patterns.blank[pattern])
        some = np.flatnonzero((short > 0) & (rows[ids] >= k))
        some = some[np.lexsort((-short[some], ids[some]))]
        before = np.cumsum(shown.rows[some]) - shown.rows[some]
        before -= before[np.searchsorted(ids[some], ids[some])]
        following = some[short[some] > before]
        blank[following] = patterns.blank[pattern]
        short -= np.bincount(ids[following], shown.rows[following], len(rows)).astype(np.int64)[ids]
        short[following] = 0
    return blank


def _needed(shown: VisibleTuples, blank: NDArray[np.bool_], k: int, weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which cells stay left out: each is shown again, the dearest first, where everyone still has enough."""
    blank = blank.copy()
    following = np.flatnonzero(blank.any(axis=1))
    if len(following) * len(shown) > _PAIRS:
        return blank
    now = _blanked(shown, blank).codes
    enough = count_matches(VisibleTuples(now, shown.rows), shown.total + 1)
    for place in following[np.argsort(-(blank[following] @ weights), kind="stable")]:
        rows = int(shown.rows[place])
        here = _matching(now, place)
        for column in sorted(np.flatnonzero(blank[place]), key=lambda each: (-weights[each], each)):
            fewer = here & ((now[column] == shown.codes[column, place]) | (now[column] == MISSING))
            lost = here & ~fewer
            if int(shown.rows[fewer].sum()) < k or (enough[lost] - rows < k).any():
                continue
            here, now[column, place], blank[place, column] = fewer, shown.codes[column, place], False
            enough[lost] -= rows
        enough[place] = int(shown.rows[here].sum())
    return blank


def _matching(codes: NDArray[np.int32], place: int) -> NDArray[np.bool_]:
    found = np.ones(codes.shape[1], np.bool_)
    for column in codes:
        if column[place] != MISSING:
            found &= (column == column[place]) | (column == MISSING)
    return found


def _blanked(shown: VisibleTuples, blank: NDArray[np.bool_]) -> VisibleTuples:
    return VisibleTuples(np.where(blank.T, MISSING, shown.codes).astype(np.int32), shown.rows)


def _some(shown: VisibleTuples, places: NDArray[np.intp]) -> VisibleTuples:
    return VisibleTuples(shown.codes[:, places], shown.rows[places])
