"""Write again what questions are understood as: run this after a change that is meant, and read the difference.

python -m tests.golden.questions.make
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from incrowd.queries.language.understanding import understand
from incrowd.queries.query import Query
from tests.queries.language.hospital import CATALOG

FILE = Path(__file__).with_name("understood.json")

QUESTIONS = (
    "SELECT COUNT(*) FROM rows",
    "SELECT ward, COUNT(*), SUM(cost), AVG(age) FROM visits WHERE day >= '2024-07-01' AND smoker GROUP BY ward",
    (
        "SELECT FLOOR(age / 10) * 10 AS decade, AVG(cost) AS mean FROM rows "
        "GROUP BY decade HAVING COUNT(*) > 20 ORDER BY mean DESC LIMIT 3"
    ),
    "SELECT COUNT(DISTINCT patient), COUNT(note), COUNT(*) FILTER (WHERE smoker) FROM visits",
    (
        "SELECT DATE_TRUNC('quarter', day) AS quarter, MEDIAN(cost), QUANTILE(age, 0.9), MAX(day), MODE(ward) "
        "FROM rows GROUP BY quarter"
    ),
    "SELECT LEFT(note, 1) AS letter, VARIANCE(age), STDDEV(age) FROM rows GROUP BY letter",
    "SELECT SUM(CLAMP(code, 0, 10)) / COUNT(*) AS share FROM rows",
    "SELECT score, grade, kind, AVG(rate) FROM tests GROUP BY ALL",
    "SELECT floor, COUNT(*) FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY floor",
    "SELECT doctor, COUNT(*) FROM swapped LEFT JOIN doctors USING (ward) GROUP BY doctor",
    "SELECT AVG(v.age * t.score) FROM visits AS v JOIN tests AS t ON v.patient = t.patient",
    (
        "SELECT n, AVG(total) FROM (SELECT patient, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY patient) "
        "GROUP BY n"
    ),
    (
        "WITH both AS (SELECT patient, age AS x FROM visits UNION ALL SELECT patient, score FROM tests) "
        "SELECT AVG(x) FROM both"
    ),
    "SELECT HISTOGRAM(cost, 250) FROM rows",
    "SELECT DISTINCT ward, smoker FROM rows",
    "SELECT CASE WHEN age < 18 THEN 'child' ELSE 'adult' END AS who, COUNT(*) FROM rows GROUP BY who",
)


def plain(question: Query) -> dict[str, Any]:
    """A question as JSON."""
    return {
        "text": question.text,
        "rows": question.rows.sql("duckdb"),
        "keys": [[key.name, key.type, _values(key.values)] for key in question.keys],
        "aggregates": [
            [
                each.name,
                each.kind,
                None if each.value is None else each.value.name,
                None if each.at is None else str(each.at),
            ]
            for each in question.aggregates
        ],
        "values": [
            [
                each.name,
                each.type,
                _text(each.low),
                _text(each.high),
                each.choices and list(each.choices),
                each.optional,
            ]
            for each in dict.fromkeys(a.value for a in question.aggregates if a.value is not None)
        ],
        "outputs": [[each.name, each.expression.sql("duckdb"), each.aggregate] for each in question.outputs],
        "contribution": [question.contribution.rows, question.contribution.groups],
        "datasets": list(question.datasets),
        "tables": list(question.tables),
        "having": None if question.having is None else question.having.sql("duckdb"),
        "order": [each.sql("duckdb") for each in question.order],
        "limit": [question.limit, question.offset],
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _values(values: tuple[object, ...] | None) -> Any:
    if values is None:
        return None
    return [None if value is None else str(value) for value in values[:4]] + [len(values)]


if __name__ == "__main__":
    found = {sql: plain(understand(sql, CATALOG)) for sql in QUESTIONS}
    FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
