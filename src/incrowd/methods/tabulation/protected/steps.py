"""Steps and claims: rows become a table with totals, whose cells are suppressed, rounded, or get noise by keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.claim import Claim, assumed, checked, proved
from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, unit_assumption
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.core.unit import Unit
from incrowd.core.words import counted, short_up
from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame
from incrowd.methods.tabulation.protected.perturbation import KeyNoise
from incrowd.methods.tabulation.protected.rules import Dominance, Rules

KNOWS_ONLY = Assumption(
    "table-readers-know-bounds",
    "nobody who reads the table knows more about its cells than the table, the rules and the stated bounds",
)
SECRET = Assumption(
    "record-key-secret",
    "the secret of the record keys is known to nobody who reads the table, and is the same for all tables",
)
NOT_PRIVATE = Theorem(
    "counted-table-form", "counted: a property of the table's form, which bounds nothing for those who know more"
)

_CONTRIBUTORS = Exposure(
    "contributors",
    "contributors: a person who knows their own contribution to a cell can subtract it first, several who share theirs "
    "subtract them all, and the only contributor to a cell knows it and can infer others from it",
)
_SUMS = Exposure(
    "sums-of-empty-cells",
    "sums and differences of empty cells: each cell stays open by itself, what several have together may not",
)
_OTHER_TABLES = Exposure(
    "other-tables",
    "other tables of the same rows, and of numbers tied to theirs, except those that are named as released before",
)
_EARLIER_CELLS = Exposure(
    "cells-of-earlier-tables",
    "cells that were left empty in tables released before: this table keeps its own sensitive"
    " cells open, and may narrow down those",
)
_EXACT = Exposure(
    "published-cells",
    "published cells: they are exact, zero says that nobody is there, and an empty count says that somebody is, in "
    "each finest cell of it that is not published as zero",
)
_MINIMALITY = Exposure(
    "minimality-of-suppressed-cells",
    "minimality: cells were chosen by looking at all of them, so a reader who repeats the choice can exclude tables in "
    "which no cell is sensitive, or for which other cells would have been chosen",
)
_ROUNDED_SUMS = Exposure(
    "narrowed-by-totals",
    "how far a number can be narrowed by those around it: totals add up, which says more than each alone",
)
_AGAIN = Exposure(
    "another-rounding",
    "another rounding of the same numbers, with another base or of another table: together they say more",
)
_NOT_DP = Exposure(
    "not-differential-privacy",
    "this is not differential privacy: one look at a cell tells nobody from one person with "
    "the δ stated here, whatever the ε",
)
_MANY = Exposure("many-tables", "many tables: there is no bound on what they tell together")
_DIFFERENCES = Exposure(
    "differing-cells",
    "two cells that differ by one person: their noise is drawn apart, and their difference speaks of that person",
)
_BOUNDED = Exposure(
    "bounded-noise",
    "bounds: noise has a largest size, so that a cell, its parts and its totals narrow each other, at worst to one "
    "number; and a published count above zero says that somebody is there",
)
_ADDITIVE = Exposure("totals-do-not-add-up", "totals: each has noise of its own, so they do not add up")


_PROTECTION_INTERVAL_WITNESSES = Theorem(
    "protection-interval-witnesses",
    "Fischetti & Salazar 2001, by proof: for each sensitive cell two tables of whole numbers that have everything "
    "published and no zero where a cell above zero is empty, one as far below and one as far above the truth as the "
    "rule demands",
)
_WITNESSES_ADDED_UP = Condition(
    "witnesses-added-up", "no such pair was taken from a solver: each was added up again in whole numbers"
)
_TABLE_ADDS_UP_AND_OPEN = Condition(
    "table-adds-up-and-open", "the written table adds up, and leaves every empty cell open"
)
_CONTROLLED_ROUNDING_CHECKED = Theorem(
    "controlled-rounding-checked", "Cox 1987, checked: rounded to neighboring multiples, with all totals"
)
_TABLE_ADDED_UP = Condition("table-added-up", "the written table was added up again")
_CELL_KEY_NOISE = Theorem(
    "cell-key-noise", "Marley & Leaver 2011: the noise of largest entropy with these bounds, mean and variance"
)
_RECORD_KEYS_KEYED = Condition(
    "record-keys-keyed",
    "record keys are a keyed function of the record's name, HMAC-SHA-256, and a cell's key is their sum",
)


@dataclass(frozen=True, kw_only=True)
class OpenCells(Claim):
    """Empty cells stay open."""

    kind = "cell suppression"
    rank: ClassVar[int] = 40

    rules: Rules
    width: int
    earlier: int
    prior: Fraction | None = None

    @property
    def sentence(self) -> str:
        before = f" and the {self.earlier} released before" if self.earlier else ""
        return (
            f"Someone who knows only this table{before}, the rules, and {self._bounds}, cannot infer a sensitive cell "
            "more closely than its protection interval, which does not reach below the number of finest cells above "
            "zero in it; the least and the largest number that an empty cell can have are at least "
            f"{self.width} apart. A cell is sensitive by these rules: {'; '.join(self.rules.texts)}."
        )

    @property
    def _bounds(self) -> str:
        """What everybody is taken to know beside the published cells."""
        least = "that numbers are whole and not negative, and that a cell of zero is suppressed only if it is sensitive"
        if self.prior is None:
            return least
        return f"{least}, and every finest cell up to {self.prior} of its value up or down"


@dataclass(frozen=True, kw_only=True)
class RoundedCells(Claim):
    """All numbers are rounded, and add up."""

    kind = "controlled rounding"
    rank: ClassVar[int] = 40

    base: int

    @property
    def sentence(self) -> str:
        return (
            f"Every published number is a multiple of {self.base}, less than {self.base} away from the true one, and "
            "all totals are the sums of what they are totals of."
        )


@dataclass(frozen=True, kw_only=True)
class KeyedNoise(Claim):
    """Noise that depends on the records in a cell."""

    kind = "cell key"
    rank: ClassVar[int] = 40
    numbers: ClassVar[Mapping[str, str]] = {"zero_to_one": "zero to one"}

    largest: int
    variance: Fraction
    gap: int
    zero_to_one: Decimal

    @property
    def sentence(self) -> str:
        gap = f", and no published count is from 1 to {self.gap}" if self.gap else ""
        return (
            f"Every count that is not zero has noise of at most {self.largest}, with mean zero and variance "
            f"{self.variance}{gap}; the same records get the same noise in every table. This is not differential "
            f"privacy: one look at a cell tells no one from one person with δ = {short_up(self.zero_to_one)}, at any ε."
        )


COUNT = "count"


@dataclass(frozen=True)
class Tabulate(Step):
    """Rows become counts or sums over a cross of columns, with all totals; or the rows are such a table already."""

    kind: ClassVar[str] = "tabulate"
    title: ClassVar[str] = "Make a table with totals"
    glyph: ClassVar[str | None] = "coarser"

    axes: tuple[TableAxis, ...]
    value: str | None = None
    holding: str | None = None
    given: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 3:
            raise InvalidParameter("a protected table has one to three columns beside its numbers.")
        _ = self.frame

    @property
    def frame(self) -> TableFrame:
        """The cells."""
        return TableFrame(self.axes)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(map(len, self.axes))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns beside the numbers."""
        return tuple(axis.column for axis in self.axes)

    @property
    def number(self) -> str:
        """What the column of numbers is called."""
        return self.value or COUNT

    @property
    def sentence(self) -> str:
        what = f"sums of “{self.value}”" if self.value else "counts"
        size = f"{counted(self.cells, 'cell')} over {' × '.join(self.names)}, with all totals"
        if self.given:
            return f"The source is a table of {what} already: {size}. That it adds up was checked before the charge."
        merged = f" Contributions with the same “{self.holding}” are merged first." if self.holding else ""
        whole = " Each row's number is rounded to a whole one." if self.value else ""
        return f"Rows become {what} in {size}.{whole}{merged}"


