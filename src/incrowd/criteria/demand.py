"""Demand: a criterion that a policy can name, with its terms, its claim and its recount."""

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
from incrowd.core.rounding import exact
from incrowd.core.steps.step import unit_assumption
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.measure import Meaning, Measured

if TYPE_CHECKING:
    from incrowd.core.unit import Unit
    from incrowd.criteria.groups import Groups, PerGroup
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
        "each class was compared with all rows, suppressed ones included, when it was made; the "
        "file alone does not show it",
    )
)
PEOPLE = (
    *proved(
        Condition(
            "classes-held-against-population",
            "each class was compared with the population when it was made; the file alone does not show it",
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
"""A parameter of a demand in a step: an integer, an exact number as text, a name, or values."""


@dataclass(frozen=True, kw_only=True)
class ColumnClaim(Claim):
    """A claim about one sensitive column: the columns that define classes, the column, and its harmless values."""

    rank: ClassVar[int] = 40

    columns: tuple[str, ...]
    sensitive: str
    harmless: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Form:
    """What claims about the classes of a table depend on: its columns, its unit, and its exposures.

    `left_out` is the share of the rows that may be missing from the output: only if it is 0 does the output show how
    far a class is from all rows.  `untold` names columns for which the distances of values are not published.
    """

    columns: tuple[str, ...]
    unit: Unit
    left_open: tuple[Exposure, ...]
    left_out: Fraction = Fraction(0)
    untold: frozenset[str] = frozenset()

    def basis(self, conditions: tuple[Precondition, ...], left_open: tuple[Exposure, ...]) -> dict[str, Any]:
        """Return the columns, the unit, the conditions and the exposures of every claim."""
        people = (FEWER_PEOPLE,) if self.unit.max_rows > 1 else ()
        return {
            "columns": self.columns,
            "unit": self.unit,
            "preconditions": (*conditions, *assumed(form_assumptions(self.unit))),
            "not_protected": tuple(dict.fromkeys((*people, *left_open, *self.left_open, INTERSECTION))),
        }


def form_assumptions(unit: Unit) -> frozenset[Assumption]:
    """Return the assumptions under which the form of a table protects anybody."""
    return frozenset({QUASI, unit_assumption(unit)})


class Demand(Criterion):
    """A criterion with a name in policies, steps, claims and checks.

    `keys` are the names of its parameters in a step, in the order of its fields.
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
        """The parameters, integers unchanged and other numbers exactly, as text."""

    @abstractmethod
    def claim(self, form: Form) -> Claim:
        """Claim that every class of a table meets it."""

    @abstractmethod
    def recount(self, table: WrittenTable) -> Recount:
        """Check a published table slowly, without the code that made it."""

    @property
    def about(self) -> str:
        """The name of this check when a table is recounted."""
        return self.claimed.kind

    def terms(self) -> dict[str, int | str]:
        """Return the parameters by the keys of a step."""
        return dict(zip(self.keys, self.parameters, strict=True))


class TableDemand(Demand):
    """A demand on the classes of a table that reads no sensitive column."""

    @abstractmethod
    def measures(self, partition: Partition) -> Iterator[Measured]:
        """Yield the measured values of all classes, and how many rows do not meet them."""


class ColumnDemand(Demand):
    """A demand on the values of one sensitive column in each class; values listed as harmless need no protection."""

    option: ClassVar[str]
    """Its key in a policy."""
    general: ClassVar[bool] = False
    """Whether it can be demanded of every sensitive column at once."""
    options: ClassVar[tuple[str, ...]] = ()
    """Further keys that belong to it in a step."""

    everywhere: ClassVar[bool] = False
    """Whether classes with nothing but harmless values must meet it as well."""

    column: str
    harmless: frozenset[str]

    parameter: ClassVar[str] = ""
    """The field with its one parameter, where it has one."""

    @property
    def bound(self) -> int | Fraction:
        """The number that the measured value is compared with."""
        return exact(vars(self)[self.parameter])

    @property
    def parameters(self) -> tuple[int | str, ...]:
        return (str(self.bound),)

    @abstractmethod
    def measured(self, groups: Groups) -> PerGroup | NDArray[np.int64]:
        """Return what is measured in each class."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def about(self) -> str:
        return f"{self.claimed.kind} of {self.column}"

    def stated(self, form: Form, conditions: tuple[Precondition, ...] = COUNTED) -> dict[str, Any]:
        """Return all fields of its claim except its own parameters."""
        named = {"sensitive": self.column, "harmless": tuple(sorted(self.harmless)) or None}
        left_open = (_HARMLESS,) if self.harmless else ()
        return {"theorem": (self.theorem,), **named, **form.basis(conditions, left_open)}

    def compared(self, form: Form) -> dict[str, Any]:
        """Return the same for a claim that compares with all rows, some of which a file may lack."""
        return self.stated(form, ALL_ROWS if form.left_out else COUNTED)


def listed(value: Term) -> str:
    """Return a parameter as text.

    >>> listed(("cold", "healthy")), listed(5)
    ('cold, healthy', '5')
    """
    return ", ".join(value) if isinstance(value, tuple | list) else str(value)


def spelled(until: Mapping[str, Term]) -> str:
    """Return demands as text.

    >>> spelled({"k": 5, "harmless of ill": ("cold", "healthy")})
    'k = 5, harmless of ill = cold, healthy'
    """
    return ", ".join(f"{name} = {listed(value)}" for name, value in until.items())
