"""Agreement: cells are left out until k rows agree with every row: they are equal, or they match.

*Equal rows*: a missing cell is a value of its own.  This is k-anonymity by suppression, which is hard to do with the
fewest cells (Meyerson & Williams 2004).  Patterns are tried from the cheapest to the dearest, and rows that are equal
under a pattern, k or more of them, settle there; of patterns with the same price, that under which most rows settle
comes first.  Where some rows remain, rows that are settled in larger classes can join them at the price of further
cells; whether that is worth it is judged by what the remaining ones paid in a first pass without it.

*Matching rows*: a missing cell matches every value.  This is how statistical offices often count, and it counts high: a
row that shows nothing matches everyone, so k − 1 of them would make any table k-anonymous in this sense, whatever the
others show.  The fewest cells are therefore no aim here.  Only a row that falls short itself loses cells, the cheapest
that help it by its own; and what turns out not to be needed is shown again.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.cell_suppression.cells import MISSING, Parts, Patterns, VisibleTuples

Prices = NDArray[np.float64]


def make_equal(tuples: VisibleTuples, k: int, weights: Prices) -> Parts:
    """Return parts such that every tuple, as it is then shown, has at least k rows; there are k rows or more.

    Every class that settles has k rows, and gives away no row that it needs.  The last pattern leaves everything out:
    whoever is left then is joined by as many others as are missing, from classes with more than k rows, and if these do
    not suffice, by whole classes.

    >>> import numpy as np
    >>> two = VisibleTuples(np.array([[1, 1], [1, 2]], np.int32), np.array([1, 4]))
    >>> parts = make_equal(two, 5, np.ones(2))
    >>> parts.rows.tolist(), parts.blank.tolist()
    ([1, 4], [[False, True], [False, True]])
    """
    patterns = Patterns.of(weights.tolist())
    first = _Settling(tuples, k, patterns)
    paid = first.run()
    second = _Settling(tuples, k, patterns, paid)
    second.run()
    ways = (first.parts(), second.parts())
    return min(ways, key=lambda parts: parts.price(tuples, weights))


@dataclass
class _Settling:
    """Rows that are not settled yet, and the classes of those that are; the only thing here that remembers.

    `classes` tells for each class one of its tuples, its pattern and its rows; `settled` lists tuples, the class that
    some of their rows are in, and how many.
    """

    tuples: VisibleTuples
    k: int
    patterns: Patterns
    paid: Prices | None = None
    classes: NDArray[np.int64] = field(default_factory=lambda: np.zeros((3, 0), np.int64))
    settled: NDArray[np.int64] = field(default_factory=lambda: np.zeros((3, 0), np.int64))

    def __post_init__(self) -> None:
        self.waiting = self.tuples.rows.copy()
        self.cost = np.zeros(len(self.tuples))
        self.sizes = self.tuples.sizes

    def run(self) -> Prices:
        """Settle all rows; return what a row of each tuple paid at most."""
        bounds = [*self.patterns.starts, len(self.patterns)]
        for start, stop in pairwise(bounds):
            if not self.waiting.any():
                break
            self._level(list(range(start, stop)))
        if self.waiting.any():
            self._gather(len(self.patterns) - 1)
        return self.cost

    def parts(self) -> Parts:
        """Return what became of the rows; a class shows every cell in which all its rows agree."""
        tuples, classes, rows = self.settled[:, np.argsort(self.settled[1], kind="stable")]
        starts = np.flatnonzero(np.diff(classes, prepend=-1))
        codes = self.tuples.codes[:, tuples]
        differ = np.minimum.reduceat(codes, starts, axis=1) < np.maximum.reduceat(codes, starts, axis=1)
        number = np.cumsum(np.diff(classes, prepend=-1) != 0) - 1
        blank = self.patterns.blank[self.classes[1][classes]] & differ.T[number]
        return Parts(tuples.astype(np.intp), rows, blank).ordered()

    def _level(self, level: list[int]) -> None:
        """Settle rows under patterns of one price, each time under the one that settles most."""
        queue = [(-self._gain(pattern), pattern, 0) for pattern in level] if len(level) > 1 else [(0, level[0], 0)]
        heapq.heapify(queue)
        settled = 0
        while queue:
            gain, pattern, settled_before = heapq.heappop(queue)
            if (
                settled_before < settled and gain < 0
            ):  # gains only fall: one that is still the greatest when renewed is greatest
                gain = -self._gain(pattern)
                if queue and gain > queue[0][0]:
                    heapq.heappush(queue, (gain, pattern, settled))
                    continue
            if gain < 0 or len(level) == 1:
                self._settle(pattern)
                settled += 1
        if self.paid is not None:
            for pattern in level:
                self._invite(pattern, self.paid)

    def _alike(self, pattern: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """Return who waits, the class of each of them under a pattern, and the rows in it."""
        some = np.flatnonzero(self.waiting)
        waiting = VisibleTuples(self.tuples.codes[:, some], self.waiting[some])
        ids, rows = waiting.alike(~self.patterns.blank[pattern], self.sizes)
        return some, ids, rows

    def _gain(self, pattern: int) -> int:
        _, _, rows = self._alike(pattern)
        return int(rows[rows >= self.k].sum())

    def _settle(self, pattern: int) -> None:
        some, ids, rows = self._alike(pattern)
        self._place(pattern, some, ids, rows >= self.k)

    def _place(self, pattern: int, some: NDArray[np.intp], ids: NDArray[np.intp], chosen: NDArray[np.bool_]) -> None:
        """Settle all waiting rows of some classes."""
        there = chosen[ids]
        tuples, owners = some[there], ids[there]
        if not len(tuples):
            return
        _, first, numbers = np.unique(owners, return_index=True, return_inverse=True)
        rows = self.waiting[tuples]
        made = np.stack([tuples[first], np.full(len(first), pattern), np.bincount(numbers, rows).astype(np.int64)])
        new = np.stack([tuples, numbers + self.classes.shape[1], rows])
        self.settled = np.concatenate([self.settled, new], axis=1)
        self.classes = np.concatenate([self.classes, made], axis=1)
        self.waiting[tuples] = 0
        self.cost[tuples] = np.maximum(self.cost[tuples], self.patterns.prices[pattern])

    def _invite(self, pattern: int, paid: Prices) -> None:
        """Let rows join that are settled in larger classes, where that costs less than what those who wait paid."""
        some, ids, rows = self._alike(pattern)
        like, patterns, sizes = self.classes
        hosts = np.flatnonzero(self.patterns.within(pattern)[patterns] & (sizes > self.k))
        if not len(some) or not len(hosts):
            return
        places = self._met(pattern, like[hosts], some, ids, len(rows))
        hosts, places = hosts[places >= 0], places[places >= 0]
        price = self.patterns.prices[pattern]
        order = np.lexsort((-self.patterns.prices[patterns[hosts]], places))
        hosts, places = hosts[order], places[order]
        free = sizes[hosts] - self.k
        before = np.cumsum(free) - free
        before -= before[np.searchsorted(places, places)]
        taken = np.clip(self.k - rows[places] - before, 0, free)
        extra = np.bincount(places, taken * (price - self.patterns.prices[patterns[hosts]]), len(rows))
        spared = np.bincount(ids, self.waiting[some] * (paid[some] - price), len(rows))
        enough = rows + np.bincount(places, taken, len(rows)) >= self.k
        chosen = enough & (extra < spared)
        self._join(pattern, (some, ids, chosen), hosts, np.where(chosen[places], taken, 0), places)

    def _met(
        self, pattern: int, like: NDArray[np.int64], some: NDArray[np.intp], ids: NDArray[np.intp], classes: int
    ) -> NDArray[np.intp]:
        """Return for each tuple the class of those who wait that it would be in under a pattern, or −1."""
        columns = ~self.patterns.blank[pattern]
        first = np.zeros(classes, np.intp)
        first[ids] = some
        keys = VisibleTuples(self.tuples.codes[:, first], np.zeros(classes, np.int64)).keys(columns, self.sizes)
        like_keys = VisibleTuples(self.tuples.codes[:, like], np.zeros(len(like), np.int64)).keys(columns, self.sizes)
        order = np.argsort(keys)
        places = np.minimum(np.searchsorted(keys[order], like_keys), classes - 1)
        return np.where(keys[order][places] == like_keys, order[places], -1)

    def _join(
        self,
        pattern: int,
        lonely: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]],
        hosts: NDArray[np.intp],
        taken: NDArray[np.int64],
        places: NDArray[np.intp],
    ) -> None:
        """Settle those who wait in the chosen classes, together with so many rows of other classes."""
        some, ids, chosen = lonely
        if not chosen.any():
            return
        before = self.classes.shape[1]
        self._place(pattern, some, ids, chosen)
        number = before + np.cumsum(chosen) - 1  # classes are placed in the order of their numbers
        self.classes[2, hosts] -= taken
        self.classes[2] += np.bincount(number[places], taken, self.classes.shape[1]).astype(np.int64)
        self._move(hosts, taken, number[places])

    def _move(self, hosts: NDArray[np.intp], taken: NDArray[np.int64], to: NDArray[np.intp]) -> None:
        """Move so many settled rows of some classes to others."""
        leaving = np.zeros(self.classes.shape[1], np.int64)
        target = np.zeros(self.classes.shape[1], np.intp)
        leaving[hosts], target[hosts] = taken, to
        order = np.argsort(self.settled[1], kind="stable")
        tuples, classes, rows = self.settled[:, order]
        before = np.cumsum(rows) - rows
        before -= before[np.searchsorted(classes, classes)]
        moved = np.clip(leaving[classes] - before, 0, rows)
        going = moved > 0
        new = np.stack([tuples[going], target[classes[going]], moved[going]])
        left = np.stack([tuples, classes, rows - moved])
        self.settled = np.concatenate([left[:, left[2] > 0], new], axis=1)

    def _gather(self, pattern: int) -> None:
        """Settle the last, who are fewer than k, with nothing shown: others join, and where needed whole classes."""
        some, ids, rows = self._alike(pattern)
        price = self.patterns.prices[pattern] * self.k / max(1, int(rows[0]))
        self._place(pattern, some, ids, np.ones(1, np.bool_))
        self.cost[some] = price  # so much they cost: those who had to join them included
        number = self.classes.shape[1] - 1
        hosts = np.argsort(-self.patterns.prices[self.classes[1, :number]], kind="stable")
        free = self.classes[2, hosts] - self.k
        taken = np.clip(self.k - int(rows[0]) - (np.cumsum(free) - free), 0, free)
        short = self.k - int(rows[0]) - int(taken.sum())
        if short > 0:
            sizes = self.classes[2, hosts] - taken
            whole = np.cumsum(sizes) - sizes < short
            taken = np.where(whole, self.classes[2, hosts], taken)
        self.classes[2, hosts] -= taken
        self.classes[2, number] += int(taken.sum())
        self._move(hosts, taken, np.full(len(hosts), number))


_PAIRS = 2**31
"""Cells are shown again where so many pairs of tuples, at most, have to be compared."""
_LOOKUP, _AT_ONCE = 2**18, 2**21
"""How many cells can be compared in the time of one lookup, and how many pairs are held in memory."""


def make_match(tuples: VisibleTuples, k: int, weights: NDArray[np.float64]) -> Parts:
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
    blank = np.zeros((len(tuples), len(tuples.codes)), np.bool_)
    while True:
        now = _blanked(tuples, blank)
        short = k - count_matches(now, k)
        if not (short > 0).any():
            break
        blank |= _pass(now, short, k, patterns)
    blank &= (tuples.codes != MISSING).T
    return Parts(np.arange(len(tuples)), tuples.rows, _needed(tuples, blank, k, weights))


def count_matches(tuples: VisibleTuples, enough: int) -> NDArray[np.int64]:
    """Return how many rows match each tuple, exactly where there are fewer than enough.

    Tuples that miss the same cells are looked up together: for two sets of missing cells, in the columns that both
    show.  Where a set of missing cells is rare, its tuples are compared one by one.  Whoever has enough takes no part
    in what follows.

    >>> import numpy as np
    >>> count_matches(VisibleTuples(np.array([[1, 1, 2], [1, 0, 3]], np.int32), np.array([1, 1, 1])), 9).tolist()
    [2, 2, 1]
    """
    kinds, kind = np.unique((tuples.codes == MISSING).T, axis=0, return_inverse=True)
    kind, sizes, matches = kind.reshape(-1), tuples.sizes, np.zeros(len(tuples), np.int64)
    rare = [np.zeros(0, np.intp)]
    for there in np.argsort(-np.bincount(kind, minlength=len(kinds)), kind="stable"):
        asking, members = np.flatnonzero(matches < enough), np.flatnonzero(kind == there)
        here = np.unique(kind[asking])
        if len(asking) * len(members) * len(sizes) <= _LOOKUP * len(here):
            rare.append(members)
            continue
        for kind_here in here:
            some = asking[kind[asking] == kind_here]
            both = ~(kinds[kind_here] | kinds[there])
            matches[some] += _counted(_some(tuples, members), _some(tuples, some), both, sizes)
    _compare(tuples, matches, np.concatenate(rare), enough)
    return matches


def _compare(tuples: VisibleTuples, matches: NDArray[np.int64], others: NDArray[np.intp], enough: int) -> None:
    """Add how many of the known rows match each tuple that has not enough, comparing every two."""
    asking = np.flatnonzero(matches < enough)
    at_once = max(1, _AT_ONCE // max(1, len(others)))
    for start in range(0, len(asking) if len(others) else 0, at_once):
        some = asking[start : start + at_once]
        both = np.ones((len(some), len(others)), np.bool_)
        for column in tuples.codes:
            mine, theirs = column[some][:, None], column[others][None, :]
            both &= (mine == theirs) | (mine == MISSING) | (theirs == MISSING)
        matches[some] += (both @ tuples.rows[others].astype(np.float64)).astype(np.int64)


def _counted(
    others: VisibleTuples, tuples: VisibleTuples, columns: NDArray[np.bool_], sizes: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return for each asking tuple how many known rows agree with it in some columns."""
    keys, places = np.unique(others.keys(columns, sizes), return_inverse=True)
    rows = np.bincount(places, others.rows, len(keys)).astype(np.int64)
    own_keys = tuples.keys(columns, sizes)
    at = np.minimum(np.searchsorted(keys, own_keys), len(keys) - 1)
    return np.where(keys[at] == own_keys, rows[at], 0)


