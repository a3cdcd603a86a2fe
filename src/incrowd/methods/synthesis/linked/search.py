"""Search: the adaptive search of one table, on weighted rows whose given columns are known already.

The rows above were drawn from what was measured of them, so the joint distribution of given columns costs nothing: a
tree of their pairs starts the fit.  Only tables with a column that is drawn are measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from incrowd.methods.synthesis.linked.levels import Level, ModelPart
from incrowd.methods.synthesis.marginals.evaluation import WeightedRows
from incrowd.methods.synthesis.marginals.faint import faint_zeros, harmless_zeros
from incrowd.methods.synthesis.marginals.junction import Columns, cells_of
from incrowd.methods.synthesis.marginals.model import Fit, NoisyTable, merged_zeros
from incrowd.methods.synthesis.marginals.search import (
    MeasuringRound,
    Search,
    TableSelection,
    WorkLimits,
    estimated_total,
)

_START = 20
"""The first model has at most this part of all cells, so that tables can be added."""


@dataclass(frozen=True)
class LinkedLimits(WorkLimits):
    """The limits of a table below the people: only tables with a column that is drawn are worth measuring."""

    targets: frozenset[int] = frozenset()

    def candidates(self) -> dict[Columns, int]:
        return {table: weight for table, weight in super().candidates().items() if self.targets & set(table)}


@dataclass(frozen=True, eq=False)
class LinkedSearch(Search):
    """The search of a table below the people: the tables that are measured first, and the rows above as drawn."""

    limits: LinkedLimits
    first: tuple[Columns, ...]
    above: WeightedRows
    known_tables: tuple[Columns, ...]

    def begun(self, scale: Fraction) -> tuple[Search, TableSelection]:
        """Measure each column that is drawn, with the one before it in a sequence; given columns are known."""
        tables = [self.measured(columns, scale) for columns in self.first]
        total = estimated_total(tables)
        declared = merged_zeros(self.limits.zeros, self.rows.sizes)
        own = [zero for zero in declared if self.limits.targets >= set(zero.columns)]
        faint = harmless_zeros(faint_zeros(list(map(_own_column, tables)), self.limits.faint), own)
        zeros = merged_zeros((*declared, *faint), self.rows.sizes)
        unfitted = Fit.of(self.rows.sizes, [*self.known_counts(total, scale), *tables], total, 0, (*zeros, *self.prior))
        pace = float(scale) ** 2 / total / 8  # the curvature of the misfit is (total / scale)^2, a slope lacks a total
        fit = replace(unfitted, step=pace).further((), self.limits.steps)
        return self, TableSelection(fit, tuple(MeasuringRound(columns, scale) for columns in self.first))

    def known_counts(self, total: float, scale: Fraction) -> list[NoisyTable]:
        """Return tables of given columns, from rows that were drawn; they are trusted like measured ones."""
        weight = max(1, int(self.above.times.sum()))
        return [
            NoisyTable(columns, np.rint(self.above.table(columns) * (total / weight)).astype(np.int64), float(scale))
            for columns in self.known_tables
        ]


def _own_column(table: NoisyTable) -> NoisyTable:
    """Return the table of a drawn column alone: sums over the row before, whose noise is larger."""
    counts = table.counts.reshape(len(table.counts), -1)
    return NoisyTable(table.columns[:1], counts.sum(axis=1), table.scale * math.sqrt(counts.shape[1]))


def first_tables(level: Level, cells: int) -> tuple[Columns, ...]:
    """Return what is measured first: each drawn column, beside the same one of the row before if there is room."""
    before = {level.columns[place].column: place for place in level.places(ModelPart.PREVIOUS)}
    tables: list[Columns] = []
    for place in level.targets:
        column = level.columns[place]
        previous = before.get(column.column) if column.part is ModelPart.OWN else None
        pair = (place,) if previous is None else (place, previous)
        roomy = cells_of(level.sizes, [*tables, pair]) <= cells // _START
        tables.append(pair if roomy else (place,))
    return tuple(tables)


def known_tables(level: Level, above: WeightedRows, first: Sequence[Columns], cells: int) -> tuple[Columns, ...]:
    """Return a tree of pairs of given columns that depend on each other most, by rows that were drawn; else singles."""
    predictors = level.places(ModelPart.GIVEN, ModelPart.CLASS)
    part, chosen = {column: column for column in predictors}, list[Columns]()
    pairs = [
        pair for pair in combinations(predictors, 2) if level.sizes[pair[0]] * level.sizes[pair[1]] <= cells // _START
    ]
    for pair in sorted(pairs, key=lambda pair: -_information(above, pair)):
        apart = part[pair[0]] != part[pair[1]]
        if apart and cells_of(level.sizes, [*first, *chosen, pair]) <= cells // _START:
            chosen.append(pair)
            part = {column: part[pair[0]] if own == part[pair[1]] else own for column, own in part.items()}
    alone = [(column,) for column in predictors if not any(column in pair for pair in chosen)]
    return (*chosen, *alone)


def _information(rows: WeightedRows, pair: Columns) -> float:
    """Return the mutual information of two columns."""
    joint = rows.table(pair) / max(1, int(rows.times.sum()))
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    positive = joint > 0
    return float((joint[positive] * np.log(joint[positive] / independent[positive])).sum())
