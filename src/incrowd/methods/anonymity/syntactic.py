"""What a table of a certain form claims, and which attacks it leaves open: an honest name, and no epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.criteria.closeness import EqualCloseness, OrderedCloseness
from incrowd.core.criteria.criterion import Criterion
from incrowd.core.criteria.crowds import KAnonymity
from incrowd.core.criteria.diversity import DistinctDiversity, EntropyDiversity
from incrowd.core.domain import Dates, Numbers
from incrowd.core.loss import Syntactic
from incrowd.core.schema import Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.crowds.safe_claims import PERSON_COLUMN, ROW_IS_PERSON

QUASI = "people can be looked up by the quasi-identifiers and by no other column"
BECAUSE = "counted in the output: a property of its form, which bounds nothing for those who know more"

HOMOGENEITY = "homogeneity: a class whose members agree in a sensitive value gives that value away"
EXTREMES = "extremes: a range shows the least and the greatest value in it, and they are somebody's"
INTERSECTION = "intersection: a second release, or outside knowledge, can split classes"
MINIMALITY = (
    "minimality: classes were cut by looking at all rows, so somebody who knows the method and the others' rows "
    "can conclude from where they end"
)


@dataclass(frozen=True)
class Demands:
    """What every class of rows that look alike must meet: k rows, and for each sensitive column the rest.

    `coarse` names sensitive columns that are released above their values: their labels are equally far apart, while
    numbers and dates are as far apart as their places in order.

    >>> Demands(5, distinct=3).told()
    {'k': 5, 'l': 3}
    """

    k: int
    distinct: int | None = None
    entropy: Fraction | None = None
    t: Fraction | None = None
    coarse: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse demands that no class can have, or that every class meets by definition of the words."""
        if self.k < 1:
            raise InvalidParameter("a class needs k of at least 1.")
        if self.distinct is not None and self.distinct < 1:
            raise InvalidParameter("l is at least 1: with 1, every class passes.")
        if self.entropy is not None and self.entropy < 1:
            raise InvalidParameter("entropy_l is at least 1: with 1, every class passes.")
        if self.t is not None and not 0 <= self.t <= 1:
            raise InvalidParameter("t lies between 0 (every class is like the whole table) and 1.")

    def told(self) -> dict[str, Any]:
        """Return the demands as they stand in certificates."""
        named = {"k": self.k, "l": self.distinct, "entropy l": self.entropy, "t": self.t}
        return {name: _plain(value) for name, value in named.items() if value is not None}

    def criteria(self, schema: Schema) -> list[Criterion]:
        """Return the criteria: each about one sensitive column, or about all rows."""
        found: list[Criterion] = [KAnonymity(self.k)]
        for column in self.about(schema):
            if self.distinct is not None:
                found.append(DistinctDiversity(column, self.distinct))
            if self.entropy is not None:
                found.append(EntropyDiversity(column, self.entropy))
            if self.t is not None:
                ordered = self.in_order(schema, column)
                found.append((OrderedCloseness if ordered else EqualCloseness)(column, self.t))
        return found

    def in_order(self, schema: Schema, column: str) -> bool:
        """Return whether the values of a sensitive column lie in order."""
        return column not in self.coarse and isinstance(schema[column].domain, Numbers | Dates)

    def about(self, schema: Schema) -> tuple[str, ...]:
        """Return the sensitive columns that something is demanded of, or refuse a demand without such a column."""
        if all(each is None for each in (self.distinct, self.entropy, self.t)):
            return ()
        columns = tuple(column.name for column in schema.released if column.role is Role.SENSITIVE)
        if not columns:
            raise InvalidParameter("l and t are about sensitive columns: give a column the role sensitive.")
        return columns

    def loss(self, schema: Schema) -> Syntactic:
        """Return the loss: an honest name for all of it."""
        told = tuple((name, str(value)) for name, value in self.told().items())
        drafted = (("drafted from rows", ", ".join(schema.drafted)),) if schema.drafted else ()
        return Syntactic("k-anonymity", (*told, *drafted))


@dataclass(frozen=True)
class Form:
    """Which columns make a class, and what attacks the method leaves open beside those of every such table."""

    quasi: tuple[str, ...]
    left_open: tuple[str, ...] = field(default=(EXTREMES, MINIMALITY))


def quasi_identifiers(schema: Schema) -> tuple[str, ...]:
    """Return the columns that make a class, or refuse a schema without one."""
    found = tuple(column.name for column in schema.released if column.role is Role.QUASI)
    if not found:
        raise InvalidParameter("no column can be looked up: give at least one column the role quasi.")
    return found


def assumptions(unit: Unit) -> frozenset[str]:
    """Return what must be true outside our code for the form of a table to mean anything."""
    return frozenset({QUASI, PERSON_COLUMN if unit.kind is Kind.PERSON else ROW_IS_PERSON})


def claims(demands: Demands, form: Form, schema: Schema) -> tuple[Claim, ...]:
    """Return a claim for each demand, k-anonymity first."""
    unit, columns = schema.unit, list(form.quasi)
    several = {"people": math.ceil(demands.k / unit.max_rows)} if unit.max_rows > 1 else {}
    made = [_claim("k-anonymity", {"k": demands.k, "columns": columns, **several}, _K, form, unit)]
    for column in demands.about(schema):
        about = {"columns": columns, "sensitive": column}
        if demands.distinct is not None:
            made.append(_claim("distinct l-diversity", {"l": demands.distinct, **about}, _DISTINCT, form, unit))
        if demands.entropy is not None:
            made.append(_claim("entropy l-diversity", {"l": _plain(demands.entropy), **about}, _ENTROPY, form, unit))
        if demands.t is not None:
            distance = "ordered" if demands.in_order(schema, column) else "equal"
            given = {"t": _plain(demands.t), "distance": distance, **about}
            made.append(_claim("t-closeness", given, _CLOSE, form, unit))
    return tuple(made)


_K = "Samarati & Sweeney 1998, counted: every combination of the quasi-identifiers occurs at least k times"
_DISTINCT = "Machanavajjhala et al. 2006, counted: every class shows at least l values of the sensitive column"
_ENTROPY = "Machanavajjhala et al. 2006, Definition 4.1, counted: the entropy of every class is at least ln l"
_CLOSE = "Li, Li & Venkatasubramanian 2007, counted: no class is further than t from the whole table"


def _claim(kind: str, given: Mapping[str, Any], theorem: str, form: Form, unit: Unit) -> Claim:
    conditions: Sequence[Precondition] = (
        Precondition("the written output was counted again", Status.CHECKED),
        *(Precondition(text, Status.ASSUMED) for text in sorted(assumptions(unit))),
    )
    people = ["k counts rows: a class may be as few people as `people` says"] if unit.max_rows > 1 else []
    homogeneous = [HOMOGENEITY] if kind == "k-anonymity" else []
    open_ = (*people, *homogeneous, *form.left_open, INTERSECTION)
    return Claim(kind, dict(given), str(unit), theorem, tuple(conditions), open_)


def _plain(value: int | Fraction) -> int | str:
    return value if isinstance(value, int) else str(value)
