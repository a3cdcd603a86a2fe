"""Questions that use the whole language, and rows with whatever engines could differ on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from incrowd.core.domain import Type
from incrowd.engines.sql.engine import fields
from tests.queries.language.hospital import CATALOG

ROWS = 160
VALUES: dict[Type, tuple[Any, ...]] = {
    Type.INTEGER: (None, 0, 1, 7, 10, 42, 99, 100, -5, 2**63 - 1, -(2**63)),
    Type.DECIMAL: (None, 0.0, -0.0, 0.1, 0.5, 1.5, 2.5, 2.675, 1.005, -0.5, 999.9, 1000.0, 1e300, -1e300, 5e-324, 0.3),
    Type.TEXT: (
        None,
        *("heart", "lung", "other", "x", "y", "5", "1e400", "2024-02-29", "p"),
        *("é%_\\'", "日本語 text", "🙂 smile", "Straße", "a" * 1200, 'say "no"', "Heart", "a|b", "tab\tin"),
    ),
    Type.DATE: (
        None,
        *(date(2024, 1, 1), date(2024, 2, 29), date(2024, 7, 14), date(2025, 12, 28), date(2025, 12, 31)),
        *(date(1900, 1, 1), date(1, 1, 1), date(9999, 12, 31)),
    ),
    Type.BOOLEAN: (None, True, False),
}
SMALL: dict[str, Sequence[Any]] = {
    "patient": (None, 1, 2, 3, 4, 5, 6),
    "age": (None, 0, 5, 17, 18, 42, 99, 100, -5, 2**63 - 1),
    "score": (1, 2, 3, 4, 5, 5, 6, None),
    "grade": (1, 2, 3, None, 7),
    "kind": ("x", "y", "y", None, "z"),
    "ward": ("heart", "lung", "other", None, "Heart", "é%_\\'"),
}
PUBLIC = {
    "wards": pa.table({"ward": ["heart", "lung", "lung", None, "other"], "floor": [1, 2, 3, 0, 9]}),
    "doctors": pa.table({"ward": ["heart", "heart", "heart", "lung", None], "doctor": ["A", "B", "C", "D", "É"]}),
}
QUESTIONS = (
    "SELECT COUNT(*), COUNT(note), COUNT(cost), COUNT(day) FROM rows",
    "SELECT COUNT(DISTINCT patient), COUNT(*) FROM visits",
    "SELECT SUM(age), AVG(cost), VARIANCE(age), STDDEV(cost) FROM visits GROUP BY smoker",
    "SELECT ward, smoker, COUNT(*), SUM(cost), AVG(age) FROM visits GROUP BY ward, smoker",
    "SELECT MEDIAN(cost), QUANTILE(age, 0.9), MIN(day), MAX(day), MODE(ward), MODE(smoker) FROM rows",
    "SELECT note, COUNT(*) FROM rows GROUP BY note",
    "SELECT COUNT(*) FILTER (WHERE smoker), SUM(age) FILTER (WHERE ward = 'heart') FROM visits",
    "SELECT SUM(age + 1), SUM(age - cost), SUM(age * age), SUM(-age), SUM(cost * 0.1) FROM rows",
    "SELECT SUM(CLAMP(age / cost, -5, 5)), SUM(CLAMP(cost / age, 0, 9)), SUM(age % 7), SUM(age // 7) FROM rows",
    "SELECT SUM(ABS(age - 50)), SUM(SIGN(cost - 1)), SUM(FLOOR(cost)), SUM(CEIL(cost)) FROM rows",
    "SELECT SUM(ROUND(cost)), SUM(ROUND(cost, 1)), SUM(ROUND(cost, 2)), SUM(ROUND(age, -1)) FROM rows",
    "SELECT SUM(ROUND(cost - 3)), SUM(ROUND(0.5 - cost)), AVG(CAST(cost - 2 AS INTEGER)) FROM rows",
    "SELECT SUM(SQRT(cost)), SUM(LN(cost + 1)), SUM(SQRT(cost - 2)) FROM rows",
    "SELECT SUM(LEAST(age, 40)), SUM(GREATEST(age, cost, 3)), MAX(LEAST(day, DATE '2024-06-01')) FROM rows",
    "SELECT SUM(COALESCE(age, 50)), COUNT(NULLIF(age, 42)), SUM(CASE WHEN age > 40 THEN cost ELSE 1 END) FROM rows",
    "SELECT CASE ward WHEN 'heart' THEN 1 WHEN 'lung' THEN 2 END AS k, COUNT(*) FROM rows GROUP BY k",
    "SELECT IF(age < 18, 'child', 'adult') AS who, COUNT(*) FROM rows GROUP BY who",
    "SELECT COUNT(*) FROM rows WHERE age BETWEEN 5 AND 42 AND NOT smoker OR ward IN ('heart', 'other')",
    "SELECT COUNT(*) FROM rows WHERE note LIKE '%e%' OR note LIKE '_' OR note LIKE 'é%'",
    "SELECT COUNT(*) FROM rows WHERE note NOT LIKE 'a%' AND note <> 'x'",
    "SELECT COUNT(*) FROM rows WHERE note IS NULL OR smoker IS TRUE OR cost IS NOT NULL AND smoker IS NOT FALSE",
    "SELECT COUNT(*) FROM rows WHERE age IS NOT DISTINCT FROM code OR note IS DISTINCT FROM ward",
    "SELECT COUNT(*) FROM rows WHERE note < 'a' OR note >= 'y' OR ward > note",
    "SELECT COUNT(*) FROM rows WHERE cost = 0 OR cost = 0.1 OR cost > 999.5 OR code > 99",
    "SELECT LEFT(note, 2) AS k, COUNT(*) FROM rows GROUP BY k",
    "SELECT RIGHT(note, 3) AS k, SUM(LENGTH(note)) FROM rows GROUP BY k",
    "SELECT SUBSTRING(note, 2, 3) AS k, COUNT(*) FROM rows GROUP BY k",
    "SELECT TRIM(SUBSTRING(note, 2)) AS k, LTRIM(LEFT(note, 4)) AS l, COUNT(*) FROM rows GROUP BY k, l",
    "SELECT ward || '-' || LEFT(note, 1) AS k, COUNT(*) FROM rows GROUP BY k",
    "SELECT CONCAT(ward, '/', LEFT(note, 1)) AS k, COUNT(*) FROM rows GROUP BY k",
    "SELECT REPLACE(ward, 'ea', 'E\\''') AS k, COUNT(*) FROM rows GROUP BY k",
    "SELECT COUNT(*) FROM rows WHERE STARTS_WITH(note, '日') OR CONTAINS(note, '%_\\') OR CONTAINS(note, '\"')",
    "SELECT YEAR(day) AS y, QUARTER(day) AS q, COUNT(*) FROM rows GROUP BY y, q",
    "SELECT MONTH(day) AS m, SUM(DAY(day)) FROM rows GROUP BY m",
    "SELECT DAYOFWEEK(day) AS w, COUNT(*), SUM(EXTRACT(year FROM day)) FROM rows GROUP BY w",
    "SELECT DATE_TRUNC('quarter', day) AS k, COUNT(*) FROM rows GROUP BY k",
    "SELECT DATE_TRUNC('week', day) AS k, COUNT(*) FROM rows GROUP BY k",
    "SELECT DATE_TRUNC('year', seen) AS k, COUNT(*) FROM tests GROUP BY k",
    "SELECT SUM(DATE_DIFF('day', DATE '2024-01-01', day)), AVG(day - DATE '2024-06-01') FROM rows",
    "SELECT MAX(day + 30), MIN(day - INTERVAL 2 WEEK), MAX(day + age) FROM rows",
    "SELECT COUNT(seen + CLAMP(score, -9, 9) * 400000), COUNT(seen - 4000000), COUNT(seen + 4000000) FROM tests",
    "SELECT CAST(age AS TEXT) AS k, COUNT(*) FROM rows GROUP BY k",
    "SELECT CAST(smoker AS TEXT) AS k, CAST(day AS TEXT) AS l, SUM(CAST(smoker AS INTEGER)) FROM rows GROUP BY k, l",
    (
        "SELECT SUM(CAST(age AS DOUBLE) / 3), COUNT(*) FILTER (WHERE CAST(grade AS BOOLEAN)) FROM visits "
        "JOIN tests ON visits.patient = tests.patient"
    ),
    "SELECT score, grade, kind, AVG(rate) FROM tests GROUP BY ALL",
    "SELECT floor, COUNT(*) FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY floor",
    "SELECT doctor, COUNT(*), SUM(age) FROM swapped LEFT JOIN doctors USING (ward) GROUP BY doctor",
    "SELECT AVG(v.age * t.score) FROM visits AS v JOIN tests AS t ON v.patient = t.patient",
    (
        "SELECT n, AVG(total), MAX(high) FROM (SELECT patient, COUNT(*) AS n, SUM(cost) AS total, MAX(age) AS high, "
        "AVG(cost) AS mean FROM visits GROUP BY patient) WHERE mean > 0.2 GROUP BY n"
    ),
    (
        "SELECT w, SUM(n) FROM (SELECT patient, ward AS w, COUNT(DISTINCT note) AS n FROM visits "
        "GROUP BY patient, ward) GROUP BY w"
    ),
    "WITH young AS (SELECT * FROM visits WHERE age < 50) SELECT ward, AVG(cost) FROM young GROUP BY ward",
    (
        "WITH both AS (SELECT patient, age AS x FROM visits UNION ALL SELECT patient, score FROM tests) "
        "SELECT AVG(x), COUNT(*) FROM both"
    ),
    "SELECT SUM(rate * rate), SUM(rate * rate * rate / 3), SUM(rate / 1000) FROM tests",
    "SELECT HISTOGRAM(cost, 250) FROM rows",
    "SELECT DISTINCT ward, smoker FROM rows",
    "SELECT x, COUNT(*) FROM (SELECT age * 2 AS x, ward FROM rows WHERE ward = 'lung') GROUP BY x",
)
MORE = (
    "SELECT WEEK(day) AS w, ISODOW(day) AS i, SUM(DAYOFYEAR(day)) FROM rows GROUP BY w, i",
    "SELECT STRFTIME(seen, '%d.%m.%Y') AS k, MONTHNAME(seen) AS m, DAYNAME(seen), COUNT(*) FROM tests GROUP BY ALL",
    "SELECT seen + INTERVAL 1 MONTH AS k, seen - INTERVAL 5 YEAR AS l, COUNT(*) FROM tests GROUP BY k, l",
    (
        "SELECT SUM(CLAMP(DATE_DIFF('week', DATE '2000-01-01', seen), -9999, 9999)), SUM(DATE_DIFF('month', day, "
        "DATE '2020-05-31')), SUM(DATE_DIFF('quarter', DATE '2020-05-31', day)) FROM visits JOIN tests USING (patient)"
    ),
    "SELECT SUM(LOG(cost)), SUM(LOG2(age + 1)), SUM(TRUNC(cost - 2)), SUM(WIDTH_BUCKET(cost, 0, 1000, 7)) FROM rows",
    "SELECT SPLIT_PART(note, 'e', 1) AS k, POSITION('e' IN note) AS p, COUNT(*) FROM rows GROUP BY k, p",
    "SELECT COUNT(*) FROM rows WHERE REGEXP_MATCHES(note, '^[a-zé]{2}|日.*t') OR REGEXP_FULL_MATCH(note, '(x|5)')",
    "SELECT COUNT(DISTINCT note), COUNT(DISTINCT cost), COUNT(DISTINCT ward), COUNT(patient) FROM visits",
    "SELECT COUNT(DISTINCT patient) FILTER (WHERE smoker), COUNT(DISTINCT patient) FROM visits GROUP BY ward",
    "SELECT CORR(age, cost), VAR_POP(age) FROM visits WHERE patient IN (SELECT patient FROM tests WHERE score > 2)",
    "SELECT smoker, COUNT(*) FROM visits WHERE NOT patient IN (SELECT patient FROM visits WHERE age > 40) GROUP BY 1",
    "SELECT w.floor, COUNT(*) FROM visits v, wards w WHERE v.ward = w.ward AND v.age > 5 GROUP BY w.floor",
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards WHERE floor > 1)",
    "SELECT w.floor, COUNT(v.age), SKEWNESS(v.age) FROM wards w LEFT JOIN visits v ON v.ward = w.ward GROUP BY w.floor",
    "SELECT kind, COUNT(*) FROM (SELECT DISTINCT patient, kind FROM tests) GROUP BY kind",
)
"""Questions as analysts write them."""
NOT_IN_POSTGRES = (
    "SELECT COUNT(*) FROM rows WHERE note ILIKE '%HE%'",
    "SELECT UPPER(LEFT(note, 2)) AS k, LOWER(ward) AS l, COUNT(*) FROM rows GROUP BY k, l",
    "SELECT SUM(POWER(age, 2)), SUM(POWER(cost, 3)) FROM rows",
    "SELECT SUM(EXP(-age)), SUM(EXP(cost / 100)) FROM rows",
)
"""Letters, and functions whose values may be too small for it."""
LOCAL_ONLY = (
    "SELECT AVG(CLAMP(CAST(note AS DOUBLE), 0, 9)) FROM rows",
    "SELECT COUNT(CAST(note AS DATE)) FROM rows",
    "SELECT CAST(cost AS TEXT) AS k, COUNT(*) FROM rows GROUP BY k",
)
"""Texts read as numbers, and decimals written as texts."""
LIMITED = (
    "SELECT ward, COUNT(DISTINCT patient) FROM visits GROUP BY ward",
    "SELECT smoker, ward, COUNT(*), SUM(cost) FROM visits GROUP BY smoker, ward",
    "SELECT FLOOR(age / 10) AS decade, COUNT(*), SUM(age) FROM swapped GROUP BY decade",
    "SELECT day, note, COUNT(*) FROM visits GROUP BY day, note",
    "SELECT cost, COUNT(*) FROM tests JOIN visits ON tests.patient = visits.patient GROUP BY cost",
)
"""Questions of which one person is in one group only: which one is a matter of a hash."""


EXTREME = {2**63 - 1, -(2**63), 1e300, -1e300, 5e-324}
"""Numbers that are not read from text, where they count as missing."""


def tables(*, extreme: bool = True) -> dict[str, pa.Table]:
    """Return all tables of the hospital, the same rows every time."""
    found = dict(PUBLIC)
    for place, relation in enumerate(CATALOG.relations):
        if relation.name not in found:
            chosen = random.Random(place)
            columns = {}
            for column in relation.schema.columns:
                values = chosen.choices(SMALL.get(column.name, VALUES[column.type]), k=ROWS)
                columns[column.name] = [value if extreme or value not in EXTREME else None for value in values]
            found[relation.name] = pa.table(columns, schema=fields(relation.schema.columns))
    return found
