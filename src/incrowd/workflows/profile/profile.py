"""Profile: what a table holds, before anyone has described it; for the eyes of the data holder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.core.table import Engine, Rows
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import SourceInvalid
from incrowd.measures.sketch import TupleSpread
from incrowd.workflows.profile.facts import Columns, Facts
from incrowd.workflows.profile.kinds import guessed_type
from incrowd.workflows.profile.roles import guessed_role
from incrowd.workflows.profile.subsets import MOST_COLUMNS, Subset, subsets

_EXAMPLES = 3


@dataclass(frozen=True)
class ColumnProfile:
    """A column: what was met, and what it should probably be declared as."""

    facts: Facts
    type: Type
    role: Role
    why_type: str
    why_role: str

    @property
    def name(self) -> str:
        """Its name."""
        return self.facts.name

    @property
    def shown(self) -> str:
        """Its values in a few words: the range of numbers and days, else the most frequent ones."""
        if self.facts.low is not None and self.type is not Type.TEXT:
            return f"{self.facts.low} to {self.facts.high}"
        if self.facts.values is None or self.role is Role.IDENTIFIER:
            return ""
        some = ", ".join(value for value, _ in self.facts.values[:_EXAMPLES])
        return some + (", …" if len(self.facts.values) > _EXAMPLES else "")

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        facts = self.facts
        listed = None if facts.values is None or self.role is Role.IDENTIFIER else dict(facts.values)
        return {
            "name": self.name,
            "type": str(self.type),
            "why_type": self.why_type,
            "role": str(self.role),
            "why_role": self.why_role,
            "missing": facts.missing,
            **_spread_json(facts.spread),
            "low": None if facts.low is None or self.type is Type.TEXT else str(facts.low),
            "high": None if facts.high is None or self.type is Type.TEXT else str(facts.high),
            "values": listed,
        }


@dataclass(frozen=True)
class Profile:
    """A table: its columns, and which two or three of them single people out, the most dangerous first."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    subsets: tuple[Subset, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        found = [{"columns": list(one.columns), **_spread_json(one.spread)} for one in self.subsets]
        columns = [column.to_json() for column in self.columns]
        return {"rows": self.rows, "columns": columns, "subsets": found, "notes": list(self.notes)}


def profile(rows: Rows, engine: Engine = LOCAL) -> Profile:
    """Learn the columns in one pass and their pairs and triples in another; memory does not grow with the rows.

    Both passes run where the rows live; what comes here are facts and sketches, some 64 MB at most.

    >>> import pyarrow as pa
    >>> from incrowd.engines.readers.sources import open_source
    >>> found = profile(open_source(pa.table({"sex": ["F", "M", "F"], "zip": ["02139", "02139", "02138"]})))
    >>> [(column.name, str(column.type), str(column.role)) for column in found.columns]
    [('sex', 'text', 'quasi'), ('zip', 'text', 'quasi')]
    >>> found.subsets[0].columns, found.subsets[0].spread.unique_share
    (('sex', 'zip'), 1.0)
    """
    learned = engine.learn(rows, rows.names, partial(Columns, rows.names))
    columns = tuple(_profiled(facts) for facts in learned.facts())
    if not columns or not columns[0].facts.spread.rows:
        raise SourceInvalid("there are no rows to profile. Check that this is the right file.")
    chosen, notes = _telling(columns)
    found = subsets(rows, chosen, engine)
    if any(not one.spread.exact for one in found):
        margin = max(one.spread.margin for one in found)
        part = "pairs and triples are estimated from a fair part of their values"
        notes += (f"{part}, to within {margin:.1%} of the rows; every row was read",)
    return Profile(columns[0].facts.spread.rows, columns, found, notes)


def _profiled(facts: Facts) -> ColumnProfile:
    kind, why_type = guessed_type(facts)
    role, why_role = guessed_role(facts, kind)
    return ColumnProfile(facts, kind, role, why_type, why_role)


def _telling(columns: Sequence[ColumnProfile]) -> tuple[list[str], tuple[str, ...]]:
    """Return the columns whose subsets are worth a look, and a note if that is not all of them."""
    free = [column for column in columns if column.role is not Role.IDENTIFIER and column.facts.spread.distinct > 1]
    names = [column.name for column in free]
    if len(free) <= MOST_COLUMNS:
        return names, ()
    most = sorted(free, key=lambda column: -column.facts.spread.distinct)[:MOST_COLUMNS]
    kept = {column.name for column in most}
    note = f"of {len(free)} columns, pairs and triples of the {MOST_COLUMNS} with the most different values were taken"
    return [name for name in names if name in kept], (note,)


def _spread_json(spread: TupleSpread) -> dict[str, Any]:
    found = {name: value for name, value in asdict(spread).items() if name != "rows"}
    return found | {"unique_share": spread.unique_share}
