"""Plan: rows that a question works on, and how many of them one unit of privacy can change."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from incrowd.core.domain import Type, listed
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.catalog import Catalog, Relation
from incrowd.queries.language.extent import Extent, Meaning
from incrowd.queries.language.trees import column
from incrowd.queries.question import PERSON


@dataclass(frozen=True)
class Field:
    """A column of rows: its name, what it can be, and whether it tells people apart."""

    name: str
    extent: Extent
    person: bool = False

    @property
    def stored(self) -> str:
        """The name of the column in the query of the rows."""
        return PERSON if self.person else self.name


@dataclass(frozen=True)
class RowQuery:
    """Rows as a query that cannot fail; adding or removing one unit changes at most `most` of them.

    Public rows have no unit; nobody changes them.  Private rows whose unit is a person carry the column `PERSON`, of
    the type `person`.
    `withheld` tells for names that cannot be asked about why not, `names` all that can, used or not; `relation` is the
    public table whose rows they are.
    """

    query: exp.Query
    fields: tuple[Field, ...]
    tables: tuple[str, ...]
    unit: Unit | None = None
    person: Type | None = None
    most: int = 0
    datasets: tuple[str, ...] = ()
    withheld: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    relation: Relation | None = None

    @property
    def private(self) -> bool:
        """Whether they are somebody's."""
        return self.unit is not None

    @property
    def personal(self) -> bool:
        """Whether they carry the column that tells people apart."""
        return self.unit is not None and self.unit.column is not None

    @property
    def decimal_person(self) -> frozenset[str]:
        """The column that tells people apart, if it holds decimals: engines spell these differently."""
        return frozenset({PERSON} if self.person is Type.DECIMAL else ())


@dataclass(frozen=True)
class Context:
    """What the whole question knows: the catalog, and the names of columns that occur in it (None: all)."""

    catalog: Catalog
    wanted: frozenset[str] | None


@dataclass(frozen=True)
class Scope:
    """The sources after FROM by their names; columns shared by USING are those of the first source that has them."""

    sources: tuple[tuple[str, RowQuery], ...]
    shared: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()

    def find(self, asked: exp.Column) -> tuple[str, Field]:
        """Return the source and the field that a column names."""
        name, table = asked.name.casefold(), asked.table
        places = [(source, rows) for source, rows in self.sources if not table or source == table]
        found = [(source, item) for source, rows in places for item in rows.fields if item.name.casefold() == name]
        if len(found) == 1 or (found and not table and name in self.shared):
            return found[0]
        if found:
            raise InvalidParameter(f"several columns are called {asked.name!r}: write table.column to say which.")
        for _, rows in places:
            if name in rows.withheld:
                raise QuestionRefused(f"{asked.name!r} cannot be asked about: {rows.withheld[name]}")
        known = sorted({name for _, rows in places for name in (*rows.names, *(item.name for item in rows.fields))})
        near = difflib.get_close_matches(asked.name, known, 1)
        hint = f" Did you mean {near[0]!r}?" if near else f" There are: {listed(known, 20)}."
        raise InvalidParameter(f"there is no column {asked.name!r}.{hint}")

    def resolve(self, asked: exp.Column) -> Meaning:
        """Return what a column means in an expression; the column that tells people apart means nothing there."""
        source, found = self.find(asked)
        if found.person:
            raise QuestionRefused(
                f"{asked.name!r} tells people apart and never stands in an expression: "
                "COUNT(DISTINCT it), JOIN on it, or GROUP BY it in a subquery."
            )
        extent = replace(found.extent, optional=found.extent.optional or source in self.optional)
        return Meaning(column(found.stored, source), extent)
