"""Protected tables: counts or sums with all totals, sensitive cells left out, or all of them rounded or perturbed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from incrowd.core.cells import Cells
from incrowd.core.domain import Numbers, Type
from incrowd.core.plan import Method, Plan
from incrowd.core.rounding import round_up
from incrowd.core.schema import Outside, Role, Schema
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.rows import KeepRows, keep_rows, recoded
from incrowd.core.steps.step import Step, fold
from incrowd.core.unit import ExtraRowsRule
from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.protected.assembly import AttackerKnowledge, CellMarks, TaskAssembly, for_holder, of_own
from incrowd.methods.tabulation.protected.claims import KeyedNoise, OpenCells, RoundedCells
from incrowd.methods.tabulation.protected.coalitions import MOST
from incrowd.methods.tabulation.protected.frame import Flags, TableAxis, TableFrame, Whole
from incrowd.methods.tabulation.protected.output import ProtectedCells, TableCheck, TablePicture
from incrowd.methods.tabulation.protected.perturbation import KeyNoise, record_keys, round_cells
from incrowd.methods.tabulation.protected.rules import CellFacts, Dominance, Rules
from incrowd.methods.tabulation.protected.selection import selected
from incrowd.methods.tabulation.protected.sources import (
    Counted,
    Joint,
    ReleasedTable,
    given_contributions,
    given_facts,
)
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

SUPPRESSION, ROUNDING, CELL_KEY = "suppression", "rounding", "cell-key"
_OWN = {
    SUPPRESSION: ("minimum", "dominance", "p", "protection", "prior", "earlier", "coalition", "open", "empty"),
    ROUNDING: ("base",),
    CELL_KEY: ("noise", "key"),
}


@dataclass(frozen=True, kw_only=True)
class ProtectedTable(Method):
    """Counts or sums over one to three columns with all their totals, as statistical offices publish them.

    Guarantee: a form, and no ε.  By suppression, no sensitive cell can be inferred within its protection interval by
    someone who knows only this table, those named as released before, the rules, and the stated bounds: numbers are
    whole and not negative, and zeros are published; nor by one or two contributors who also know exactly the cells to
    which nobody else contributed.  By rounding, every number is a neighboring multiple of the base
    and all totals add up.  By cell keys, counts have bounded noise with mean zero that is the same for the same
    records; this is not differential privacy.

    Assumes: readers and contributors know no more than that, and no more contributors share what they know.

    Source: Hundepool et al. 2012, Statistical Disclosure Control; Fischetti & Salazar 2001; Giessing & Repsilber 2002;
    Cox 1987; Thompson, Broadfoot & Elazar 2013.

    >>> ProtectedTable(columns=("region", "sex"), minimum=3).number
    'count'
    """

    name: ClassVar[str] = "protected-table"
    located: ClassVar[tuple[str, ...]] = ("earlier", "key")
    hashed: ClassVar[tuple[str, ...]] = ("earlier",)
    columns: tuple[str, ...]
    protect: Literal["suppression", "rounding", "cell-key"] = "suppression"
    levels: Mapping[str, int] = field(default_factory=dict)
    value: str | None = None
    holding: str | None = None
    minimum: int | None = None
    dominance: Dominance | None = None
    p: Fraction | None = None
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
    noise: KeyNoise | None = None
    key: str | None = None
    given: bool = False
    contributors: str | None = None
    largest: tuple[str, ...] = ()
    total: str = "*"

    def __post_init__(self) -> None:
        if not 1 <= len(self.columns) <= 3 or len(set(self.columns)) < len(self.columns):
            raise InvalidParameter("a protected table has one to three columns beside its numbers, each named once.")
        if extra := [name for name in self.levels if name not in self.columns]:
            raise InvalidParameter(f"a level is given for {extra[0]!r}, which is no column of the table.")
        for way, names in _OWN.items():
            stated = [name for name in names if getattr(self, name) not in (None, ())]
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
        if not self.given and (self.contributors or self.largest):
            raise InvalidParameter(
                "contributors and largest are columns of a given table: write given: true, or leave them out."
            )

    def _check_rules(self) -> None:
        rules = self.rules
        if self.protect == SUPPRESSION and self.minimum is None and not rules.depth:
            raise InvalidParameter("suppression needs a rule for sensitive cells: minimum, dominance or p.")
        if rules.depth and self.value is None:
            raise InvalidParameter("dominance and p are rules for sums: name the value that is summed, or use minimum.")
        if self.protection is not None and self.value is not None:
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
        protection = self.protection if self.value is not None else self.protection or self.minimum
        return Rules(self.minimum, self.dominance, self.p, protection, self.margin)

    @property
    def number(self) -> str:
        """What the column of numbers is called."""
        return self.value or COUNT

    def frame(self, schema: Schema) -> TableFrame:
        """Return the cells of the table."""
        recodings = Cells.of(schema, self.levels, self.columns).recodings
        if self.number in self.columns or self.total in ("", None):
            raise InvalidParameter(f"the table has a column {self.number!r} of its own: leave that one out.")
        for recoding in recodings:
            if recoding.column.pseudonymous and recoding.level == 0:
                raise InvalidParameter(
                    f"{recoding.column.name!r} has a pseudonym: level 0 would release the name behind it."
                )
            if self.given and recoding.column.type is not Type.TEXT:
                raise InvalidParameter(
                    f"the labels of a given table are text: declare {recoding.column.name!r} as text."
                )
        return TableFrame(tuple(TableAxis.of(recoding, self.total)[0] for recoding in recodings))

    @property
    def unchecked(self) -> str:
        return (
            "a protected table publishes cells and no rows: rows cannot be compared with it. Name what to check: --k, "
            "--l."
        )

    def plan(self, schema: Schema) -> Plan:
        frame = self.frame(schema)
        joint = self.joint(schema, frame)
        self._check_columns(schema, joint)
        steps, numbers = self.steps(schema, frame), dict[str, Any]()
        if self.noise is not None:
            numbers["zero to one"] = Decimal(round_up(self.noise.zero_to_one()))
            self.secret()
        settings = {"columns": ", ".join(self.columns), "protect": self.protect, "cells": frame.size}
        examine = self.examine if self.given or self._foreseeable(schema) else None
        return Plan(self.name, steps, fold(steps, schema.unit), numbers, self.release, None, settings, examine)

    def steps(self, schema: Schema, frame: TableFrame) -> tuple[Step, ...]:
        """Return the steps: whose rows, which labels, which cells, and how they are protected."""
        tabulate = Tabulate(frame.axes, self.value, self.holder(schema), self.given)
        if self.given:
            return (tabulate, self._protection(schema))
        recode = RecodeToBins(tuple(map(recoded, Cells.of(schema, self.levels, self.columns).recodings)))
        return (*keep_rows(schema.unit), recode, tabulate, self._protection(schema))

    def _protection(self, schema: Schema) -> Step:
        if self.protect == ROUNDING:
            return RoundCells(self.base or 0)
        if self.noise is not None:
            return PerturbCells(self.noise.largest, self.noise.variance, self.noise.gap, schema.unit.column or "")
        before = tuple(table.sha256 for table in self.released_before())
        rules = self.rules
        frame = self.frame(schema)
        for text in (*self.open, *self.empty):
            selected(frame, text)
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
        )

    @property
    def sharing(self) -> int:
        """How many contributors share what they know, at most."""
        return MOST if self.coalition is None else self.coalition

    @property
    def width(self) -> int:
        """How far apart the least and the largest number of an empty cell are, as anyone can see from the table."""
        return (self.rules.reach or 1) if self.value is None else 1

    def holder(self, schema: Schema) -> str | None:
        """Return the column by which contributions are merged: the holding, or whoever the unit protects."""
        unit = schema.unit.column
        if self.holding is not None and unit not in (None, self.holding):
            raise InvalidParameter("the unit has a person ID column, which is the holding: leave holding out.")
        return self.holding or unit

    def released_before(self) -> tuple[ReleasedTable, ...]:
        """Read the tables that were released before."""
        return tuple(ReleasedTable.read(file, self.number) for file in self.earlier)

    def joint(self, schema: Schema, frame: TableFrame) -> Joint:
        """Return the finest cells of this table and those before it."""
        levels = {name: self.levels.get(name, int(schema[name].pseudonymous)) for name in self.columns}
        joint = Joint.of(schema, frame, levels, self.released_before())
        if self.given and joint.levels != levels:
            raise InvalidParameter(
                "a given table can be compared only with tables of the same columns, no finer than it."
            )
        return joint

    def secret(self) -> bytes:
        """Return the secret behind the keys of records."""
        try:
            secret = Path(self.key or "").read_bytes()
        except OSError as error:
            raise InvalidParameter(f"the file key cannot be read: {error.strerror or 'no reason given'}.") from None
        record_keys(secret, ())
        return secret

    def _check_columns(self, schema: Schema, joint: Joint) -> None:
        """Refuse numbers that may be negative, holders that are released, and records that cannot have one key."""
        unit, holder = schema.unit, self.holder(schema)
        if holder is not None and not Role.IDENTIFIER.covers(schema[holder].role):
            raise InvalidParameter(f"{holder!r} names contributors, which are not released: its role is identifier.")
        beside = [name for name in (self.value, *joint.levels) if name is not None]
        for name in (
            beside if not self.given else [self.value or COUNT, *filter(None, [self.contributors]), *self.largest]
        ):
            schema[name]
        if self.value is not None:
            _check_value(schema, self.value)
        if self.given and unit.column is not None:
            raise InvalidParameter("the rows of a given table are cells, not people: leave the unit's column out.")
        if self.protect == CELL_KEY:
            if self.given or self.value is not None or self.holding is not None:
                raise InvalidParameter("cell keys are for counts of rows: leave value, holding and given out.")
            if unit.column is None or unit.more is not ExtraRowsRule.REFUSE or unit.max_rows > 1:
                raise InvalidParameter(
                    "every record has one key, in every table: write unit: {column: …, more: refuse} with the column "
                    "that names records, each once."
                )

    def _foreseeable(self, schema: Schema) -> bool:
        """Whether what a release does can be computed before it: nothing is drawn at random."""
        sampled = schema.unit.column is not None and schema.unit.more is None
        return self.protect == SUPPRESSION and not sampled

    def examine(self, table: Table) -> None:
        """Refuse, before anything is charged, a given table that does not add up, and one that cannot be protected."""
        if self.given:
            self._cells_given(table)
        if self._foreseeable(table.schema):
            self._suppressed(table, SystemCoins())

    def release(self, table: Table, coins: Coins) -> ProtectedCells:
        """Count or read the cells, and leave out, round or perturb."""
        frame = self.frame(table.schema)
        if self.protect == SUPPRESSION:
            facts, pattern = self._suppressed(table, coins)
            visible = ~pattern.suppressed.reshape(frame.shape)
            holder = for_holder(frame, self.rules, facts, pattern)
            return ProtectedCells.of(frame, np.where(visible, facts.values, 0), visible, self.number, holder)
        joint = self.joint(table.schema, frame)
        if self.given:
            facts = self._cells_given(table)
        else:
            counted = Counted.of(table, joint.frame, joint.levels, (self.holder(table.schema), self.value), coins)
            facts = counted.contributions.facts(frame, self.rules.depth)
            if self.noise is not None:
                noisy = facts.values + self._key_noise(frame, facts, counted)
                return self._published(frame, facts, (noisy, facts.values >= 0))
        rounded = round_cells(frame, frame.finest(facts.values), self.base or 0)
        holder = {"distance": rounded.distance, "least possible distance": rounded.least}
        return ProtectedCells.of(frame, rounded.cells, facts.values >= 0, self.number, holder)

    def _cells_given(self, table: Table) -> CellFacts:
        frame = self.frame(table.schema)
        return given_facts(table, frame, self.number, (self.contributors, self.largest))

    def _published(self, frame: TableFrame, facts: CellFacts, published: tuple[Whole, Flags]) -> ProtectedCells:
        cells, visible = published
        return ProtectedCells.of(frame, cells, visible.reshape(facts.values.shape), self.number)

    def _suppressed(self, table: Table, coins: Coins) -> tuple[CellFacts, Pattern]:
        """Return the true cells, and the pattern of those of this table."""
        frame = self.frame(table.schema)
        joint = self.joint(table.schema, frame)
        if self.given:
            facts = self._cells_given(table)
            contributions = given_contributions(frame, facts, counts=self.value is None)
            truth = frame.finest(facts.values)
        else:
            beside = (self.holder(table.schema), self.value)
            counted = Counted.of(table, joint.frame, joint.levels, beside, coins)
            truth, contributions = counted.leaves(joint.frame), counted.contributions
            facts = of_own(frame, joint, contributions).facts(frame, self.rules.depth)
        pattern = self.assembly(frame, joint).protect(facts, contributions, truth, self.width)
        return facts, replace(pattern, suppressed=pattern.suppressed[joint.own])

    def assembly(self, frame: TableFrame, joint: Joint) -> TaskAssembly:
        """Return what becomes a task with the true cells."""
        marks = CellMarks(self.weigh, self.zeros, self.open, self.empty)
        return TaskAssembly(
            frame, joint, self.rules, marks, AttackerKnowledge(self.value is None, self.sharing, self.prior)
        )

    def _key_noise(self, frame: TableFrame, facts: CellFacts, counted: Counted) -> Whole:
        """Return the noise of every cell, by the keys of its records."""
        if self.noise is None or counted.names is None:
            raise AssertionError("cell keys need records with names")
        keys = record_keys(self.secret(), ("" if name is None else name for name in counted.names.to_pylist()))
        leaves = np.zeros(int(np.prod(frame.leaf_shape)), np.uint64)
        contributions = counted.contributions
        np.add.at(leaves, contributions.cells, keys[contributions.holders])
        cell_keys = frame.totals(leaves.reshape(frame.leaf_shape))
        return self.noise.draw(facts.values.ravel(), cell_keys.ravel()).reshape(frame.shape)


def _check_value(schema: Schema, name: str) -> None:
    column = schema[name]
    low = column.domain.bounds[0] if isinstance(column.domain, Numbers) else None
    if low is None or low < 0:
        raise InvalidParameter(
            f"sums of {name!r} are protected only where no contribution is negative: declare it as a number with "
            "bounds from 0 on."
        )
    if column.rule_outside is Outside.OTHER or column not in schema.released:
        raise InvalidParameter(
            f"{name!r} is summed: it is no identifier, and values outside its bounds go to the ends or drop."
        )


CHECK = TableCheck(
    order=(maybe(KeepRows), maybe(RecodeToBins), one(Tabulate), one(SuppressCells, RoundCells, PerturbCells)),
    claims=(OpenCells, RoundedCells, KeyedNoise),
)
PICTURE = TablePicture()
METHOD = ProtectedTable
