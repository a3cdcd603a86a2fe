"""What cannot be answered is refused, with the reason; nothing gets past the list of what is understood."""

from __future__ import annotations

import pytest

from incrowd.errors import IncrowdError, InvalidParameter, MixedUnits, QueryRefused
from incrowd.queries.language.expressions.table import INSTEAD
from incrowd.queries.language.reading import LONGEST_TEXT, is_explain
from incrowd.queries.language.understanding import understand
from tests.queries.language.hospital import CATALOG

REFUSED = {
    # rows and people never leave
    "SELECT * FROM visits": "rows are not released",
    "FROM visits": "rows are not released",
    "SELECT age FROM visits": "after GROUP BY",
    "SELECT age, COUNT(*) FROM visits GROUP BY ward": "after GROUP BY",
    "SELECT patient, COUNT(*) FROM visits GROUP BY patient": "person ID column",
    "SELECT MAX(patient) FROM visits": "person ID column",
    "SELECT COUNT(*) FROM visits WHERE patient = 5": "person ID column",
    "SELECT COUNT(*) FROM visits WHERE patient IS NULL": "person ID column",
    "SELECT COUNT(*) FILTER (WHERE patient > 5) FROM visits": "person ID column",
    "SELECT COUNT(*) FROM (SELECT patient AS p FROM visits) WHERE p = 5": "person ID column",
    "SELECT COUNT(*) FROM (SELECT patient AS age FROM visits) WHERE age > 5": "person ID column",
    "SELECT COUNT(*) FROM (SELECT * FROM visits) GROUP BY patient": "person ID column",
    "SELECT COUNT(*) FROM (SELECT patient + 0 AS p FROM visits)": "person ID column",
    "SELECT p, n FROM (SELECT patient AS p, COUNT(*) AS n FROM visits GROUP BY patient) "
    "GROUP BY p, n": "person ID column",
    "SELECT COUNT(*) FROM visits JOIN wards ON visits.patient = wards.floor": "person ID column",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient = b.age": "person ID column",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient < b.patient": "person ID column",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient = b.patient OR TRUE": "person ID column",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON NOT (a.patient = b.patient)": "person ID column",
    "SELECT COUNT(*) FROM visits ORDER BY patient": "after GROUP BY",
    "SELECT COUNT(*) FROM visits HAVING MAX(patient) > 5": "person ID column",
    "SELECT name, COUNT(*) FROM tests GROUP BY name": "identifies people",
    "SELECT COUNT(*) FROM tests WHERE name = 'Ann'": "identifies people",
    "SELECT drafted, COUNT(*) FROM tests GROUP BY drafted": "drafted from the rows",
    "SELECT _person FROM visits": "name is used by the engine",
    "SELECT COUNT(*) FROM visits WHERE _place = 1": "name is used by the engine",
    # what one row could move without limit, or make fail
    "SELECT SUM(code) FROM visits": "CLAMP",
    "SELECT AVG(code) FROM visits": "CLAMP",
    "SELECT MIN(code) FROM visits": "CLAMP",
    "SELECT SUM(CAST(note AS DOUBLE)) FROM visits": "CLAMP",
    "SELECT SUM(code + 1) FROM visits": "CLAMP",
    "SELECT COUNT(*) FROM visits WHERE ABS(code - 1) > 0": "CLAMP",
    "SELECT COUNT(*) FROM visits WHERE -code > 0": "CLAMP",
    "SELECT SUM(cost * cost * cost * cost * cost * cost) FROM visits": "±10^15",
    "SELECT SUM(EXP(age)) FROM visits": "±10^15",
    "SELECT SUM(POWER(cost, 8)) FROM visits": "±10^15",
    "SELECT MODE(cost) FROM visits": "declared values",
    "SELECT MODE(note) FROM visits": "declared values",
    "SELECT SUM(DISTINCT age) FROM visits": "DISTINCT",
    "SELECT ARRAY_AGG(age) FROM visits": "GROUP BY x with COUNT(*)",
    "SELECT STRING_AGG(note) FROM visits": "GROUP BY x with COUNT(*)",
    "SELECT FIRST(age) FROM visits": "MODE(x)",
    "SELECT ANY_VALUE(age) FROM visits": "MODE(x)",
    "SELECT ARG_MAX(note, age) FROM visits": "MODE(x)",
    "SELECT MIN(age, 3) FROM visits": "one argument",
    "SELECT SUM(SUM(age)) FROM visits": "inside each other",
    "SELECT COUNT(*) FROM visits WHERE COUNT(*) > 1": "inside each other",
    "SELECT SUM(age) OVER () FROM visits": "leave OVER out",
    "SELECT ward, SUM(age) OVER (PARTITION BY ward) FROM visits": "leave OVER out",
    "SELECT COUNT(*) OVER () FROM visits": "leave OVER out",
    "SELECT COUNT(*) FROM visits WHERE ROW_NUMBER() OVER () = 1": "OVER",
    "SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(note, '(a+)+')": "regular expression",
    "SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(note, 'a*')": "regular expression",
    "SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(note, '[0-9]+x')": "regular expression",
    "SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(note, ward)": "must be a constant",
    "SELECT COUNT(*) FROM visits WHERE note ~ 'a'": "REGEXP_FULL_MATCH",
    "SELECT TO_CHAR(day, 'Mon YYYY') AS y, COUNT(*) FROM visits GROUP BY y": "TO_CHAR",
    "SELECT TO_CHAR(day, 'DDDD') AS y, COUNT(*) FROM visits GROUP BY y": "TO_CHAR",
    "SELECT REGEXP_EXTRACT(note, '^a(b+)', 1) AS y, COUNT(*) FROM visits GROUP BY y": "SPLIT_PART",
    "SELECT KURTOSIS(code) FROM visits": "CLAMP",
    "SELECT STRFTIME(day, '%B') AS y, COUNT(*) FROM visits GROUP BY y": "WEEK(d)",
    "SELECT COUNT(*) FROM visits WHERE SPLIT_PART(note, ward, 1) = 'a'": "must be a constant",
    "SELECT COUNT(*) FROM visits WHERE day > CURRENT_DATE": "no single CURRENT_DATE",
    "SELECT COUNT(*) FROM visits WHERE note SIMILAR TO 'a.*'": "REGEXP_FULL_MATCH",
    "SELECT COUNT(*) FROM visits WHERE note ~* '^a'": "REGEXP_MATCHES(LOWER(x)",
    "SELECT COUNT(*) FROM visits WHERE day > TIMESTAMP '2024-05-05 12:00:00'": "no time of day",
    "SELECT COUNT(*) FROM visits WHERE note LIKE '%a%b%c%d%e%f%'": "LIKE",
    "SELECT COUNT(*) FROM visits WHERE note LIKE ward": "must be a constant",
    "SELECT COUNT(*) FROM visits WHERE note LIKE 'a%b_' ESCAPE 'b'": "no row can make fail",
    "SELECT COUNT(*) FROM visits WHERE RANDOM() < 0.5": "drawn in secret",
    "SELECT COUNT(*) FROM visits WHERE NOW() > day": "no single CURRENT_DATE",
    "SELECT COUNT(*) FROM visits WHERE ERROR(note)": "no row can make fail",
    "SELECT COUNT(*) FROM visits WHERE age & 1 = 1": "no row can make fail",
    "SELECT COUNT(*) FROM visits WHERE note COLLATE NOCASE = 'a'": "no row can make fail",
    "SELECT COUNT(*) FROM visits WHERE note[1] = 'a'": "no row can make fail",
    "SELECT COUNT(*) FROM visits WHERE [age] = [1]": "no row can make fail",
    "SELECT COUNT(*) FROM visits WHERE age = $1": "no row can make fail",
    "SELECT COUNT(*) FROM visits WHERE age = ?": "no row can make fail",
    "SELECT COUNT(*) FROM visits WHERE CAST(note AS JSON) IS NULL": "cast to",
    "SELECT COUNT(*) FROM visits WHERE CAST(note AS BOOLEAN)": "CASE WHEN",
    "SELECT COUNT(*) FROM visits WHERE REPEAT(note, 1000000) = 'a'": "no row can make fail",
    "SELECT REPLACE(REPLACE(note, 'a', 'bbbbbbbbbbbb'), 'b', 'cccccccccccc') AS r, COUNT(*) FROM visits "
    "GROUP BY r": "LEFT",
    "SELECT DATE_TRUNC('century', day) AS d, COUNT(*) FROM visits GROUP BY d": "DATE_TRUNC",
    "SELECT COUNT(*) FROM visits WHERE day + INTERVAL 1 HOUR > day": "whole days",
    "SELECT COUNT(*) FROM visits WHERE DATE_DIFF('hour', day, day) > 1": "DATE_DIFF",
    "SELECT COUNT(*) FROM visits WHERE day + code > day": "CLAMP",
    "SELECT QUANTILE(age, age) FROM visits": "must be a constant",
    "SELECT CLAMP(age, 0, age) AS a, COUNT(*) FROM visits GROUP BY a": "must be a constant",
    # queries that look at rows together
    "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)": "query inside",
    "SELECT COUNT(*) FROM visits WHERE age IN (SELECT age FROM visits)": "aggregates by person",
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 9)": "person",
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM visits LIMIT 5)": "without LIMIT",
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM visits ORDER BY age)": "without LIMIT",
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM visits HAVING COUNT(*) > 1)": "without LIMIT",
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM visits GROUP BY patient, ward)": "without LIMIT",
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT MAX(patient) FROM visits)": "without LIMIT",
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT age FROM visits)": "aggregates by person",
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT floor FROM wards)": "person ID column",
    "SELECT COUNT(*) FROM visits WHERE patient NOT IN (SELECT patient FROM tests)": "one dataset",
    "SELECT COUNT(*) FROM visits WHERE ward NOT IN (SELECT ward FROM wards)": "public table",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT COUNT(*) FROM tests t WHERE t.patient = v.patient)": "JOIN",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM tests t WHERE t.score = v.age)": "aggregates by person",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits)": "same person",
    "SELECT (SELECT COUNT(*) FROM visits) FROM visits": "query inside",
    "SELECT COUNT(*) FROM (SELECT DISTINCT age FROM visits)": "aggregates by person",
    "SELECT COUNT(*) FROM (SELECT DISTINCT * FROM visits)": "names its columns",
    "SELECT COUNT(*) FROM (SELECT age FROM visits ORDER BY age)": "outermost",
    "SELECT COUNT(*) FROM (SELECT age FROM visits LIMIT 1)": "outermost",
    "SELECT COUNT(*) FROM (SELECT age FROM visits OFFSET 1)": "outermost",
    "SELECT COUNT(*) FROM (SELECT age FROM visits QUALIFY ROW_NUMBER() OVER () = 1)": "GROUP BY",
    "SELECT COUNT(*) FROM (SELECT RANK() OVER (ORDER BY age) AS r FROM visits)": "GROUP BY",
    "SELECT AVG(n) FROM (SELECT patient, MEDIAN(age) AS n FROM visits GROUP BY patient)": "person by person",
    "SELECT AVG(n) FROM (SELECT patient, STDDEV(age) AS n FROM visits GROUP BY patient)": "person by person",
    "SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM visits": "one SELECT at a time",
    "SELECT COUNT(*) FROM (SELECT age FROM visits UNION SELECT age FROM visits)": "UNION ALL",
    "SELECT COUNT(*) FROM (SELECT age FROM visits EXCEPT SELECT age FROM visits)": "by person",
    "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT ward FROM wards)": "private table",
    "WITH RECURSIVE a AS (SELECT age FROM visits) SELECT COUNT(*) FROM a": "RECURSIVE",
    "SELECT COUNT(DISTINCT patient) FROM visits GROUP BY ROLLUP (ward)": "STDDEV only",
    "SELECT COUNT(DISTINCT age) FROM visits GROUP BY ROLLUP (ward)": "STDDEV only",
    "SELECT MEDIAN(age) FROM visits GROUP BY GROUPING SETS ((ward), ())": "STDDEV only",
    "SELECT note, COUNT(*) FROM visits GROUP BY ROLLUP (note)": "need declared values",
    "SELECT ward, GROUPING(ward), COUNT(*) FROM visits GROUP BY ward": "ROLLUP",
    # answers of answers
    "SELECT a.n FROM (SELECT COUNT(*) AS n FROM visits) a CROSS JOIN (SELECT COUNT(*) AS n FROM rows) b": "query alone",
    "SELECT SUM(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM "
    "(SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)": "counted in rows",
    "SELECT STRING_AGG(ward) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)": "not computed on answers",
    "SELECT n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) WHERE RANK() OVER () = 1": "QUALIFY",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING RANK() OVER (ORDER BY COUNT(*)) = 1": "QUALIFY",
    "SELECT ward, SUM(age) OVER () FROM visits GROUP BY ward": "SUM(SUM(x)) OVER ()",
    "SELECT STRFTIME(m, '%B') FROM (SELECT DATE_TRUNC('month', day) AS m, COUNT(*) FROM visits GROUP BY 1)": "%Y",
    "SELECT DISTINCT ward FROM visits GROUP BY ward": "DISTINCT",
    "SELECT DISTINCT ON (ward) ward FROM visits": "DISTINCT",
    # joins
    "SELECT COUNT(*) FROM visits, wards": "ON",
    "SELECT COUNT(*) FROM visits CROSS JOIN wards": "ON a.column",
    "SELECT COUNT(*) FROM visits NATURAL JOIN wards": "JOIN",
    "SELECT COUNT(*) FROM visits FULL JOIN wards ON visits.ward = wards.ward": "JOIN",
    "SELECT COUNT(*) FROM visits RIGHT JOIN wards ON visits.ward = wards.ward": "JOIN",
    "SELECT COUNT(*) FROM wards LEFT JOIN visits ON visits.ward = wards.ward": "LEFT JOIN from a public table",
    "SELECT COUNT(*) FROM visits SEMI JOIN wards ON visits.ward = wards.ward": "JOIN",
    "SELECT COUNT(*) FROM visits JOIN wards ON visits.age = wards.floor": "not bounded",
    "SELECT COUNT(*) FROM visits JOIN wards ON visits.ward > wards.ward": "ON",
    "SELECT COUNT(*) FROM visits JOIN (SELECT * FROM wards) w ON visits.ward = w.ward": "as it is",
    "SELECT COUNT(*) FROM visits JOIN tests ON visits.age = tests.score": "person ID column",
    "SELECT COUNT(*) FROM rows a JOIN rows b ON a.ward = b.ward": "person ID column",
    "SELECT COUNT(*) FROM wards": "private table",
    "SELECT COUNT(*) FROM wards JOIN doctors ON wards.ward = doctors.ward": "private table",
    # not questions
    "DROP TABLE visits": "not a query",
    "INSERT INTO visits VALUES (1)": "not a query",
    "COPY visits TO 'x'": "not a query",
    "PRAGMA database_list": "not a query",
    "ATTACH 'x'": "not a query",
    "EXPLAIN SELECT COUNT(*) FROM visits": "not a query",
    "VALUES (1)": "not a query",
    "SELECT COUNT(*) FROM visits; SELECT 1": "one query",
    "SELECT 1": "FROM",
    "SELECT 5 FROM visits": "nothing of the rows",
    "SELECT COUNT(*) INTO t FROM visits": "clause",
    "SELECT": "FROM",
    "SELECT COUNT(*) FROM visits FOR UPDATE": "clause",
    "SELECT COUNT(*) FROM visits USING SAMPLE 5": "samples",
    "SELECT COUNT(*) FROM visits TABLESAMPLE 5%": "samples",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')": "after FROM",
    "SELECT COUNT(*) FROM (VALUES (1)) AS v": "after FROM",
    "SELECT COUNT(*) FROM visits, LATERAL (SELECT 1)": "after FROM",
    "SELECT COUNT(*) FROM range(10)": "after FROM",
    "SELECT COUNT(*) FROM visits LIMIT (SELECT 1)": "whole number",
    "SELECT COUNT(*) FROM visits LIMIT 10 PERCENT": "whole number",
    "SELECT COUNT(*) FROM visits LIMIT 99999999999": "whole number",
    "SELECT age, day, COUNT(*) FROM visits GROUP BY age, day, ward": "groups",
    "SELECT REPLACE(MODE(ward), 'a', 'b') FROM visits": "noisy answers",
    "SELECT FOO(age) FROM visits": "Did you mean FLOOR",
    "SELECT SUMM(age) FROM visits": "Did you mean SUM",
    "SELECT LAST_DAYS(day) FROM visits": "There are: ABS",
}

