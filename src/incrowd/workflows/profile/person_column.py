"""The person column: which column of a table tells people apart, so that a draft protects people and not rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.workflows.profile.column_names import IDS, THINGS, spoken
from incrowd.workflows.profile.profile import ColumnProfile, TableProfile

_KINDS = ("ids of people", "national or tax ids", "user names", "e-mail addresses", "phone numbers", "bank accounts")
_MOST_MISSING = 0.05
_LEAST_DISTINCT = 0.02
_ROWS_EACH = 1.02


@dataclass(frozen=True)
class PersonColumn:
    """A column that tells people apart, about how many there are, and the most rows that one of them has.

    The most rows are one person's: they are for the holder's eyes, and in no draft.
    """

    name: str
    people: int
    most_rows: int
    exact: bool

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {"column": self.name, "people": self.people, "most_rows": self.most_rows, "exact": self.exact}


def person_column(profile: TableProfile) -> PersonColumn | None:
    """Return the column that tells people apart: first one that repeats, then one that names people, else none.

    >>> import pyarrow as pa
    >>> from incrowd.engines.readers.sources import open_source
    >>> from incrowd.workflows.profile.profile import profile
    >>> trips = pa.table({"rider": [f"R{n % 30:03d}" for n in range(90)], "km": [str(n % 7) for n in range(90)]})
    >>> person_column(profile(open_source(trips)))
    PersonColumn(name='rider', people=30, most_rows=3, exact=True)
    """
    ranked = [(rank, column) for column in profile.columns if (rank := _rank(column)) is not None]
    if not ranked:
        return None
    _, chosen = min(ranked, key=lambda each: each[0])
    spread = chosen.facts.spread
    people = spread.distinct - bool(chosen.facts.missing)
    return PersonColumn(chosen.name, people, spread.most, spread.exact)


def _rank(column: ColumnProfile) -> tuple[bool, int] | None:
    """Return how well a column tells people apart, the least is best; None if it does not."""
    facts = column.facts
    rows, distinct = facts.spread.rows, facts.spread.distinct
    if facts.missing > _MOST_MISSING * rows or column.type not in (Type.TEXT, Type.INTEGER):
        return None
    repeats = rows >= _ROWS_EACH * distinct
    if column.identity is not None:
        return (not repeats, _KINDS.index(column.identity.kind)) if column.identity.kind in _KINDS else None
    if not repeats or distinct < max(2, _LEAST_DISTINCT * rows) or spoken(column.name, THINGS):
        return None
    named = column.role is Role.IDENTIFIER and spoken(column.name, IDS) is not None
    coded = facts.values is None and column.type is Type.TEXT and facts.shape in ("codes", "digits")
    return (False, len(_KINDS) + (not named)) if named or coded else None
