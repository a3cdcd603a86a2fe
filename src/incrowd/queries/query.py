"""Query: SQL bound to a catalog, as rows, aggregates to make noisy and what is made of them; and its terms."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from incrowd.core.calendar import PeriodCalendar
from incrowd.core.domain import Type
from incrowd.core.rounding import exact
from incrowd.core.schema import Schema
from incrowd.core.unit import Kind, Unit
from incrowd.core.words import counted
from incrowd.engines.sql.engine import PERSON_COLUMN
from incrowd.errors import InvalidParameter, UnknownTable

if TYPE_CHECKING:
    from sqlglot import exp

    from incrowd.queries.operations import Operation, Sheet


PERSON = PERSON_COLUMN
"""The column of the rows that identifies people, where the unit is a person."""


class AggregateKind(StrEnum):
    """What is asked of the rows of a group."""

    ROWS = "rows"  # COUNT(*)
    COUNT = "count"  # COUNT(x)
    PEOPLE = "people"  # COUNT(DISTINCT person), of those with a row in which the value is there, if there is one
    DISTINCT = "distinct"  # COUNT(DISTINCT x)
    SUM = "sum"
    MEAN = "mean"
    VARIANCE = "variance"  # of a sample, n − 1 below
    DEVIATION = "deviation"
    QUANTILE = "quantile"  # MIN is 0, MEDIAN 1/2, MAX 1
    MODE = "mode"


@dataclass(frozen=True)
class Value:
    """A column of the rows that is aggregated: its name there, and the public set that its values lie in.

    Numbers and dates lie in [low, high] (dates count days since 1970-01-01); texts and truth values are among
    `choices`.  `optional` says whether it can be missing.  Whatever the engine returns is held in this set once more.
    """

    name: str
    type: Type
    low: Fraction | None = None
    high: Fraction | None = None
    choices: tuple[str, ...] | None = None
    optional: bool = True


@dataclass(frozen=True)
class Key:
    """A column of the rows by which they are grouped; `values` are all it can be, None if only rows can tell.

    Values are written as Python values of the type: int, float, str, bool, date, and None where it can be missing.
    `undeclared` are those among them that no declaration names: `other` where it stands for the rest, and None.
    """

    name: str
    type: Type
    values: tuple[object, ...] | None
    undeclared: tuple[object, ...] = ()


@dataclass(frozen=True)
class Aggregate:
    """One number (or choice) per group: of a value, unless it counts rows or people; `at` is the quantile."""

    name: str
    kind: AggregateKind
    value: Value | None = None
    at: Fraction | None = None

    @property
    def type(self) -> Type:
        """The type of its noisy number, or of the value that is picked."""
        picked = self.kind in (AggregateKind.QUANTILE, AggregateKind.MODE)
        return self.value.type if picked and self.value is not None else Type.DECIMAL

    @property
    def needed_value(self) -> Value:
        """Its value, of an aggregate that needs one."""
        if self.value is None:
            raise InvalidParameter(f"{self.kind} needs a value.")
        return self.value


@dataclass(frozen=True)
class OutputColumn:
    """One column of the answer: an expression over the names of keys and aggregates, under its name in the query.

    `aggregate` names the aggregate that it is, bare: then it has an interval of its own.  `type` is that of a column
    that is computed from several rows of the answer.
    """

    name: str
    expression: exp.Expression
    aggregate: str | None = None
    type: Type | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names that it is made of."""
        from sqlglot import exp

        return frozenset(column.name for column in self.expression.find_all(exp.Column))


@dataclass(frozen=True)
class Contribution:
    """How far one unit of privacy reaches: into how many rows, and into how many groups, at most.

    Already counts both sides of a replacement where units are replaced: twice as many.
    """

    rows: int
    groups: int