INVALID = {
    "": "no query",
    "   ": "no query",
    "SELECT COUNT(* FROM visits": "cannot be read",
    "SELECT COUNT(*) FROM visits WHERE": "cannot be read",
    "SELECT COUNT(*) FROM 'unclosed": "cannot be read",
    "SELECT AVG(`cost`) FROM visits": "double quotes",
    "SELECT [ward], COUNT(*) FROM [visits]": "double quotes",
    "SELECT COUNT(*) FROM visits WHERE cost > 19,99": "a point, not a comma",
    "SELECT COUNT(*) FROM visit": "Did you mean 'visits'",
    "SELECT COUNT(*) FROM information_schema.tables": "without a schema",
    "SELECT COUNT(*) FROM duckdb_tables": "no table",
    "SELECT COUNT(*) FROM '/etc/passwd'": "no table",
    "SELECT AVG(agee) FROM visits": "Did you mean 'age'",
    "SELECT AVG(x.age) FROM visits": "no table 'x'",
    "SELECT AVG(a.b.age) FROM visits": "without a schema",
    "SELECT COUNT(*) FROM visits a JOIN visits a ON a.patient = a.patient": "same name",
    "SELECT AVG(age) FROM visits a JOIN visits b ON a.patient = b.patient": "several columns",
    "SELECT COUNT(*) FROM visits WHERE age = 'x'": "does not go with",
    "SELECT COUNT(*) FROM visits WHERE age": "conditions",
    "SELECT COUNT(*) FROM visits WHERE age = NULL": "IS NULL",
    "SELECT COUNT(*) FROM visits WHERE day > 'yesterday'": "2020-12-31",
    "SELECT COUNT(*) FROM visits WHERE code > 9999999999999999999999": "smaller",
    "SELECT COUNT(*) FROM visits WHERE age > 1e9999999": "exponent",
    "SELECT SUM(smoker) FROM visits": "COUNT(*)",
    "SELECT AVG(note) FROM visits": "works on numbers",
    "SELECT MIN(ward) FROM visits": "works on numbers and dates",
    "SELECT QUANTILE(age, 2) FROM visits": "from 0 to 1",
    "SELECT QUANTILE(age) FROM visits": "missing",
    "SELECT AVG(CLAMP(code, 5, 1)) FROM visits": "swap",
    "SELECT COUNT(*) FROM visits GROUP BY 3": "take numbers from 1",
    "SELECT COUNT(*) FROM visits ORDER BY 9": "take numbers from 1",
    "SELECT COUNT(*) + 'a' FROM visits": "do not fit",
    "SELECT x FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)": "There are: ward, n",
    "SELECT LAG(n, 1, 'a') OVER (ORDER BY ward) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)": "type",
    "SELECT QUANTILE(age, [0.5, ward]) FROM visits": "list of quantiles",
    "SELECT COUNT(*) FROM visits WHERE LOG(1, age) > 1": "base of LOG",
    "SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(note, '^[b-a]')": "earlier letter",
    "SELECT COUNT(*) FROM visits HAVING COUNT(*)": "condition",
    "SELECT AVG(_x) FROM (SELECT age AS _x FROM visits)": "underscore",
    "SELECT COUNT(*) FROM (SELECT age, cost AS age FROM visits)": "different names",
    "SELECT COUNT(*) FROM (SELECT age, ward FROM visits UNION ALL SELECT age FROM visits)": "same number",
    "SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT ward FROM visits)": "same types",
}


