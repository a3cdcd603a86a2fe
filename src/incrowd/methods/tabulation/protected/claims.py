"""Claims of protected tables, and the terms that they are made of: who cannot infer what, and what stays open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.claim import Claim
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.core.words import short_up
from incrowd.methods.tabulation.protected.rules import Rules

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

LARGER_COALITIONS = Exposure(
    "larger-coalitions",
    "contributors beyond the coalition that is named: more of them who share what they know, and one who subtracts "
    "their own contribution from a cell that others contribute to",
)
GIVEN_CONTRIBUTORS = Exposure(
    "contributors-of-given-table",
    "contributors to several cells: a given table does not say who they are, so that contributors to different finest "
    "cells are taken to be different ones",
)
OTHER_OUTPUTS = Exposure(
    "other-outputs",
    "other outputs of the same rows: rows, noisy or rounded tables, models and answers to queries are not counted",
)
CONTRIBUTORS = Exposure(
    "contributors",
    "contributors: a person who knows their own contribution to a cell can subtract it first, several who share theirs "
    "subtract them all, and the only contributor to a cell knows it and can infer others from it",
)
SUMS = Exposure(
    "sums-of-empty-cells",
    "sums and differences of empty cells: each cell stays open by itself, what several have together may not",
)
OTHER_TABLES = Exposure(
    "other-tables",
    "other tables of the same rows, and of numbers tied to theirs, except those of this release and those that are "
    "named as released before",
)
EARLIER_CELLS = Exposure(
    "cells-of-earlier-tables",
    "cells that were left empty in tables released before, beyond the rules of this table: those that break its rules "
    "stay open as far as it demands",
)
EXACT = Exposure(
    "published-cells",
    "published cells: they are exact, and zero says that nobody is there; where zeros are published, an empty count "
    "says that somebody is, in each finest cell of it that is not published as zero",
)
MINIMALITY = Exposure(
    "minimality-of-suppressed-cells",
    "minimality: cells were chosen by looking at all of them, so a reader who repeats the choice can exclude tables in "
    "which no cell is sensitive, or for which other cells would have been chosen",
)
ROUNDED_SUMS = Exposure(
    "narrowed-by-totals",
    "how far a number can be narrowed by those around it: totals add up, which says more than each alone",
)
AGAIN = Exposure(
    "another-rounding",
    "another rounding of the same numbers, with another base or of another table: together they say more",
)
NOT_DP = Exposure(
    "not-differential-privacy",
    "this is not differential privacy: one look at a cell tells nobody from one person with "
    "the δ stated here, whatever the ε",
)
MANY = Exposure("many-tables", "many tables: there is no bound on what they tell together")
DIFFERENCES = Exposure(
    "differing-cells",
    "two cells that differ by one person: their noise is drawn apart, and their difference speaks of that person",
)
BOUNDED = Exposure(
    "bounded-noise",
    "bounds: noise has a largest size, so that a cell, its parts and its totals narrow each other, at worst to one "
    "number; and a published count above zero says that somebody is there",
)
ADDITIVE = Exposure("totals-do-not-add-up", "totals: each has noise of its own, so they do not add up")


PROTECTION_INTERVAL_WITNESSES = Theorem(
    "protection-interval-witnesses",
    "Fischetti & Salazar 2001, by proof: for each sensitive cell, and each attacker who is named, two tables of whole "
    "numbers that have everything published, everything that attacker knows, and no zero where zeros are published and "
    "a cell above zero is empty, one as far below and one as far above the truth as the rule demands",
)
WITNESSES_ADDED_UP = Condition(
    "witnesses-added-up", "no such pair was taken from a solver: each was added up again in whole numbers"
)
TABLE_ADDS_UP_AND_OPEN = Condition(
    "table-adds-up-and-open", "the written table adds up, and leaves every empty cell open"
)
CONTROLLED_ROUNDING_CHECKED = Theorem(
    "controlled-rounding-checked", "Cox 1987, checked: rounded to neighboring multiples, with all totals"
)
TABLE_ADDED_UP = Condition("table-added-up", "the written table was added up again")
CELL_KEY_NOISE = Theorem(
    "cell-key-noise", "Marley & Leaver 2011: the noise of largest entropy with these bounds, mean and variance"
)
RECORD_KEYS_KEYED = Condition(
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
    coalition: int
    zeros: str
    prior: Fraction | None = None
    tables: int = 1
    weighted: bool = False
    bounds: tuple[Fraction, Fraction] | None = None

    @property
    def sentence(self) -> str:
        before = f" and the {self.earlier} released before" if self.earlier else ""
        these = "this table" if self.tables == 1 else f"all {self.tables} tables of this release"
        return (
            f"Someone who knows only {these}{before}, the rules, and {self._bounds}, cannot infer a sensitive cell "
            f"more closely than its protection interval, which {self._ends}; {self._contributors}the least and the "
            f"largest number that an empty cell can have are at least {self.width} apart for readers. A cell is "
            f"sensitive by these rules: {'; '.join(self.rules.texts)}."
            f"{self._contributions}"
        )

    @property
    def _ends(self) -> str:
        """How far a protection interval reaches."""
        if self.bounds is not None:
            return "does not reach beyond the bounds of its rows"
        return "does not reach below the number of finest cells above zero in it"

    @property
    def _contributions(self) -> str:
        """What the rules look at, where it is not plain contributions."""
        weighted = " Contributions are weighted, and contributors are counted without weights."
        signs = " Negative contributions count without their sign, and so does what they are a share of."
        return (weighted if self.weighted else "") + (signs if self.bounds is not None else "")

    @property
    def _contributors(self) -> str:
        """Who else cannot infer it."""
        who = (
            "any two contributors who share what they know:" if self.coalition > 1 else "one contributor who also knows"
        )
        return f"nor can {who} each cell to which nobody else contributed, exactly; " if self.coalition else ""

    @property
    def _bounds(self) -> str:
        """What everybody is taken to know beside the published cells."""
        least = "that numbers are whole and not negative"
        if self.bounds is not None:
            rows = "the weights of its rows added up" if self.weighted else "its number of rows"
            low, high = self.bounds
            least = (
                f"of every finest cell {rows}, that each row's number is from {low} to {high}, and that sums are whole"
            )
        if self.zeros == "published":
            least += ", and that a cell of zero is suppressed only if it is sensitive"
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
