"""Steps: single cells are left out until enough rows agree; claims in which sense of missing they do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Anonymity
from incrowd.core.loss import Syntactic
from incrowd.core.steps.rows import Arrange
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.core.terms import Exposure, Theorem
from incrowd.core.words import counted
from incrowd.criteria.demand import BECAUSE, COUNTED, HOMOGENEITY, Form, form_assumptions, spelled
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

CHOICE = Exposure(
    "minimality-of-missing-cells",
    "minimality: which cells are missing was chosen by looking at all rows, so somebody who "
    "knows the method and the others' rows can conclude from a missing cell what it was not",
)
MATCHES = Exposure(
    "matching",
    "matching: a missing cell counts as if it could be any value; somebody who knows what it "
    "was sees fewer rows that could be a person's, perhaps only one",
)
BLANK = Exposure(
    "optimism",
    "optimism: a row that shows little counts for everyone, so rows that show everything may "
    "be counted in a crowd and yet be the only ones of their kind",
)
_SOME = Theorem(
    "subset-anonymity-counted",
    "counted: every combination of values in any so many of the quasi-identifiers occurs at least k times",
)
_WILD = Theorem(
    "wildcard-anonymity-counted",
    "counted as in statistical disclosure control: at least k rows match each row, a missing cell matching anything",
)
_WILD_SOME = Theorem(
    "subset-wildcard-anonymity-counted",
    "counted: in any so many of the quasi-identifiers at least k rows match each row, missing matching anything",
)
_ANY = "k of any "


class MissingCells(StrEnum):
    """In which sense rows with missing cells agree with others."""

    VALUE = "value"
    MATCHES = "matches"


@dataclass(frozen=True, kw_only=True)
class SubsetsClaim(Claim):
    """Nothing that is published in a few columns is rare."""

    kind = "k-anonymity of subsets"
    sentence = "Each combination of values in any so many of the named columns occurs at least k times."
    rank: ClassVar[int] = 31

    k: int
    size: int
    columns: tuple[str, ...]
    people: int | None = None


@dataclass(frozen=True, kw_only=True)
class WildcardsClaim(Claim):
    """Each row matches others, if a missing cell could be anything."""

    kind = "k-anonymity with wildcards"
    sentence = (
        "At least k rows match each row, if an empty cell matches anything. Whoever knows what an empty cell was sees "
        "fewer."
    )
    rank: ClassVar[int] = 30

    k: int
    columns: tuple[str, ...]
    people: int | None = None


@dataclass(frozen=True, kw_only=True)
class WildSubsetsClaim(SubsetsClaim):
    """Each row matches others in a few columns, if a missing cell could be anything."""

    kind = "k-anonymity of subsets with wildcards"
    sentence = "At least k rows match each row in any so many of the named columns, if an empty cell matches anything."


@dataclass(frozen=True)
class LeaveOutCells(Step):
    """Cells are left empty until so many rows agree, in all columns and in any so many of them."""

    kind: ClassVar[str] = "leave out cells"
    title: ClassVar[str] = "Leave out cells"

    columns: tuple[str, ...]
    until: Mapping[str, int]
    missing: MissingCells
    importance: Mapping[str, Fraction]

    def __post_init__(self) -> None:
        sizes = self.subsets
        known = {"k": self.k, **{f"{_ANY}{size}": k for size, k in sizes.items()}}
        if dict(self.until) != known or min(known.values()) < 1:
            raise InvalidParameter("k below 1 says nothing, and something else is demanded that is not known here.")
        if any(not 1 <= size <= len(self.columns) for size in sizes):
            raise InvalidParameter("subsets have from one column to all of them.")
        if not set(self.importance) <= set(self.columns) or any(each <= 0 for each in self.importance.values()):
            raise InvalidParameter("the importance of a column is above 0, and of no other columns.")

    @property
    def k(self) -> int:
        """How many rows agree in all columns."""
        return self.until["k"]

    @property
    def subsets(self) -> dict[int, int]:
        """How many rows agree in any so many columns, by their number."""
        named = {name.removeprefix(_ANY): k for name, k in self.until.items() if name.startswith(_ANY)}
        return {size: named[str(size)] for size in sorted(map(int, named))}

    @property
    def wild(self) -> bool:
        """Whether a missing cell matches every value."""
        return self.missing is MissingCells.MATCHES

    @property
    def terms(self) -> dict[str, int]:
        """What is demanded, in order."""
        return demanded(self.k, self.subsets)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        columns = counted(len(self.columns), "quasi-identifier")
        sense = "matches anything" if self.wild else "is a value of its own"
        return (
            f"Cells of {columns} are left empty until {spelled(self.terms)}, where an empty cell {sense}. Which cells "
            "those are was chosen by looking at all rows; all others stay as they are."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee a form, and nothing to those who know more."""
        if inner.loss is not None:
            return inner
        name = WildcardsClaim.kind if self.wild else Anonymity.kind
        terms = tuple((key, str(value)) for key, value in self.terms.items())
        return StepGuarantee(Syntactic(name, terms), (BECAUSE,), form_assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim it of all quasi-identifiers and of each size of subsets; beside these, k of 1 is no claim."""
        wild = (MATCHES, BLANK) if self.wild else ()
        form = Form(self.columns, basis.unit, (CHOICE,)).basis(COUNTED, (*wild, HOMOGENEITY))
        subsets = (self._subset(size, k, basis.unit, form) for size, k in self.subsets.items())
        whole = (self._whole(basis.unit, form),) if self.k > 1 or not self.subsets else ()
        return (*whole, *subsets)

    def _whole(self, unit: Unit, form: Mapping[str, Any]) -> Claim:
        people = people_of(self.k, unit)
        if self.wild:
            return WildcardsClaim(k=self.k, people=people, theorem=(_WILD,), **form)
        return Anonymity(k=self.k, people=people, theorem=(KAnonymity.theorem,), **form)

    def _subset(self, size: int, k: int, unit: Unit, form: Mapping[str, Any]) -> Claim:
        people = people_of(k, unit)
        if self.wild:
            return WildSubsetsClaim(k=k, size=size, people=people, theorem=(_WILD_SOME,), **form)
        return SubsetsClaim(k=k, size=size, people=people, theorem=(_SOME,), **form)


@dataclass(frozen=True)
class ArrangeBlanks(Arrange):
    """Rows are published in the order of their values, missing cells last."""

    kind: ClassVar[str] = "arrange with missing cells"


def demanded(k: int, subsets: Mapping[int, int]) -> dict[str, int]:
    """Return how many rows agree, in all columns and in any so many, as steps say it.

    >>> demanded(5, {2: 9})
    {'k': 5, 'k of any 2': 9}
    """
    return {"k": k, **{f"{_ANY}{size}": subsets[size] for size in sorted(subsets)}}


def people_of(k: int, unit: Unit) -> int | None:
    """Return how few people k rows may be; None where each has one row."""
    return math.ceil(k / unit.max_rows) if unit.max_rows > 1 else None