def message(sql: str, kind: type[IncrowdError]) -> str:
    """What is said to a question that gets no answer."""
    with pytest.raises(kind) as raised:
        understand(sql, CATALOG)
    return str(raised.value)


@pytest.mark.parametrize("sql", REFUSED)
def test_a_question_that_could_betray_someone_is_refused(sql: str) -> None:
    assert REFUSED[sql] in message(sql, QueryRefused)


@pytest.mark.parametrize("sql", INVALID)
def test_a_question_that_makes_no_sense_is_bad_input(sql: str) -> None:
    assert INVALID[sql] in message(sql, InvalidParameter)


def test_tables_that_protect_different_units_are_not_mixed() -> None:
    message("SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT age FROM rows)", MixedUnits)
    message("SELECT COUNT(*) FROM visits a JOIN swapped b ON a.patient = b.patient", MixedUnits)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits WHERE " + "(" * 500 + "smoker" + ")" * 500,
        "SELECT COUNT(*) FROM visits WHERE " + "NOT " * 500 + "smoker",
        "SELECT COUNT(*) FROM visits WHERE age = " + "- " * 500 + "5",
        "SELECT COUNT(*) FROM visits WHERE " + " AND ".join(["smoker", "age > 1"] * 300),
        "SELECT COUNT(*) FROM visits WHERE age > " + " + ".join(["age"] * 500),
        "SELECT COUNT(*) FROM visits WHERE age IN (" + ", ".join(map(str, range(3000))) + ")",
        "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 40 + "visits" + ")" * 40,
        "SELECT " + "CASE WHEN smoker THEN " * 60 + "1" + " END" * 60 + " AS x, COUNT(*) FROM visits GROUP BY x",
        "SELECT COUNT(*) FROM (" + " UNION ALL ".join(["SELECT age FROM visits"] * 20) + ")",
        "SELECT COUNT(*) FROM visits a " + " ".join(f"JOIN visits b{i} ON a.patient = b{i}.patient" for i in range(14)),
        "WITH " + ", ".join(f"c{i} AS (SELECT age FROM {'visits' if i == 0 else f'c{i - 1}'} UNION ALL SELECT age FROM "
                            f"{'visits' if i == 0 else f'c{i - 1}'})" for i in range(40)) + " SELECT COUNT(*) FROM c39",
    ],
)  # fmt: skip
def test_a_question_that_would_grow_without_end_is_refused(sql: str) -> None:
    message(sql, IncrowdError)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM visits" + 30 * " JOIN visits",
        "SELECT COUNT(*) FROM visits" + 30 * " LEFT JOIN visits",
        f"SELECT {23 * 'DATE('}age{23 * ')'} FROM visits",
        f"SELECT COUNT(*) FROM visits WHERE {23 * 'ROW('}age{23 * ')'}",
    ],
)
def test_a_text_that_the_parser_would_read_again_and_again_is_not_read_to_its_end(text: str) -> None:
    with pytest.raises(InvalidParameter, match="cannot be read"):
        understand(text, CATALOG)


