"""Parts: the groups of columns that a policy names, and the schema of each."""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.core.schema import Schema
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.slicing.output import SLICE

Groups = tuple[tuple[str, ...], ...]


def groups_of(groups: Sequence[tuple[str, ...] | str], schema: Schema) -> Groups:
    """Return groups that hold every released column once, each in the order of the schema; refuse any others.

    >>> from incrowd.core.schema import Column
    >>> groups_of((("zip", "age"), "sex"), Schema((Column("age"), Column("sex"), Column("zip"))))
    (('age', 'zip'), ('sex',))
    """
    lists = [(group,) if isinstance(group, str) else group for group in groups]
    named = [name for group in lists for name in group]
    for name in named:
        if schema[name] in schema.unreleased:
            raise InvalidParameter(f"{name!r} is an identifier: it is never released, in no group.")
    released = released_names(schema)
    if sorted(named) != sorted(released) or not all(lists) or len(lists) < 2:
        raise InvalidParameter(
            "groups: puts every released column into exactly one of two or more groups. What is not to be released is "
            "an identifier; for one table use method safe."
        )
    return tuple(tuple(name for name in released if name in group) for group in lists)


def released_names(schema: Schema) -> tuple[str, ...]:
    """Return the columns that are released, or refuse the name that numbers the tables.

    >>> from incrowd.core.schema import Column, Role
    >>> released_names(Schema((Column("age"), Column("id", Role.IDENTIFIER))))
    ('age',)
    """
    names = tuple(column.name for column in schema.released)
    if SLICE in names:
        raise InvalidParameter(f"a column {SLICE!r} numbers the tables of a release: give yours another name.")
    return names


def part_of(schema: Schema, group: tuple[str, ...]) -> Schema:
    """Return the schema of one group, with everything that is not released.

    >>> from incrowd.core.schema import Column
    >>> part_of(Schema((Column("age"), Column("sex"))), ("sex",)).names
    ('sex',)
    """
    kept = {column.name for column in schema.unreleased} | set(group)
    return Schema(tuple(column for column in schema.columns if column.name in kept), schema.unit)
