"""Partition: boxes cut by a private look at the rows, then a fresh secret sample with every rare tuple dropped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.core.cells import Cells
from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.choices import SuppressChosen
from incrowd.core.steps.rows import keep_rows, recode
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import fold
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.mondrian.axes import Axis
from incrowd.methods.anonymity.mondrian.labels import box_names, kept_values
from incrowd.methods.anonymity.mondrian.partitioning import TupleGrid
from incrowd.methods.anonymity.partition.boxes import Box, Growth, leaf_of
from incrowd.methods.anonymity.partition.steps import DEEPEST, ArrangeBoxes, ChooseCuts
from incrowd.methods.anonymity.safe.method import Safe
from incrowd.methods.anonymity.syntactic.demands import quasi_identifiers
from incrowd.methods.crowds.parameters import Parameters, charged
from incrowd.methods.outcomes.anonymized import Partitioned
from incrowd.methods.person_rows import row_limits

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.counts import Counts
    from incrowd.core.table import Table

_WIDEST = 20_000


@dataclass(frozen=True)
class PrivatePartition:
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
        found = self.parameters(unit)
        least = self.least if self.least is not None else math.ceil(4 * found.k / found.rate)
        return Growth(self.depth, self.choosing, least)

    def axes(self, schema: Schema) -> list[Axis]:
        """Return the axes of the quasi-identifiers, from the schema alone."""
        if schema.unit.max_rows > 1 or schema.unit.adjacency is not Adjacency.ADD_REMOVE:
            raise InvalidParameter(
                "method partition is proved for units of one row that is added or removed: keep max_rows at 1 and "
                "adjacency at add-remove."
            )
        found = []
        for recoding in Cells.of(schema, self.levels, quasi_identifiers(schema)).recodings:
            if recoding.classes is None or len(recoding.classes) > _WIDEST:
                raise InvalidParameter(
                    f"the values of {recoding.column.name!r} at level {recoding.level} are too many to cut between. "
                    "Declare categories or bounds, or give a higher level."
                )
            found.append(Axis.of(recoding.classes, self.ordered))
        return found

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone; what was drafted from rows leaves nothing but k-anonymity."""
        unit, cells = schema.unit, self._safe.cells(schema)
        self.axes(schema)
        found, growth = self.parameters(unit), self.growth(unit)
        steps = (
            *keep_rows(unit),
            ChooseCuts(self.choosing, quasi_identifiers(schema), self.depth, growth.least),
            SecretSample(found.rate),
            recode(cells),
            SuppressChosen(found.k),
            ArrangeBoxes(),
        )
        guarantee = fold(steps, unit, found.delta)
        settings: dict[str, Any] = {"choosing": self.choosing, "depth": self.depth, "least": growth.least, "k": found.k}
        if guarantee.syntactic:
            return Plan(self.name, steps, guarantee, {}, self.release, found.k, settings, cells=cells)
        epsilon = charged(guarantee.loss, found.delta, unit.adjacency)
        settings |= {"rate": found.rate, "epsilon": epsilon, "delta": found.delta}
        return Plan(self.name, steps, guarantee, {"epsilon": epsilon}, self.release, found.k, settings, cells=cells)

    def release(self, table: Table, coins: Coins) -> Partitioned:
        """Count all rows, cut boxes, and release a fresh sample in them."""
        schema, axes, limits = table.schema, self.axes(table.schema), row_limits(table, coins)
        quasi = quasi_identifiers(schema)
        counts = table.engine.count(table.rows, Cells.of(schema, self.levels, quasi), *limits)
        leaves = self.growth(schema.unit).leaves(TupleGrid.of(axes, counts.codes(), counts.counts), coins)
        found = self.parameters(schema.unit)
        sample = table.engine.count(table.rows, self._safe.cells(schema), *limits, coins.sample(found.rate))
        return fill_boxes(sample, axes, leaves, found.k)

    @property
    def _safe(self) -> Safe:
        return Safe(self.levels, self.epsilon, self.delta, self.rate, self.k)


def fill_boxes(sample: Counts, axes: list[Axis], leaves: tuple[Box, ...], k: int) -> Partitioned:
    """Return what is released of a sample: the tuples of a leaf and all other columns that occur at least k times."""
    names = [axis.classes.recoding.column.name for axis in axes]
    codes = dict(zip(sample.names, sample.codes(), strict=True))
    leaf = leaf_of(leaves, np.stack([axis.place[codes[name]] for axis, name in zip(axes, names, strict=True)]))
    others = [name for name in sample.names if name not in names]
    columns = [kept_values(sample.classes[sample.names.index(name)].values(), codes[name]) for name in others]
    cells = Partitioned.of(
        {"leaf": pa.array(range(len(leaves)))} | dict(zip(others, (values for values, _ in columns), strict=True)),
        [leaf, *(places for _, places in columns)],
        sample.counts,
    )
    large = cells.counts >= k
    kept = [column[large] for column in cells.layout.unpack(cells.keys)]
    shown: dict[str, tuple[pa.Array, Any]] = {}
    for number, (axis, name) in enumerate(zip(axes, names, strict=True)):
        found = box_names(axis, [box.sides[number] for box in leaves], np.unique(kept[0]))
        shown[name] = found.values, found.places[kept[0]]
    for name, (values, _), places in zip(others, columns, kept[1:], strict=True):
        shown[name] = kept_values(values, places)
    ordered = {name: shown[name] for name in sample.names}
    return Partitioned.of(
        {name: values for name, (values, _) in ordered.items()},
        [places for _, places in ordered.values()],
        cells.counts[large],
    )
