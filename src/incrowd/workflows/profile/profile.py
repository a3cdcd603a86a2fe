"""Profile: what a table holds, before anyone has described it; for the eyes of the data holder."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd.core.domain import Type
from incrowd.core.fingerprints import Bits, row_bits
from incrowd.core.schema import Role
from incrowd.core.table import Engine, Rows
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import SourceInvalid
from incrowd.measures.risk.sketch import Sketch, TupleSpread
from incrowd.workflows.profile.facts import ColumnLearners, Facts
from incrowd.workflows.profile.guesses import guessed_role, guessed_type
from incrowd.workflows.profile.identifiers import Identity, identity_of

_EXAMPLES = 3
MOST_COLUMNS = 15
"""With more columns than this, only subsets of so many are looked at: those with the most different values."""
_KEPT = 2**22
_SLICE = 2**16


@dataclass(frozen=True)
class ColumnProfile:
    """A column: what was met, and what it should probably be declared as."""

    facts: Facts
    type: Type
    role: Role
    why_type: str
    why_role: str
    identity: Identity | None = None

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
            "identity": None if self.identity is None else self.identity.to_json(),
            "nearly": None if facts.nearly is None else facts.nearly.to_json(),
            "missing": facts.missing,
            **_spread_json(facts.spread),
            "low": None if facts.low is None or self.type is Type.TEXT else str(facts.low),
            "high": None if facts.high is None or self.type is Type.TEXT else str(facts.high),
            "values": listed,
        }


@dataclass(frozen=True)
class TableProfile:
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


def profile(rows: Rows, engine: Engine = LOCAL) -> TableProfile:
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
    learned = engine.learn(rows, rows.names, partial(ColumnLearners, rows.names))
    columns = tuple(_profiled(facts) for facts in learned.facts())
    if not columns or not columns[0].facts.spread.rows:
        raise SourceInvalid("there are no rows to profile. Check that this is the right file.")
    chosen, notes = _subset_columns(columns)
    found = subsets(rows, chosen, engine)
    if any(not one.spread.exact for one in found):
        margin = max(one.spread.margin for one in found)
        part = "pairs and triples are estimated from a fair part of their values"
        notes += (f"{part}, to within {margin:.1%} of the rows; every row was read",)
    return TableProfile(columns[0].facts.spread.rows, columns, found, notes)


def identities_of(rows: Rows, names: Sequence[str], engine: Engine = LOCAL) -> dict[str, Identity]:
    """Return the columns that look like identifiers of people, with the reason; one pass over them.

    >>> from incrowd.engines.readers.sources import open_source
    >>> rows = open_source(pa.table({"who": ["ann@example.org", "bob@example.org"], "age": ["1", "2"]}))
    >>> {name: identity.kind for name, identity in identities_of(rows, rows.names).items()}
    {'who': 'e-mail addresses'}
    """
    stored = engine.types(rows, names)
    plain = tuple(name for name in names if not pa.types.is_nested(stored[name]))
    if not plain:
        return {}
    learned = engine.learn(rows, plain, partial(ColumnLearners, plain))
    found = ((facts.name, identity_of(facts, guessed_type(facts)[0])) for facts in learned.facts())
    return {name: identity for name, identity in found if identity is not None}


def _profiled(facts: Facts) -> ColumnProfile:
    kind, why_type = guessed_type(facts)
    identity = identity_of(facts, kind)
    role, why_role = guessed_role(facts, kind, identity)
    return ColumnProfile(facts, kind, role, why_type, why_role, identity)


def _subset_columns(columns: Sequence[ColumnProfile]) -> tuple[list[str], tuple[str, ...]]:
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


@dataclass(frozen=True)
class Subset:
    """Some columns, and how the rows fall apart when they are known."""

    columns: tuple[str, ...]
    spread: TupleSpread


class Subsets:
    """Every pair and triple of some columns, each with its sketch; memory is about 100 MB, however many rows.

    >>> pairs = Subsets(("sex", "zip"))
    >>> pairs.add(pa.record_batch({"sex": ["F", "F", "M"], "zip": ["1", "1", "1"]}))
    >>> [(subset.columns, subset.spread.unique) for subset in pairs.found()]
    [(('sex', 'zip'), 1)]
    """

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        chosen = [*itertools.combinations(columns, 2), *itertools.combinations(columns, 3)]
        self._sketches = {subset: Sketch(max(2**12, _KEPT // len(chosen))) for subset in chosen}

    def add(self, batch: pa.RecordBatch) -> None:
        """Learn from some rows."""
        for start in range(0, len(batch), _SLICE):
            for subset, bits in _sums(batch.slice(start, _SLICE), self._columns):
                self._sketches[subset].add(bits)

    def merge(self, other: Subsets) -> None:
        """Learn what was learned from other rows."""
        for subset, sketch in self._sketches.items():
            sketch.merge(other._sketches[subset])

    def found(self) -> tuple[Subset, ...]:
        """Return the pairs and triples, those that single out the most rows first."""
        found = [Subset(subset, sketch.spread()) for subset, sketch in self._sketches.items()]
        return tuple(sorted(found, key=lambda subset: (-subset.spread.unique_share, len(subset.columns))))


def subsets(rows: Rows, columns: Sequence[str], engine: Engine = LOCAL) -> tuple[Subset, ...]:
    """Return every pair and triple of columns, those that single out the most rows first; one pass where rows live.

    >>> from incrowd.engines.readers.sources import open_source
    >>> rows = open_source(pa.table({"sex": ["F", "F", "M", "M"], "zip": ["1", "2", "1", "2"], "born": [1, 1, 1, 1]}))
    >>> [(subset.columns, subset.spread.unique_share) for subset in subsets(rows, ["sex", "zip", "born"])]
    [(('sex', 'zip'), 1.0), (('sex', 'zip', 'born'), 1.0), (('sex', 'born'), 0.0), (('zip', 'born'), 0.0)]
    """
    if len(columns) < 2:
        return ()
    return engine.learn(rows, columns, partial(Subsets, tuple(columns))).found()


def _sums(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Bits]]:
    """Yield the bits of every pair and triple."""
    each = {name: row_bits(batch.column(name), salt) for salt, name in enumerate(columns, start=1)}
    for first, second in itertools.combinations(columns, 2):
        both = each[first] + each[second]
        yield (first, second), both
        for third in columns[columns.index(second) + 1 :]:
            yield (first, second, third), np.add(both, each[third])
