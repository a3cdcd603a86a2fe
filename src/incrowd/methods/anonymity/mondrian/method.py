"""Mondrian: classes cut by looking at the rows, each as small as the demands on it allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from incrowd.core.cells import Cells
from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Role, Schema
from incrowd.core.steps.rows import Arrange, keep_rows, recode
from incrowd.core.steps.step import Step, fold
from incrowd.core.table import Table
from incrowd.core.terms import Exposure
from incrowd.criteria.demand import MINIMALITY
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.mondrian.axes import Axis, Show, labels
from incrowd.methods.anonymity.mondrian.pieces import NONE, Pieces, TupleGrid, condition, criteria, partition_tuples
from incrowd.methods.anonymity.shared.classes import ClassesPicture, check_of_cut
from incrowd.methods.anonymity.shared.demands import Demands, Sensitive, quasi_identifiers
from incrowd.methods.anonymity.shared.steps import Cut
from incrowd.methods.shared.columns import released_cells, row_limits
from incrowd.methods.shared.microdata import Anonymized, CodedColumn, occurring_values

EXTREMES = Exposure(
    "extremes", "extremes: a range shows the least and the greatest value in it, and they are somebody's"
)


class Where(StrEnum):
    """Where a piece of the table is cut."""

    MEDIAN = "median"
    """Equal rows come to one side."""
    MIDDLE = "middle"
    """Equal rows may come to either side."""


@dataclass(frozen=True, kw_only=True)
class CutRows(Cut):
    """Every piece of the table is cut in two, as long as both parts meet what is demanded."""

    at: Where
    show: Show

    @property
    def open_columns(self) -> tuple[str, ...]:
        return () if self.show is Show.MEANS else self.columns

    @property
    def where(self) -> str:
        return f"the {self.at}, equal rows on {'one' if self.at is Where.MEDIAN else 'either'} side"

    @property
    def labels(self) -> str:
        return str(self.show)

    @property
    def left_open(self) -> tuple[Exposure, ...]:
        """Which attacks the cut leaves open: that of every cut, and what ranges and means tell."""
        return (MINIMALITY,) if self.show is Show.NODES else (EXTREMES, MINIMALITY)


@dataclass(frozen=True)
class Mondrian(Method):
    """Multidimensional k-anonymity by cutting the table along its quasi-identifiers, again and again.

    Guarantee: every combination of the quasi-identifiers in the output occurs at least k times; every class also meets
    whatever else is demanded of all or of single sensitive columns.  These are properties of the output's form.
    Nothing else is guaranteed and there is no ε: the cuts look at all rows, sensitive columns stay as they are.

    Assumes: people can be looked up by the quasi-identifiers and by no other column; one row is one person, or the
    person column says whose it is.

    Source: LeFevre, DeWitt & Ramakrishnan 2006 (strict and relaxed partitioning, median cuts); what a class must meet
    is said, with its source, at `Sensitive`.

    >>> Mondrian(5, l=3).demands.terms()
    {'k': 5, 'l': 3}
    """

    name: ClassVar[str] = "mondrian"

    k: int
    l: int | None = None  # noqa: E741 (the name that everyone knows it by)
    entropy_l: Fraction | None = None
    t: Fraction | None = None
    sensitive: Mapping[str, Sensitive] = field(default_factory=dict)
    relaxed: bool = False
    show: Literal["ranges", "means", "nodes"] = "ranges"
    ordered: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.demands.check()
        if self.show not in tuple(Show):
            raise InvalidParameter(f"classes are shown as {', '.join(Show)}, not as {self.show!r}.")

    @property
    def demands(self) -> Demands:
        """What every class must meet."""
        return Demands(self.k, self.l, self.entropy_l, self.t, levels=self.levels, sensitive=self.sensitive)

    def cells(self, schema: Schema) -> Cells:
        """Return the tuples that are counted, at their finest; free text that nothing makes coarser is refused."""
        for name in self.ordered:
            if not Role.QUASI.covers(schema[name].role):
                raise InvalidParameter(f"{name!r} is not cut, so it needs no order: only quasi-identifiers are cut.")
        return released_cells(schema, self.levels)

    def plan(self, schema: Schema) -> Plan:
        """Guarantee a form, from the schema alone."""
        steps = self.steps(schema)
        guarantee, settings, cells = fold(steps, schema.unit), self.demands.spelled(), self.cells(schema)
        return Plan(self.name, steps, guarantee, {}, self.release, self.k, settings, cells=cells)

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps: whose rows, which finest levels, which cuts, which order."""
        recoded = recode(self.cells(schema))
        where = Where.MIDDLE if self.relaxed else Where.MEDIAN
        cut = CutRows(**self.demands.demanded(schema), at=where, show=Show(self.show))
        return (*keep_rows(schema.unit), recoded, cut, Arrange())

    def release(self, table: Table, coins: Coins) -> Anonymized:
        """Count the rows of each tuple in one pass, cut the counts, and label the classes."""
        schema = table.schema
        counts = table.engine.count(table.rows, self.cells(schema), *row_limits(table, coins))
        return self.cut(counts, schema)

    def cut(self, counts: Counts, schema: Schema) -> Anonymized:
        """Return the anonymized table of counts at their finest; without rows if even the whole table falls short."""
        quasi = quasi_identifiers(schema)
        places = [counts.names.index(name) for name in quasi]
        axes = [Axis.of(counts.classes[place], self.ordered) for place in places]
        codes = counts.codes()
        grid = TupleGrid.of(axes, [codes[place] for place in places], counts.counts)
        met = condition(criteria(self.demands.criteria(schema)), counts)
        everything = Pieces(np.arange(len(counts)), counts.counts, np.zeros(min(1, len(counts)), np.intp))
        pieces = NONE
        if len(everything) and met(everything)[0]:
            pieces = partition_tuples(grid, met, self.k, relaxed=self.relaxed)
        columns: dict[str, CodedColumn] = {}
        for place, (name, classes) in enumerate(zip(counts.names, counts.classes, strict=True)):
            if place in places:
                row = places.index(place)
                label = labels(axes[row], pieces, grid.places[row][pieces.tuples], Show(self.show))
                columns[name] = label.values, label.places[pieces.number]
            else:
                columns[name] = occurring_values(classes.values(), codes[place][pieces.tuples])
        return Anonymized.of(columns, pieces.rows, quasi)


CHECK = check_of_cut(CutRows)
PICTURE = ClassesPicture()
METHOD = Mondrian
