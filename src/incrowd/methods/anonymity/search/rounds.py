"""Rounds: levels for some rows, then for those that are left, until all are in classes; what rows show after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.rounding import Number
from incrowd.criteria.criterion import All, Criterion, Mask, Monotone
from incrowd.criteria.groups import Groups, class_starts
from incrowd.criteria.partition import Partition
from incrowd.methods.anonymity.search.lattice import EVERYTHING, Lattice, LevelLimits, Node, Task
from incrowd.methods.anonymity.search.optimal import ENDLESS, SearchLimits, optimal
from incrowd.methods.anonymity.search.rollup import Rolled, RollupCache
from incrowd.methods.shared.microdata import CodedColumn, LocallyGeneralized, occurring_values
from incrowd.quality.additive import Loss
from incrowd.quality.ladder import Ladder
from incrowd.quality.quality import shares_of_weights


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
        partition = Rolled(self.lattice, base, base, np.arange(len(base), dtype=np.int32)).partition()
        return Partition(partition.sizes, {name: partition.groups(name) for name in self.lattice.sensitive})

    def search(self, rest: Chosen, limit: Fraction, factor: Number, patience: SearchLimits) -> Round | None:
        """Return the levels with the least loss at which at most a share of some tuples' rows is not released.

        `factor` weighs what is lost by the released rows against what is lost by the others, as in `Loss`.
        """
        part = rest[self.owners]
        some = replace(self.cells, keys=self.cells.keys[part], counts=self.cells.counts[part])
        criteria = tuple(
            WholeTableCriterion(criterion, self.whole) if criterion.sensitive else criterion
            for criterion in self.criteria
        )
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
        prices = np.zeros(len(self.rows))
        for part, ladder, rung, codes in zip(
            self.parts, self.lattice.ladders, node, self.lattice.base.codes, strict=True
        ):
            prices += part * ladder.losses[rung][codes]
        return prices

    def loss(self, rounds: tuple[Round, ...]) -> float:
        """Return what is lost in all: the mean over all rows, where one that is in no round has lost everything."""
        lost = np.full(len(self.rows), float(self.parts.sum()))
        for round_ in rounds:
            lost[round_.chosen] = self.prices(round_.node)[round_.chosen]
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
        released = np.flatnonzero(~self.outside[ground.owners])
        codes = dict(zip(ground.cells.names, ground.cells.codes(), strict=True))
        columns: dict[str, CodedColumn] = {
            name: (values, place[ground.owners[released]])
            for (name, values), place in zip(self.labels.items(), self.places, strict=True)
        }
        for name, classes in zip(ground.cells.names, ground.cells.classes, strict=True):
            if name not in names:
                columns[name] = occurring_values(classes.values(), codes[name][released])
        return LocallyGeneralized.of(
            {name: columns[name] for name in ground.released},
            ground.cells.counts[released],
            names,
            rounds=tuple(ground.lattice.levels(round_.node) for round_ in self.rounds),
        )


def label(ground: Ground, rounds: tuple[Round, ...]) -> RoundLabels:
    """Return what each tuple shows after rounds; what is in none of them is outside."""
    outside = np.ones(len(ground.rows), np.bool_)
    for round_ in rounds:
        outside &= ~round_.chosen
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
        indices = pc.index_in(named[rung], value_set=values).fill_null(len(values)).to_numpy(zero_copy_only=False)
        places[chosen] = indices[ladder.rises[rung][codes[chosen]]]
    return values, places


_ALIKE, _FREE = Fraction(1, 2), Fraction(0)
"""Factors: what is not released has lost everything; or it waits, and has lost no more than the others."""


@dataclass(frozen=True)
class Schedule:
    """How rounds go: at most so many, and the share of its rows that each may leave to the next.

    `suppression` is the share of all rows that may be left out in the end, and `patience` is how long the search of a
    round may take.
    """

    most: int
    left: Fraction
    suppression: Fraction = Fraction(0)
    patience: SearchLimits = ENDLESS

    def allowed(self, ground: Ground) -> int:
        """Return how many rows of a table may be left out."""
        return self.suppression.numerator * int(ground.rows.sum()) // self.suppression.denominator


def recode_in_rounds(ground: Ground, schedule: Schedule) -> tuple[Round, ...]:
    """Return rounds that release all rows but a share, and lose no more than the best single round; none if none can.

    Each round takes, of all levels at which at most the share `left` of its rows must wait, those that lose least; what
    waits is the next round's, until nobody waits or no levels help.  If then more wait than may be left out, there are
    two ways.  They join classes of earlier rounds; or the last round is taken back and its rows are searched together
    with them, and so on, until that succeeds.  The better way is taken, or the single round if that is better still.
    """
    everyone = np.ones(len(ground.rows), np.bool_)
    single = ground.search(everyone, schedule.suppression, _ALIKE, schedule.patience) if len(everyone) else None
    if single is None:
        return ()
    rounds, rest = _forward(ground, schedule, everyone)
    ways: list[tuple[Round, ...]] = [(single,)]
    if int(ground.rows[rest].sum()) <= schedule.allowed(ground):
        ways.append(rounds)
    else:
        ways += [way for way in (join_rest(ground, rounds, rest),) if way is not None]
        ways.append(_backward(ground, schedule, rounds, rest))
    return min((way for way in ways if way), key=ground.loss)


def _forward(ground: Ground, schedule: Schedule, rest: Chosen) -> tuple[tuple[Round, ...], Chosen]:
    """Return round after round, and what is left when nobody waits, when no levels help, or after the last round."""
    rounds: list[Round] = []
    while rest.any() and len(rounds) < schedule.most:
        round_ = ground.search(rest, schedule.left, _FREE, schedule.patience)
        if round_ is None:
            break
        rounds.append(round_)
        rest = rest & ~round_.chosen
    return tuple(rounds), rest


def _backward(ground: Ground, schedule: Schedule, rounds: tuple[Round, ...], rest: Chosen) -> tuple[Round, ...]:
    """Take back rounds from the last on, until levels are found for their rows and the rest together; or all."""
    for place in range(len(rounds) - 1, 0, -1):
        rest = rest | rounds[place].chosen
        share = Fraction(schedule.allowed(ground), int(ground.rows[rest].sum()))
        again = ground.search(rest, share, _ALIKE, schedule.patience)
        if again is not None:
            return (*rounds[:place], again)
    return ()


_WORK = 2**22
"""Nodes times tuples that may be looked at."""


def join_rest(ground: Ground, rounds: tuple[Round, ...], rest: Chosen) -> tuple[Round, ...] | None:
    """Return rounds that release the rest too, at the levels where that adds the least loss; None if none are found.

    At some levels, those of the rest are in classes together with rows of earlier rounds that are nowhere coarser.
    Classes at finer levels lie within classes at coarser ones, so whole classes leave their rounds, and what stays
    there is as it was.  Where a table is large, nothing is tried.
    """
    if not rest.any() or ground.lattice.nodes * len(rest) > _WORK:
        return None
    rows, now = ground.rows, np.zeros(len(rest))
    for round_ in rounds:
        now[round_.chosen] = ground.prices(round_.node)[round_.chosen]
    least: tuple[float, Node, Chosen] | None = None
    for node in product(*(range(len(ladder)) for ladder in ground.lattice.ladders)):
        ids = RollupCache(ground.lattice)(node).ids
        taken = _taken(rounds, rest, node, ids)
        added = float(((ground.prices(node) - now)[taken] * rows[taken]).sum())
        if least is not None and added >= least[0]:
            continue
        if ground.holds(np.where(taken, ids, ids.max(initial=0) + 1).astype(np.int32), ~taken):
            least = added, node, taken
    if least is None:
        return None
    left = (Round(round_.node, round_.chosen & ~least[2]) for round_ in rounds)
    return (*(round_ for round_ in left if round_.chosen.any()), Round(least[1], least[2]))


def _taken(rounds: tuple[Round, ...], rest: Chosen, node: Node, ids: NDArray[np.int32]) -> Chosen:
    """Return the rest, and all of earlier rounds who are in one class with them at a node."""
    taken = rest.copy()
    for round_ in rounds:
        if all(low <= high for low, high in zip(round_.node, node, strict=True)):
            taken |= round_.chosen
    met = np.zeros(int(ids.max(initial=-1)) + 1, np.bool_)
    met[ids[rest]] = True
    return taken & met[ids]
