"""Steps and claims: rows become a table with totals, whose cells are suppressed, rounded, or get noise by keys."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.claim import Claim, assumed, checked, proved
from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, unit_assumption
from incrowd.core.unit import Unit
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.protected.claims import (
    ADDITIVE,
    AGAIN,
    BOUNDED,
    CELL_KEY_NOISE,
    CONTRIBUTORS,
    CONTROLLED_ROUNDING_CHECKED,
    DIFFERENCES,
    EARLIER_CELLS,
    EXACT,
    GIVEN_CONTRIBUTORS,
    KNOWS_ONLY,
    LARGER_COALITIONS,
    MANY,
    MINIMALITY,
    NOT_DP,
    NOT_PRIVATE,
    OTHER_OUTPUTS,
    OTHER_TABLES,
    PROTECTION_INTERVAL_WITNESSES,
    RECORD_KEYS_KEYED,
    ROUNDED_SUMS,
    SECRET,
    SUMS,
    TABLE_ADDED_UP,
    TABLE_ADDS_UP_AND_OPEN,
    WITNESSES_ADDED_UP,
    KeyedNoise,
    OpenCells,
    RoundedCells,
)
from incrowd.methods.tabulation.protected.frame import TableFrame, Whole, union
from incrowd.methods.tabulation.protected.perturbation import KeyNoise, NearTable, round_cells
from incrowd.methods.tabulation.protected.publication import document_names
from incrowd.methods.tabulation.protected.rules import Dominance, Rules

COUNT = "count"


@dataclass(frozen=True)
class Tabulate(Step):
    """Rows become counts or sums over a cross of columns, with all totals; or the rows are such a table already."""

    kind: ClassVar[str] = "tabulate"
    title: ClassVar[str] = "Make a table with totals"
    glyph: ClassVar[str | None] = "coarser"

    tables: tuple[TableFrame, ...]
    value: str | None = None
    holding: str | None = None
    given: bool = False
    weight: str | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    """Between which numbers each contribution lies, where it can be negative."""

    @property
    def open_columns(self) -> tuple[str, ...]:
        return self.names

    def __post_init__(self) -> None:
        if (self.bounds is not None and not self.bounds[0] < 0 <= self.bounds[1]) or (self.given and self.weight):
            raise InvalidParameter(
                "numbers that can be negative lie between stated bounds, and only rows have weights."
            )
        if not self.tables or not all(1 <= len(table.axes) <= 3 for table in self.tables):
            raise InvalidParameter("a protected table has one to three columns beside its numbers.")
        union(self.tables)

    @property
    def cells(self) -> int:
        """How many cells there are; one that two tables share counts in each."""
        return sum(table.size for table in self.tables)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns beside the numbers, each once."""
        return tuple(dict.fromkeys(axis.column for table in self.tables for axis in table.axes))

    @property
    def number(self) -> str:
        """What the column of numbers is called."""
        return self.value or COUNT

    @property
    def counting(self) -> bool:
        """Whether every row counts as one."""
        return self.value is None and self.weight is None

    @property
    def sentence(self) -> str:
        what = f"sums of “{self.value}”" if self.value else "counts"
        what += f", each row times its “{self.weight}”," if self.weight else ""
        crosses = ", ".join(table.columns for table in self.tables)
        size = f"{counted(self.cells, 'cell')} over {crosses}, with all totals"
        if self.given:
            return f"The source is a table of {what} already: {size}. That it adds up was checked before the charge."
        merged = f" Contributions with the same “{self.holding}” are merged first." if self.holding else ""
        whole = " Each row's number is rounded to a whole one." if self.value or self.weight else ""
        several = f"{counted(len(self.tables), 'table')} of {what}: " if len(self.tables) > 1 else f"{what} in "
        return f"Rows become {several}{size}.{whole}{merged}"