@pytest.mark.parametrize("part", ["[1]", "[1]::INT", ".f(age)", " IS NULL[age]"])
def test_a_part_of_a_part_of_a_part_is_not_read(part: str) -> None:
    assert "at most 100 times" in message(f"SELECT age{700 * part} FROM visits", QueryRefused)


def test_what_a_parser_stumbles_over_cannot_be_read() -> None:
    text = "SELECT COUNT(*) FROM t" + 23 * " $1 AT TIME ZONE x"
    assert "cannot be read" in message(text, InvalidParameter)


def test_a_text_that_is_too_long_is_not_even_read() -> None:
    assert "characters" in message("SELECT COUNT(*) FROM visits -- " + "x" * LONGEST_TEXT, InvalidParameter)


def test_asking_for_the_price_is_told_from_asking() -> None:
    assert is_explain(" explain  Privacy\nselect 1") == (True, "select 1")
    assert is_explain("-- please\n/* do */ EXPLAIN PRIVACY select 1") == (True, "select 1")
    assert is_explain("EXPLAIN SELECT 1") == (True, "SELECT 1")
    assert is_explain("EXPLAINS SELECT 1") == (False, "EXPLAINS SELECT 1")


def test_a_text_that_a_parser_gives_up_on_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(IncrowdError):
        understand("SELECT 1 FROM DESCRIBE SHOW secret", CATALOG)
    assert not caplog.records


