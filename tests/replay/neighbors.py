"""Neighboring tables: one unit of privacy, chosen to change as much as it can, joins a table or takes another's place.

The unit comes last in the table, so that the randomness of all other rows is the same in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from incrowd.core.unit import Adjacency, Kind, Unit

Row = tuple[str | None, str | None, str | None]
_COLUMNS = ("sex", "age", "zip")
LAST: Row = ("M", "99", "94200")
"""The last class of every column: no other row's record comes after it."""
FIRST: Row = ("F", "0", "02100")
PEOPLE: dict[str, Row] = {
    "last": LAST,
    "first": FIRST,
    "low and last": ("M", "0", "94200"),
    "high and first": ("F", "99", "02100"),
    "high and last": ("F", "99", "94200"),
    "bin edge": ("M", "50", "02200"),
    "missing": (None, None, None),
    "outside": ("X", "150", "none"),
}
POLAR: tuple[Row, ...] = (("F", "99", "02100"),) * 30 + (("M", "0", "94200"),) * 30
"""Rows that agree with the last person in one column and disagree in class: their cuts and scores move the most."""
SPREAD: tuple[Row, ...] = tuple(
    ("FM"[n * n % 3 % 2], str(n * 37 % 100), ("02100", "02200", "94100", "94200")[n * 5 % 7 % 4]) for n in range(24)
)
TABLES: dict[str, tuple[Row, ...]] = {"empty": (), "one row": (FIRST,), "polar": POLAR, "spread": SPREAD}


@dataclass(frozen=True)
class Pair:
    """Two neighboring tables, and in words how they differ.

    `base` names the neighbor among others.  `last`: the record of the unit comes after all others, so that also what is
    dealt in the order of records is the same.
    """

    name: str
    kind: str
    base: str
    table: pa.Table
    neighbor: pa.Table
    last: bool


_OF_ROWS = (
    ("polar", tuple(PEOPLE)),
    ("empty", ("last",)),
    ("one row", ("first", "bin edge")),
    ("spread", ("last", "missing")),
)
_OF_PEOPLE = (("polar", ("last", "missing")), ("empty", ("last",)))
_SCATTERED = "scattered"
_MANY = 3
_OPPOSITE = {"last": "first", "first": "last", "low and last": "high and first", "high and first": "low and last"}


def pairs(unit: Unit) -> Iterator[Pair]:
    """Return pairs of tables that a unit tells apart; a person has one row more than take part, as many, or one."""
    several = unit.kind is Kind.PERSON
    for table, people in _OF_PEOPLE if several else _OF_ROWS:
        for person in people:
            for rows in sorted({1, unit.max_rows, unit.max_rows + 1}, reverse=True) if several else (1,):
                yield _pair(unit, table, person, rows)
    if unit.max_rows >= _MANY:
        yield from (_pair(unit, table, _SCATTERED, unit.max_rows) for table in ("polar", "empty"))


def scattered(number: int) -> list[Row]:
    """Return rows of one person that lie in as many groups as possible."""
    return [("FM"[n % 2], str(3 + 13 * n % 97), ("02100", "02200", "94100", "94200")[n % 4]) for n in range(number)]


def _rows_of(person: str, number: int) -> list[Row]:
    return scattered(number) if person == _SCATTERED else [PEOPLE[person]] * number


def _pair(unit: Unit, table: str, person: str, number: int) -> Pair:
    base, name = TABLES[table], f"{table}, {person}, {number} rows"
    mine = rows_table([*base, *_rows_of(person, number)], number)
    if unit.adjacency is Adjacency.ADD_REMOVE:
        return Pair(name, "added or removed", table, mine, rows_table(base), last=person == "last")
    other = _OPPOSITE.get(person, "last")
    theirs = rows_table([*base, *_rows_of(other, number)], number)
    return Pair(f"{name} for {other}", "replaced", f"{table}, {other}, {number} rows", mine, theirs, last=False)


def rows_table(rows: Sequence[Row], own: int = 0) -> pa.Table:
    """Return rows as text, each of another person but the last `own`, which are one person's."""
    ids = [f"p{n:03}" for n in range(len(rows) - own)] + ["zz"] * own
    columns = {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate(_COLUMNS)}
    return pa.table({**columns, "id": pa.array(ids, pa.string())})
