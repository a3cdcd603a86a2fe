"""Search: which tables to measure next, chosen privately by how wrong the model is about them.

Everything but the choices and the noisy counts follows from earlier answers and public constants: how large noise and
rounds are, when to stop, which tables would make the model too large.  So the whole is within the budget, whatever
comes out (a filter on ρ).

Source: McKenna, Mullins, Sheldon & Miklau 2022 (AIM); Feldman & Zrnic 2021 (the filter).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.mechanisms.selection import Exponential
from incrowd.methods.synthesis.marginals.budget import (
    Sensitivity,
    Shares,
    choice_epsilon,
    choice_rho,
    gaussian_scale,
    last_round,
    single_scales,
    table_rho,
)
from incrowd.methods.synthesis.marginals.evaluation import WeightedRows
from incrowd.methods.synthesis.marginals.faint import evened_tails, faint_zeros, harmless_zeros
from incrowd.methods.synthesis.marginals.junction import Columns, cells_of
from incrowd.methods.synthesis.marginals.model import (
    Fit,
    NoisyTable,
    PriorTable,
    TableModel,
    Zero,
    ZeroTable,
    merged_zeros,
)
from incrowd.methods.synthesis.marginals.pairs import pair_tables
from incrowd.methods.synthesis.marginals.patterns import NoisyPattern
from incrowd.methods.synthesis.marginals.rare import RareClasses

_STEPS, _FINISH, _TREE_STEPS = 30, 60, 600  # of fitting noisy tables; more is nearer and slower, any number is private
_TARGET = 8  # how much more a table with the target column helps: a rare class moves few rows of a table
_MANY = 16  # rounds; where there are more, each starts nearer to its end and takes fewer steps
_SAMPLE = 60_000  # rows drawn from the model to estimate a table: fewer is faster, more is finer; any number is private
# E|z| of Gaussian noise over its scale: what noise alone adds to the distance of tables (McKenna et al. 2022)
_BIAS = math.sqrt(2.0 / math.pi)


@dataclass(frozen=True)
class MeasuringRound:
    """One table that was measured: its columns, the scale of its noise, and the ε of the choice, if it was chosen.

    A table of one column in finer pieces than its classes says how many.
    """

    columns: Columns
    scale: Fraction
    epsilon: Fraction | None = None
    pieces: int | None = None

    def rho(self, reach: Sensitivity) -> Fraction:
        """Return what it cost."""
        choice = Fraction(0) if self.epsilon is None else choice_rho(self.epsilon)
        return table_rho(self.scale, reach) + choice


def pattern_rounds(patterns: Sequence[NoisyPattern], names: Sequence[str]) -> tuple[MeasuringRound, ...]:
    """Return the patterns that were measured, by the numbers of their columns."""
    return tuple(
        MeasuringRound(tuple(map(names.index, item.pattern.columns)), item.scale, None, item.pattern.size)
        for item in patterns
    )


@dataclass(frozen=True)
class WorkLimits:
    """What is public: tables to choose from, limits on rounds, cells and solver steps, what is declared of the rows.

    `zeros` never occur, and `total` is how many rows there are, where that is declared.  `faint` are classes, each by
    its column and code, that the model has only if they were measured above noise.  Tables with the
    `target` column weigh more.  `ordered` are columns of numbers, each with how many classes are in order.
    """

    workload: tuple[Columns, ...]
    rounds: int
    cells: int
    steps: int = _STEPS
    zeros: tuple[Zero | ZeroTable, ...] = ()
    total: int | None = None
    faint: tuple[tuple[int, int], ...] = ()
    target: int | None = None
    ordered: tuple[tuple[int, int], ...] = ()

    @property
    def pace(self) -> int:
        """How many steps of the solver a round takes: fewer where there are many rounds."""
        return max(8, self.steps * _MANY // max(_MANY, self.rounds))

    def candidates(self) -> dict[Columns, int]:
        """Return the tables of two columns or more that lie in one of the workload, with how much they help it."""
        parts = {
            part for table in self.workload for size in range(2, len(table) + 1) for part in combinations(table, size)
        }
        weights = {part: sum(len(set(part) & set(table)) for table in self.workload) for part in sorted(parts)}
        return {part: weight * (_TARGET if self.target in part else 1) for part, weight in weights.items()}


@dataclass(frozen=True, eq=False)
class TableSelection:
    """A fitted model, and what was measured for it."""

    fit: Fit
    rounds: tuple[MeasuringRound, ...]

    @property
    def model(self) -> TableModel:
        """The model."""
        return self.fit.model

    def rho(self, reach: Sensitivity) -> Fraction:
        """Return what all rounds cost."""
        return sum((measured.rho(reach) for measured in self.rounds), Fraction(0))


@dataclass(frozen=True, eq=False)
class Search:
    """Rows, public limits, how far one unit reaches, and coins: what measuring needs."""

    rows: WeightedRows
    limits: WorkLimits
    reach: Sensitivity
    coins: Coins
    prior: tuple[PriorTable, ...] = field(default=(), kw_only=True)
    """Tables of an earlier model, which was published: the fit starts from them."""
    rare: RareClasses | None = field(default=None, kw_only=True)
    """Which classes are taken together in `rows`, if any are."""

    def measured(self, columns: Columns, scale: Fraction) -> NoisyTable:
        """Return a table with Gaussian noise."""
        counts = self.rows.table(columns)
        noise = self.coins.gaussian(scale, counts.size).reshape(counts.shape)
        return NoisyTable(columns, counts + noise, float(scale))

    @property
    def widths(self) -> tuple[int, ...]:
        """How many classes each column has in the end."""
        return self.rows.sizes if self.rare is None else self.rare.widths

    def begun(self, scale: Fraction) -> tuple[Search, TableSelection]:
        """Measure every column by itself, at the cost of one scale for all.

        Return the search over the classes that are shown by that, and its first model.
        """
        scales = single_scales(scale, self.rows.sizes, self.reach)
        tables = [self.measured((column,), own) for column, own in enumerate(scales)]
        total = estimated_total(tables) if self.limits.total is None else float(self.limits.total)
        rounds = tuple(map(MeasuringRound, (table.columns for table in tables), scales))
        rare, search = RareClasses.of(tables, self._single()), self
        if rare.sizes != rare.widths:
            faint = tuple((column, int(rare.places[column][code])) for column, code in self.limits.faint)
            search = replace(self, rows=rare.rows(self.rows), limits=replace(self.limits, faint=faint), rare=rare)
        return search, TableSelection(search.fitted(rare.tables(tables, total), total), rounds)

    def _single(self) -> set[tuple[int, int | None]]:
        """Return what is never taken together: columns with a rule, a prior or an order; classes that may be empty."""
        rules = (*self.limits.zeros, *self.prior)
        columns = {column for rule in rules for column in rule.columns} | {column for column, _ in self.limits.ordered}
        return {*self.limits.faint, *((column, None) for column in columns)}

    def fitted(self, tables: Sequence[NoisyTable], total: float) -> Fit:
        """Return the first model, of single columns."""
        declared = merged_zeros(self.limits.zeros, self.rows.sizes)
        evened, tails = evened_tails(tables, self.limits.ordered)
        faint = harmless_zeros([*faint_zeros(tables, self.limits.faint), *tails], declared)
        zeros = merged_zeros((*declared, *faint), self.rows.sizes)
        fit = Fit.of(self.rows.sizes, evened, total, self.limits.steps, (*zeros, *self.prior))
        if self.rare is None:
            return fit
        tree = replace(fit.model.tree, widths=self.widths)
        return replace(fit, model=replace(fit.model, tree=tree))

    def spread(self, selection: TableSelection) -> TableSelection:
        """Return what was selected with a model over all classes."""
        if self.rare is None:
            return selection
        return replace(selection, fit=replace(selection.fit, model=self.rare.spread(selection.model)))

    def adaptive(self, shares: Shares) -> TableSelection:
        """Measure single columns, then again and again the table about which the model seems most wrong."""
        search, progress = self.begun(shares.first)
        return search.spread(search.improved(progress, shares))

    def improved(self, progress: TableSelection, shares: Shares) -> TableSelection:
        """Measure tables until the budget is spent."""
        candidates = self.limits.candidates()
        scale, epsilon, most = shares.scale, shares.epsilon, 4 * self.limits.rounds
        rooms, late = RoomLimits(candidates), False
        for number in range(most):
            left = shares.spendable - progress.rho(self.reach)
            cost = choice_rho(epsilon) + table_rho(scale, self.reach)
            last = left < 2 * cost or number + 1 == most
            if last:
                scale, epsilon = last_round(left, self.reach)
            used = 1 if last else (shares.spendable - left + cost) / shares.spendable
            rooms = rooms.after(progress, float(used * self.limits.cells))
            if not rooms.allowed:
                break
            expected = ExpectedTables.of(progress.model, self.coins)
            apart = self.joining(progress, rooms.allowed, 0 if last or late else int(left / cost))
            allowed = {columns: candidates[columns] for columns in apart or rooms.allowed}
            progress = self.round(progress, expected, allowed, (scale, epsilon))
            if last:
                break
            if not apart and _still(expected, progress, scale):
                if late or not self.joining(progress, rooms.allowed, 0):
                    scale, epsilon = scale / 2, epsilon * 2
                late = True
        return TableSelection(progress.fit.further((), _FINISH), progress.rounds)

    def joining(self, progress: TableSelection, allowed: Sequence[Columns], rounds: int) -> list[Columns]:
        """Return the tables that join parts of the columns, once no more rounds are left than it takes to join all.

        A column in no table is drawn as if it depended on nothing, and finer noise, when nothing else moves the model,
        comes after joining: so it costs little.  What is joined follows from earlier choices alone.
        """
        part = connected_parts(len(self.rows.sizes), progress.model.tree.cliques)
        if rounds >= len(set(part)):
            return []
        return [table for table in allowed if len({part[column] for column in table}) > 1]

    def round(
        self,
        progress: TableSelection,
        expected: ExpectedTables,
        allowed: dict[Columns, int],
        pace: tuple[Fraction, Fraction],
    ) -> TableSelection:
        """Choose a table by the exponential mechanism, measure it, and fit again."""
        scale, epsilon = pace
        scores = self.scores(expected, allowed, scale)
        sensitivity = self.reach.score * max(allowed.values())
        chosen = list(allowed)[Exponential(epsilon, sensitivity).release(scores, self.coins)]
        fit = progress.fit.further([self.measured(chosen, scale)], self.limits.pace)
        return TableSelection(fit, (*progress.rounds, MeasuringRound(chosen, scale, epsilon)))

    def scores(self, expected: ExpectedTables, allowed: dict[Columns, int], scale: Fraction) -> NDArray[np.int64]:
        """Return how wrong the model is about each table, less what noise would add, times how much the table helps."""
        return np.array(
            [weight * (self.distance(expected, name) - self.noise(name, scale)) for name, weight in allowed.items()]
        )

    def distance(self, expected: ExpectedTables, columns: Columns) -> int:
        """Return by how much counts differ from expected ones, which are public, in all: one row moves it by 1."""
        return int(np.abs(self.rows.table(columns) - expected.table(columns)).sum())

    def noise(self, columns: Columns, scale: Fraction) -> int:
        """Return about how much noise adds to a distance: a public number."""
        return round(_BIAS * float(scale) * math.prod(self.rows.sizes[column] for column in columns))

    def tree(self, spendable: Fraction) -> TableSelection:
        """Measure single columns, choose a tree of pairs that differ most from independence, and measure those.

        Source: McKenna, Miklau & Sheldon 2021 (MST): a third of the budget for each part.
        """
        number, third = len(self.rows.sizes), spendable / 3
        search, progress = self.begun(gaussian_scale(third, number, self.reach))
        if number < 2:
            return search.spread(progress)
        epsilon = choice_epsilon(third, number - 1)
        pairs = search.spanning(ExpectedTables.of(progress.model, self.coins), epsilon)
        scale = gaussian_scale(third, number - 1, self.reach)
        tables = [search.measured(pair, scale) for pair in pairs]
        rounds = tuple(MeasuringRound(pair, scale, epsilon) for pair in pairs)
        fit = progress.fit.further(tables, _TREE_STEPS)
        return search.spread(TableSelection(fit, (*progress.rounds, *rounds)))

    def spanning(self, expected: ExpectedTables, epsilon: Fraction) -> list[Columns]:
        """Choose pair after pair that joins two parts, by the exponential mechanism; none with too many cells."""
        sizes, part, chosen = self.widths, list(range(len(self.rows.sizes))), list[Columns]()
        fits = [pair for pair in combinations(part, 2) if sizes[pair[0]] * sizes[pair[1]] <= self.limits.cells]
        distances = {pair: self.distance(expected, pair) for pair in fits}
        select = Exponential(epsilon, self.reach.score)
        while apart := [pair for pair in distances if part[pair[0]] != part[pair[1]] and self._roomy(pair, chosen)]:
            pick = apart[select.release(np.array([distances[pair] for pair in apart]), self.coins)]
            chosen.append(pick)
            part = [part[pick[0]] if member == part[pick[1]] else member for member in part]
        return chosen

    def _roomy(self, pair: Columns, chosen: Sequence[Columns]) -> bool:
        """Whether a pair more leaves the model small enough: a tree by itself is, with what never occurs it may not."""
        zeros = [zero.columns for zero in self.limits.zeros]
        return not zeros or cells_of(self.widths, [*zeros, *chosen, pair]) <= self.limits.cells


def connected_parts(number: int, tables: Sequence[Columns]) -> list[int]:
    """Return for each of so many columns the part it is in: tables join their columns.

    >>> connected_parts(5, [(0, 2), (2, 3), (1,)])
    [3, 1, 3, 3, 4]
    """
    part = list(range(number))
    for table in tables:
        joined = {part[column] for column in table}
        part = [part[table[-1]] if own in joined else own for own in part]
    return part


def estimated_total(tables: Sequence[NoisyTable]) -> float:
    """Return how many rows there are, from the sums of noisy tables; the fewer cells, the more a sum counts."""
    sums = np.array([float(table.counts.sum()) for table in tables])
    precision = np.array([1.0 / (table.counts.size * table.scale**2) for table in tables])
    return max(1.0, float((sums * precision).sum() / precision.sum()))


@dataclass(frozen=True, eq=False)
class RoomLimits:
    """Which candidates leave the model small enough; a table inside a clique costs nothing.

    A candidate's cells hardly shrink while tables are added, so one that was too large before is asked again when
    there is room for what it needed then.  All of it follows from tables that were measured, never from rows.
    """

    candidates: Collection[Columns]
    allowed: tuple[Columns, ...] = ()
    needs: Mapping[Columns, int] = field(default_factory=dict)

    def after(self, progress: TableSelection, room: float) -> RoomLimits:
        """Return the candidates with which a model has few enough cells."""
        tree, tables = progress.model.tree, [table.columns for table in progress.fit.measured]
        needs, allowed = dict(self.needs), []
        for columns in self.candidates:
            if tree.home(columns) < 0:
                if needs.get(columns, 0) > room:
                    continue
                if 2 * tree.cells_with(columns) > room:
                    needs[columns] = cells_of(tree.widths or tree.sizes, [*tables, columns])
                    if needs[columns] > room:
                        continue
            allowed.append(columns)
        return RoomLimits(self.candidates, tuple(allowed), needs)


@dataclass(frozen=True, eq=False)
class ExpectedTables:
    """What a model expects of tables: of pairs exactly, of others where a clique holds them, else by rows drawn."""

    model: TableModel
    seed: int

    @classmethod
    def of(cls, model: TableModel, coins: Coins) -> ExpectedTables:
        """Take a model; rows drawn from it tell nothing that the model does not."""
        return cls(model, int(coins.below(2**61, 1)[0]))

    @cached_property
    def pairs(self) -> dict[Columns, NDArray[np.float64]]:
        """The expected shares of the rows over every pair of columns."""
        return pair_tables(self.model.tree, self.model.tables)

    @cached_property
    def sample(self) -> WeightedRows:
        """Many rows drawn from the model."""
        codes = self.model.draw(_SAMPLE, np.random.default_rng(self.seed))
        return WeightedRows.once(self.model.tree.sizes, codes)

    def shares(self, columns: Columns) -> NDArray[np.float64]:
        """Return the expected shares of the rows over some columns."""
        if len(columns) == 2:
            return self.pairs[columns]
        table = self.model.table(columns)
        return self.sample.table(columns) / _SAMPLE if table is None else table

    def table(self, columns: Columns) -> NDArray[np.int64]:
        """Return the expected counts over some columns, rounded."""
        rounded: NDArray[np.int64] = np.rint(self.model.total * self.shares(columns)).astype(np.int64)
        return rounded


def _still(expected: ExpectedTables, progress: TableSelection, scale: Fraction) -> bool:
    """Whether the newest table moved the model by less than its noise: both models are public."""
    columns = progress.rounds[-1].columns
    now = progress.model.table(columns)
    if now is None:
        return False
    moved = float(np.abs(now - expected.shares(columns)).sum())
    return progress.model.total * moved < _BIAS * float(scale) * now.size
