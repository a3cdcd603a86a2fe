"""Rules: which cells are sensitive, and how far from the truth an attacker's best estimates must stay."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.protected.frame import Flags, TableFrame, Whole


@dataclass(frozen=True)
class Dominance:
    """A cell is sensitive whose n largest contributors make up more than the share k of it."""

    n: int
    k: Fraction

    def __post_init__(self) -> None:
        if not 1 <= self.n <= 10:
            raise InvalidParameter("dominance looks at the n largest contributors: n is from 1 to 10.")
        if not 0 < self.k < 1:
            raise InvalidParameter("dominance: k is a share between 0 and 1, such as 4/5.")


@dataclass(frozen=True, eq=False)
class CellFacts:
    """What the rules look at: each cell's value, how many contributed to it, and its largest contributions.

    Where contributions can be negative, `largest` has them without their signs, and `gross` their sum without signs.
    """

    values: Whole
    contributors: Whole
    largest: Whole
    """One table for the largest contribution, one for the second largest, and so on."""
    gross: Whole | None = None

    @property
    def sums(self) -> Whole:
        """What the contributions to each cell add up to, without their signs."""
        return self.values if self.gross is None else self.gross


@dataclass(frozen=True)
class Rules:
    """When a cell is sensitive: too few contributors, a few of them too large, or one known too well by another.

    `protection` is how far up and down a count must stay open, `margin` the same for a sum as a share of it; a cell
    that breaks the rule of dominance or of p must stay open as far as the rule asks for.  With `q`, contributors know
    each other's contributions up to the share q before, and must not know one up to p afterwards: the rule of p / q.

    Where contributions can be negative, all rules look at them without their signs: x, and the sum of all |x|.  That
    is the cautious side, since amounts that cancel out hide nobody.  Where rows have weights, contributions are
    weighted, and `minimum` counts respondents.  A weight hides nobody, since it may be known: the rules are at least as
    strict as those that take a respondent of weight w for w equal ones.

    Source: Hundepool et al. 2012, Statistical Disclosure Control, section 4.2.

    >>> cell = CellFacts(np.array([100]), np.array([3]), np.array([[59], [40], [1]]))
    >>> Rules(dominance=Dominance(1, Fraction(3, 5))).sensitive(cell).tolist()
    [False]
    >>> Rules(p=Fraction(1, 10)).sensitive(cell).tolist()
    [True]
    """

    minimum: int | None = None
    dominance: Dominance | None = None
    p: Fraction | None = None
    protection: int | None = None
    margin: Fraction = Fraction(1, 10)
    q: Fraction | None = None

    def __post_init__(self) -> None:
        if self.q is not None and (self.p is None or self.q <= self.p):
            raise InvalidParameter(
                "q is how closely contributors know each other before, as a share: it comes with p, and is larger."
            )
        if self.minimum is not None and self.minimum < 2:
            raise InvalidParameter("minimum is the fewest contributors of a cell that is published: at least 2.")
        if self.p is not None and self.p <= 0:
            raise InvalidParameter("p is how closely, as a share, nobody may know a contribution: above 0.")
        if self.protection is not None and self.protection < 1:
            raise InvalidParameter("protection is how far up and down a count stays open: at least 1.")
        if not 0 < self.margin <= 1:
            raise InvalidParameter(
                "margin is how far up and down a sum stays open, as a share of it: above 0, up to 1."
            )

    @property
    def texts(self) -> tuple[str, ...]:
        """The rules, for people."""
        texts = []
        if self.minimum is not None:
            width = f"{self.margin} of it" if self.protection is None else str(self.protection)
            texts.append(f"fewer than {self.minimum} contributors (open up and down by {width})")
        if self.dominance is not None:
            texts.append(f"the {self.dominance.n} largest contributors are more than {self.dominance.k} of it")
        if self.p is not None:
            before = "" if self.q is None else f", after having known each contribution within {self.q} of it"
            texts.append(f"the second largest contributor knows the largest within {self.p} of it{before}")
        return tuple(texts)

    @property
    def depth(self) -> int:
        """How many of the largest contributions the rules look at."""
        return max(0 if self.p is None else 2, 0 if self.dominance is None else self.dominance.n)

    @property
    def reach(self) -> int | None:
        """How far up and down a count stays open; None without a rule for counts."""
        return self.minimum if self.protection is None else self.protection

    def sensitive(self, facts: CellFacts) -> Flags:
        """Return which cells break a rule."""
        return self._demands(facts, counts=False) > 0

    def demands(self, facts: CellFacts, frame: TableFrame, *, counts: bool) -> tuple[Whole, Whole]:
        """Return for each cell how far below and above the truth it must stay open: 0 where no rule is broken.

        Zeros are published, so that readers know a cell to be at least the number of finest cells in it that are above
        zero: a cell of 2 need not stay open further down than 1, and a total of 1 and 1 not below 2.  Of contributions
        that can be negative they know no such thing.
        """
        upward = self._demands(facts, counts=counts)
        if facts.gross is not None:
            return upward, upward
        least = frame.totals((frame.finest(facts.values) > 0).astype(np.int64))
        return np.minimum(upward, facts.values - least), upward

    def _demands(self, facts: CellFacts, *, counts: bool) -> Whole:
        demand = np.zeros(facts.values.shape, np.int64)
        if self.minimum is not None:
            few = (facts.contributors > 0) & (facts.contributors < self.minimum)
            demand[few] = (self.reach or 1) if counts else [self._margin(int(value)) for value in facts.sums[few]]
        for place in map(tuple, np.argwhere(facts.contributors > 0).tolist()) if self.depth else ():
            largest = [int(rank[place]) for rank in facts.largest]
            demand[place] = max(int(demand[place]), self._of(int(facts.sums[place]), largest))
        return demand

    def _margin(self, value: int) -> int:
        return max(1, ceil(self.margin * value))

    def _of(self, value: int, largest: list[int]) -> int:
        """Return how far a cell must stay open for its largest contributions, in exact numbers."""
        wide = Fraction(0)
        if self.p is not None:
            wide = max(wide, self.p / (self.q or 1) * largest[0] - (value - largest[0] - largest[1]))
        if self.dominance is not None:
            wide = max(wide, sum(largest[: self.dominance.n]) / self.dominance.k - value)
        return ceil(wide)


@dataclass(frozen=True, eq=False)
class Contributions:
    """What was contributed to the finest cells: by whom (−1: each row by somebody else), how much, in how many rows.

    `weights` are those of each such row, 1 where there are none; `signed` says whether amounts can be negative.
    """

    cells: NDArray[np.intp]
    holders: Whole
    amounts: Whole
    rows: Whole
    weights: NDArray[np.float64] | None = None
    signed: bool = False

    def mass(self, size: int) -> NDArray[np.float64]:
        """Return how many rows so many finest cells have, each times its weight."""
        weights = np.ones(len(self.cells)) if self.weights is None else self.weights
        return np.bincount(self.cells, self.rows * weights, size).astype(np.float64)

    def facts(self, frame: TableFrame, depth: int) -> CellFacts:
        """Return what the rules look at, in every cell of the table; holders are merged in each cell first.

        >>> from incrowd.methods.tabulation.protected.frame import TableAxis
        >>> sex = TableFrame((TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)),))
        >>> some = Contributions(np.array([0, 0, 1]), np.array([7, 8, 7]), np.array([5, 3, 2]), np.array([1, 1, 1]))
        >>> some.facts(sex, 1).largest.tolist()
        [[7, 5, 2]]
        """
        sums = np.zeros(frame.size, np.int64)
        counts = np.zeros(frame.size, np.int64)
        largest = np.zeros((depth, frame.size), np.int64)
        cells, holders, amounts, rows = self.everywhere(frame)
        named = holders >= 0
        merged = _merged(cells[named], holders[named], amounts[named] * rows[named])
        apart = (cells[~named], amounts[~named], rows[~named])
        np.add.at(sums, merged[0], merged[1])
        np.add.at(counts, merged[0], 1)
        np.add.at(sums, apart[0], apart[1] * apart[2])
        np.add.at(counts, apart[0], apart[2])
        gross = None
        if self.signed:
            gross = np.zeros(frame.size, np.int64)
            np.add.at(gross, merged[0], np.abs(merged[1]))
            np.add.at(gross, apart[0], np.abs(apart[1]) * apart[2])
            gross = gross.reshape(frame.shape)
        if depth:
            times = np.minimum(apart[2], depth)
            where = np.concatenate([merged[0], np.repeat(apart[0], times)])
            what = np.abs(np.concatenate([merged[1], np.repeat(apart[1], times)]))
            order = np.lexsort((-what, where))
            where, what = where[order], what[order]
            rank = np.arange(len(where)) - np.searchsorted(where, where)
            top = rank < depth
            largest[rank[top], where[top]] = what[top]
        shape = frame.shape
        return CellFacts(sums.reshape(shape), counts.reshape(shape), largest.reshape(depth, *shape), gross)

    def named(self, most: int) -> Contributions:
        """Return the same with a name for every row by somebody else, up to so many rows of a kind."""
        apart = self.holders < 0
        times = np.where(apart, np.minimum(self.rows, most), 1)
        cells, holders, amounts, rows = (
            np.repeat(part, times) for part in (self.cells, self.holders, self.amounts, self.rows)
        )
        fresh = np.repeat(apart, times)
        start = int(self.holders.max(initial=-1)) + 1
        return Contributions(
            cells,
            np.where(fresh, start + np.arange(len(cells)), holders),
            amounts,
            np.where(fresh, 1, rows),
        )

    def everywhere(self, frame: TableFrame) -> tuple[NDArray[np.intp], Whole, Whole, Whole]:
        """Return each contribution once for every cell that it is part of."""
        where = np.unravel_index(self.cells, frame.leaf_shape)
        deepest = [max(map(len, axis.paths)) for axis in frame.axes]
        tables = [_padded(axis.paths, depth) for axis, depth in zip(frame.axes, deepest, strict=True)]
        parts = []
        for steps in product(*map(range, deepest)):
            nodes = [table[leaf, step] for table, leaf, step in zip(tables, where, steps, strict=True)]
            there = np.logical_and.reduce([node >= 0 for node in nodes])
            cells = np.ravel_multi_index([node[there] for node in nodes], frame.shape)
            parts.append((cells, self.holders[there], self.amounts[there], self.rows[there]))
        cells, holders, amounts, rows = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cells, holders, amounts, rows


def _padded(paths: tuple[tuple[int, ...], ...], depth: int) -> NDArray[np.intp]:
    return np.array([[*path, *[-1] * (depth - len(path))] for path in paths], np.intp)


def _merged(cells: NDArray[np.intp], holders: Whole, amounts: Whole) -> tuple[NDArray[np.intp], Whole]:
    """Return for each holder in each cell the sum of their amounts."""
    order = np.lexsort((holders, cells))
    cells, holders, amounts = cells[order], holders[order], amounts[order]
    if not len(cells):
        return cells, amounts
    first = np.flatnonzero(np.concatenate(([True], (cells[1:] != cells[:-1]) | (holders[1:] != holders[:-1]))))
    return cells[first], np.add.reduceat(amounts, first)
