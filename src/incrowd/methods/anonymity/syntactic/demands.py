"""Demands: all that the classes of a released table must meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from incrowd.core.domain import Dates, Numbers, Type
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Role, Schema
from incrowd.criteria.average_risk import AverageRisk
from incrowd.criteria.catalog import in_order
from incrowd.criteria.demand import Demand, Term, listed
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.criteria.recount import Places
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.syntactic.population import Population, Unique
from incrowd.methods.anonymity.syntactic.sensitive import Distance, Sensitive

_LISTED = 1000


@dataclass(frozen=True)
class Demands:
    """What every class of rows that look alike must meet: k rows, and for each sensitive column the rest.

    What is demanded of one sensitive column by name takes the place of what is demanded of all.  `levels` tell at which
    level each is released; `coarse` names further ones that are shown above their values.  Labels are equally far
    apart, while numbers and dates are as far apart as their places in order, unless a distance is named.

    >>> Demands(5, distinct=3, sensitive={"ill": Sensitive(t=Fraction(1, 5))}).terms()
    {'k': 5, 'l': 3, 't of ill': '1/5'}
    """

    k: int
    distinct: int | None = None
    entropy: Fraction | None = None
    t: Fraction | None = None
    coarse: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    sensitive: Mapping[str, Sensitive] = field(default_factory=dict)
    average_risk: Fraction | None = None
    unique: Unique | None = None
    population: Population | None = None

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
        self._together()

    def terms(self) -> dict[str, Term]:
        """Return the demands as they stand in certificates; those on one column carry its name."""
        terms: dict[str, Term] = {**KAnonymity(self.k).terms(), **self.general.terms()}
        for criterion in self._together():
            terms |= criterion.terms()
        for column, demanded in self.sensitive.items():
            terms |= {f"{name} of {column}": value for name, value in demanded.terms().items()}
        return in_order(terms, tuple(self.sensitive))

    def criteria(self, schema: Schema) -> list[Demand]:
        """Return the criteria: each about one sensitive column, or about all rows."""
        found: list[Demand] = [KAnonymity(self.k)]
        for column in self.about(schema):
            found += self.of(column).criteria(column, self.distance(schema, column))
        return [*found, *self._together()]

    @property
    def general(self) -> Sensitive:
        """What is demanded of every sensitive column."""
        return Sensitive(l=self.distinct, entropy_l=self.entropy, t=self.t)

    def of(self, column: str) -> Sensitive:
        """Return what is demanded of one sensitive column."""
        return self.sensitive.get(column, Sensitive()).or_else(self.general)

    def in_order(self, schema: Schema, column: str) -> bool:
        """Return whether the values of a sensitive column lie in order."""
        coarse = column in self.coarse or self.levels.get(column, 0)
        return not coarse and isinstance(schema[column].domain, Numbers | Dates)

    def distance(self, schema: Schema, column: str) -> Distance:
        """Return how far apart the values of a sensitive column are: as named, or else by their type."""
        named = self.of(column).distance
        return named if named is not None else "ordered" if self.in_order(schema, column) else "equal"

    def about(self, schema: Schema) -> tuple[str, ...]:
        """Return the sensitive columns that something is demanded of, or refuse a demand without such a column."""
        columns = tuple(column.name for column in schema.released if column.role is Role.SENSITIVE)
        for name in self.sensitive:
            if schema[name].name not in columns:
                raise InvalidParameter(
                    f"{name!r} is demanded to be diverse or close but is of role {schema[name].role}: "
                    "give it the role sensitive, or leave it out."
                )
        if self.general.any and not columns:
            raise InvalidParameter("l and t are about sensitive columns: give a column the role sensitive.")
        found = tuple(name for name in columns if self.of(name).any or name in self.sensitive)
        for name in found:
            self.of(name).check(schema[name], self.levels.get(name, int(schema[name].pseudonymous)))
        return found

    def demanded(self, schema: Schema) -> dict[str, Any]:
        """Return what a cutting step says of its columns and of what every class meets."""
        return {
            "columns": quasi_identifiers(schema),
            "sensitive": self.about(schema),
            "until": self.terms(),
            "places": self.places(schema) or None,
            "ordered": self.ordered(schema) or None,
        }

    def places(self, schema: Schema) -> dict[str, Places]:
        """Return what a reader needs to measure distances again: the declared order or the labels above each value.

        Nothing is needed where values are equally far apart, or in the order of numbers and dates; nothing is told of
        columns whose declaration lists too many values.
        """
        named = {name: self._places(schema, name) for name in self._close(schema)}
        return {name: found for name, found in named.items() if found is not None}

    def ordered(self, schema: Schema) -> dict[str, Type]:
        """Return the columns whose values are as far apart as their places among numbers or days, with their types."""
        return {name: schema[name].type for name in self._close(schema) if self._by_type(schema, name)}

    def spelled(self) -> dict[str, Any]:
        """Return the demands with lists written out, for people to read.

        >>> Demands(5, sensitive={"ill": Sensitive(l=2, harmless=("cold", "healthy"))}).spelled()["harmless of ill"]
        'cold, healthy'
        """
        return {name: listed(each) if isinstance(each, tuple) else each for name, each in self.terms().items()}

    def _together(self) -> list[Demand]:
        """Return the criteria that are about no sensitive column."""
        people = [] if self.population is None else self.population.criteria()
        average: list[Demand] = [] if self.average_risk is None else [AverageRisk(self.average_risk)]
        return [*people, *average, *([] if self.unique is None else [self.unique.criterion()])]

    def _close(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns whose distances are bounded."""
        return tuple(name for name in self.about(schema) if self.of(name).t is not None)

    def _by_type(self, schema: Schema, name: str) -> bool:
        return self.distance(schema, name) == "ordered" and self.in_order(schema, name)

    def _places(self, schema: Schema, name: str) -> Places | None:
        distance, classes = self.distance(schema, name), Recoding(schema[name], self.levels.get(name, 0)).classes
        if classes is None or len(classes) > _LISTED or distance == "equal" or self._by_type(schema, name):
            return None
        labels = tuple(classes.labels().to_pylist())
        if distance != "hierarchical":
            return Places(labels)
        levels = range(classes.recoding.level + 1, schema[name].hierarchy.height)
        higher = [(above.labels().to_pylist(), lift.tolist()) for above, lift in map(classes.rise, levels)]
        return Places(labels, tuple(tuple(names[code] for code in lift) for names, lift in higher))


def quasi_identifiers(schema: Schema) -> tuple[str, ...]:
    """Return the columns that make a class, or refuse a schema without one."""
    found = schema.quasi
    if not found:
        raise InvalidParameter("no column can be looked up: give at least one column the role quasi.")
    return found
