"""Demands: all that the classes of a released table must meet, in sensitive columns and against a population."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.domain import Dates, Numbers, Type
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Engine
from incrowd.criteria.average_risk import AverageRisk
from incrowd.criteria.catalog import OF_COLUMN, OF_EACH, in_order
from incrowd.criteria.closeness import CLOSENESS, Closeness
from incrowd.criteria.demand import ColumnDemand, Demand, TableDemand, Term, listed
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.criteria.population import DeltaPresence, KMap
from incrowd.criteria.recount import Places
from incrowd.criteria.uniqueness.criterion import PopulationUniqueness
from incrowd.engines.columns import require
from incrowd.errors import Infeasible, InvalidParameter

Distance = Literal["equal", "ordered", "hierarchical"]
_CRITERIA = sorted(OF_COLUMN, key=lambda kind: kind is Closeness)
"""The criteria in the order in which they are looked at, closeness last."""
_FEW = 8


@dataclass(frozen=True)
class Recursive:
    """Recursive (c,l)-diversity: the most frequent value is rarer than c times all but the l − 1 most frequent ones.

    Source: Machanavajjhala et al. 2006, Definition 4.2.
    """

    c: Fraction
    l: int  # noqa: E741 (the name that everyone knows it by)


@dataclass(frozen=True)
class Sensitive:
    """What every class must meet in one sensitive column; what is left out is not demanded.

    Values named as harmless give nothing away: classes of nothing else are diverse and close enough, and neither
    likeness nor disclosure bounds them.

    Source: Machanavajjhala et al. 2006 (l), Li, Li & Venkatasubramanian 2007 (t), Cao & Karras 2012 (beta), Brickell &
    Shmatikov 2008 (disclosure; present_disclosure passes over values that a class lacks, as ARX does).

    >>> Sensitive(l=3, t=Fraction(1, 5), harmless=("healthy",)).terms()
    {'l': 3, 't': '1/5', 'harmless': ('healthy',)}
    """

    l: int | None = None  # noqa: E741 (the name that everyone knows it by)
    entropy_l: Fraction | None = None
    recursive: Recursive | None = None
    t: Fraction | None = None
    distance: Distance | None = None
    beta: Fraction | None = None
    enhanced_beta: Fraction | None = None
    disclosure: Fraction | None = None
    present_disclosure: Fraction | None = None
    harmless: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(bound is not None and bound <= 0 for bound in (self.disclosure, self.present_disclosure)):
            raise InvalidParameter("disclosure is above 0: how large the binary logarithm of a ratio of shares may be.")
        if self.distance is not None and self.distance not in CLOSENESS:
            raise InvalidParameter(f"a distance is {', '.join(CLOSENESS)}, not {self.distance!r}.")
        self.criteria("", "equal")

    @property
    def any(self) -> bool:
        """Whether anything is demanded at all."""
        return bool(self.criteria("", "equal"))

    def criteria(self, column: str, distance: Distance) -> list[ColumnDemand]:
        """Return the criteria on a column whose values are so far apart."""
        criteria: list[ColumnDemand] = []
        for kind in _CRITERIA:
            value = getattr(self, kind.option)
            if value is not None:
                make: Callable[..., ColumnDemand] = CLOSENESS[distance] if kind is Closeness else kind
                parameters = astuple(value) if isinstance(value, Recursive) else (value,)
                criteria.append(make(column, *parameters, harmless=frozenset(self.harmless)))
        return criteria

    def or_else(self, general: Sensitive) -> Sensitive:
        """Return the same demands, and those of another where there is none here.

        >>> Sensitive(l=4).or_else(Sensitive(l=3, t=Fraction(1, 5))).terms()
        {'l': 4, 't': '1/5'}
        """
        return replace(general, **{name: value for name, value in self._values().items() if value not in (None, ())})

    def terms(self) -> dict[str, Term]:
        """Return the demands as they stand in certificates."""
        terms: dict[str, Term] = {} if self.distance is None else {"distance": self.distance}
        for criterion in self.criteria("", self.distance or "equal"):
            terms |= criterion.terms()
        if self.harmless:
            terms["harmless"] = tuple(sorted(set(self.harmless)))
        return {name: terms[name] for name in OF_EACH if name in terms}

    def check(self, column: Column, level: int) -> None:
        """Refuse what the declaration of a column at its level shows to be impossible or mistaken."""
        if not self.any:
            raise InvalidParameter(
                f"nothing is demanded of {column.name!r}: give l, entropy_l, recursive, t, beta, enhanced_beta or "
                "disclosure, or leave it out."
            )
        if self.distance is not None and self.t is None:
            raise InvalidParameter(f"{column.name!r} has a distance, but nothing is measured by it: give t too.")
        classes = Recoding(column, level).classes
        if self.distance == "ordered" and classes is None and not isinstance(column.domain, Numbers | Dates):
            raise InvalidParameter(
                f"{column.name!r} has no order: list its categories in order, or write distance: equal."
            )
        if classes is None:
            return
        labels = classes.labels().to_pylist()
        unknown = [value for value in self.harmless if value not in labels]
        if unknown:
            raise InvalidParameter(f"harmless: {column.name!r} never shows {unknown[0]!r}; it shows {_some(labels)}.")
        most = max(self.l or 0, self.entropy_l or 0, self.recursive.l if self.recursive else 0)
        if most > len(labels):
            raise Infeasible(
                f"a class shows at most {len(labels)} values of {column.name!r}, missing and other values counted, "
                f"and l is {most}: demand less, or release the column at a lower level."
            )

    def _values(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


def _some(labels: list[str | None]) -> str:
    named = [repr(label) for label in labels if label is not None]
    return ", ".join(named[:_FEW]) + (", …" if len(named) > _FEW else "")


@dataclass(frozen=True)
class Presence:
    """δ-presence: the share of the people of a class who are in the table, at most and at least.

    Source: Nergiz, Atzori & Clifton 2007, Definition 2.
    """

    most: Fraction
    least: Fraction = Fraction(0)


@dataclass(frozen=True)
class Population:
    """A file with one row for each person from whom the table could come; with k, so many look like each released row.

    Source: Sweeney 2001 (k-map); Nergiz, Atzori & Clifton 2007 (δ-presence).

    >>> Population("people.csv", k=10).terms()
    {'k-map': 10, 'population': 'people.csv'}
    """

    file: str
    k: int | None = None
    presence: Presence | None = None

    def __post_init__(self) -> None:
        if not self.criteria():
            raise InvalidParameter("nothing is demanded against the population: give k or presence, or leave it out.")

    def criteria(self) -> list[TableDemand]:
        """Return the criteria that compare with the population, whose file is named without its folder."""
        name, there = Path(self.file).name, self.presence
        crowds: list[TableDemand] = [] if self.k is None else [KMap(self.k, name)]
        return crowds if there is None else [*crowds, DeltaPresence(there.least, there.most, name)]

    def terms(self) -> dict[str, Term]:
        """Return the demands as they stand in certificates."""
        return {name: value for criterion in self.criteria() for name, value in criterion.terms().items()}

    def check(self, cells: Cells) -> None:
        """Refuse classes that the declaration does not list: they could not be told apart in another file."""
        for recoding in cells.recodings:
            if recoding.classes is None:
                raise InvalidParameter(
                    f"the classes of {recoding.column.name!r} are not declared, so the table cannot be compared with a "
                    "population: declare categories, bounds or a hierarchy file, or let its lowest level be higher."
                )

    def counted(self, engine: Engine, cells: Cells) -> Counts:
        """Count the people in each cell, on the engine that counts the table."""
        rows = engine.open(self.file)
        require(rows.names, cells.reads)
        return engine.count(rows, cells)


@dataclass(frozen=True)
class Unique:
    """How many of the released rows may be unique among so many people, by an estimate from the rows.

    Precondition: the rows are a simple random sample of these people.

    Source: Zayatz 1991; Hoshino 2001 (pitman); Chen & Keller-McNulty 1998 (snb); Dankar, El Emam, Neisa & Roffey 2012,
    whose rule chooses among them (dankar).

    >>> Unique(Fraction(1, 100), 300000).terms()
    {'unique': '1/100', 'unique among': 300000, 'unique by': 'zayatz'}
    """

    share: Fraction
    people: int
    estimator: Literal["zayatz", "pitman", "snb", "dankar"] = "zayatz"

    def __post_init__(self) -> None:
        self.criterion()

    def criterion(self) -> PopulationUniqueness:
        """Return the criterion."""
        return PopulationUniqueness(self.share, self.people, self.estimator)

    def terms(self) -> Mapping[str, Term]:
        """Return the demand as it stands in certificates."""
        return self.criterion().terms()


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
        criteria: list[Demand] = [KAnonymity(self.k)]
        for column in self.about(schema):
            criteria += self.of(column).criteria(column, self.distance(schema, column))
        return [*criteria, *self._together()]

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
        demanded = tuple(name for name in columns if self.of(name).any or name in self.sensitive)
        for name in demanded:
            self.of(name).check(schema[name], self.levels.get(name, int(schema[name].pseudonymous)))
        return demanded

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
        return {name: places for name, places in named.items() if places is not None}

    def ordered(self, schema: Schema) -> dict[str, Type]:
        """Return the columns whose values are as far apart as their places among numbers or days, with their types."""
        return {name: schema[name].type for name in self._close(schema) if self._by_type(schema, name)}

    def spelled(self) -> dict[str, Any]:
        """Return the demands with lists written out, for people to read.

        >>> Demands(5, sensitive={"ill": Sensitive(l=2, harmless=("cold", "healthy"))}).spelled()["harmless of ill"]
        'cold, healthy'
        """
        return {name: listed(term) if isinstance(term, tuple) else term for name, term in self.terms().items()}

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
    names = schema.quasi
    if not names:
        raise InvalidParameter("no column can be looked up: give at least one column the role quasi.")
    return names
