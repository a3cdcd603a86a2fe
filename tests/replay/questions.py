"""SQL questions in all forms of the language: answered for real, and replayed with one unit less, or another instead.

Every row has a twin of another person, and one of a person without other rows, so that no group is the unit's alone:
which groups there are is the same for both.  What a group of one person costs is the threshold's, with theorems of its
own.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.query import QueryTerms
from tests.contract.questions import MORE, QUESTIONS
from tests.queries.language.hospital import CATALOG, fill, hostile, opened
from tests.replay.golden import Parts
from tests.replay.replaying import Recording, Replay, part_of_guarantee
from tests.replay.transcript import Chance

TERMS = QueryTerms(epsilon=Fraction(1), delta=Fraction(1, 10**6))
STATEMENTS = (*QUESTIONS, *MORE)
Rows = list[tuple[Any, ...]]
_PEOPLE = (1, 1, 2, 1, 3, None, 2)
_TWIN = 100


@dataclass(frozen=True, eq=False)
class Asked:
    """Tables of DuckDB, over which the statistics of a question run as they are."""

    connection: duckdb.DuckDBPyConnection
    tables: dict[str, Rows]

    def collect_together(self, queries: Sequence[exp.Query], sample: object = None) -> tuple[pa.Table, ...]:
        """Run the queries of one question; a sample has every row."""
        for name, rows in self.tables.items():
            fill(self.connection, name, rows)
        return tuple(self.connection.sql(query.sql("duckdb")).to_arrow_table() for query in queries)


def requested(sql: str) -> Measurement:
    """Return how a question is answered."""
    question = understand(sql, CATALOG)
    unit = next(CATALOG[name].unit for name in question.tables if CATALOG[name].private)
    return measurement(question, unit, TERMS)


def tables(measured: Measurement) -> dict[str, Rows]:
    """Return the private tables of a question, with bad values everywhere, and a twin of each row."""
    return twin_rows(measured.question.tables, measured.plan.unit)


def twin_rows(names: Iterable[str], unit: Unit) -> dict[str, Rows]:
    """Return the private ones of some tables, each row with its twins."""
    used = sorted(name for name in set(names) if CATALOG[name].private)
    if unit.kind is Kind.ROW:
        return {name: 2 * hostile(name) for name in used}
    return {name: [item for row in enumerate(hostile(name, _PEOPLE)) for item in _twins(*row)] for name in used}


def _twins(place: int, row: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Return a row, the same of a person who has all rows of that person, and of one who has no other."""
    yield row
    if row[0] is not None:
        yield (row[0] + _TWIN, *row[1:])
        yield (2 * _TWIN + place, *row[1:])


def neighbors(rows: dict[str, Rows], unit: Unit, seed: int) -> Iterator[dict[str, Rows]]:
    """Return the tables without a row or a person; where units are replaced, with a copy of another one instead."""
    if unit.kind is Kind.ROW:
        ((name, several),) = rows.items()
        for place in range(seed % 4, len(several) // 2, 4):
            yield {name: several[:place] + several[place + 1 :]}
        return
    for person in (1, 2, 3):
        without = {name: [row for row in own if row[0] != person] for name, own in rows.items()}
        if unit.adjacency is Adjacency.ADD_REMOVE:
            yield without
        else:
            other = person % 3 + 1
            yield {
                name: [*own, *((person, *row[1:]) for row in rows[name] if row[0] == other)]
                for name, own in without.items()
            }


def replays(measured: Measurement, sql: str, connection: duckdb.DuckDBPyConnection) -> list[Replay]:
    """Answer a question, and replay its transcript on neighbors."""
    rows = tables(measured)
    recording = Recording.of(measured.plan, Asked(connection, rows), Chance(0), published)
    several = neighbors(rows, measured.plan.unit, zlib.crc32(sql.encode()))
    return [recording.replay(Asked(connection, item)) for item in several]


def parts(sql: str, connection: duckdb.DuckDBPyConnection | None = None) -> Parts:
    """Return the largest part of its guarantee that a question lost."""
    measured = requested(sql)
    unit = measured.plan.unit
    kind = "replaced" if unit.adjacency is Adjacency.REPLACE else "removed"
    return {f"{unit.kind} {kind}": part_of_guarantee(measured.plan, replays(measured, sql, connection or opened({})))}


def published(output: Any) -> list[Any]:
    """Return the answers."""
    return [answer.table for answer in output.answers]
