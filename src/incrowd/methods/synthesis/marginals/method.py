"""Marginals: a model of a table, fitted to noisy tables that were chosen privately, and rows drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

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
from incrowd.methods.synthesis.marginals.budget import ErrorScope, Sensitivity, Shares
from incrowd.methods.synthesis.marginals.evaluation import Evaluator, WeightedRows
from incrowd.methods.synthesis.marginals.junction import cells_of
from incrowd.methods.synthesis.marginals.model import codes_of, declared_zeros, require_possible
from incrowd.methods.synthesis.marginals.output import SyntheticCheck, SyntheticPicture, SyntheticRows
from incrowd.methods.synthesis.marginals.search import Search, TableSelection, WorkLimits
from incrowd.methods.synthesis.marginals.steps import DrawnColumn, DrawRows, MeasureTables, Strategy, workload_tables
from incrowd.methods.synthesis.marginals.synthetic_model import ModelColumn, SyntheticModel, drawn_number

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Column, Schema
    from incrowd.core.table import Table

FINEST = 128
"""A column with more classes than this is taken at a coarser level, if it has one."""
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

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or not 0 < self.delta < 1:
            raise InvalidParameter("a model needs an epsilon above 0, and a delta strictly between 0 and 1.")
        if self.rows is not None and not 0 <= self.rows <= _MOST_ROWS:
            raise InvalidParameter(f"from 0 to {_MOST_ROWS:,} rows are drawn.")
        if self.total is not None and not 1 <= self.total <= _MOST_ROWS:
            raise InvalidParameter(f"a declared total is from 1 to {_MOST_ROWS:,} rows.")
        if not 100 <= self.cells <= 10**7 or (self.rounds is not None and not 1 <= self.rounds <= 200):
            raise InvalidParameter("a model has from 100 to 10,000,000 cells and is made in 1 to 200 rounds.")

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

    @property
    def spendable(self) -> Fraction:
        """What is left of it for tables and choices, when errors are paid."""
        return (1 - self.scope.share) * self.rho

    @property
    def scope(self) -> ErrorScope:
        """Of what errors are told."""
        return ErrorScope(self.errors)

    def classes(self, schema: Schema) -> tuple[Classes, ...]:
        """Return the classes of each released column, at its level or the finest that is not too fine."""
        if schema.drafted:
            raise InvalidParameter(
                f"the values of {schema.drafted[0]!r} were drafted from rows, so a model would show rows. Where the "
                "same is public, write public: with its source."
            )
        return tuple(self._listed(column) for column in schema.released)

    def _listed(self, column: Column) -> Classes:
        declared = self.levels.get(column.name)
        lowest = declared if declared is not None else int(column.pseudonymous or isinstance(column.domain, Text))
        listed: Classes | None = None
        for level in range(lowest, column.hierarchy.height + 1):
            classes = Recoding(column, level).classes
            if classes is not None and (listed is None or level < column.hierarchy.height):
                listed = classes
                if declared is not None or len(classes) <= FINEST:
                    return classes
            elif declared is not None:
                break
        if listed is None:
            raise InvalidParameter(
                f"the values of {column.name!r} are not declared: list its categories or bounds, give it a hierarchy "
                "that ends in listed classes, or make it an identifier."
            )
        return listed

    def plan(self, schema: Schema) -> Plan:
        classes, names = self.classes(schema), tuple(column.name for column in schema.released)
        self.limits(classes, names)
        rho, epsilon = self.rho, self.epsilon
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
                declared_zeros(self.zeros, classes) or None,
                self.total,
                None if self.scope is ErrorScope.PAIRS else self.scope,
            ),
            DrawRows(self.rows, tuple(_numbers(item) for item in classes if drawn_number(item))),
        )
        guarantee = fold(steps, schema.unit, self.delta)
        spent = charged(guarantee.loss, self.delta, schema.unit.adjacency)
        settings = {"epsilon": spent, "delta": self.delta, "rho": rho, "levels": _levels(classes)}
        return Plan(self.name, steps, guarantee, {"epsilon": spent}, self.release, None, settings)

    def release(self, table: Table, coins: Coins) -> SyntheticRows:
        """Count all tuples once; measure, fit and draw."""
        classes = self.classes(table.schema)
        cells = Cells(tuple(item.recoding for item in classes))
        counts = table.engine.count(table.rows, cells, *row_limits(table, coins))
        codes = np.array(counts.codes(), np.int64).reshape(len(classes), -1)
        rows = WeightedRows(tuple(map(len, classes)), codes, counts.counts)
        names, reach = tuple(item.recoding.column.name for item in classes), Sensitivity.of(table.schema.unit)
        limits = self.limits(classes, names)
        result = self.search(Search(rows, limits, reach, coins))
        model = SyntheticModel(result.model, tuple(map(ModelColumn.of, classes)))
        chance = np.random.default_rng(int(coins.below(2**61, 1)[0]))
        total = min(_MOST_ROWS, round(result.model.total))
        sample = result.model.draw(total if self.rows is None else self.rows, chance)
        evaluator = Evaluator(rows, WeightedRows.once(rows.sizes, sample), total, self.rho, reach)
        tables = limits.workload if self.scope is ErrorScope.TABLES else ()
        return SyntheticRows(
            model.labeled(sample, chance),
            model,
            result,
            evaluator.mean(coins),
            names,
            declared=self.total is not None,
            errors=evaluator.tables(tables, coins) if tables else None,
        )

    def limits(self, classes: tuple[Classes, ...], names: tuple[str, ...]) -> WorkLimits:
        """Return what is public about the search, or refuse a model that would be too large from the start."""
        sizes, zeros = tuple(map(len, classes)), codes_of(declared_zeros(self.zeros, classes), classes)
        least = cells_of(sizes, [zero.columns for zero in zeros])
        if least > self.cells:
            raise InvalidParameter(
                f"single columns and what never occurs make a model of {least:,} cells, and it may have {self.cells:,}:"
                " take columns with many classes at a coarser level, or allow more cells."
            )
        require_possible(sizes, zeros)
        rounds = self.rounds_at(self.epsilon, len(names))
        return WorkLimits(workload_tables(self.workload, names), rounds, self.cells, zeros=zeros, total=self.total)

    def search(self, search: Search) -> TableSelection:
        """Measure tables until the budget is spent."""
        shares = self.shares(len(search.rows.sizes), search.reach)
        return search.adaptive(shares)

    def shares(self, columns: int, reach: Sensitivity) -> Shares:
        """Return how the budget is divided: where it is small, more of it goes to single columns."""
        epsilon = self.epsilon
        one = Fraction(2, 5) if epsilon <= Fraction(1, 10) else Fraction(1, 10)
        return Shares.of(self.spendable, columns, self.rounds_at(epsilon, columns), reach, one)


def _levels(classes: tuple[Classes, ...]) -> dict[str, int]:
    return {item.recoding.column.name: item.recoding.level for item in classes if item.recoding.level}


def _numbers(classes: Classes) -> DrawnColumn:
    column = classes.recoding.column
    low, high = (_end(bound) for bound in column.stored_bounds)
    return DrawnColumn(column.name, column.type, low, high)


def _end(bound: float | date | None) -> str:
    if bound is None:
        return ""
    return bound.isoformat() if isinstance(bound, date) else number_text(float(bound))


CHECK = SyntheticCheck()
PICTURE = SyntheticPicture()
METHOD = Marginals
