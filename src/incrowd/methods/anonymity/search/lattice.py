"""Lattice: every choice of one rung for each column, over the tuples that were counted, and what a node is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.keys import Codes
from incrowd.core.plan import Method
from incrowd.core.rounding import Number, exact
from incrowd.core.schema import Schema
from incrowd.core.table import Engine
from incrowd.criteria.criterion import All, Criterion, Monotone, Rows
from incrowd.criteria.groups import class_starts
from incrowd.criteria.partition import Partition, lifts
from incrowd.errors import InvalidParameter
from incrowd.quality.additive import Loss
from incrowd.quality.ladder import Ladder, occurring
from incrowd.quality.quality import Mask, Measure, Quality, Surcharges
from incrowd.quality.tuples import Spread, Tuples

if TYPE_CHECKING:
    from incrowd.methods.anonymity.search.rollup import Rolled

Node = tuple[int, ...]
"""One rung for each column."""


@dataclass(frozen=True, eq=False)
class SensitiveLabels:
    """The values of a sensitive column that occur, in order: their labels, their classes at levels above, rows."""

    labels: pa.Array
    lifts: tuple[Codes, ...]
    totals: NDArray[np.int64]


@dataclass(frozen=True)
class LevelLimits:
    """The lowest and the highest level that each column may have; where nothing is said, all it has.

    >>> LevelLimits({"age": 1}, {"age": 3}).of("age"), LevelLimits().of("age")
    ((1, 3), (0, None))
    """

    lowest: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    highest: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, name: str) -> tuple[int, int | None]:
        """Return the limits of a column."""
        return self.lowest.get(name, 0), self.highest.get(name)


EVERYTHING = LevelLimits()
"""No limits."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """The ladders of the columns, the classes at their lowest rungs, and the numbers that tables give to codes.

    A node is coarser than another if no column is on a lower rung.
    """

    ladders: tuple[Ladder, ...]
    base: Tuples
    tables: tuple[tuple[Codes, ...], ...]
    sizes: tuple[tuple[int, ...], ...]
    sensitive: Mapping[str, SensitiveLabels]

    @classmethod
    def of(
        cls, counts: Counts, quasi: Sequence[str], sensitive: Sequence[str] = (), limits: LevelLimits = EVERYTHING
    ) -> Lattice:
        """Return the lattice over the quasi-identifiers of a table that was counted at its finest levels."""
        both = [name for name in quasi if name in sensitive]
        if both or not quasi:
            raise InvalidParameter(
                f"{both[0]!r} is named both as generalized and as sensitive: name it once."
                if both
                else "a search needs at least one column to generalize."
            )
        tuples = counts.marginal(quasi)
        ladders = tuple(Ladder.of(column, *limits.of(name)) for name, column in zip(quasi, tuples.classes, strict=True))
        spreads = {name: _spread(counts.marginal([*quasi, name])) for name in sensitive}
        base = Tuples(
            np.stack(tuples.codes()), tuples.counts, None, {name: spread for name, (spread, _) in spreads.items()}
        )
        return cls._over(ladders, base, {name: labels for name, (_, labels) in spreads.items()})

    def with_population(self, population: Counts) -> Lattice:
        """Return the lattice of a table that was drawn from a population, counted with the same declarations."""
        names = [ladder.name for ladder in self.ladders]
        people = population.marginal(names)
        for ladder, column in zip(self.ladders, people.classes, strict=True):
            if column.recoding.classes is None or len(column) != len(ladder.rises[0]):
                raise InvalidParameter(f"{ladder.name!r}: table and population need the same declared classes.")
        keys = people.layout.pack(list(self.base.codes))
        merged, places = np.unique(np.concatenate([keys, people.keys]), return_inverse=True)
        here, there = places[: len(keys)], places[len(keys) :]
        order = np.concatenate([here, np.setdiff1d(there, here)])
        rank = np.empty(len(merged), np.int64)
        rank[order] = np.arange(len(order))
        sizes, counts = np.zeros(len(merged), np.int64), np.zeros(len(merged), np.int64)
        sizes[: len(keys)] = self.base.sizes
        counts[rank[there]] = people.counts
        codes = np.stack(people.layout.unpack(merged[order]))
        return self._over(self.ladders, Tuples(codes, sizes, counts, self.base.spreads), self.sensitive)

    @classmethod
    def _over(cls, ladders: tuple[Ladder, ...], base: Tuples, sensitive: Mapping[str, SensitiveLabels]) -> Lattice:
        tables = occurring(ladders, list(base.codes))
        sizes = tuple(tuple(int(table.max(initial=0)) + 1 for table in column) for column in tables)
        return cls(ladders, base, tables, sizes, sensitive)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(ladder.name for ladder in self.ladders)

    @cached_property
    def rows(self) -> int:
        """How many rows were counted."""
        return self.base.rows

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return math.prod(len(ladder) for ladder in self.ladders)

    @property
    def bottom(self) -> Node:
        """The finest node."""
        return (0,) * len(self.ladders)

    @property
    def top(self) -> Node:
        """The coarsest node."""
        return tuple(len(ladder) - 1 for ladder in self.ladders)

    def levels(self, node: Node) -> dict[str, int]:
        """Return the level of each column at a node."""
        return {ladder.name: ladder.levels[rung] for ladder, rung in zip(self.ladders, node, strict=True)}


def _spread(counts: Counts) -> tuple[Spread, SensitiveLabels]:
    """Return how the last column falls into the tuples of the others, and its values."""
    starts = class_starts(counts, len(counts.names) - 1)
    owners = np.zeros(len(counts), np.int32)
    owners[starts[1:]] = 1
    codes = counts.codes()[-1]
    met, values = np.unique(codes, return_inverse=True)
    classes = counts.classes[-1]
    totals = np.bincount(values, counts.counts, len(met)).astype(np.int64)
    labels = SensitiveLabels(classes.labels().take(pa.array(met)), lifts(classes, met.astype(np.int32)), totals)
    return Spread(np.cumsum(owners, dtype=np.int32), values.astype(np.int32), counts.counts), labels


@dataclass(frozen=True)
class Task:
    """A criterion to meet, the share of the rows that may be suppressed for it, and what is lost.

    >>> from incrowd.criteria.k_anonymity import KAnonymity
    >>> Task(KAnonymity(5), limit="0.05").allowed(30162)
    1508
    """

    criterion: Criterion
    quality: Quality = field(default_factory=Loss)
    limit: Number = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidParameter("the suppression limit is a share of the rows, from 0 to 1.")

    @cached_property
    def share(self) -> Fraction:
        """The suppression limit, exactly."""
        return exact(self.limit, "the suppression limit")

    def allowed(self, rows: int) -> int:
        """Return how many of so many rows may be suppressed."""
        return self.share.numerator * rows // self.share.denominator

    @cached_property
    def inherited(self) -> bool:
        """Whether a node that fails rules out all finer ones, whatever the reason."""
        monotone = self.criterion.monotone
        return monotone is Monotone.UPWARD or (monotone is Monotone.UNIONS and self.share == 0)

    @cached_property
    def parts(self) -> tuple[Criterion, ...]:
        """The criteria in the order in which they are asked: those that rule out finer nodes first, the whole last."""
        parts = self.criterion.parts if isinstance(self.criterion, All) else (self.criterion,)
        return tuple(sorted(parts, key=lambda part: (part.whole, -part.monotone, len(part.sensitive))))

    @cached_property
    def prunes(self) -> bool:
        """Whether a failing node can rule out finer ones."""
        return self.inherited or any(part.bounding for part in self.parts)


@dataclass(frozen=True)
class Point:
    """A node that meets the task: its levels, its score, and how exposed those are who are released.

    `smallest` is the number of rows in the smallest released class (None if nothing is released), one over it the
    highest risk, and `classes` over released rows the average risk.
    """

    node: Node
    levels: tuple[int, ...]
    score: float
    suppressed: int
    classes: int
    smallest: int | None


@dataclass(frozen=True)
class Judgment:
    """One node judged: the point if it meets the task, a bound for coarser nodes and a burden for finer ones.

    `least` is at most the score of this node and every coarser one.  Every finer node's score is at least the sum of
    its own steps plus `surcharges` at its rungs, and so at least its own steps plus `burden`, which is infinite where
    none of them can meet the task.
    """

    point: Point | None
    least: float
    burden: float
    surcharges: Surcharges = ()

    def burden_of(self, node: Node) -> float:
        """Return what a finer node pays at least on top of its own steps."""
        if self.burden in (0.0, math.inf):
            return self.burden
        return sum([float(column[rung]) for column, rung in zip(self.surcharges, node, strict=True)])


def judge(task: Task, measure: Measure, rolled: Rolled, node: Node) -> Judgment:
    """Return what a node is worth.

    Soundness of `burden`: what each class can release at finer nodes (see `Criterion.releasable`) leaves some of its
    rows suppressed at every one of them: more than allowed, or at the price of `Measure.surcharges` at least.  Where
    the whole task is inherited (see `Monotone`), failing at all is enough.
    """
    lattice, tuples, partition = rolled.lattice, rolled.tuples, rolled.partition()
    least = measure.least(node, tuples)
    allowed = task.allowed(lattice.rows)
    retained, rows = np.ones(len(tuples), np.bool_), tuples.sizes
    suppressed, out_of_reach = 0, False
    for part in task.parts:
        retained = part.retained(partition, retained)
        rows = rows if part.whole else part.releasable(partition, rows, retained)
        suppressed = _gone(tuples.sizes, retained)
        if suppressed > allowed:
            out_of_reach = task.inherited
            break
    else:
        if task.criterion.whole and len(task.parts) > 1:
            retained = task.criterion.retained(partition, retained)
            suppressed = _gone(tuples.sizes, retained)
            out_of_reach = suppressed > allowed and task.inherited
    lost = tuples.sizes - _at_most(task, partition, rows)
    if out_of_reach or int(lost.sum()) > allowed:
        return Judgment(None, least, math.inf)
    surcharges = measure.surcharges(node, tuples, lost)
    burden = sum([float(column[-1]) for column in surcharges])
    if suppressed > allowed:
        return Judgment(None, least, burden, surcharges)
    score = measure.score(node, tuples, retained)
    return Judgment(_point(lattice, node, score, (tuples.sizes, retained), suppressed), least, burden, surcharges)


def _at_most(task: Task, partition: Partition, rows: Rows) -> Rows:
    """Return how many rows any finer node can release, where criteria that count rows see what the others leave."""
    for part in task.parts:
        if part.monotone is Monotone.UPWARD and not part.whole:
            rows = part.releasable(partition, rows, rows > 0)
    return rows


def _gone(sizes: Rows, retained: Mask) -> int:
    return int(sizes[~retained].sum())


def _point(lattice: Lattice, node: Node, score: float, classes: tuple[Rows, Mask], suppressed: int) -> Point:
    sizes = classes[0][classes[1]]
    levels = tuple(ladder.levels[rung] for ladder, rung in zip(lattice.ladders, node, strict=True))
    return Point(node, levels, score, suppressed, len(sizes), int(sizes.min()) if len(sizes) else None)


class LevelSearch(Method):
    """A method that searches combinations of levels: what it offers to whoever explores them before a release."""

    k: int
    suppression: Fraction
    seconds: Fraction | None

    def varied(self, **changes: Any) -> Self:
        """Return the same search with other parameters."""
        varied: Self = replace(cast("Any", self), **changes)
        return varied

    def cells(self, schema: Schema) -> Cells:
        """Return the tuples that are counted, at their finest levels."""
        raise NotImplementedError

    def people(self, engine: Engine, schema: Schema) -> Counts | None:
        """Return the counts of the population at the finest levels, where something is demanded against it."""
        raise NotImplementedError

    def lattice(self, counts: Counts, schema: Schema, people: Counts | None = None) -> Lattice:
        """Return what is searched through: every combination of levels, over counts at the finest ones."""
        raise NotImplementedError

    def task(self, schema: Schema) -> Task:
        """Return what a combination of levels must meet, and what it is measured by."""
        raise NotImplementedError