@dataclass(frozen=True)
class SuppressCells(Step):
    """Sensitive cells are left empty, and others with them, until none can be inferred too closely."""

    kind: ClassVar[str] = "suppress cells"
    title: ClassVar[str] = "Leave cells empty"

    width: int
    margin: Fraction
    weigh: str
    coalition: int
    zeros: str
    minimum: int | None = None
    protection: int | None = None
    dominance: Dominance | None = None
    p: Fraction | None = None
    prior: Fraction | None = None
    earlier: tuple[str, ...] = ()
    """The SHA-256 of each table that was released before and is taken into account."""
    open: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    tables: int = 1
    """How many tables are protected together, and published."""
    q: Fraction | None = None

    def __post_init__(self) -> None:
        if self.width < 1 or self.weigh not in ("values", "cells", "levels"):
            raise InvalidParameter("cells are left empty by value, number or level, and stay open by 1 at least.")
        if self.coalition not in (0, 1, 2) or self.zeros not in ("published", "suppressible"):
            raise InvalidParameter("at most two contributors share, and zeros are published or suppressible.")
        _ = self.rules

    @property
    def documents(self) -> tuple[str, ...]:
        """The files that are published beside the tables."""
        return document_names(self.tables)

    @property
    def rules(self) -> Rules:
        """When a cell is sensitive."""
        return Rules(self.minimum, self.dominance, self.p, self.protection, self.margin, self.q)

    @property
    def sentence(self) -> str:
        weight = {"values": "value", "cells": "number of cells", "levels": "number of finest cells"}[self.weigh]
        least = f"as little is left out as could be found, by {weight}, first totals last"
        tables = f" {counted(len(self.earlier), 'table')} released before are taken into account."
        before = tables if self.earlier else ""
        if self.tables > 1:
            before = f" A cell that two of the {self.tables} tables share is empty in both or in none.{before}"
        return (
            f"Cells are left empty that have {'; or '.join(self.rules.texts)}. Others are left empty beside them so "
            f"that none of these can be inferred too closely; {least}. The total of everything is published"
            f"{self._always}{before} This looks at all rows."
        )

    @property
    def _always(self) -> str:
        """What else is published whatever happens, and what is not if anything is."""
        zeros = ", and so is every cell of zero that is not sensitive: readers know that an empty count is at least 1."
        stays = f" Always published: {'; '.join(self.open)}." if self.open else ""
        first = f" Left empty before others: {'; '.join(self.empty)}." if self.empty else ""
        return (zeros if self.zeros == "published" else "; zeros can be left empty.") + stays + first

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic("cell suppression", self.form), (NOT_PRIVATE,), frozenset({KNOWS_ONLY}))

    @property
    def form(self) -> tuple[tuple[str, str | tuple[str, ...]], ...]:
        """The numbers of the rules and how far cells stay open, as a guarantee of form lists them."""
        shares = () if self.dominance is None else (("dominance", (str(self.dominance.n), str(self.dominance.k))),)
        numbers = {
            "minimum": self.minimum,
            "protection": self.protection,
            "margin": self.margin,
            "p": self.p,
            "q": self.q,
        }
        numbers |= {"width": self.width, "prior": self.prior, "earlier": len(self.earlier) or None}
        numbers |= {"coalition": self.coalition, "tables": self.tables if self.tables > 1 else None}
        return (*((name, str(number)) for name, number in numbers.items() if number is not None), *shares)

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        earlier = (EARLIER_CELLS,) if self.earlier else ()
        made = basis.need(Tabulate)
        given = (GIVEN_CONTRIBUTORS,) if made.given and made.value is not None and self.coalition else ()
        who = LARGER_COALITIONS if self.coalition else CONTRIBUTORS
        claim = OpenCells(
            rules=self.rules,
            width=self.width,
            earlier=len(self.earlier),
            coalition=self.coalition,
            zeros=self.zeros,
            prior=self.prior,
            tables=self.tables,
            weighted=made.weight is not None,
            bounds=made.bounds,
            unit=basis.unit,
            theorem=(PROTECTION_INTERVAL_WITNESSES,),
            preconditions=(*proved(WITNESSES_ADDED_UP), *checked(TABLE_ADDS_UP_AND_OPEN), *assumed([KNOWS_ONLY])),
            not_protected=(who, *given, SUMS, OTHER_TABLES, OTHER_OUTPUTS, *earlier, EXACT, MINIMALITY),
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
    def documents(self) -> tuple[str, ...]:
        """The files that are published beside the table."""
        return document_names(1)

    @property
    def sentence(self) -> str:
        return (
            f"Every number becomes one of the two multiples of {self.base} next to it, so that all totals add up, and "
            "the finest ones change as little as could be found. This looks at all rows."
        )

    def near(self, frame: TableFrame, leaves: Whole) -> NearTable:
        """Return the rounded cells."""
        return round_cells(frame, leaves, self.base)

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic("controlled rounding", (("base", str(self.base)),)), (NOT_PRIVATE,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        claim = RoundedCells(
            base=self.base,
            unit=basis.unit,
            theorem=(CONTROLLED_ROUNDING_CHECKED,),
            preconditions=checked(TABLE_ADDED_UP),
            not_protected=(ROUNDED_SUMS, AGAIN, CONTRIBUTORS),
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
    tables: int = 1

    def __post_init__(self) -> None:
        _ = self.noise

    @property
    def documents(self) -> tuple[str, ...]:
        """The files that are published beside the tables."""
        return document_names(self.tables)

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
            theorem=(CELL_KEY_NOISE,),
            preconditions=(*proved(RECORD_KEYS_KEYED), *assumed([SECRET, unit_assumption(basis.unit)])),
            not_protected=(NOT_DP, MANY, DIFFERENCES, ADDITIVE, BOUNDED),
        )
        return (claim,)
