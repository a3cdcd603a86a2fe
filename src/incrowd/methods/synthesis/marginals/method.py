"""Marginals: a model of a table, fitted to noisy tables that were chosen privately, and rows drawn from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from incrowd.accounting.concentrated import largest_rho
from incrowd.core.cells import Cells
from incrowd.core.domain import Text
from incrowd.core.plan import Method, Plan
from incrowd.core.reading import number_text
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.rows import keep_rows, recoded
from incrowd.core.steps.step import Step, fold
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import bin_column, row_limits
from incrowd.methods.shared.sampling import charged
from incrowd.methods.synthesis.marginals.budget import DETAIL, PATTERNS, ErrorScope, Sensitivity, Shares, gaussian_scale
from incrowd.methods.synthesis.marginals.check import SyntheticCheck
from incrowd.methods.synthesis.marginals.constraints import Constraint
from incrowd.methods.synthesis.marginals.declared import DeclaredConstraints
from incrowd.methods.synthesis.marginals.detail import (
    FINEST,
    MOST_INTERVALS,
    FinerPieces,
    detail_column,
    drawn_number,
    enough_intervals,
    range_of,
    with_zero,
)
from incrowd.methods.synthesis.marginals.evaluation import Evaluator, WeightedRows
from incrowd.methods.synthesis.marginals.junction import cells_of
from incrowd.methods.synthesis.marginals.model import merged_zeros, require_possible
from incrowd.methods.synthesis.marginals.output import SyntheticPicture, SyntheticRows
from incrowd.methods.synthesis.marginals.patterns import (
    NoisyPattern,
    ValuePattern,
    distances_of,
    measured_patterns,
    patterns_of,
)
from incrowd.methods.synthesis.marginals.prior import PriorRows, distance_priors, fits, prior_cliques, prior_tables
from incrowd.methods.synthesis.marginals.search import (
    MeasuringRound,
    Search,
    TableSelection,
    WorkLimits,
    pattern_rounds,
)
from incrowd.methods.synthesis.marginals.steps import (
    Contradictions,
    DrawnColumn,
    DrawRows,
    MeasureTables,
    Strategy,
    workload_tables,
)
from incrowd.methods.synthesis.marginals.synthetic_model import ModelColumn, SyntheticModel

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Column, Schema
    from incrowd.core.table import RowFilter, Table

_MOST_ROWS = 10**8  # some gigabytes; more synthetic rows say no more


@dataclass(frozen=True)
class Marginals(Method):
    """A synthetic table: rows drawn from a model that was fitted to noisy tables of few columns, chosen adaptively.

    Guarantee: (ε, δ)-differential privacy of everything together: which tables were measured, their noisy counts, the
    model, every row drawn from it now or later, and the statement how good it is.

    Assumes: domains, levels and workload were declared without looking at the rows.

    Source: McKenna, Mullins, Sheldon & Miklau 2022 (AIM); McKenna, Sheldon & Miklau 2019 (private-PGM); Feldman & Zrnic
    2021 (the filter).

    >>> Marginals(Fraction(1), Fraction(1, 10**9)).rounds_at(Fraction(1), 9)
    16
    """

    name: ClassVar[str] = "marginals"
    strategy: ClassVar[Strategy] = Strategy.ADAPTIVE

    epsilon: Fraction
    delta: Fraction
    rows: int | None = None
    workload: tuple[tuple[str, ...], ...] | None = None
    rounds: int | None = None
    cells: int = 100_000
    levels: Mapping[str, int] = field(default_factory=dict)
    zeros: tuple[Mapping[str, str | tuple[str, ...]], ...] = ()
    total: int | None = None
    errors: Literal["pairs", "tables"] = "pairs"
    constraints: tuple[Constraint, ...] = ()
    contradictions: Literal["keep", "drop"] = "keep"
    target_column: str | None = None
    detail: Fraction = DETAIL

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or not 0 < self.delta < 1:
            raise InvalidParameter("a model needs an epsilon above 0, and a delta strictly between 0 and 1.")
        if self.rows is not None and not 0 <= self.rows <= _MOST_ROWS:
            raise InvalidParameter(f"from 0 to {_MOST_ROWS:,} rows are drawn.")
        if self.total is not None and not 1 <= self.total <= _MOST_ROWS:
            raise InvalidParameter(f"a declared total is from 1 to {_MOST_ROWS:,} rows.")
        if not 100 <= self.cells <= 10**7 or (self.rounds is not None and not 1 <= self.rounds <= 200):
            raise InvalidParameter("a model has from 100 to 10,000,000 cells and is made in 1 to 200 rounds.")
        if not 0 <= self.detail <= Fraction(1, 2):
            raise InvalidParameter("the share of the budget for detail is from 0 to 1/2.")
        if self.errors not in tuple(ErrorScope):
            raise InvalidParameter(
                f"errors are told of pairs, on average, or of tables besides, not of {self.errors!r}."
            )

    def rounds_at(self, epsilon: Fraction, columns: int) -> int:
        """Return in how many rounds tables are chosen: the more budget and columns, the more."""
        if self.rounds is not None:
            return self.rounds
        return max(8 if epsilon <= Fraction(1, 10) else 16 if epsilon < 3 else 24, 3 * columns // 2)

    @property
    def rho(self) -> Fraction:
        """The concentrated budget that ε and δ allow."""
        return largest_rho(self.epsilon, self.delta)

    def spendable(self, pieces: Sequence[FinerPieces]) -> Fraction:
        """Return what is left of it for tables and choices, when errors and the detail of columns are paid."""
        return (1 - self.scope.share - (self.detail if pieces else 0)) * self.rho

    def pieces(self, classes: tuple[Classes, ...]) -> dict[int, FinerPieces]:
        """Return the columns that are also measured in finer pieces, by their number."""
        unique = {item.unique for item in self.constraints}
        pieces = {
            place: FinerPieces.of(item)
            for place, item in enumerate(classes)
            if self.detail and self._inside(item) and item.recoding.column.name not in unique
        }
        return {place: own for place, own in pieces.items() if own is not None}

    def patterns(self, classes: tuple[Classes, ...]) -> tuple[ValuePattern, ...]:
        """Return the small tables that are also measured: of weekdays, round numbers and distances."""
        return patterns_of(classes, self.pieces(classes), DeclaredConstraints.of(self, classes).numbers)

    def detail_rho(self, patterns: Sequence[ValuePattern]) -> tuple[Fraction, Fraction]:
        """Return what all finer pieces may cost together, and what all patterns."""
        detail = self.detail * self.rho
        return (detail * (1 - PATTERNS), detail * PATTERNS) if patterns else (detail, Fraction(0))

    def _inside(self, classes: Classes) -> bool:
        """Whether values are drawn inside a column's classes; categories are where their level was not chosen."""
        return drawn_number(classes) or classes.recoding.column.name not in self.levels

    @property
    def scope(self) -> ErrorScope:
        """Of what errors are told."""
        return ErrorScope(self.errors)

    @property
    def _rule(self) -> Contradictions:
        return Contradictions(self.contradictions)

    def classes(self, schema: Schema) -> tuple[Classes, ...]:
        """Return the classes of each released column, at its level or the finest that is not too fine."""
        if schema.drafted:
            raise InvalidParameter(
                f"the values of {schema.drafted[0]!r} were drafted from rows, so a model would show rows. Where the "
                "same is public, write public: with its source."
            )
        summed = {name for item in self.constraints if item.total for name in (item.total, *(item.parts or ()))}
        return tuple(self._listed(with_zero(item) if item.name in summed else item) for item in schema.released)

    def _listed(self, column: Column) -> Classes:
        """Return the classes of a column at its level, or at the finest with few enough.

        Numbers are drawn inside their intervals, so fewer classes cost little by themselves, and pairs have less noise.
        """
        declared = self.levels.get(column.name)
        lowest = declared if declared is not None else int(column.pseudonymous or isinstance(column.domain, Text))
        highest = column.hierarchy.height if declared is None else declared
        levels = [Recoding(column, level).classes for level in range(lowest, highest + 1)]
        listed = [classes for classes in levels if classes is not None]
        if not listed:
            raise InvalidParameter(
                f"the values of {column.name!r} are not declared: list its categories or bounds, give it a hierarchy "
                "that ends in listed classes, or make it an identifier."
            )
        useful = [classes for classes in listed if classes.recoding.level < column.hierarchy.height] or listed
        usual = next((classes for classes in useful if len(classes) <= FINEST), useful[-1])
        if len(usual) <= MOST_INTERVALS:
            return usual
        return next((classes for classes in useful if drawn_number(classes) and enough_intervals(classes)), usual)

    def plan(self, schema: Schema) -> Plan:
        classes, names = self.classes(schema), tuple(column.name for column in schema.released)
        self.limits(classes, names)
        rho, epsilon, declared = self.rho, self.epsilon, DeclaredConstraints.of(self, classes)
        details = tuple(detail_column(own) for own in self.pieces(classes).values())
        steps: tuple[Step, ...] = (
            *keep_rows(schema.unit),
            RecodeToBins(tuple(recoded(item.recoding) for item in classes)),
            MeasureTables(
                self.strategy,
                rho,
                tuple(bin_column(item.recoding.column.name, item) for item in classes),
                self.rounds_at(epsilon, len(names)),
                self.cells,
                self.workload,
                declared.zeros or None,
                self.total,
                None if self.scope is ErrorScope.PAIRS else self.scope,
                declared.numbers or None,
                None if self._rule is Contradictions.KEEP else self._rule,
                self.target_column,
                details or None,
                self.patterns(classes) or None,
            ),
            DrawRows(self.rows, tuple(_numbers(item) for item in classes if drawn_number(item))),
        )
        guarantee = fold(steps, schema.unit, self.delta)
        spent = charged(guarantee.loss, self.delta, schema.unit.adjacency)
        settings = {"epsilon": spent, "delta": self.delta, "rho": rho, "levels": _levels(classes)}
        return Plan(self.name, steps, guarantee, {"epsilon": spent}, self.release, None, settings)

    def release(self, rows_read: Table | PriorRows, coins: Coins) -> SyntheticRows:
        """Count all tuples once, and values in finer pieces; measure, fit and draw."""
        table, earlier = PriorRows.parts(rows_read)
        classes = self.classes(table.schema)
        names, reach = tuple(item.recoding.column.name for item in classes), Sensitivity.of(table.schema.unit)
        filters, limits = row_limits(table, coins), self.limits(classes, names)
        rows = self._counted(table, classes, (limits, filters))
        pieces = self.pieces(classes)
        noisy = self._patterned(table, classes, filters, (reach, coins))
        distances = distances_of(noisy)
        start = prior_tables(earlier, classes, self.cells) or distance_priors(distances, classes)
        result = self.search(Search(rows, limits, reach, coins, prior=start), tuple(pieces.values()))
        columns, details = self._detailed(table, (classes, pieces, noisy), filters, (reach, coins))
        model = SyntheticModel(result.model, columns, DeclaredConstraints.of(self, classes).numbers, distances)
        chance = np.random.default_rng(int(coins.below(2**61, 1)[0]))
        total = min(_MOST_ROWS, round(result.model.total))
        sample = result.model.draw(min(model.most_rows, total if self.rows is None else self.rows), chance)
        evaluator = Evaluator(rows, WeightedRows.once(rows.sizes, sample), total, self.rho, reach)
        tables = limits.workload if self.scope is ErrorScope.TABLES else ()
        return SyntheticRows(
            model.labeled(sample, chance),
            model,
            TableSelection(result.fit, (*result.rounds, *details)),
            evaluator.mean(coins),
            names,
            declared=self.total is not None,
            errors=evaluator.tables(tables, coins) if tables else None,
        )

    def _counted(
        self, table: Table, classes: tuple[Classes, ...], public: tuple[WorkLimits, tuple[RowFilter, ...]]
    ) -> WeightedRows:
        """Return the rows as codes; by the policy's rule without those whose classes contradict a constraint.

        That is decided row by row, so a row more or less changes what is counted by that row at most.
        """
        limits, filters = public
        counts = table.engine.count(table.rows, Cells(tuple(item.recoding for item in classes)), *filters)
        codes, sizes = np.array(counts.codes(), np.int64).reshape(len(classes), -1), tuple(map(len, classes))
        possible = np.ones(codes.shape[1], np.bool_)
        if self._rule is Contradictions.DROP:
            for zero in limits.zeros:
                possible &= ~zero.table(sizes)[tuple(codes[column] for column in zero.columns)]
        return WeightedRows(sizes, codes[:, possible], counts.counts[possible])

    def _patterned(
        self,
        table: Table,
        classes: tuple[Classes, ...],
        filters: tuple[RowFilter, ...],
        private: tuple[Sensitivity, Coins],
    ) -> tuple[NoisyPattern, ...]:
        """Count patterns with noise.

        Guarantee: each is one table that a unit moves by its reach, all of them within their part of ρ for detail.
        """
        patterns, (reach, coins) = self.patterns(classes), private
        if not patterns:
            return ()

        def count(recodings: tuple[Recoding, ...]) -> tuple[Sequence[NDArray[np.int64]], NDArray[np.int64]]:
            counts = table.engine.count(table.rows, Cells(recodings), *filters)
            return list(np.array(counts.codes(), np.int64)), counts.counts

        scale = gaussian_scale(self.detail_rho(patterns)[1], len(patterns), reach)
        return measured_patterns(patterns, classes, count, (scale, coins))

    def _detailed(
        self,
        table: Table,
        columns: tuple[tuple[Classes, ...], dict[int, FinerPieces], tuple[NoisyPattern, ...]],
        filters: tuple[RowFilter, ...],
        private: tuple[Sensitivity, Coins],
    ) -> tuple[tuple[ModelColumn, ...], tuple[MeasuringRound, ...]]:
        """Measure each column whose values are drawn inside its classes once more, in finer pieces.

        Guarantee: each is one table that a unit moves by its reach, all of them within the share of ρ for detail.
        """
        classes, pieces, patterns = columns
        rho, (reach, coins) = self.detail_rho([item.pattern for item in patterns])[0], private
        made, rounds = list(map(ModelColumn.of, classes)), []
        for place, own in pieces.items():
            scale = gaussian_scale(rho, len(pieces), reach)
            counts = table.engine.count(table.rows, Cells((own.fine.recoding,)), *filters)
            dense = np.zeros(len(own.fine), np.int64)
            dense[counts.codes()[0]] = counts.counts
            noisy = dense + coins.gaussian(scale, len(dense))
            made[place] = ModelColumn.measured(own, noisy, float(scale), patterns)
            rounds.append(MeasuringRound((place,), scale, None, len(dense)))
        return tuple(made), (*rounds, *pattern_rounds(patterns, [column.name for column in made]))

    def start_from(self, model: SyntheticModel, schema: Schema) -> tuple[tuple[str, ...], ...]:
        """Return the columns of the cliques of an earlier model that a new one starts from; none if it does not fit."""
        return prior_cliques(model, self.cells) if fits(model, self.classes(schema)) else ()

    def limits(self, classes: tuple[Classes, ...], names: tuple[str, ...]) -> WorkLimits:
        """Return what is public about the search, or refuse a model that would be too large from the start."""
        sizes, declared = tuple(map(len, classes)), DeclaredConstraints.of(self, classes)
        zeros = merged_zeros(declared.codes(classes), sizes)
        workload = workload_tables(self.workload, names)
        if self.target_column not in (None, *names):
            raise InvalidParameter(f"the target column {self.target_column!r} is not released.")
        target = None if self.target_column is None else names.index(self.target_column)
        limits = WorkLimits(
            workload,
            self.rounds_at(self.epsilon, len(names)),
            self.cells,
            zeros=zeros,
            total=self.total,
            faint=declared.faint(classes),
            target=target,
            ordered=declared.ordered(classes),
        )
        least = cells_of(sizes, [zero.columns for zero in zeros])
        if least > self.cells:
            raise InvalidParameter(
                f"single columns and what never occurs make a model of {least:,} cells, and it may have {self.cells:,}:"
                " take columns with many classes at a coarser level, or allow more cells."
            )
        require_possible(sizes, zeros)
        if self.rows is not None and self.rows > (most := declared.most_rows(classes)):
            raise InvalidParameter(f"{self.rows:,} rows cannot be drawn: a unique column has {most:,} values.")
        return limits

    def search(self, search: Search, pieces: Sequence[FinerPieces] = ()) -> TableSelection:
        """Measure tables until the budget is spent."""
        return search.adaptive(self.shares(len(search.rows.sizes), search.reach, pieces))

    def shares(self, columns: int, reach: Sensitivity, pieces: Sequence[FinerPieces] = ()) -> Shares:
        """Return how the budget is divided: where it is small, more of it goes to single columns."""
        epsilon = self.epsilon
        one = Fraction(2, 5) if epsilon <= Fraction(1, 10) else Fraction(1, 10)
        return Shares.of(self.spendable(pieces), columns, self.rounds_at(epsilon, columns), reach, one)


def _levels(classes: tuple[Classes, ...]) -> dict[str, int]:
    return {item.recoding.column.name: item.recoding.level for item in classes if item.recoding.level}


def _numbers(classes: Classes) -> DrawnColumn:
    column = classes.recoding.column
    low, high = (_end(bound) for bound in column.stored_bounds)
    numbers = range_of(classes)
    decimals = None if numbers.whole else numbers.decimals
    return DrawnColumn(column.name, column.type, low, high, decimals, numbers.allowed)


def _end(bound: float | date | None) -> str:
    if bound is None:
        return ""
    return bound.isoformat() if isinstance(bound, date) else number_text(float(bound))


CHECK = SyntheticCheck()
PICTURE = SyntheticPicture()
METHOD = Marginals
