"""Protected tables: counts or sums with all totals, sensitive cells left out, or all of them rounded or perturbed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from incrowd.core.cells import Cells
from incrowd.core.plan import Method, Plan
from incrowd.core.rounding import round_up
from incrowd.core.schema import Role, Schema
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.rows import KeepRows, keep_rows, recoded
from incrowd.core.steps.step import Step, fold
from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.protected.adjustment import AdjustCells, AdjustedCells
from incrowd.methods.tabulation.protected.assembly import AttackerKnowledge, CellMarks, TaskAssembly, for_holder
from incrowd.methods.tabulation.protected.claims import KeyedNoise, OpenCells, RoundedCells
from incrowd.methods.tabulation.protected.coalitions import MOST
from incrowd.methods.tabulation.protected.frame import TableFrame, Whole
from incrowd.methods.tabulation.protected.joint import Joint, ReleasedTable
from incrowd.methods.tabulation.protected.layout import (
    TableLayout,
    check_given,
    check_records,
    check_value,
    check_weight,
    finest_levels,
    frame_of,
    layouts_of,
)
from incrowd.methods.tabulation.protected.output import ProtectedCells, TableCheck, TablePicture
from incrowd.methods.tabulation.protected.perturbation import KeyNoise, cell_keys, read_secret, record_keys
from incrowd.methods.tabulation.protected.rules import CellFacts, Dominance, Rules
from incrowd.methods.tabulation.protected.selection import named_cells, spelled
from incrowd.methods.tabulation.protected.sources import CellMeasure, Counted, given_contributions, given_facts
from incrowd.methods.tabulation.protected.steps import (
    COUNT,
    PerturbCells,
    RoundCells,
    SuppressCells,
    Tabulate,
)
from incrowd.methods.tabulation.protected.suppression import Pattern
from incrowd.noise.system import SystemCoins
from incrowd.verifier.check import maybe, one

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.table import Table

SUPPRESSION, ROUNDING, CELL_KEY, ADJUSTMENT = "suppression", "rounding", "cell-key", "adjustment"
_OWN = {
    SUPPRESSION: ("minimum", "dominance", "p", "q", "protection", "prior", "earlier", "coalition", "open", "empty"),
    ROUNDING: ("base",),
    CELL_KEY: ("noise", "key"),
    ADJUSTMENT: ("shift",),
}


@dataclass(frozen=True, kw_only=True)
class ProtectedTable(Method):
    """Counts or sums over one to three columns with all their totals, as statistical offices publish them.

    Guarantee: a form, and no ε.  By suppression, no sensitive cell can be inferred within its protection interval by
    someone who knows only the tables of this release, those named as released before, the rules, and the stated bounds:
    numbers are whole and not negative (or between bounds), and zeros are published; nor by one or two contributors who
    also know exactly the cells to which nobody else contributed.  By rounding, every number is a neighboring multiple
    of the base and all totals add up.  By adjustment, no count is from 1 to below the minimum, every one is within a
    shift of the truth, and totals add up.  By cell keys, counts have bounded noise with mean zero that is the same for
    the same records; this is not differential privacy.

    Assumes: readers and contributors know no more than that, and no more contributors share what they know.

    Source: Hundepool et al. 2012, Statistical Disclosure Control; Fischetti & Salazar 2001; Giessing & Repsilber 2002;
    Cox 1987; Cox & Dandekar 2004; Thompson, Broadfoot & Elazar 2013.

    >>> ProtectedTable(columns=("region", "sex"), minimum=3).number
    'count'
    """

    name: ClassVar[str] = "protected-table"
    located: ClassVar[tuple[str, ...]] = ("earlier", "key")
    hashed: ClassVar[tuple[str, ...]] = ("earlier",)
    columns: tuple[str, ...] = ()
    tables: tuple[TableLayout, ...] = ()
    protect: Literal["suppression", "rounding", "cell-key", "adjustment"] = "suppression"
    levels: Mapping[str, int] = field(default_factory=dict)
    value: str | None = None
    weight: str | None = None
    holding: str | None = None
    minimum: int | None = None
    dominance: Dominance | None = None
    p: Fraction | None = None
    q: Fraction | None = None
    protection: int | None = None
    margin: Fraction = Fraction(1, 10)
    weigh: Literal["values", "cells", "levels"] = "values"
    prior: Fraction | None = None
    earlier: tuple[str, ...] = ()
    coalition: int | None = None
    zeros: Literal["published", "suppressible"] = "published"
    open: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    base: int | None = None
    shift: int | None = None
    noise: KeyNoise | None = None
    key: str | None = None
    given: bool = False
    contributors: str | None = None
    largest: tuple[str, ...] = ()
    total: str = "*"

    def __post_init__(self) -> None:
        several = len(self.layouts) > 1
        for way, names in _OWN.items():
            both = ("minimum",) if self.protect == ADJUSTMENT else ()
            stated = [name for name in names if getattr(self, name) not in (None, ()) and name not in both]
            if stated and way != self.protect:
                raise InvalidParameter(
                    f"{stated[0]} belongs to protect: {way}, and the table is protected by {self.protect}."
                )
        self._check_rules()
        if self.protect == ROUNDING and (self.base or 0) < 2:
            raise InvalidParameter("rounding needs a base, the number whose multiples are published: at least 2.")
        if self.protect == CELL_KEY and (self.noise is None or self.key is None):
            raise InvalidParameter(
                "cell-key needs noise (largest and variance, perhaps gap) and key, a file with a secret of 32 bytes."
            )
        if self.protect == ADJUSTMENT and (self.minimum is None or self.value or self.weight or self.holding):
            raise InvalidParameter("adjustment is for counts of rows: give minimum, the least count that is published.")
        if several and (self.given or self.protect in (ROUNDING, ADJUSTMENT)):
            raise InvalidParameter("several tables are made of rows, and protected by suppression or by cell keys.")
        if not self.given and (self.contributors or self.largest):
            raise InvalidParameter(
                "contributors and largest are columns of a given table: write given: true, or leave them out."
            )

    def _check_rules(self) -> None:
        rules = self.rules
        if self.protect == SUPPRESSION and self.minimum is None and not rules.depth:
            raise InvalidParameter("suppression needs a rule for sensitive cells: minimum, dominance or p.")
        if rules.depth and self.counting:
            raise InvalidParameter("dominance and p are rules for sums: name the value that is summed, or use minimum.")
        if self.protection is not None and not self.counting:
            raise InvalidParameter("protection is for counts; for sums it is margin, a share of the cell.")
        if self.coalition is not None and not 0 <= self.coalition <= MOST:
            raise InvalidParameter("coalition is how many contributors share what they know: 0, 1 or 2.")
        if self.prior is not None and not 0 < self.prior <= 1:
            raise InvalidParameter(
                "prior is how well everybody knows each finest cell, as a share of it: above 0, up to 1."
            )
        if self.given and self.value is not None and self.protect == SUPPRESSION:
            if self.minimum is not None and self.contributors is None:
                raise InvalidParameter("minimum counts contributors: name the column of the given table that has them.")
            if len(self.largest) < rules.depth:
                raise InvalidParameter(
                    f"these rules look at the {rules.depth} largest contributions: name their columns of the given "
                    "table in largest."
                )

    @property
    def rules(self) -> Rules:
        """When a cell is sensitive."""
        protection = (self.protection or self.minimum) if self.counting else self.protection
        return Rules(self.minimum, self.dominance, self.p, protection, self.margin, self.q)

    @property
    def counting(self) -> bool:
        """Whether every row counts as one."""
        return self.value is None and self.weight is None

    @property
    def number(self) -> str:
        """What the column of numbers is called."""
        return self.value or COUNT

    @property
    def layouts(self) -> tuple[TableLayout, ...]:
        """The tables, one or several."""
        return layouts_of(self.columns, self.tables, self.levels)

    def frames(self, schema: Schema) -> tuple[TableFrame, ...]:
        """Return the cells of each table."""
        if self.total in ("", None) or any(self.number in layout.columns for layout in self.layouts):
            raise InvalidParameter(f"the table has a column {self.number!r} of its own: leave that one out.")
        if self.given:
            check_given(schema, self.layouts[0])
        return tuple(frame_of(schema, layout, self.total) for layout in self.layouts)

    @property
    def unchecked(self) -> str:
        return (
            "a protected table publishes cells and no rows: rows cannot be compared with it. Name what to check: --k, "
            "--l."
        )

    def plan(self, schema: Schema) -> Plan:
        joint = self.joint(schema)
        self._check_columns(schema, joint)
        steps, numbers = self.steps(schema, joint), dict[str, Any]()
        if self.noise is not None:
            numbers["zero to one"] = Decimal(round_up(self.noise.zero_to_one()))
            read_secret(self.key or "")
        frames = self.frames(schema)
        columns = "; ".join(", ".join(layout.columns) for layout in self.layouts)
        settings = {"columns": columns, "protect": self.protect, "cells": sum(frame.size for frame in frames)}
        examine = self.examine if self.given or self._foreseeable(schema) else None
        return Plan(self.name, steps, fold(steps, schema.unit), numbers, self.release, None, settings, examine)

    def steps(self, schema: Schema, joint: Joint) -> tuple[Step, ...]:
        """Return the steps: whose rows, which labels, which cells, and how they are protected."""
        holder, bounds = self.holder(schema), self.bounds(schema)
        tabulate = Tabulate(self.frames(schema), self.value, holder, self.given, self.weight, bounds)
        if self.given:
            return (tabulate, self._protection(schema, joint))
        levels = finest_levels(schema, self.layouts)
        recode = RecodeToBins(tuple(map(recoded, Cells.of(schema, levels, tuple(levels)).recodings)))
        return (*keep_rows(schema.unit), recode, tabulate, self._protection(schema, joint))

    def _protection(self, schema: Schema, joint: Joint) -> Step:
        tables = len(self.layouts)
        if self.protect == ROUNDING:
            return RoundCells(self.base or 0)
        if self.protect == ADJUSTMENT:
            return AdjustCells(self.minimum or 0, self.shift or 2 * (self.minimum or 0))
        if self.noise is not None:
            noise = self.noise
            return PerturbCells(noise.largest, noise.variance, noise.gap, schema.unit.column or "", tables)
        before = tuple(table.sha256 for table in self.released_before())
        rules = self.rules
        named_cells(self.frames(schema), joint, chain(*self._named(schema)))
        return SuppressCells(
            self.width,
            rules.margin,
            self.weigh,
            self.sharing,
            self.zeros,
            rules.minimum,
            rules.protection,
            rules.dominance,
            rules.p,
            self.prior,
            before,
            self.open,
            self.empty,
            tables,
            rules.q,
        )

    def _named(self, schema: Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what stays open and what is emptied first, levels written as their lines."""
        return tuple(spelled(schema, self.open)), tuple(spelled(schema, self.empty))

    @property
    def sharing(self) -> int:
        """How many contributors share what they know, at most."""
        return MOST if self.coalition is None else self.coalition

    @property
    def width(self) -> int:
        """How far apart the least and the largest number of an empty cell are, as anyone can see from the table."""
        return (self.rules.reach or 1) if self.counting else 1

    def bounds(self, schema: Schema) -> tuple[Fraction, Fraction] | None:
        """Return between which numbers a contribution lies, where it can be negative."""
        return None if self.value is None else check_value(schema, self.value)

    def holder(self, schema: Schema) -> str | None:
        """Return the column by which contributions are merged: the holding, or whoever the unit protects."""
        unit = schema.unit.column
        if self.holding is not None and unit not in (None, self.holding):
            raise InvalidParameter("the unit has a person ID column, which is the holding: leave holding out.")
        return self.holding or unit

    def released_before(self) -> tuple[ReleasedTable, ...]:
        """Read the tables that were released before."""
        return tuple(ReleasedTable.read(file, self.number) for file in self.earlier)

    def joint(self, schema: Schema) -> Joint:
        """Return the finest cells of these tables and those before them."""
        levels = finest_levels(schema, self.layouts)
        joint = Joint.of(schema, self.frames(schema), levels, self.released_before())
        if self.given and joint.levels != levels:
            raise InvalidParameter(
                "a given table can be compared only with tables of the same columns, no finer than it."
            )
        return joint

    def _check_columns(self, schema: Schema, joint: Joint) -> None:
        """Refuse numbers that may be negative, holders that are released, and records that cannot have one key."""
        unit, holder = schema.unit, self.holder(schema)
        if holder is not None and not Role.IDENTIFIER.covers(schema[holder].role):
            raise InvalidParameter(f"{holder!r} names contributors, which are not released: its role is identifier.")
        beside = [name for name in (self.value, self.weight, *joint.levels) if name is not None]
        for name in (
            beside if not self.given else [self.value or COUNT, *filter(None, [self.contributors]), *self.largest]
        ):
            schema[name]
        if self.bounds(schema) is not None and (
            self.given or (self.protect == SUPPRESSION and self.zeros == "published")
        ):
            raise InvalidParameter(
                f"{self.value!r} can be negative, so a sum of zero can stand for somebody: write zeros: suppressible, "
                "and tabulate rows, not a given table."
            )
        if self.weight is not None:
            check_weight(schema, self.weight)
        if self.given and self.weight is not None:
            raise InvalidParameter("the cells of a given table are weighted already: leave weight out.")
        if self.given and unit.column is not None:
            raise InvalidParameter("the rows of a given table are cells, not people: leave the unit's column out.")
        if self.protect == CELL_KEY:
            check_records(unit, plain=self.counting and not self.given and self.holding is None)

    def _foreseeable(self, schema: Schema) -> bool:
        """Whether what a release does can be computed before it: nothing is drawn at random."""
        sampled = schema.unit.column is not None and schema.unit.more is None
        return self.protect == SUPPRESSION and not sampled

    def examine(self, table: Table) -> None:
        """Refuse, before anything is charged, a given table that does not add up, and one that cannot be protected."""
        if self._foreseeable(table.schema):
            self._suppressed(table, SystemCoins())
        elif self.given:
            self._facts(table, SystemCoins())

    def release(self, table: Table, coins: Coins) -> ProtectedCells:
        """Count or read the cells, and leave out, round or perturb."""
        frames = self.frames(table.schema)
        if self.protect == SUPPRESSION:
            facts, pattern, task = self._suppressed(table, coins)
            cells = []
            for part, own in zip(facts, task.joint.parts, strict=True):
                seen = ~pattern.suppressed[own].reshape(part.values.shape)
                cells.append((np.where(seen, part.values, 0), seen))
            return ProtectedCells.of(frames, cells, self.number, for_holder(task, facts, pattern))
        facts, counted, joint = self._facts(table, coins)
        step = self._protection(table.schema, joint)
        if isinstance(step, RoundCells | AdjustCells):
            near = step.near(frames[0], frames[0].finest(facts[0].values))
            return ProtectedCells.of(frames, [(near.cells, np.isfinite(near.cells))], self.number, near.for_holder)
        noisy = [
            part.values + self._key_noise(frame, part, counted, joint)
            for frame, part in zip(frames, facts, strict=True)
        ]
        return ProtectedCells.of(frames, [(part, np.isfinite(part)) for part in noisy], self.number, {})

    def _facts(self, table: Table, coins: Coins) -> tuple[tuple[CellFacts, ...], Counted, Joint]:
        """Return what the rules look at in each table, and who contributed to the finest cells of all."""
        frames, joint = self.frames(table.schema), self.joint(table.schema)
        if self.given:
            facts = given_facts(table, frames[0], self.number, (self.contributors, self.largest))
            return (facts,), Counted(given_contributions(frames[0], facts, counts=self.value is None), None), joint
        signed = self.bounds(table.schema) is not None
        measure = CellMeasure(self.value, self.holder(table.schema), self.weight, signed)
        counted = Counted.of(table, joint.frame, joint.levels, measure, coins)
        parts = (joint.within(frame, counted.contributions).facts(frame, self.rules.depth) for frame in frames)
        return tuple(parts), counted, joint

    def _suppressed(self, table: Table, coins: Coins) -> tuple[tuple[CellFacts, ...], Pattern, TaskAssembly]:
        """Return the true cells of each table, the pattern of all, and what it was found from."""
        facts, counted, joint = self._facts(table, coins)
        frames = self.frames(table.schema)
        truth = frames[0].finest(facts[0].values) if self.given else counted.leaves(joint.frame)
        marks = CellMarks(self.weigh, self.zeros, *self._named(table.schema))
        knowledge = AttackerKnowledge(self.counting, self.sharing, self.prior, self.bounds(table.schema))
        assembly = TaskAssembly(frames, joint, self.rules, marks, knowledge)
        return facts, assembly.protect(facts, counted.contributions, truth, self.width), assembly

    def _key_noise(self, frame: TableFrame, facts: CellFacts, counted: Counted, joint: Joint) -> Whole:
        """Return the noise of every cell, by the keys of its records."""
        if self.noise is None or counted.names is None:
            raise AssertionError("cell keys need records with names")
        names = ("" if name is None else name for name in counted.names.to_pylist())
        keys, records = record_keys(read_secret(self.key or ""), names), joint.within(frame, counted.contributions)
        of_cells = cell_keys(frame, records.cells, keys[records.holders])
        return self.noise.draw(facts.values.ravel(), of_cells).reshape(frame.shape)


_WAYS = one(SuppressCells, RoundCells, PerturbCells, AdjustCells)
CHECK = TableCheck(
    order=(maybe(KeepRows), maybe(RecodeToBins), one(Tabulate), _WAYS),
    claims=(OpenCells, RoundedCells, KeyedNoise, AdjustedCells),
)
PICTURE = TablePicture()
METHOD = ProtectedTable