@dataclass(frozen=True)
class ContributionBounds:
    """How much of each person takes part at most: so many rows of each table, and so many groups, if that is limited.

    Numbers are of what is left of the tables then, so whoever reads them must know.

    >>> ContributionBounds({"visits": 2}, 3).sentence
    'Numbers are of the capped table: at most 2 rows of each person in visits, and at most 3 groups of each person.'
    >>> ContributionBounds().sentence
    ''
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    groups: int | None = None

    @property
    def sentence(self) -> str:
        """What numbers are of, for people; nothing where no person was declared."""
        parts = [f"at most {counted(most, 'row')} of each person in {name}" for name, most in self.rows.items()]
        parts += [] if self.groups is None else [f"at most {counted(self.groups, 'group')} of each person"]
        if not parts:
            return ""
        *others, last = parts
        listed = f"{', '.join(others)}, and {last}" if others else last
        return f"Numbers are of the capped {'table' if len(self.rows) < 2 else 'tables'}: {listed}."


@dataclass(frozen=True)
class ListedKeys:
    """The groups that a public table has: a query over it alone, with the columns of all keys."""

    table: str
    query: exp.Query


Possible = frozenset[Any]
"""Values that are possible; None is a missing one."""


@dataclass(frozen=True)
class Block:
    """The rows of a private table that a query reads: those with one of these days in the column of periods.

    None: all rows.  Other rows play no part in the query, whatever they hold.
    """

    table: str
    days: Possible | None = None


@dataclass(frozen=True)
class Query:
    """What is asked, after it was understood.

    `text` is the normalized SQL: queries with the same text are the same query.  `rows` is a query over the
    catalog's tables that gives one row for each row that takes part, with the columns of all keys and values and, where
    the unit is a person, `PERSON`; it cannot fail whatever the rows hold, and one unit changes it by `contribution`
    rows at most.  `having`, `order` and `limit` work on the noisy answer.  `caps` are what makes the rows few.  Where
    there are `operations`, they stand for these three, and outputs are computed from what the last of them leaves.
    With `totals`, groups that are equal in the keys at these places are added up after the noise, for each of the sets.
    `listed` gives the groups that a public table has, where these alone are shown.  `blocks` are the private rows that
    are read, one for each time that a table is named.
    """

    text: str
    rows: exp.Query
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[OutputColumn, ...]
    contribution: Contribution
    datasets: tuple[str, ...]
    tables: tuple[str, ...]
    having: exp.Expression | None = None
    order: tuple[exp.Ordered, ...] = ()
    limit: int | None = None
    offset: int = 0
    caps: ContributionBounds = field(default_factory=ContributionBounds)
    operations: tuple[Operation, ...] = ()
    totals: tuple[tuple[int, ...], ...] = ()
    listed: ListedKeys | None = None
    blocks: tuple[Block, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """The names of what tells of each key whether a row is a total over all its values."""
        return tuple(f"g{place}" for place in range(1, len(self.keys) + 1)) if self.totals else ()

    @property
    def public_keys(self) -> bool:
        """Whether all groups are declared; without keys there is one group."""
        return all(key.values is not None for key in self.keys)

    @property
    def declared_groups(self) -> int:
        """How many groups the declarations allow, where all keys are public."""
        return math.prod(len(key.values or ()) for key in self.keys)


@dataclass(frozen=True)
class Combination:
    """A query that is made of several: each is one of its own, and noise makes its answer.

    `text` is its normalized SQL.  `parts` are the queries, each once, all about the same datasets; `sheet` is what is
    made of their answers.
    """

    text: str
    parts: tuple[Query, ...]
    sheet: Sheet

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that each part reads."""
        return self.parts[0].datasets

    @property
    def caps(self) -> tuple[str, ...]:
        """What numbers are of, each sentence once."""
        return tuple(dict.fromkeys(part.caps.sentence for part in self.parts if part.caps.sentence))


Interpreted = Query | Combination
"""What a text asks: one query, or several whose answers meet."""


