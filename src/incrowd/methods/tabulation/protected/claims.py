"""Claims about protected tables: what stays open of an empty cell, what rounding keeps, what noise is and is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.claim import Claim, assumed, checked, proved
from incrowd.core.steps.step import unit_assumption
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.core.unit import Unit
from incrowd.core.words import short_up
from incrowd.methods.tabulation.rules import Rules

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
    prior: Fraction | None = None
    earlier: int

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
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
        return (
            least
            if self.prior is None
            else f"{least}, and every finest cell up to {self.prior} of its value up or down"
        )


@dataclass(frozen=True, kw_only=True)
class RoundedCells(Claim):
    """All numbers are rounded, and add up."""

    kind = "controlled rounding"
    rank: ClassVar[int] = 40

    base: int

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
        return (
            f"Every published number is a multiple of {self.base}, less than {self.base} away from the true one, and "
            "all totals are the sums of what they are totals of."
        )


@dataclass(frozen=True, kw_only=True)
class KeyedNoise(Claim):
    """Noise that hangs on who is in a cell."""

    kind = "cell key"
    rank: ClassVar[int] = 40
    numbers: ClassVar[Mapping[str, str]] = {"zero_to_one": "zero to one"}

    largest: int
    variance: Fraction
    gap: int
    zero_to_one: Decimal

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
        gap = f", and no published count is from 1 to {self.gap}" if self.gap else ""
        return (
            f"Every count that is not zero has noise of at most {self.largest}, with mean zero and variance "
            f"{self.variance}{gap}; the same records get the same noise in every table. This is not differential "
            f"privacy: one look at a cell tells no one from one person with δ = {short_up(self.zero_to_one)}, at any ε."
        )


def open_cells(rules: Rules, width: int, prior: Fraction | None, earlier: int, unit: Unit) -> OpenCells:
    """Return the claim of a suppressed table."""
    return OpenCells(
        rules=rules,
        width=width,
        prior=prior,
        earlier=earlier,
        unit=unit,
        theorem=(_PROTECTION_INTERVAL_WITNESSES,),
        preconditions=(
            *proved(_WITNESSES_ADDED_UP),
            *checked(_TABLE_ADDS_UP_AND_OPEN),
            *assumed([KNOWS_ONLY]),
        ),
        not_protected=(
            *(_CONTRIBUTORS, _SUMS, _OTHER_TABLES),
            *((_EARLIER_CELLS,) if earlier else ()),
            *(_EXACT, _MINIMALITY),
        ),
    )


def rounded_cells(base: int, unit: Unit) -> RoundedCells:
    """Return the claim of a rounded table."""
    return RoundedCells(
        base=base,
        unit=unit,
        theorem=(_CONTROLLED_ROUNDING_CHECKED,),
        preconditions=checked(_TABLE_ADDED_UP),
        not_protected=(_ROUNDED_SUMS, _AGAIN, _CONTRIBUTORS),
    )


def keyed_noise(largest: int, variance: Fraction, gap: int, zero_to_one: Decimal, unit: Unit) -> KeyedNoise:
    """Return the claim of a perturbed table."""
    return KeyedNoise(
        largest=largest,
        variance=variance,
        gap=gap,
        zero_to_one=zero_to_one,
        unit=unit,
        theorem=(_CELL_KEY_NOISE,),
        preconditions=(
            *proved(_RECORD_KEYS_KEYED),
            *assumed([SECRET, unit_assumption(unit)]),
        ),
        not_protected=(_NOT_DP, _MANY, _DIFFERENCES, _ADDITIVE, _BOUNDED),
    )
