"""Demand: a criterion that a policy can name, with how it is told, claimed and counted again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim, Precondition, Status, assumed, checked, proved
from incrowd.core.claims.privacy import FEWER_PEOPLE, RECOUNTED
from incrowd.core.steps.step import unit_assumption
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.measure import Meaning, Measured

if TYPE_CHECKING:
    from incrowd.core.unit import Unit
    from incrowd.criteria.groups import Each, Groups
    from incrowd.criteria.partition import Partition
    from incrowd.criteria.recount import Recount, WrittenTable

QUASI = Assumption(
    "quasi-identifiers-complete", "people can be looked up by the quasi-identifiers and by no other column"
)
BECAUSE = Theorem(
    "counted-form", "counted in the output: a property of its form, which bounds nothing for those who know more"
)

HOMOGENEITY = Exposure(
    "homogeneity", "homogeneity: a class whose members agree in a sensitive value gives that value away"
)
INTERSECTION = Exposure("intersection", "intersection: a second release, or outside knowledge, can split classes")
MINIMALITY = Exposure(
    "minimality",
    "minimality: classes were cut by looking at all rows, so somebody who knows the method "
    "and the others' rows can conclude from where they end",
)
_HARMLESS = Exposure(
    "harmless-values", "harmless values: that somebody has one of those named as harmless is not hidden"
)

COUNTED = checked(RECOUNTED)
ALL_ROWS = proved(
    Condition(
        "classes-held-against-all-rows",
        "each class was held against all rows, those left out included, when it was made; the "
        "file alone does not show it",
    )
)
PEOPLE = (
    *proved(
        Condition(
            "classes-held-against-population",
            "each class was held against the population when it was made; the file alone does not show it",
        )
    ),
    Precondition(
        Assumption(
            "population-file-complete", "the population file has one row for each person from whom the table could come"
        ),
        Status.ASSUMED,
    ),
)

Term = int | str | tuple[str, ...]
"""What a step says of a demand: a whole number, an exact one as text, a name, or values."""


@dataclass(frozen=True, kw_only=True)
class ColumnClaim(Claim):
    """A claim about one sensitive column: the columns that make a class, the column, and which values hurt nobody."""

    rank: ClassVar[int] = 40

    columns: tuple[str, ...]
    sensitive: str
    harmless: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Form:
    """What claims about the classes of a table rest on: its columns, whom it protects, and what it leaves open.

    `left_out` is the share of the rows that may be missing from the output: only without it does the output show how
    far a class is from all rows.  `untold` names columns of which nobody is told how far their values are apart.
    """

    columns: tuple[str, ...]
    unit: Unit
    left_open: tuple[Exposure, ...]
    left_out: Fraction = Fraction(0)
    untold: frozenset[str] = frozenset()

    def basis(self, shown: tuple[Precondition, ...], left_open: tuple[Exposure, ...]) -> dict[str, Any]:
        """Return what every claim says of its columns, its unit, its conditions and its limits."""
        people = (FEWER_PEOPLE,) if self.unit.max_rows > 1 else ()
        return {
            "columns": self.columns,
            "unit": self.unit,
            "preconditions": (*shown, *assumed(form_assumptions(self.unit))),
            "not_protected": tuple(dict.fromkeys((*people, *left_open, *self.left_open, INTERSECTION))),
        }


def form_assumptions(unit: Unit) -> frozenset[Assumption]:
    """Return what must be true outside our code for the form of a table to mean anything."""
    return frozenset({QUASI, unit_assumption(unit)})


class Demand(Criterion):
    """A criterion that is known by name: in policies, in the steps of a release, in its claims and in its check.

    `keys` are the names of its parameters in a cutting step, in the order of its fields.
    """

    keys: ClassVar[tuple[str, ...]]
    claimed: ClassVar[type[Claim]]
    """The claim that a table meets it."""
    theorem: ClassVar[Theorem]
    meaning: ClassVar[Meaning]
    """What is measured of a table, and how it is bounded."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[int | str, ...]:
        """What is demanded, whole numbers as they are and others exactly, as text."""

    @abstractmethod
    def claim(self, form: Form) -> Claim:
        """Claim that every class of a table meets it."""

    @abstractmethod
    def recount(self, table: WrittenTable) -> Recount:
        """Hold a published table against it, slowly, and without what made the table."""

    @property
    def about(self) -> str:
        """What is looked at when a table is counted again."""
        return self.claimed.kind

    def terms(self) -> dict[str, int | str]:
        """Return what is demanded as a step says it."""
        return dict(zip(self.keys, self.parameters, strict=True))


class TableDemand(Demand):
    """A demand on the classes of a table, whatever is sensitive in them."""

    @abstractmethod
    def measures(self, partition: Partition) -> Iterator[Measured]:
        """Return what is measured of all classes, and how many rows fall short."""


class ColumnDemand(Demand):
    """A demand on the values that one sensitive column has in each class; values named as harmless hurt nobody."""

    option: ClassVar[str]
    """Its key in a policy."""
    general: ClassVar[bool] = False
    """Whether it can be demanded of every sensitive column at once."""
    options: ClassVar[tuple[str, ...]] = ()
    """Further names that belong to it in a cutting step."""

    everywhere: ClassVar[bool] = False
    """Whether classes of nothing but harmless values are held to it as well."""

    column: str
    harmless: frozenset[str]

    @property
    @abstractmethod
    def bound(self) -> int | Fraction:
        """What is measured is held against this."""

    @abstractmethod
    def measured(self, groups: Groups) -> Each | NDArray[np.int64]:
        """Return what is measured in each class."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def about(self) -> str:
        """What is looked at when a table is counted again."""
        return f"{self.claimed.kind} of {self.column}"

    def stated(self, form: Form, shown: tuple[Precondition, ...] = COUNTED) -> dict[str, Any]:
        """Return all that its claim says beside its own parameters."""
        named = {"sensitive": self.column, "harmless": tuple(sorted(self.harmless)) or None}
        left_open = (_HARMLESS,) if self.harmless else ()
        return {"theorem": (self.theorem,), **named, **form.basis(shown, left_open)}

    def compared(self, form: Form) -> dict[str, Any]:
        """Return the same for a claim that compares with all rows, which a file may lack some of."""
        return self.stated(form, ALL_ROWS if form.left_out else COUNTED)


def listed(value: Term) -> str:
    """Return what is demanded with lists written out, for people to read.

    >>> listed(("cold", "healthy")), listed(5)
    ('cold, healthy', '5')
    """
    return ", ".join(value) if isinstance(value, tuple | list) else str(value)


def spelled(until: Mapping[str, Term]) -> str:
    """Return demands in words.

    >>> spelled({"k": 5, "harmless of ill": ("cold", "healthy")})
    'k = 5, harmless of ill = cold, healthy'
    """
    return ", ".join(f"{name} = {listed(value)}" for name, value in until.items())
