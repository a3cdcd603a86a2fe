"""Picks: quantiles and modes, chosen privately from a public list of candidates in each group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from incrowd.core.coins import Coins
from incrowd.core.domain import Type
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.mechanisms.selection import Exponential, MonotoneNoisyMax, NoisyMax, select_each
from incrowd.queries.measuring.groups import ARROW, Names, group_places
from incrowd.queries.measuring.statistics import IntegerGrid, grid_number, named
from incrowd.queries.query import Aggregate, AggregateKind, Query, Value

MOST = 2**16
"""Candidates of one pick, at most; wider ranges are picked from on an even grid."""

_ALTOGETHER = 2**22  # candidates of all groups: they are scored together, 32 MB
_FEWEST = 2**8  # candidates of a group, however many groups there are: a grid of 0.4 % of the range
_FINEST = 10**6  # scores are whole numbers, weighted by the odds of a quantile: a finer one makes them too large
_FURTHEST = 2**48  # the noise of a score would pass every candidate; beyond, it cannot be drawn either
_MISS = 20  # one in twenty: the interval of a pick has the confidence of all others
_AT_ONCE = 2**20  # scores in memory at a time: 8 MB
_EPOCH = date(1970, 1, 1)
PLACE, NUMBER = "_place", "_number"


@dataclass(frozen=True)
class PickCandidates:
    """A public list to pick from: choices as they are written, or `number` even steps from the start of a grid."""

    value: Value
    number: int
    grid: IntegerGrid | None

    @property
    def exact(self) -> bool:
        """Whether all values of the range are candidates."""
        return self.grid is None or (self.value.type is not Type.DECIMAL and self.grid.step == 1)

    @classmethod
    def of(cls, value: Value, groups: int | None) -> PickCandidates:
        """Return all values of a range, or an even grid over it where they are many, or groups are.

        >>> PickCandidates.of(Value("age", Type.INTEGER, Fraction(0), Fraction(120)), None).number
        121
        """
        if value.choices is not None:
            return cls(value, len(value.choices), None)
        if value.low is None or value.high is None:
            raise InvalidParameter("quantiles and modes need a value with bounds: write CLAMP(x, low, high).")
        most = MOST if groups is None else max(_FEWEST, min(MOST, _ALTOGETHER // max(1, groups)))
        span = value.high - value.low
        if span == 0:
            return cls(value, 1, IntegerGrid(value.low, Fraction(1), 1))
        if value.type is not Type.DECIMAL and span < most:
            return cls(value, int(span) + 1, IntegerGrid(value.low, Fraction(1), int(span)))
        return cls(value, most, IntegerGrid(value.low, span / (most - 1), most - 1))

    def places(self, column: pa.ChunkedArray) -> NDArray[np.int64]:
        """Return the position of each value the engine returned; −1 for what is no candidate."""
        if self.grid is None:
            texts = column.cast(pa.string()) if not pa.types.is_string(column.type) else column
            positions = pc.index_in(texts, value_set=pa.array(self.value.choices or (), pa.string()))
            return np.asarray(pc.fill_null(positions, -1).to_numpy(), dtype=np.int64)
        steps = column.cast(pa.float64()).to_numpy()
        return np.asarray(np.clip(np.nan_to_num(steps), 0, self.number - 1), dtype=np.int64)

    def column(self, picked: NDArray[np.int64]) -> pa.Array:
        """Return what stands at these positions, in the type of the value."""
        if self.grid is None:
            texts = [(self.value.choices or ())[at] for at in picked]
            truths = self.value.type is Type.BOOLEAN
            return pa.array(
                [text == "true" for text in texts] if truths else texts, ARROW[Type.BOOLEAN if truths else Type.TEXT]
            )
        numbers = [self.grid.center + int(at) * self.grid.step for at in picked]
        return pa.array([_written(self.value, number) for number in numbers], ARROW[self.value.type])


@dataclass(frozen=True)
class Pick:
    """One aggregate that picks a candidate in every group: a quantile, or the most common value.

    `rows` is how many rows of one unit there are at most; a unit with r of them in a group pays r / rows of ε there.
    """

    aggregate: Aggregate
    candidates: PickCandidates
    epsilon: Fraction
    rows: int
    monotone: bool

    @property
    def mechanism(self) -> Exponential | NoisyMax:
        """What picks."""
        if self.aggregate.kind is AggregateKind.MODE:
            return (MonotoneNoisyMax if self.monotone else NoisyMax)(self.epsilon, self.rows)
        return Exponential(self.epsilon, max(_odds(self.aggregate)) * self.rows)

    @property
    def off(self) -> int:
        """How many rows below the best (in rank, or for a mode in number) the pick does not reach in 95 % of cases.

        Of C candidates one that scores t · scale below the best is picked with chance e^(−t) at most, hence any such
        with chance C e^(−t) (McSherry and Talwar 2007, Theorem 6; permute-and-flip is never worse).
        """
        scale = self.mechanism.scale / (1 if self.aggregate.kind is AggregateKind.MODE else sum(_odds(self.aggregate)))
        return math.ceil(float(scale) * math.log(_MISS * self.candidates.number))

    @property
    def note(self) -> str:
        """Why the pick has no interval, and what is known instead: the ranks that the mechanism excludes."""
        if self.aggregate.kind is AggregateKind.MODE:
            return f"no interval: in 95 % of groups no other value occurs over {self.off:,} times more often"
        steps = "" if self.candidates.exact else f"; values are rounded to {self.candidates.number:,} even steps first"
        above, below = _odds(self.aggregate)
        if above and below:
            rows = f"in 95 % of groups at most {self.off:,} rows too many lie strictly below it, or strictly above it"
            return f"no interval of values: {rows}{steps}"
        side, beyond = ("below", "smallest") if above else ("above", "largest")
        rows = (
            f"at most {2 * self.off - 2:,} rows lie strictly {side} it, and the {beyond} value does not lie beyond it"
        )
        return f"no interval of values: in 95 % of groups of {self.off:,} rows or more {rows}{steps}"

    def query(self, query: Query) -> exp.Query:
        """Return the query that counts, group by group, the rows at each candidate."""
        value, grid = self.candidates.value, self.candidates.grid
        column = exp.column(value.name, quoted=True)
        place = column.copy() if grid is None else grid_number(value, grid)
        present = exp.select(exp.Star(), exp.alias_(place, PLACE, quoted=True)).from_(named(query.rows))
        keys = [exp.column(key.name, quoted=True) for key in query.keys]
        keys.append(exp.column(PLACE, quoted=True))
        counted = exp.alias_(exp.Count(this=exp.Star()), NUMBER, quoted=True)
        there = exp.Not(this=exp.Is(this=column, expression=exp.Null()))
        return exp.select(*keys, counted).from_(named(present.where(there))).group_by(*keys)

    def picked(self, query: Query, collected: pa.Table, names: tuple[Names, ...], coins: Coins) -> pa.Array:
        """Return the pick of each group; of empty groups, too."""
        group = group_places(query, collected, names)
        place = self.candidates.places(collected.column(PLACE))
        number = np.asarray(collected.column(NUMBER).to_numpy(), dtype=np.int64)
        counted = (group >= 0) & (place >= 0)
        order = np.argsort(group[counted], kind="stable")
        group, place, number = (numbers[counted][order] for numbers in (group, place, number))
        length = max(1, _AT_ONCE // self.candidates.number)
        chosen = [np.empty(0, dtype=np.int64)]
        for start in range(0, len(names), length):
            stop = min(start + length, len(names))
            part = slice(*np.searchsorted(group, [start, stop]))
            counts = np.zeros((stop - start, self.candidates.number), dtype=np.int64)
            np.add.at(counts, (group[part] - start, place[part]), number[part])
            chosen.append(select_each(self.mechanism, self._scores(counts), coins))
        return self.candidates.column(np.concatenate(chosen))

    def _scores(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how well each candidate fits; of a quantile by how many rows too many lie below it, or above it.

        A candidate v of the quantile a / b scores −max(0, (b − a) · #{x < v} − a · #{x ≥ v}, a · #{x > v} −
        (b − a) · #{x ≤ v}): zero exactly where v is a quantile, that is #{x < v} ≤ n · a / b ≤ #{x ≤ v}.

        Proof of the sensitivity.  A row more is below v, at v or above it.  It moves the second term of the maximum by
        b − a, −a or −a, and the third by −(b − a), −(b − a) or a: each by max(a, b − a) at most.  A maximum moves no
        further than the one of its terms that moves furthest.  So a row moves every score by max(a, b − a) at most, and
        a unit with so many rows by so many times that.  ∎

        Whatever lies below the smallest value would be a minimum by that rule.  So the minimum is the value of rank r,
        r being so far inside that a candidate below all values is picked in 5 % of cases at most: its score is
        −max(0, #{x < v} − (r − 1), r − #{x ≤ v}); constants move nothing.  The maximum counts from above.
        """
        if self.aggregate.kind is AggregateKind.MODE:
            return counts
        above, below = _odds(self.aggregate)
        at_most = np.cumsum(counts, axis=1)
        less, more = at_most - counts, counts.sum(axis=1, keepdims=True) - at_most
        low = above * less - below * (more + counts) - (0 if below else self.off - 1) + (0 if above else self.off)
        high = below * more - above * at_most + (0 if below else self.off) - (0 if above else self.off - 1)
        return np.asarray(-np.maximum(0, np.maximum(low, high)))