def _pass(tuples: VisibleTuples, short: NDArray[np.int64], k: int, patterns: Patterns) -> NDArray[np.bool_]:
    """Return which cells to leave out, so that nobody falls short; `short` tells by how much each does."""
    blank = np.zeros((len(tuples), len(tuples.codes)), np.bool_)
    short = short.copy()
    for pattern in range(1, len(patterns)):
        if not (short > 0).any():
            break
        ids, rows = tuples.alike(~patterns.blank[pattern])
        some = np.flatnonzero((short > 0) & (rows[ids] >= k))
        some = some[np.lexsort((-short[some], ids[some]))]
        before = np.cumsum(tuples.rows[some]) - tuples.rows[some]
        before -= before[np.searchsorted(ids[some], ids[some])]
        following = some[short[some] > before]
        blank[following] = patterns.blank[pattern]
        short -= np.bincount(ids[following], tuples.rows[following], len(rows)).astype(np.int64)[ids]
        short[following] = 0
    return blank


def _needed(tuples: VisibleTuples, blank: NDArray[np.bool_], k: int, weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which cells stay left out: each is shown again, the dearest first, where everyone still has enough."""
    blank = blank.copy()
    following = np.flatnonzero(blank.any(axis=1))
    if len(following) * len(tuples) > _PAIRS:
        return blank
    now = _blanked(tuples, blank).codes
    enough = count_matches(VisibleTuples(now, tuples.rows), tuples.total + 1)
    for place in following[np.argsort(-(blank[following] @ weights), kind="stable")]:
        rows = int(tuples.rows[place])
        here = _matching(now, place)
        for column in sorted(np.flatnonzero(blank[place]), key=lambda column: (-weights[column], column)):
            fewer = here & ((now[column] == tuples.codes[column, place]) | (now[column] == MISSING))
            lost = here & ~fewer
            if int(tuples.rows[fewer].sum()) < k or (enough[lost] - rows < k).any():
                continue
            here, now[column, place], blank[place, column] = fewer, tuples.codes[column, place], False
            enough[lost] -= rows
        enough[place] = int(tuples.rows[here].sum())
    return blank


def _matching(codes: NDArray[np.int32], place: int) -> NDArray[np.bool_]:
    matching = np.ones(codes.shape[1], np.bool_)
    for column in codes:
        if column[place] != MISSING:
            matching &= (column == column[place]) | (column == MISSING)
    return matching


def _blanked(tuples: VisibleTuples, blank: NDArray[np.bool_]) -> VisibleTuples:
    return VisibleTuples(np.where(blank.T, MISSING, tuples.codes).astype(np.int32), tuples.rows)


def _some(tuples: VisibleTuples, places: NDArray[np.intp]) -> VisibleTuples:
    return VisibleTuples(tuples.codes[:, places], tuples.rows[places])