@dataclass(frozen=True)
class QueryTerms:
    """Exactly one of ε, an error for which the least ε is solved, and ρ; δ where groups or the noise need one.

    `error` is the half-width of the 95 % interval that every count and sum of the answer must keep, unless its group is
    near the threshold from which on unknown groups are shown.  `rho` is paid from a zero-concentrated account.  `rate`
    puts a secret sample of the rows in front.

    >>> QueryTerms(epsilon="0.5").epsilon
    Fraction(1, 2)
    """

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    error: Fraction | None = None
    rate: Fraction | None = None
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            object.__setattr__(self, item.name, None if value is None else exact(value, item.name))
        if sum(cost is not None for cost in (self.epsilon, self.error, self.rho)) != 1:
            raise InvalidParameter("give one of epsilon, error and rho: what the answer costs, or its error.")
        for name in ("epsilon", "error", "rho"):
            if (value := getattr(self, name)) is not None and value <= 0:
                raise InvalidParameter(f"{name} must be above 0.")
        if not 0 <= self.delta < 1:
            raise InvalidParameter("delta lies in [0, 1), such as 1e-8; 0 means none.")
        if self.rate is not None and not 0 < self.rate < 1:
            raise InvalidParameter("the rate of a sample lies between 0 and 1: leave it out to read all rows.")

    def to_json(self) -> dict[str, Any]:
        """Return the plain form.

        >>> QueryTerms(epsilon=1, delta="1e-6").to_json()
        {'epsilon': '1', 'delta': '1/1000000'}
        """
        return {item.name: str(value) for item in fields(self) if (value := getattr(self, item.name))}


@dataclass(frozen=True)
class DaysRead:
    """The rows of one or more periods in a row: those whose deciding column holds one of these days."""

    column: str
    first: date
    behind: date
    """The first day that is not among them."""
    periods: tuple[str, ...]


@dataclass(frozen=True)
class Relation:
    """One table: what is declared about its columns, whose rows they are, or that everybody may see them.

    `dataset` is the name under which the ledger keeps the budget of a private table; a public table has none.  The
    person column of a private table stands in its schema's unit, with the most rows of one person that take part.  Of a
    public table `most` tells for each set of columns how many rows share their values at most: read off the table,
    which is not secret.  `ready` says that an engine holds its rows as queries read them, under a name of their own;
    `by_period` that it holds those of each person and period, for queries of some periods.  `today` is the day that
    CURRENT_DATE means, if one was declared.  `calendar` says which rows belong to which period; where `days` are named,
    only rows of these periods are read, and nothing else of the table.
    """

    name: str
    schema: Schema
    dataset: str | None = None
    most: Mapping[frozenset[str], int] = field(default_factory=dict)
    ready: bool = False
    today: date | None = None
    calendar: PeriodCalendar | None = None
    days: DaysRead | None = None
    by_period: bool = False

    @property
    def period(self) -> str | None:
        """The column of days that decides in which period a row lies, None where there is none."""
        decides = None if self.calendar is None else self.calendar.decides
        return decides if decides is not None and self.schema[decides].type is Type.DATE else None

    @property
    def private(self) -> bool:
        """Whether its rows are somebody's."""
        return self.dataset is not None

    @property
    def unit(self) -> Unit:
        """Whom it protects."""
        return self.schema.unit

    @property
    def askable(self) -> bool:
        """Whether queries can be asked about it: they protect rows or people, or people in the one period they read."""
        one = self.unit.kind is Kind.PERSON_PERIOD and self.days is not None and len(self.days.periods) == 1
        return not self.private or self.unit.kind in (Kind.ROW, Kind.PERSON) or one


@dataclass(frozen=True)
class Catalog:
    """The tables by name; names are compared without regard to case, as SQL does."""

    relations: tuple[Relation, ...]

    def __post_init__(self) -> None:
        names = [relation.name.casefold() for relation in self.relations]
        if len(set(names)) < len(names):
            raise InvalidParameter("two tables have the same name; names that differ in case alone are the same.")

    def __getitem__(self, name: str) -> Relation:
        """Return a table by its name."""
        for relation in self.relations:
            if relation.name.casefold() == name.casefold():
                return relation
        names = [relation.name for relation in self.relations]
        near = difflib.get_close_matches(name, names, 1)
        hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(sorted(names))}."
        raise UnknownTable(f"there is no table {name!r}.{hint}")
