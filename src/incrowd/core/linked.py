"""Linked tables: a table of people and the tables below it, what a policy declares of each, and their rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import ExtraRowsRule, Kind
from incrowd.errors import InvalidParameter

_FILE = re.compile(r"\w[\w -]*")
DEEPEST = 2
"""How many levels of tables may lie below the people."""
MOST_ROWS = 1000
"""How many rows of one table a person may have: weights are whole numbers of a 1024th."""


@dataclass(frozen=True)
class ChildTable:
    """A table below another one: each of its rows belongs to a row of the parent, and so to one person.

    `foreign_key` is the column that names the parent's row, `id` its own row ID column, `person` the person ID column,
    where it has one.  At most `max_rows` rows of a person are read in all: the first ones by `order`, or a random
    choice.  With `order` the rows of a parent are a sequence, and each may depend on the one before.  `depends_on` are
    the columns above on which its own may depend, with the table of each.
    """

    name: str
    parent: str
    schema: Schema
    foreign_key: str
    max_rows: int
    more: ExtraRowsRule | None = None
    person: str | None = None
    id: str | None = None
    order: str | None = None
    depends_on: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.max_rows <= MOST_ROWS:
            raise InvalidParameter(f"max_rows of {self.name!r} lies between 1 and {MOST_ROWS:,}.")
        for column in filter(None, (self.foreign_key, self.person, self.id)):
            if not Role.IDENTIFIER.covers(self.schema[column].role):
                raise InvalidParameter(f"{column!r} of {self.name!r} is a key: its role must be identifier.")
        if self.order is not None:
            self.schema[self.order]  # raises if there is none
        if not self.schema.released:
            raise InvalidParameter(f"{self.name!r} releases no column: a linked table needs one beside its keys.")

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns of a released table: its own, the parent's, the person's."""
        return tuple(dict.fromkeys(filter(None, (self.id, self.foreign_key, self.person))))


@dataclass(frozen=True)
class LinkedSchema(Schema):
    """The columns of the people, the unit of privacy, the name of their table, and the tables below it."""

    name: str = ""
    tables: tuple[ChildTable, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit.kind is not Kind.PERSON or self.unit.max_rows != 1:
            raise InvalidParameter(
                "linked tables belong to people, who have one row each in the first table: write unit: {column: ...} "
                "with the person ID column, and leave out max_rows."
            )
        if not self.released:
            raise InvalidParameter(f"{self.name!r} releases no column: a linked table needs one beside its keys.")
        odd = [name for name in self.table_names if not _FILE.fullmatch(name)]
        if odd:
            raise InvalidParameter(
                f"a linked table is written to a file of its name: {odd[0]!r} is not one; use letters."
            )
        names = {self.name}
        for table in self.tables:
            if table.name in names:
                raise InvalidParameter(f"two tables are called {table.name!r}.")
            if table.parent not in names:
                raise InvalidParameter(
                    f"the parent {table.parent!r} of {table.name!r} is not a table that stands before it; there are "
                    f"{', '.join(sorted(names))}."
                )
            names.add(table.name)
            self._check(table)
        twice = [name for name in self.qualified if self.qualified.count(name) > 1]
        if twice:
            raise InvalidParameter(f"{twice[0]!r} names two columns: rename one.")

    def _check(self, table: ChildTable) -> None:
        if self.depth(table.name) > DEEPEST:
            raise InvalidParameter(f"{table.name!r} is too deep: {DEEPEST} levels below the people are synthesized.")
        if table.parent != self.name and self.table(table.parent).id is None:
            raise InvalidParameter(
                f"{table.parent!r} has tables below it: write id: there, the column that identifies its rows."
            )
        if table.parent == self.name and table.person != table.foreign_key:
            raise InvalidParameter(f"{table.name!r} lies below the people: its foreign key is the person ID column.")
        for owner, column in table.depends_on or ():
            if owner not in self.above(table.name):
                raise InvalidParameter(f"depends_on names {owner!r}, which is not above {table.name!r}.")
            if self.columns_of(owner)[column] not in self.columns_of(owner).released:
                raise InvalidParameter(f"depends_on names {column!r} of {owner!r}, which is not released.")

    def __getitem__(self, name: str) -> Column:
        """Return a column of the people by its name, or one of another table as `table.column`."""
        owner, _, column = name.partition(".")
        if column and owner in {table.name for table in self.tables} and name not in self.names:
            return self.table(owner).schema[column]
        return super().__getitem__(name)

    def table(self, name: str) -> ChildTable:
        """Return a table below the people by its name."""
        return next(table for table in self.tables if table.name == name)

    def columns_of(self, name: str) -> Schema:
        """Return the schema of a table."""
        return Schema(self.columns, self.unit) if name == self.name else self.table(name).schema

    def below(self, name: str) -> tuple[ChildTable, ...]:
        """Return the tables whose parent this is."""
        return tuple(table for table in self.tables if table.parent == name)

    def above(self, name: str) -> tuple[str, ...]:
        """Return the tables above one, its parent first."""
        return () if name == self.name else (parent := self.table(name).parent, *self.above(parent))

    def depth(self, name: str) -> int:
        """Return how many levels a table lies below the people."""
        return len(self.above(name))

    def predictors(self, table: ChildTable) -> tuple[tuple[str, str], ...]:
        """Return the columns above that a table's own may depend on: by default all released ones of its parent."""
        if table.depends_on is not None:
            return table.depends_on
        return tuple((table.parent, column.name) for column in self.columns_of(table.parent).released)

    def title(self, table: str, column: str) -> str:
        """Return the name of a column among those of all tables."""
        return column if table == self.name else f"{table}.{column}"

    @property
    def table_names(self) -> tuple[str, ...]:
        """All tables, the people first."""
        return (self.name, *(table.name for table in self.tables))

    @property
    def qualified(self) -> tuple[str, ...]:
        """The names of all columns of all tables."""
        return tuple(column.name for column in self.everywhere)

    @property
    def protects(self) -> str:
        below = ", ".join(f"at most {table.max_rows} of {table.name}" for table in self.tables)
        return f"{self.unit}; with all linked rows: {below}"

    @property
    def everywhere(self) -> tuple[Column, ...]:
        return (*self.columns, *self._titled((table, table.schema.columns) for table in self.tables))

    @property
    def released_everywhere(self) -> tuple[Column, ...]:
        return (*self.released, *self._titled((table, table.schema.released) for table in self.tables))

    def _titled(self, columns: Iterable[tuple[ChildTable, tuple[Column, ...]]]) -> Iterator[Column]:
        for table, own in columns:
            yield from (replace(column, name=self.title(table.name, column.name)) for column in own)


@dataclass(frozen=True)
class LinkedTables:
    """The rows of linked tables: those of the people, and of the tables below in the order of their schema."""

    schema: LinkedSchema
    tables: tuple[Table, ...]