def test_others_still_hear_from_the_parser(caplog: pytest.LogCaptureFixture) -> None:
    from sqlglot import parse_one

    parse_one("SELECT 1 FROM DESCRIBE SHOW something", dialect="duckdb")
    assert "something" in caplog.text


ADVISED = {
    "DATE_DIFF('year', x, CURRENT_DATE)": "SELECT COUNT(*) FROM visits WHERE DATE_DIFF('year', day, '2026-01-01') > 1",
    "COUNT_IF(c) > 0": "SELECT ward, COUNT_IF(smoker) > 0 AS some FROM visits GROUP BY ward",
    "COUNT_IF(NOT c) = 0": "SELECT ward, COUNT_IF(NOT smoker) = 0 AS every FROM visits GROUP BY ward",
    "MODE(x), or MIN(x) and MAX(x)": "SELECT MODE(ward), MIN(age), MAX(age) FROM visits",
    "GROUP BY x with COUNT(*)": "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    "UPPER(x)": "SELECT UPPER(ward) AS w, COUNT(*) FROM visits GROUP BY w",
    "DATE_DIFF('day', DATE '1970-01-01', x)": "SELECT AVG(DATE_DIFF('day', DATE '1970-01-01', day)) FROM visits",
    "SUM(x)": "SELECT SUM(age) FROM visits",
    "WEEK(x)": "SELECT WEEK(day) AS w, COUNT(*) FROM visits GROUP BY w",
    "DATE_TRUNC('month', x), its first day": "SELECT DATE_TRUNC('month', day) AS d, COUNT(*) FROM visits GROUP BY d",
    "the query without it, since rows are drawn in secret": "SELECT COUNT(*) FROM visits",
}


def test_what_a_refusal_says_to_write_instead_is_answered() -> None:
    assert ADVISED.keys() == set(INSTEAD.values())
    for sql in ADVISED.values():
        assert understand(sql, CATALOG).aggregates


def test_how_to_ask_about_people_instead_of_showing_them_is_answered() -> None:
    said = message("SELECT patient, COUNT(*) FROM visits GROUP BY patient", QueryRefused)
    assert understand(said.partition("as in ")[2].removesuffix("."), CATALOG).aggregates
