"""Steps: rows of linked tables are limited per person and measured with noise; new rows with new keys are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.claims.claim import GROUPS, assumed, checked, proved
from incrowd.core.claims.privacy import ApproximatePrivacy
from incrowd.core.loss import ZeroConcentrated
from incrowd.core.steps.bins import BinColumn
from incrowd.core.steps.step import PASSED, ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem, joined
from incrowd.core.unit import Adjacency, ExtraRowsRule
from incrowd.core.words import counted, listed
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.linked.levels import WHOLE, LevelColumn
from incrowd.methods.synthesis.marginals.budget import Sensitivity, table_rho
from incrowd.methods.synthesis.marginals.constraints import NumberConstraint
from incrowd.methods.synthesis.marginals.patterns import ValuePattern
from incrowd.methods.synthesis.marginals.steps import (
    DeclaredZero,
    DrawnColumn,
    MeasuredTable,
    day_exposure,
    day_sentence,
    pattern_sentence,
)

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

_TABLES = Theorem.read("gaussian-noise-theorem-4")
_CHOICES = Theorem.read("exponential-concentrated")
_FILTER = Theorem.read("rho-filter")
_CONVERTED = Theorem.read("rho-converted")
_WEIGHTS = Theorem(
    "linked-weights",
    "proved: the n rows of a person in one table, of weight floor(W / cap) each with cap at least n, move every table "
    "of weights by at most W; the tables of all levels are composed",
)
_BOUNDED = Condition(
    "rows-limited-by-level", "what of a person's rows is read follows from that person's rows and randomness alone"
)
_SPENT = Condition(
    "measured-within-rho-linked", "what was measured of all tables, with its noise, costs no more than ρ"
)
_MATCHING = Condition("keys-match", "every foreign key of the files names a row, and nobody has more rows than allowed")
_JOINED = Condition("joined-by-person", "rows are joined to their parents within one person")
SINGLE_OWNER = Assumption("ids-of-one-person", "no row ID of a table belongs to the rows of two people")
OWNED = Assumption(
    "rows-of-one-person", "each row of a table belongs to the person that its keys lead to, and to nobody else"
)
_SIBLINGS = Exposure(
    "siblings-independent",
    "rows of one parent as such: given the rows above and before, they are modelled as independent",
)
_NUMBER = Exposure.read("number-of-rows")
_ZEROS = Exposure.read("declared-zeros")
_CONSTRAINTS = Exposure.read("declared-constraints")


@dataclass(frozen=True, kw_only=True)
class LinkedPrivacy(ApproximatePrivacy):
    """(ε, δ)-differential privacy for a person with all linked rows; of each table at most `rows` are read."""

    tables: tuple[str, ...]
    rows: tuple[int, ...]

    @property
    def sentence(self) -> str:
        changed = "added or removed" if self.adjacency is Adjacency.ADD_REMOVE else "replaced"
        return (
            f"For any two neighboring sets of tables (one person with all linked rows, {changed}): every set of "
            "outcomes has at most e^ε times its probability under the other tables, plus δ. Of each person at most "
            f"{self._bounds} are used."
        )

    @property
    def reads(self) -> str:
        return f"each is protected with all linked rows, and at most {self._bounds} of each are used"

    @property
    def _bounds(self) -> str:
        return listed([f"{counted(rows, 'row')} of {name}" for name, rows in zip(self.tables, self.rows, strict=True)])


@dataclass(frozen=True)
class KeptTable:
    """One table: its parent (None for the people), its key columns, and how many rows of a person are read.

    `keys` are the columns of keys in the released table, the first being its own if it has `id`.
    """

    name: str
    keys: tuple[str, ...]
    parent: str | None = None
    foreign_key: str | None = None
    id: str | None = None
    person: str | None = None
    max_rows: int = 1
    more: ExtraRowsRule | None = None
    order: str | None = None


@dataclass(frozen=True)
class KeepLinkedRows(Step):
    """Of each person one row of the first table is read, and a limited number of each table below it."""

    kind: ClassVar[str] = "keep linked rows"
    title: ClassVar[str] = "Limit rows per person"
    glyph: ClassVar[str | None] = "fewer"

    tables: tuple[KeptTable, ...]

    def __post_init__(self) -> None:
        if len(self.tables) < 2:
            raise InvalidParameter("linked tables are one of people, and one below it at least.")

    @property
    def by_row_id(self) -> bool:
        """Whether some table is joined by a row ID alone, without the person ID."""
        return any(table.parent is not None and table.person is None for table in self.tables)

    @property
    def sentence(self) -> str:
        below = "; ".join(_bound(table) for table in self.tables[1:])
        return (
            f"Of each person one row of {self.tables[0].name} is read, and {below}. Rows without a parent that is read "
            "are dropped."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is None or unit.column is None or unit.max_rows != 1:
            raise InvalidParameter("rows of linked tables are limited before they are measured, one person a row.")
        more = {OWNED, *([SINGLE_OWNER] if self.by_row_id else [])}
        return StepGuarantee(inner.loss, inner.because, inner.assumes | more, inner.on_sample)


def _bound(table: KeptTable) -> str:
    which = "a random choice" if table.order is None else f"the first by {table.order}"
    rule = {
        None: f"at most {counted(table.max_rows, 'row')} of {table.name} ({which})",
        ExtraRowsRule.DROP: f"the rows of {table.name} of people who have at most {table.max_rows}",
        ExtraRowsRule.REFUSE: f"at most {counted(table.max_rows, 'row')} of {table.name} (more are refused)",
    }
    return rule[table.more]


@dataclass(frozen=True)
class MeasuredLevel:
    """The model of one table: its share of ρ, its columns, the labels of its own ones, and limits of the search.

    `weight` is what all rows of a person weigh together, at most.  `zeros` and `constraints` are public.  `details` are
    columns that are measured once more, in finer pieces than their classes, `patterns` small tables of weekdays, round
    numbers and distances.  In the column `ascending` the rows of a
    parent never fall.
    """

    table: str
    rho: Fraction
    weight: int
    columns: tuple[LevelColumn, ...]
    labels: tuple[BinColumn, ...]
    rounds: int
    cells: int
    zeros: tuple[DeclaredZero, ...] | None = None
    constraints: tuple[NumberConstraint, ...] | None = None
    details: tuple[BinColumn, ...] | None = None
    ascending: str | None = None
    patterns: tuple[ValuePattern, ...] | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(column.size for column in self.columns)

    def reach(self, adjacency: Adjacency) -> Sensitivity:
        """Return how far one person moves a table of weights, and a score."""
        twice = 2 if adjacency is Adjacency.REPLACE else 1
        return Sensitivity(twice * self.weight**2, twice * self.weight)


@dataclass(frozen=True)
class MeasureLinked(Step):
    """Each table is measured within its share of ρ: the people with how many rows they have below, then each table.

    A row below the people weighs W divided by the upper end of the class of its person's number of rows, rounded down.
    """

    kind: ClassVar[str] = "measure linked tables"
    title: ClassVar[str] = "Measure tables"
    glyph: ClassVar[str | None] = "coarser"

    rho: Fraction
    levels: tuple[MeasuredLevel, ...]

    def __post_init__(self) -> None:
        if not self.levels or any(level.rho <= 0 for level in self.levels):
            raise InvalidParameter("every table has a share of the budget.")
        if sum(level.rho for level in self.levels) > self.rho:
            raise InvalidParameter("the shares of the tables are more than the whole budget.")
        if [level.weight for level in self.levels] != [1, *[WHOLE] * (len(self.levels) - 1)]:
            raise InvalidParameter(f"a row of the people weighs 1, and all rows of a person below them {WHOLE}.")

    @property
    def sentence(self) -> str:
        people, *others = (level.table for level in self.levels)
        return (
            f"{people} is measured with how many rows each person has below, then {' and '.join(others)} given the "
            "table above: single columns, then again and again the table of columns about which the model seems most "
            "wrong, with integer Gaussian noise, chosen by the exponential mechanism, within "
            f"ρ = {float(self.rho):.4g} in all. All rows of a person in a table weigh {WHOLE} together, at most."
            f"{self._pieces}{self._public}"
        )

    @property
    def _pieces(self) -> str:
        fine = [
            f"“{item.column}” of {level.table} ({counted(item.size or 0, 'piece')})"
            for level in self.levels
            for item in level.details or ()
        ]
        pieces = f" Counted once more, in finer pieces: {', '.join(fine)}." if fine else ""
        return pieces + pattern_sentence([pattern for level in self.levels for pattern in level.patterns or ()])

    @property
    def _public(self) -> str:
        return f" Taken as public: {joined(self.public)}." if self.public else ""

    @property
    def public(self) -> tuple[Exposure, ...]:
        """What was declared of the rows, and is therefore not protected."""
        zeros = any(level.zeros is not None for level in self.levels)
        numbers = any(level.constraints is not None for level in self.levels)
        return (*((_ZEROS,) if zeros else ()), *((_CONSTRAINTS,) if numbers else ()))

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            raise InvalidParameter("nothing else is released from the rows beside the tables of a model.")
        because = (_TABLES, _CHOICES, _FILTER, _WEIGHTS)
        return StepGuarantee(ZeroConcentrated(self.rho), because, assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        unit, keep = basis.unit, basis.need(KeepLinkedRows)
        number = (_NUMBER,) if unit.adjacency is Adjacency.REPLACE else ()
        joined = () if keep.by_row_id else proved(_JOINED)
        refused = any(table.more is ExtraRowsRule.REFUSE for table in keep.tables[1:])
        passed = (PASSED,) if refused and unit.more is not ExtraRowsRule.REFUSE else ()
        return (
            LinkedPrivacy(
                tables=tuple(table.name for table in keep.tables),
                rows=tuple(table.max_rows for table in keep.tables),
                epsilon=basis.epsilon,
                delta=basis.guarantee.delta,
                rho=self.rho,
                adjacency=unit.adjacency,
                max_rows=unit.max_rows,
                unit=unit,
                theorem=(_TABLES, _CHOICES, _FILTER, _WEIGHTS, _CONVERTED),
                preconditions=(
                    *proved(_BOUNDED),
                    *joined,
                    *checked(_SPENT, _MATCHING),
                    *assumed(basis.guarantee.assumes),
                ),
                not_protected=(
                    GROUPS,
                    _SIBLINGS,
                    *number,
                    *passed,
                    *self.public,
                    *day_exposure(basis.need(DrawLinkedRows).numbers),
                ),
            ),
        )


@dataclass(frozen=True)
class DrawLinkedRows(Step):
    """New rows are drawn, table by table, with keys 1, 2, ... that match; one file a table.

    `names` are the names of the files, without their endings.
    """

    kind: ClassVar[str] = "draw linked rows"
    title: ClassVar[str] = "Draw rows"
    glyph: ClassVar[str | None] = "sorted"

    names: tuple[str, ...]
    rows: int | None = None
    numbers: tuple[DrawnColumn, ...] = ()

    @property
    def tables(self) -> int:
        """How many files there are."""
        return len(self.names)

    @property
    def stems(self) -> tuple[str, ...]:
        """What the files are called."""
        return self.names

    @property
    def sentence(self) -> str:
        many = "about as many people as there are" if self.rows is None else f"{self.rows:,} people"
        inside = (
            " Numbers and days lie in their class, more often where finer counts are larger." if self.numbers else ""
        )
        return (
            f"New rows are drawn from the models, {many}, with the rows below that each has; none is copied from the "
            f"data. Keys are new numbers, and every foreign key names a row.{inside}{day_sentence(self.numbers)}"
        )


def spent(evidence: Mapping[str, Any], measure: MeasureLinked, adjacency: Adjacency) -> list[Fraction]:
    """Return what the measurements that an output names cost, table by table."""
    costs = []
    parts = zip(measure.levels, evidence["tables"], evidence["pairs"], evidence["error scales"], strict=True)
    for level, tables, pairs, scale in parts:
        reach = level.reach(adjacency)
        rounds = [
            MeasuredTable((), Fraction(item["scale"]), Fraction(item["epsilon"]) if "epsilon" in item else None)
            for item in tables
        ]  # finer pieces of a column cost what a table costs
        error = table_rho(Fraction(scale), Sensitivity((int(pairs) * reach.score) ** 2, 1))
        costs.append(sum((table.rho(reach) for table in rounds), error))
    return costs