def pick_of(aggregate: Aggregate, unit: Unit, groups: int | None, epsilon: Fraction, rows: int) -> Pick:
    """Return the pick for an aggregate; with many groups the candidates lie on a coarser grid."""
    candidates = PickCandidates.of(aggregate.needed_value, groups if aggregate.kind is AggregateKind.QUANTILE else None)
    if aggregate.kind is AggregateKind.MODE and candidates.grid is not None and candidates.grid.step != 1:
        raise InvalidParameter(f"a mode has at most {MOST:,} candidates: round the value, or ask for the median.")
    if aggregate.kind is AggregateKind.QUANTILE and candidates.grid is None:
        raise InvalidParameter("quantiles are picked among numbers and dates, not among texts: ask for the mode.")
    if max(_odds(aggregate)) > _FINEST:
        raise InvalidParameter(f"a quantile has six digits at most, such as 0.95: not finer than 1 / {_FINEST:,}.")
    pick = Pick(aggregate, candidates, epsilon, rows, unit.adjacency is Adjacency.ADD_REMOVE)
    if pick.off > _FURTHEST:
        raise Infeasible("this epsilon is so small that any candidate would be picked: pay more.")
    return pick


def is_pick(aggregate: Aggregate) -> bool:
    """Return whether an aggregate is picked, rather than read off sums."""
    return aggregate.kind in (AggregateKind.QUANTILE, AggregateKind.MODE)


def _odds(aggregate: Aggregate) -> tuple[int, int]:
    """Return b − a and a of the quantile a / b."""
    at = Fraction(1, 2) if aggregate.at is None else aggregate.at
    return at.denominator - at.numerator, at.numerator


def _written(value: Value, number: Fraction) -> object:
    match value.type:
        case Type.DATE:
            return _EPOCH + timedelta(days=round(number))
        case Type.INTEGER:
            return round(number)
        case Type.BOOLEAN:
            return bool(number)
    return float(number)
