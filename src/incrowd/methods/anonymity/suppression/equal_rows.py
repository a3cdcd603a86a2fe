"""Equal rows: cells are left out until every row is one of k that show the same, missing cells being values too.

This is k-anonymity by suppression, which is hard to do with the fewest cells (Meyerson & Williams 2004).  Patterns are
tried from the cheapest to the dearest, and rows that are alike under a pattern, k or more of them, settle there; of
patterns with the same price, that under which most rows settle comes first.  Where some rows are left alone, rows that
are settled in larger classes can join them at the price of further cells; whether that is worth it is judged by what
the lonely ones paid in a first pass without it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.suppression.cells import Parts, Patterns, VisibleTuples

Prices = NDArray[np.float64]


def make_equal(shown: VisibleTuples, k: int, weights: Prices) -> Parts:
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
    first = _Settling(shown, k, patterns)
    paid = first.run()
    second = _Settling(shown, k, patterns, paid)
    second.run()
    ways = (first.parts(), second.parts())
    return min(ways, key=lambda parts: parts.price(shown, weights))


@dataclass
class _Settling:
    """Rows that are not settled yet, and the classes of those that are; the only thing here that remembers.

    `classes` tells for each class one of its tuples, its pattern and its rows; `settled` lists tuples, the class that
    some of their rows are in, and how many.
    """

    shown: VisibleTuples
    k: int
    patterns: Patterns
    paid: Prices | None = None
    classes: NDArray[np.int64] = field(default_factory=lambda: np.zeros((3, 0), np.int64))
    settled: NDArray[np.int64] = field(default_factory=lambda: np.zeros((3, 0), np.int64))

    def __post_init__(self) -> None:
        self.waiting = self.shown.rows.copy()
        self.cost = np.zeros(len(self.shown))
        self.sizes = self.shown.sizes

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
        codes = self.shown.codes[:, tuples]
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
            gain, pattern, known = heapq.heappop(queue)
            if known < settled and gain < 0:  # gains only fall: one that is still the greatest when renewed is greatest
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
        waiting = VisibleTuples(self.shown.codes[:, some], self.waiting[some])
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
        kept = ~self.patterns.blank[pattern]
        first = np.zeros(classes, np.intp)
        first[ids] = some
        known = VisibleTuples(self.shown.codes[:, first], np.zeros(classes, np.int64)).keys(kept, self.sizes)
        asked = VisibleTuples(self.shown.codes[:, like], np.zeros(len(like), np.int64)).keys(kept, self.sizes)
        order = np.argsort(known)
        places = np.minimum(np.searchsorted(known[order], asked), classes - 1)
        return np.where(known[order][places] == asked, order[places], -1)

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
        wanted = np.zeros(self.classes.shape[1], np.int64)
        target = np.zeros(self.classes.shape[1], np.intp)
        wanted[hosts], target[hosts] = taken, to
        order = np.argsort(self.settled[1], kind="stable")
        tuples, classes, rows = self.settled[:, order]
        before = np.cumsum(rows) - rows
        before -= before[np.searchsorted(classes, classes)]
        moved = np.clip(wanted[classes] - before, 0, rows)
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