@dataclass(frozen=True)
class SuppressCells(Step):
    """Sensitive cells are left empty, and others with them, until none can be inferred too closely."""

    kind: ClassVar[str] = "suppress cells"
    title: ClassVar[str] = "Leave cells empty"

    width: int
    margin: Fraction
    weigh: str
    minimum: int | None = None
    protection: int | None = None
    dominance: Dominance | None = None
    p: Fraction | None = None
    prior: Fraction | None = None
    earlier: tuple[str, ...] = ()
    """The SHA-256 of each table that was released before and is taken into account."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.weigh not in ("values", "cells"):
            raise InvalidParameter("cells are left empty by their values or their number, and stay open by 1 at least.")
        _ = self.rules

    @property
    def rules(self) -> Rules:
        """When a cell is sensitive."""
        return Rules(self.minimum, self.dominance, self.p, self.protection, self.margin)

    @property
    def sentence(self) -> str:
        weight = "value" if self.weigh == "values" else "number of cells"
        least = f"as little is left out as could be found, by {weight}"
        tables = f" {counted(len(self.earlier), 'table')} released before are taken into account."
        before = tables if self.earlier else ""
        return (
            f"Cells are left empty that have {'; or '.join(self.rules.texts)}. Others are left empty beside them so "
            f"that none of these can be inferred too closely; {least}. The total of everything is published, and so is "
            "every cell of zero that is not sensitive: readers know that an empty count is at least 1."
            f"{before} This looks at all rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic("cell suppression", self.form), (NOT_PRIVATE,), frozenset({KNOWS_ONLY}))

    @property
    def form(self) -> tuple[tuple[str, str | tuple[str, ...]], ...]:
        """The numbers of the rules and how far cells stay open, as a guarantee of form lists them."""
        shares = () if self.dominance is None else (("dominance", (str(self.dominance.n), str(self.dominance.k))),)
        numbers = {"minimum": self.minimum, "protection": self.protection, "margin": self.margin, "p": self.p}
        numbers |= {"width": self.width, "prior": self.prior, "earlier": len(self.earlier) or None}
        return (*((name, str(number)) for name, number in numbers.items() if number is not None), *shares)

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        earlier = (_EARLIER_CELLS,) if self.earlier else ()
        claim = OpenCells(
            rules=self.rules,
            width=self.width,
            earlier=len(self.earlier),
            prior=self.prior,
            unit=basis.unit,
            theorem=(_PROTECTION_INTERVAL_WITNESSES,),
            preconditions=(*proved(_WITNESSES_ADDED_UP), *checked(_TABLE_ADDS_UP_AND_OPEN), *assumed([KNOWS_ONLY])),
            not_protected=(_CONTRIBUTORS, _SUMS, _OTHER_TABLES, *earlier, _EXACT, _MINIMALITY),
        )
        return (claim,)


@dataclass(frozen=True)
class RoundCells(Step):
    """Every cell becomes a neighboring multiple of a base, so that all totals add up."""

    kind: ClassVar[str] = "round cells"
    title: ClassVar[str] = "Round, keeping totals"

    base: int

    def __post_init__(self) -> None:
        if self.base < 2:
            raise InvalidParameter("numbers are rounded to multiples of a base of at least 2.")

    @property
    def sentence(self) -> str:
        return (
            f"Every number becomes one of the two multiples of {self.base} next to it, so that all totals add up, and "
            "the finest ones change as little as possible. This looks at all rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic("controlled rounding", (("base", str(self.base)),)), (NOT_PRIVATE,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        claim = RoundedCells(
            base=self.base,
            unit=basis.unit,
            theorem=(_CONTROLLED_ROUNDING_CHECKED,),
            preconditions=checked(_TABLE_ADDED_UP),
            not_protected=(_ROUNDED_SUMS, _AGAIN, _CONTRIBUTORS),
        )
        return (claim,)


@dataclass(frozen=True)
class PerturbCells(Step):
    """Every count gets noise that its records' keys choose."""

    kind: ClassVar[str] = "perturb cells"
    title: ClassVar[str] = "Noise by record keys"

    largest: int
    variance: Fraction
    gap: int
    record: str

    def __post_init__(self) -> None:
        _ = self.noise

    @property
    def noise(self) -> KeyNoise:
        """The table of probabilities."""
        return KeyNoise(self.largest, self.variance, self.gap)

    @property
    def keys(self) -> str:
        """How keys are made."""
        return "HMAC-SHA-256 of the record's name under the holder's secret, its first 64 bits, added up modulo 2^64"

    @property
    def sentence(self) -> str:
        gap = f" No published count is from 1 to {self.gap}." if self.gap else ""
        return (
            f"Every record, known by “{self.record}”, has a secret key; the keys of a cell's records add up to the "
            f"cell's key, which picks its noise: at most {self.largest}, with mean zero and variance {self.variance}. "
            f"Zero stays zero.{gap}"
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        terms = (("largest", str(self.largest)), ("variance", str(self.variance)), ("gap", str(self.gap)))
        return StepGuarantee(Syntactic("cell key", terms), (NOT_PRIVATE,), frozenset({SECRET, unit_assumption(unit)}))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        claim = KeyedNoise(
            largest=self.largest,
            variance=self.variance,
            gap=self.gap,
            zero_to_one=basis.numbers["zero to one"],
            unit=basis.unit,
            theorem=(_CELL_KEY_NOISE,),
            preconditions=(*proved(_RECORD_KEYS_KEYED), *assumed([SECRET, unit_assumption(basis.unit)])),
            not_protected=(_NOT_DP, _MANY, _DIFFERENCES, _ADDITIVE, _BOUNDED),
        )
        return (claim,)
