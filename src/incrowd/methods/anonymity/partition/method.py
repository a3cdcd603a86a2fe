"""Partition: boxes cut by a private look at the rows, then a fresh secret sample with every rare tuple dropped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.core.cells import Cells
from incrowd.core.claims.privacy import Anonymity, ApproximatePrivacy, Pseudonymity
from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.plan import Method, Output, Plan
from incrowd.core.schema import Role, Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.choices import RecodingChoice, SuppressChosen
from incrowd.core.steps.rows import Arrange, KeepRows, Recode, keep_rows, recode
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import fold
from incrowd.core.table import Table
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.mondrian.axes import Axis, box_names
from incrowd.methods.anonymity.mondrian.pieces import TupleGrid
from incrowd.methods.anonymity.partition.boxes import Box, Growth, leaf_of
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.anonymity.shared.classes import ClassesPicture, MicrodataCheck, reopen_table
from incrowd.methods.anonymity.shared.demands import quasi_identifiers
from incrowd.methods.shared.columns import row_limits
from incrowd.methods.shared.microdata import CodedColumn, Partitioned, occurring_values
from incrowd.methods.shared.sampling import Parameters, priced_plan
from incrowd.verifier.check import Problem, maybe, one

DEEPEST = 14
"""How often a box can be cut in a row."""


@dataclass(frozen=True)
class ChooseCuts(RecodingChoice):
    """Boxes are cut again and again, each cut chosen by a private look at all rows."""

    kind: ClassVar[str] = "choose cuts"
    title: ClassVar[str] = "Choose cuts privately"
    glyph: ClassVar[str | None] = "coarser"
    because: ClassVar[Theorem] = Theorem(
        "private-choice-of-boxes",
        "boxes cut by epsilon-private choices, then sampled suppression with fresh randomness in them: adaptive "
        "composition",
    )
    blind: ClassVar[Assumption] = Assumption(
        "finest-levels-chosen-without-rows",
        "the finest levels, the depth and all parameters were chosen without looking at the rows",
    )
    moved: ClassVar[Condition] = Condition(
        "cut-sensitivity", "one row moves the score of every cut by at most one, and all in one direction"
    )
    fresh: ClassVar[Condition] = Condition(
        "fresh-coins-after-cuts", "the released sample has randomness of its own, not that of the cuts"
    )
    left_open: ClassVar[Exposure] = Exposure(
        "no-blending-after-cuts",
        "crowd-blending is not claimed: who is in which crowd depends on cuts that read the rows",
    )

    columns: tuple[str, ...]
    depth: int
    least: int

    def __post_init__(self) -> None:
        """Refuse more cuts than any release has: their number of boxes could not be computed with."""
        if self.depth > DEEPEST:
            raise InvalidParameter(f"a box is cut 1 to {DEEPEST} times in a row: give such a depth.")

    @property
    def open_columns(self) -> tuple[str, ...]:
        return self.columns

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"The table is cut into at most {2**self.depth:,} boxes. A private selection with an ε of {self.epsilon} "
            "places the cuts; it reads all rows."
        )


@dataclass(frozen=True)
class ArrangeBoxes(Arrange):
    """Rows in boxes are published in the order of their values."""

    kind: ClassVar[str] = "arrange by chosen cuts"


_WIDEST = 20_000  # each place between two classes is a candidate of a private choice
_LEAF = "leaf"


@dataclass(frozen=True)
class PrivatePartition(Method):
    """Mondrian made safe: boxes chosen by a private look at all rows, filled by sampled suppression.

    Guarantee: (ε, δ)-differential privacy, ε being what the private cuts and the sampled suppression cost together;
    k-anonymity of the output over all released columns.  No crowd-blending: the crowds hang on cuts that read the rows.

    Assumes: the coins stay secret; levels, depth and parameters were chosen without looking at the rows; one row is one
    person, or the person column says whose it is; all releases about these people go through one ledger.

    Source: LeFevre, DeWitt & Ramakrishnan 2006 for the idea of the cuts; Li, Qardaji & Su 2010, §4, for a private
    choice before sampled suppression, with the cost of the choice added.

    Proof.  The boxes g are ε₁-private (`Growth`), and for every fixed g the tuples (box, other columns at their levels)
    are a recoding that was fixed without the rows, so sampled suppression with coins of its own is (ε₂, δ)-private at
    every ε₂ ≥ 0 with δ = δ(k, rate, ε₂).  For a set S of pairs, P[(g, o) ∈ S] = Σ_g P[g]·P[o ∈ S_g] ≤ δ + Σ_g
    P[g]·min(1, e^ε₂·P′[o ∈ S_g]) ≤ δ + e^(ε₁+ε₂)·P′[S]: together (ε₁ + ε₂, δ), and δ is paid once.  The
    boxes read all rows, never the sample that is released, whose counts would be tied to them.  Labels are a function
    of g and the tuple.  ∎

    >>> chosen = {"epsilon": Fraction(1), "delta": Fraction(1, 10**6), "rate": Fraction(1, 10)}
    >>> partition = PrivatePartition(Fraction(1, 2), **chosen)
    >>> partition.parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "partition"

    choosing: Fraction
    delta: Fraction
    epsilon: Fraction | None = None
    rate: Fraction | None = None
    k: int | None = None
    depth: int = 6
    least: int | None = None
    levels: Mapping[str, int] = field(default_factory=dict)
    ordered: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.choosing <= 0:
            raise InvalidParameter("choosing: the cuts cost an epsilon above 0, such as 0.5.")
        if self.rate == 1:
            raise InvalidParameter("method partition needs a secret sample: give a rate below 1.")
        if not 1 <= self.depth <= DEEPEST:
            raise InvalidParameter(f"a box is cut 1 to {DEEPEST} times in a row: give such a depth.")
        if self.least is not None and self.least < 1:
            raise InvalidParameter("least is how many rows a box needs to be cut: at least 1.")

    def parameters(self, unit: Unit) -> Parameters:
        """Return k, rate, ε and δ of the release in the boxes; the cuts cost `choosing` beside them."""
        return self._safe.parameters(unit)

    def growth(self, unit: Unit) -> Growth:
        """Return how boxes are cut; by default while each half may be expected to keep twice k sampled rows."""
        parameters = self.parameters(unit)
        least = self.least if self.least is not None else math.ceil(4 * parameters.k / parameters.rate)
        return Growth(self.depth, self.choosing, least)

    def axes(self, schema: Schema) -> list[Axis]:
        """Return the axes of the quasi-identifiers, from the schema alone."""
        if schema.unit.max_rows > 1 or schema.unit.adjacency is not Adjacency.ADD_REMOVE:
            raise InvalidParameter(
                "method partition is proved for units of one row that is added or removed: keep max_rows at 1 and "
                "adjacency at add-remove."
            )
        axes = []
        for recoding in Cells.of(schema, self.levels, quasi_identifiers(schema)).recodings:
            if recoding.classes is None or len(recoding.classes) > _WIDEST:
                raise InvalidParameter(
                    f"the values of {recoding.column.name!r} at level {recoding.level} are too many to cut between. "
                    "Declare categories or bounds, or give a higher level."
                )
            axes.append(Axis.of(recoding.classes, self.ordered))
        return axes

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone; what was drafted from rows leaves nothing but k-anonymity."""
        unit, cells = schema.unit, self._safe.cells(schema)
        self.axes(schema)
        parameters, growth = self.parameters(unit), self.growth(unit)
        steps = (
            *keep_rows(unit),
            ChooseCuts(self.choosing, quasi_identifiers(schema), self.depth, growth.least),
            SecretSample(parameters.rate),
            recode(cells),
            SuppressChosen(parameters.k),
            ArrangeBoxes(),
        )
        settings = {"choosing": self.choosing, "depth": self.depth, "least": growth.least, "k": parameters.k}
        guarantee = fold(steps, unit, parameters.delta)
        plan = Plan(self.name, steps, guarantee, {}, self.release, parameters.k, settings, cells=cells)
        return priced_plan(plan, parameters)

    def release(self, table: Table, coins: Coins) -> Partitioned:
        """Count all rows, cut boxes, and release a fresh sample in them."""
        schema, axes, limits = table.schema, self.axes(table.schema), row_limits(table, coins)
        quasi = quasi_identifiers(schema)
        counts = table.engine.count(table.rows, Cells.of(schema, self.levels, quasi), *limits)
        leaves = self.growth(schema.unit).leaves(TupleGrid.of(axes, counts.codes(), counts.counts), coins)
        parameters = self.parameters(schema.unit)
        sample = table.engine.count(table.rows, self._safe.cells(schema), *limits, coins.sample(parameters.rate))
        return fill_boxes(sample, axes, leaves, parameters.k)

    @property
    def _safe(self) -> Safe:
        return Safe(self.levels, self.epsilon, self.delta, self.rate, self.k)


def fill_boxes(sample: Counts, axes: list[Axis], leaves: tuple[Box, ...], k: int) -> Partitioned:
    """Return what is released of a sample: the tuples of a leaf and all other columns that occur at least k times."""
    names = [axis.classes.recoding.column.name for axis in axes]
    codes = dict(zip(sample.names, sample.codes(), strict=True))
    leaf = leaf_of(leaves, np.stack([axis.place[codes[name]] for axis, name in zip(axes, names, strict=True)]))
    others = {
        name: occurring_values(classes.values(), codes[name])
        for name, classes in zip(sample.names, sample.classes, strict=True)
        if name not in names
    }
    cells = Partitioned.of({_LEAF: (pa.array(range(len(leaves))), leaf), **others}, sample.counts)
    large = cells.counts >= k
    inside, *places = (column[large] for column in cells.layout.unpack(cells.keys))
    columns: dict[str, CodedColumn] = {}
    for number, (axis, name) in enumerate(zip(axes, names, strict=True)):
        boxes = box_names(axis, [box.sides[number] for box in leaves], np.unique(inside))
        columns[name] = boxes.values, boxes.places[inside]
    for (name, (values, _)), place in zip(others.items(), places, strict=True):
        columns[name] = occurring_values(values, place)
    return Partitioned.of({name: columns[name] for name in sample.names}, cells.counts[large])


@dataclass(frozen=True, kw_only=True)
class PartitionCheck(MicrodataCheck):
    """The check of microdata, held as a table in boxes; its proof protects units of one row."""

    def contradiction(self, statement: Statement) -> Problem | None:
        unit, cuts = statement.basis.unit, statement.basis.need(ChooseCuts)
        if unit.max_rows > 1 or unit.adjacency is not Adjacency.ADD_REMOVE:
            return Problem("it is proved for units of one row, added or removed, and for no others")
        if cuts.depth < 1 or not cuts.columns or cuts.columns != statement.of_role(Role.QUASI):
            return Problem("the columns that are cut are not the quasi-identifiers, each once and in their order")
        return super().contradiction(statement)

    def recount(self, statement: Statement, output: Output) -> Problem | None:
        if not isinstance(output, Partitioned):
            return Problem("it is not a table in boxes")
        rare = len(output.counts) and int(output.counts.min()) < statement.basis.need(SuppressChosen).k
        return Problem("some tuple occurs too rarely") if rare else None

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Any:
        return reopen_table(statement, files[0], Partitioned)


CHECK = PartitionCheck(
    order=(maybe(KeepRows), one(ChooseCuts), one(SecretSample), one(Recode), one(SuppressChosen), one(ArrangeBoxes)),
    claims=(ApproximatePrivacy, Anonymity, Pseudonymity),
)
PICTURE = ClassesPicture()
METHOD = PrivatePartition
