"""Questions to the hospital of the language tests: the whole language, and every way to pay."""

from __future__ import annotations

from collections.abc import Iterator

from incrowd.engines.readers.sources import open_source
from incrowd.engines.sql.engine import StoredTable
from incrowd.queries.language.understanding import understand
from tests.contract.questions import LOCAL_ONLY, NOT_IN_POSTGRES, QUESTIONS, tables
from tests.golden.measurements.make import ASKED
from tests.golden.questions.make import QUESTIONS as UNDERSTOOD
from tests.queries.language.hospital import CATALOG

Terms = dict[str, str]
_EPSILON, _HIDDEN, _GAUSSIAN = {"epsilon": "1"}, {"epsilon": "1", "delta": "1e-6"}, {"rho": "1/20", "delta": "1e-6"}
_SAMPLED, _ERROR, _ACCOUNT = {"epsilon": "1/2", "rate": "1/4"}, {"error": "25"}, {"rho": "1/50"}
_UNKNOWN = "SELECT note, COUNT(*) AS n FROM rows GROUP BY note"
_MORE: tuple[tuple[str, Terms], ...] = (
    ("SELECT COUNT(*), SUM(age) FROM rows", _SAMPLED),
    ("SELECT ward, COUNT(*), AVG(cost), VARIANCE(age) FROM rows GROUP BY ward", _SAMPLED),
    ("SELECT MEDIAN(age), MODE(ward) FROM rows", _SAMPLED),
    ("SELECT ward, COUNT(*), SUM(age) FROM visits GROUP BY ward", _ERROR),
    ("SELECT COUNT(*) FROM swapped", _ERROR),
    ("SELECT COUNT(*), COUNT(DISTINCT patient) FROM tests", _ERROR),
    ("SELECT ward, smoker, COUNT(*), SUM(cost), AVG(age) FROM visits GROUP BY ward, smoker", _GAUSSIAN),
    ("SELECT ward, smoker, COUNT(*), SUM(cost), AVG(age) FROM swapped GROUP BY ward, smoker", _GAUSSIAN),
    (_UNKNOWN, _GAUSSIAN),
    ("SELECT note, AVG(age) AS n FROM swapped GROUP BY note", _GAUSSIAN),
    ("SELECT note, AVG(age) AS n FROM swapped GROUP BY note", _HIDDEN),
    ("SELECT MEDIAN(cost), COUNT(*) FROM visits GROUP BY smoker", _GAUSSIAN),
    ("SELECT MEDIAN(cost), MODE(ward) FROM swapped", _EPSILON),
    ("SELECT AVG(age), STDDEV(cost) FROM rows", _ACCOUNT),
    ("SELECT ward, COUNT(*) FROM tests JOIN visits ON tests.patient = visits.patient GROUP BY ward", _ACCOUNT),
    ("SELECT AVG(v.age * t.score) FROM visits AS v JOIN tests AS t ON v.patient = t.patient", _GAUSSIAN),
)
_TOGETHER: tuple[tuple[tuple[str, ...], Terms], ...] = (
    (("SELECT COUNT(*) FROM rows", "SELECT ward, SUM(age), AVG(cost) FROM rows GROUP BY ward"), _EPSILON),
    (("SELECT COUNT(*) FROM visits", "SELECT MEDIAN(age) FROM visits"), _EPSILON),
    (tuple(f"SELECT COUNT(*) FROM rows WHERE age < {age}" for age in range(10, 60, 10)), _HIDDEN),
    ((_UNKNOWN, "SELECT COUNT(*) FROM rows"), _HIDDEN),
    (("SELECT SUM(cost) FROM swapped", "SELECT ward, COUNT(*) FROM swapped GROUP BY ward"), _HIDDEN),
)


def stored() -> dict[str, StoredTable]:
    """Return the tables of the hospital."""
    found = tables()
    return {each.name: StoredTable(open_source(found[each.name]), each.schema) for each in CATALOG.relations}


def asked() -> Iterator[tuple[tuple[str, ...], Terms, bool]]:
    """Yield questions, what is paid for them, and whether they are answered too."""
    language = dict.fromkeys((*QUESTIONS, *NOT_IN_POSTGRES, *LOCAL_ONLY, *UNDERSTOOD))
    for number, sql in enumerate(language):
        known = understand(sql, CATALOG).public_keys
        yield (sql,), _EPSILON if known else _HIDDEN, number % 3 == 0
    for sql, paid in ASKED:
        yield (sql,), {name: str(value) for name, value in paid.items()}, True
    for sql, terms in _MORE:
        yield (sql,), terms, True
    for sqls, terms in _TOGETHER:
        yield sqls, terms, True
