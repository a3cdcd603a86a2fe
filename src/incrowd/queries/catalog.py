"""Catalog: the tables that may be asked about, as declared; no rows."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from incrowd.core.schema import Schema
from incrowd.core.unit import Kind, Unit
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class Relation:
    """One table: what is declared about its columns, whose rows they are, or that everybody may see them.

    `dataset` is the name under which the ledger keeps the budget of a private table; a public table has none.  The
    person column of a private table stands in its schema's unit, with the most rows of one person that take part.  Of a
    public table `most` tells for each set of columns how many rows share their values at most: read off the table,
    which is no secret.  `ready` says that an engine holds its rows as questions read them, under a name of their own.
    `today` is the day that CURRENT_DATE means, if one was declared.
    """

    name: str
    schema: Schema
    dataset: str | None = None
    most: Mapping[frozenset[str], int] = field(default_factory=dict)
    ready: bool = False
    today: date | None = None

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
        """Whether questions can be asked about it: they protect rows or people."""
        return not self.private or self.unit.kind in (Kind.ROW, Kind.PERSON)


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
        known = [relation.name for relation in self.relations]
        near = difflib.get_close_matches(name, known, 1)
        hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(sorted(known))}."
        raise InvalidParameter(f"there is no table {name!r}.{hint}")
