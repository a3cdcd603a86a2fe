"""Rounds: levels for some rows of a table, what they lose, whether their classes are crowds, and what rows show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.rounding import Number
from incrowd.criteria.criterion import All, Criterion, Mask, Monotone
from incrowd.criteria.groups import Groups, class_starts
from incrowd.criteria.partition import Partition
from incrowd.methods.anonymity.mondrian.labels import kept_values
from incrowd.methods.anonymity.search.lattice import EVERYTHING, Lattice, LevelLimits, Node
from incrowd.methods.anonymity.search.optimal import SearchLimits, optimal
from incrowd.methods.anonymity.search.rollup import Rolled, RollupCache
from incrowd.methods.anonymity.search.task import Task
from incrowd.methods.outcomes.anonymized import LocallyGeneralized
from incrowd.quality.additive import Loss
from incrowd.quality.quality import shares_of_weights

if TYPE_CHECKING:
    from incrowd.quality.ladder import Ladder


@dataclass(frozen=True, eq=False)
class WholeTableCriterion(Criterion):
    """A criterion that compares classes of a part of a table with the whole table.

    What the whole table holds beyond the part is added as one more class, so that all classes together are the whole
    table, and is then forgotten.  The whole stays the same from node to node, so what is known of the criterion when
    classes merge stays true.

    >>> import pyarrow as pa
    >>> from incrowd.criteria.closeness import EqualCloseness
    >>> names = pa.array(["flu", "gout"])
    >>> whole = Groups(np.array([0]), np.array([0, 1], np.int32), np.array([4, 4]), names)
    >>> part = Groups(np.array([0]), np.array([0], np.int32), np.array([2]), names.slice(0, 1))
    >>> alone = Partition(np.array([2]), {"ill": part})
    >>> close = EqualCloseness("ill", "0.4")
    >>> table = Partition(np.array([8]), {"ill": whole})
    >>> close.met(alone).tolist(), WholeTableCriterion(close, table).met(alone).tolist()
    ([True], [False])
    """

    inner: Criterion
    table: Partition

    @property
    def monotone(self) -> Monotone:
        """What follows for coarser nodes: the same."""
        return self.inner.monotone

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive columns it looks at."""
        return self.inner.sensitive

    def retained(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes of the part, among some, may be released."""
        elsewhere = self.table.rows - partition.rows
        if not elsewhere:
            return self.inner.retained(partition, among)
        both = {name: complete_groups(partition.sensitive[name], self.table.sensitive[name]) for name in self.sensitive}
        everyone = Partition(np.append(partition.sizes, elsewhere), both)
        return self.inner.retained(everyone, np.append(among, False))[:-1]


def complete_groups(part: Groups, whole: Groups) -> Groups:
    """Return the groups of a part of a table and one more: all rows of the whole table that are in none of them.

    >>> import pyarrow as pa
    >>> names = pa.array(["flu", "gout"])
    >>> whole = Groups(np.array([0]), np.array([0, 1], np.int32), np.array([4, 4]), names)
    >>> part = Groups(np.array([0]), np.array([0], np.int32), np.array([3]), names.slice(1))
    >>> both = complete_groups(part, whole)
    >>> both.starts.tolist(), both.values.tolist(), both.counts.tolist()
    ([0, 1], [1, 0, 1], [3, 4, 1])
    """
    places = pc.index_in(part.labels, value_set=whole.labels).to_numpy(zero_copy_only=False).astype(np.int32)
    values = places[part.values]
    left = whole.totals - np.bincount(values, part.counts, len(whole.labels)).astype(np.int64)
    there = np.flatnonzero(left)
    return Groups(
        np.append(part.starts, len(part.counts)),
        np.append(values, there).astype(np.int32),
        np.append(part.counts, left[there]),
        whole.labels,
        whole.lifts,
    )


Chosen = NDArray[np.bool_]
"""Which of the table's tuples."""


@dataclass(frozen=True, eq=False)
class Round:
    """The levels of one round, by rung, and the tuples that are released at them."""

    node: Node
    chosen: Chosen


@dataclass(frozen=True, eq=False)
class Ground:
    """A table as it was counted, its tuples of quasi-identifiers, and what every class must meet.

    `owners` tells for each counted cell which of the tuples it belongs to, `released` the columns in their order.
    """

    released: tuple[str, ...]
    cells: Counts
    owners: NDArray[np.intp]
    lattice: Lattice
    criteria: tuple[Criterion, ...]
    limits: LevelLimits
    weights: Mapping[str, Fraction]

    @classmethod
    def of(
        cls,
        counts: Counts,
        quasi: tuple[str, ...],
        criteria: tuple[Criterion, ...],
        limits: LevelLimits = EVERYTHING,
        weights: Mapping[str, Fraction] = MappingProxyType({}),
    ) -> Ground:
        """Lay out counts at their finest; columns weigh in the loss as `weights` say."""
        sensitive = All(criteria).sensitive
        cells = counts.marginal([*quasi, *(name for name in counts.names if name not in quasi)])
        owners = np.zeros(len(cells), np.intp)
        owners[class_starts(cells, len(quasi))[1:]] = 1
        lattice = Lattice.of(cells, quasi, sensitive, limits)
        return cls(counts.names, cells, np.cumsum(owners), lattice, criteria, limits, weights)

    @property
    def rows(self) -> NDArray[np.int64]:
        """How many rows each tuple has."""
        return self.lattice.base.sizes

    @cached_property
    def parts(self) -> NDArray[np.float64]:
        """The part of each column in the loss."""
        return shares_of_weights(self.weights, self.lattice.ladders)

    @cached_property
    def whole(self) -> Partition:
        """The table at its finest, as criteria see it."""
        base = self.lattice.base
        found = Rolled(self.lattice, base, base, np.arange(len(base), dtype=np.int32)).partition()
        return Partition(found.sizes, {name: found.groups(name) for name in self.lattice.sensitive})

    def search(self, rest: Chosen, limit: Fraction, factor: Number, patience: SearchLimits) -> Round | None:
        """Return the levels with the least loss at which at most a share of some tuples' rows is not released.

        `factor` weighs what is lost by the released rows against what is lost by the others, as in `Loss`.
        """
        part = rest[self.owners]
        some = replace(self.cells, keys=self.cells.keys[part], counts=self.cells.counts[part])
        criteria = tuple(WholeTableCriterion(each, self.whole) if each.sensitive else each for each in self.criteria)
        lattice = Lattice.of(some, self.lattice.names, All(criteria).sensitive, self.limits)
        task = Task(All(criteria), Loss(factor, self.weights), limit)
        best = optimal(lattice, task, patience).best
        if best is None:
            return None
        rolled = RollupCache(lattice)(best.node)
        met = task.criterion.met(rolled.partition())
        chosen = rest.copy()
        chosen[rest] = met[rolled.ids]
        return Round(best.node, chosen) if chosen.any() else None

    def prices(self, node: Node) -> NDArray[np.float64]:
        """Return what a row of each tuple loses at a node: the mean over the columns, by their weights."""
        found = np.zeros(len(self.rows))
        for part, ladder, rung, codes in zip(
            self.parts, self.lattice.ladders, node, self.lattice.base.codes, strict=True
        ):
            found += part * ladder.losses[rung][codes]
        return found

    def loss(self, rounds: tuple[Round, ...]) -> float:
        """Return what is lost in all: the mean over all rows, where one that is in no round has lost everything."""
        lost = np.full(len(self.rows), float(self.parts.sum()))
        for each in rounds:
            lost[each.chosen] = self.prices(each.node)[each.chosen]
        return float((lost * self.rows).sum()) / max(1, int(self.rows.sum()))

    def holds(self, classes: NDArray[np.int32], outside: Chosen) -> bool:
        """Return whether every class meets the criteria, given each tuple's class; what is outside may not."""
        _, first, numbers = np.unique(classes, return_index=True, return_inverse=True)
        base, ids = self.lattice.base, numbers.astype(np.int32)
        rolled = Rolled(self.lattice, base, base.merged(ids, first.astype(np.int32)), ids)
        met = All(self.criteria).met(rolled.partition())
        return bool(met[ids[~outside]].all())


@dataclass(frozen=True, eq=False)
class RoundLabels:
    """What each tuple of quasi-identifiers shows: for each column the labels that occur, and each tuple's place."""

    rounds: tuple[Round, ...]
    labels: dict[str, pa.Array]
    places: NDArray[np.int32]
    outside: NDArray[np.bool_]

    @property
    def classes(self) -> NDArray[np.int32]:
        """The number of each tuple's class; what is outside is a class of its own."""
        codes = np.where(self.outside, -1, self.places)
        return np.unique(codes, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int32)

    def table(self, ground: Ground) -> LocallyGeneralized:
        """Unfold the tuples into the cells that were counted, with the columns that stay as they are."""
        names = ground.lattice.names
        shown = np.flatnonzero(~self.outside[ground.owners])
        codes = dict(zip(ground.cells.names, ground.cells.codes(), strict=True))
        columns: dict[str, tuple[pa.Array, NDArray[np.integer]]] = {
            name: (values, place[ground.owners[shown]]) for (name, values), place in self._columns()
        }
        for name, classes in zip(ground.cells.names, ground.cells.classes, strict=True):
            if name not in names:
                columns[name] = kept_values(classes.values(), codes[name][shown])
        columns = {name: columns[name] for name in ground.released}
        made = LocallyGeneralized.of(
            {name: values for name, (values, _) in columns.items()},
            [code for _, code in columns.values()],
            ground.cells.counts[shown],
            names,
        )
        levels = tuple(ground.lattice.levels(each.node) for each in self.rounds)
        return LocallyGeneralized(made.names, made.values, made.keys, made.counts, made.quasi, levels)

    def _columns(self) -> zip[tuple[tuple[str, pa.Array], NDArray[np.int32]]]:
        return zip(self.labels.items(), self.places, strict=True)


def label(ground: Ground, rounds: tuple[Round, ...]) -> RoundLabels:
    """Return what each tuple shows after rounds; what is in none of them is outside."""
    outside = np.ones(len(ground.rows), np.bool_)
    for each in rounds:
        outside &= ~each.chosen
    labels, places = {}, np.zeros((len(ground.lattice.ladders), len(outside)), np.int32)
    for column, (ladder, codes) in enumerate(zip(ground.lattice.ladders, ground.lattice.base.codes, strict=True)):
        labels[ladder.name], places[column] = _labeled(ladder, codes, [(r.node[column], r.chosen) for r in rounds])
    return RoundLabels(rounds, labels, places, outside)


def _labeled(
    ladder: Ladder, codes: NDArray[np.int32], rungs: list[tuple[int, NDArray[np.bool_]]]
) -> tuple[pa.Array, NDArray[np.int32]]:
    """Return the labels that a column shows, by level and then in their order, each once, and each tuple's place."""
    used = sorted({rung for rung, _ in rungs})
    named = {rung: ladder.classes[rung].open_labels() for rung in used}
    met = []
    for rung in used:
        there = np.unique(np.concatenate([ladder.rises[rung][codes[chosen]] for at, chosen in rungs if at == rung]))
        met.append(named[rung].take(pa.array(there)))
    values = pc.unique(pa.concat_arrays([pa.array([], pa.string()), *met])).drop_null()
    places = np.zeros(len(codes), np.int32)
    for rung, chosen in rungs:
        found = pc.index_in(named[rung], value_set=values).fill_null(len(values)).to_numpy(zero_copy_only=False)
        places[chosen] = found[ladder.rises[rung][codes[chosen]]]
    return values, places
