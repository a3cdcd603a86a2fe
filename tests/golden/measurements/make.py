"""How the golden measurements are made: `python -m tests.golden.measurements.make` writes what is guaranteed now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from incrowd.core.loss import to_json
from incrowd.core.rounding import Number
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import measurement
from tests.queries.asked import terms
from tests.queries.language.hospital import CATALOG

FILE = Path(__file__).parent / "measured.json"
ASKED: tuple[tuple[str, dict[str, Number]], ...] = (
    ("SELECT COUNT(*) FROM rows", {"epsilon": "0.5"}),
    ("SELECT COUNT(*), SUM(age), AVG(age) FROM rows GROUP BY smoker", {"epsilon": 1}),
    ("SELECT SUM(cost) FROM visits", {"epsilon": 1}),
    ("SELECT ward, COUNT(DISTINCT patient), VARIANCE(cost) FROM visits GROUP BY ward", {"epsilon": 1}),
    ("SELECT note, COUNT(*) AS n FROM visits GROUP BY note HAVING n > 20", {"epsilon": 1, "delta": "1e-8"}),
    ("SELECT MEDIAN(age), MODE(ward), COUNT(*) FROM rows", {"epsilon": 2}),
    ("SELECT COUNT(*), SUM(age) FROM swapped", {"rho": "0.1"}),
    ("SELECT COUNT(*), AVG(cost) FROM rows", {"epsilon": 1, "rate": "0.1"}),
    ("SELECT COUNT(*) FROM visits JOIN wards ON visits.ward = wards.ward", {"error": 25}),
)


def measured(sql: str, paid: dict[str, Number]) -> dict[str, Any]:
    """Return what is guaranteed for a question, and the queries that are run for it."""
    question = understand(sql, CATALOG)
    made = measurement(question, CATALOG[question.tables[0]].unit, terms(**paid))
    chain = [step for step in (each.to_json() for each in made.steps) if step["step"] != "understand"]
    return {
        "question": sql,
        "terms": made.terms.to_json(),
        "loss": to_json(made.loss),
        "delta": str(made.plan.guarantee.delta),
        "statistics": [_after_rows(query.sql("duckdb"), question.rows.sql("duckdb")) for query in made.statistics],
        "chain": json.loads(json.dumps(chain)),
    }


def _after_rows(query: str, rows: str) -> str:
    """Return a query with the rows of the question, which other golden files hold, left out."""
    assert rows in query
    return query.replace(rows, "…")


if __name__ == "__main__":
    found = [measured(sql, paid) for sql, paid in ASKED]
    FILE.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
