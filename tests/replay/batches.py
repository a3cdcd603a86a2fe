"""Query batches: planned together, answered for real, and replayed on neighbors as one release."""

from __future__ import annotations

import zlib
from fractions import Fraction

import duckdb

from incrowd.queries.batch import Batch, batch
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import QueryTerms
from tests.queries.language.hospital import CATALOG
from tests.replay.golden import Parts
from tests.replay.questions import Asked, neighbors, published, twin_rows
from tests.replay.replaying import Recording, part_of_guarantee
from tests.replay.transcript import Chance

_SMALL = Fraction(1, 10**6)
BATCHES: dict[str, tuple[tuple[str, ...], Fraction]] = {
    "rows, counts and means": (
        ("SELECT ward, COUNT(*) FROM rows GROUP BY ward", "SELECT AVG(age), SUM(cost) FROM rows WHERE smoker"),
        Fraction(0),
    ),
    "people, counts and medians": (
        ("SELECT smoker, COUNT(*) FROM visits GROUP BY smoker", "SELECT MEDIAN(age), COUNT(*) FROM visits"),
        Fraction(0),
    ),
    "counts over one domain": (
        (
            "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
            "SELECT smoker, COUNT(*) FROM visits GROUP BY smoker",
            "SELECT ward, smoker, COUNT(*) FROM visits GROUP BY ward, smoker",
        ),
        Fraction(0),
    ),
    "thresholds beside counts": (
        (
            "SELECT note, COUNT(*) FROM visits GROUP BY note",
            "SELECT ward, COUNT(*), SUM(age) FROM visits GROUP BY ward",
        ),
        _SMALL,
    ),
    "joins of tables": (
        (
            "SELECT floor, COUNT(*) FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY floor",
            "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM visits WHERE age > 40)",
        ),
        Fraction(0),
    ),
    "many sums, concentrated": (
        tuple(
            f"SELECT smoker, COUNT(*), SUM(age), SUM(cost) FROM rows WHERE age > {n} GROUP BY smoker" for n in range(9)
        ),
        _SMALL,
    ),
}


def planned(name: str) -> Batch:
    """Return how a batch is answered."""
    texts, delta = BATCHES[name]
    questions = [understand(text, CATALOG) for text in texts]
    unit = next(CATALOG[table].unit for table in questions[0].tables if CATALOG[table].private)
    return batch(questions, unit, QueryTerms(epsilon=Fraction(1), delta=delta), CATALOG)


def parts(name: str, connection: duckdb.DuckDBPyConnection) -> Parts:
    """Return the largest part of its guarantee that a batch lost."""
    made = planned(name)
    rows = twin_rows({table for question in made.questions for table in question.tables}, made.unit)
    recording = Recording.of(made.plan, Asked(connection, rows), Chance(0), published)
    several = neighbors(rows, made.unit, zlib.crc32(name.encode()))
    replays = [recording.replay(Asked(connection, item)) for item in several]
    return {f"{made.unit.kind} removed": part_of_guarantee(made.plan, replays)}
