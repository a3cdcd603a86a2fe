"""Several answers in one question: each part is private by itself, and together they make what SQL makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from sqlglot import exp

from incrowd.accounting import accountant
from incrowd.errors import IncrowdError, InvalidParameter, QueryRefused
from incrowd.noise.system import SystemCoins
from incrowd.queries.answer import Answer, AnswerColumn
from incrowd.queries.combined_measurement import MET, CombinedMeasurement, NoisyAnswer, combined_answer, measure
from incrowd.queries.language import interpretation
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.language.normal import normal_text
from incrowd.queries.measurement import Measurement
from incrowd.queries.measuring.columns import CHOSEN, SEVERAL
from incrowd.queries.query import Combination, Query, QueryTerms
from incrowd.queries.steps.query import Combine, ListedGroups, QueryBatch
from incrowd.queries.work import unit_steps
from tests.queries.analysts.trades import TRADES

N = "COUNT(*) AS n"
BY_WARD = f"SELECT ward, {N} FROM visits GROUP BY ward"
WOMEN = f"SELECT ward, {N} FROM visits WHERE sex = 'F' GROUP BY ward"
TRUE = (
    f"{BY_WARD} UNION ALL SELECT 'all', COUNT(*) FROM visits",
    f"{BY_WARD} UNION ALL (SELECT sex, COUNT(*) FROM visits GROUP BY sex) ORDER BY 2 DESC, ward LIMIT 3 OFFSET 1",
    f"SELECT * FROM ({BY_WARD} UNION ALL SELECT 'none', NULLIF(COUNT(*), 90) FROM visits) WHERE n IS NULL OR n > 1",
    f"WITH a AS ({BY_WARD}) SELECT ward, n FROM a UNION ALL SELECT 'all', SUM(n) FROM a ORDER BY n",
    f"WITH a AS ({BY_WARD}) SELECT ward, 100.0 * n / (SELECT SUM(n) FROM a) AS pct FROM a ORDER BY pct DESC",
    "SELECT ward, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM visits) AS part FROM visits GROUP BY ward",
    (
        "SELECT UPPER(ward) AS w, AVG(stay) - (SELECT AVG(stay) FROM visits), RANK() OVER (ORDER BY COUNT(*)) "
        "FROM visits WHERE age > 9 GROUP BY w HAVING COUNT(*) > (SELECT COUNT(*) FROM visits) / 99 ORDER BY COUNT(*)"
    ),
    (
        "SELECT v.ward, COUNT(w.floor) / (SELECT COUNT(*) FROM visits WHERE NOT readmitted) FROM visits v "
        "JOIN wards w ON v.ward = w.ward GROUP BY v.ward"
    ),
    "SELECT sex, COUNT(*), (SELECT COUNT(*) FROM visits) AS t, (SELECT AVG(age) FROM visits) FROM visits GROUP BY sex",
    "SELECT (SELECT COUNT(*) FROM visits) AS a, (SELECT COUNT(*) FROM visits WHERE sex = 'F') AS b",
    "SELECT (SELECT COUNT(*) FROM visits WHERE readmitted) * 1.0 / (SELECT COUNT(*) FROM visits) AS rate",
    f"SELECT a.ward, b.n, a.n - b.n AS men FROM ({BY_WARD}) a JOIN ({WOMEN}) b ON b.ward = a.ward WHERE a.n > b.n",
    (
        f"WITH a AS ({BY_WARD}), b AS ({WOMEN}) SELECT ward, a.n, b.n AS f, b.n / a.n FROM a LEFT JOIN b USING (ward) "
        "ORDER BY ward"
    ),
    f"SELECT * FROM ({BY_WARD}) a JOIN (SELECT ward, AVG(stay) AS m FROM visits GROUP BY ward) b USING (ward)",
    f"SELECT b.*, top.n AS most FROM ({BY_WARD}) b CROSS JOIN (SELECT n FROM ({BY_WARD}) ORDER BY n DESC LIMIT 1) top",
    f"SELECT ward FROM ({BY_WARD}) WHERE n >= (SELECT MAX(n) FROM ({BY_WARD}))",
    (
        f"SELECT a.ward, a.n, b.sex, b.m FROM ({BY_WARD}) a JOIN (SELECT ward, sex, COUNT(*) AS m FROM visits GROUP BY "
        "ward, sex) b ON a.ward = b.ward"
    ),
    f"SELECT SUM(a.n * b.n) FROM ({BY_WARD}) a, (SELECT {N} FROM visits) b",
)
REFUSED = {
    "SELECT COUNT(*) FROM visits UNION SELECT COUNT(*) FROM visits": "UNION ALL",
    "SELECT COUNT(*) FROM visits EXCEPT SELECT COUNT(*) FROM visits": "UNION ALL",
    f"({BY_WARD} UNION ALL {WOMEN} LIMIT 3) UNION ALL {WOMEN}": "brackets away",
    f"{BY_WARD} UNION ALL SELECT ward, age FROM visits": "GROUP BY",
    f"{BY_WARD} UNION ALL SELECT patient, COUNT(*) FROM visits GROUP BY patient": "person ID column",
    f"{BY_WARD} UNION ALL SELECT kind, COUNT(*) FROM absences GROUP BY kind": "same datasets",
    f"{BY_WARD} UNION ALL SELECT ward, floor FROM wards": "private table",
    f"{BY_WARD} UNION ALL BY NAME {WOMEN}": "not answered",
    "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)": "To select rows by it",
    "SELECT SUM(age - (SELECT AVG(age) FROM visits)) FROM visits": "To select rows by it",
    "SELECT COUNT(*) FROM visits GROUP BY age > (SELECT AVG(age) FROM visits)": "To select rows by it",
    "SELECT COUNT(*) FROM (SELECT age FROM visits WHERE age > (SELECT AVG(age) FROM visits))": "To select rows by it",
    "SELECT (SELECT COUNT(*) FROM visits) FROM visits": "To select rows by it",
    "SELECT ward, (SELECT COUNT(*) FROM visits) FROM visits GROUP BY ROLLUP (ward)": "To select rows by it",
    f"SELECT COUNT(*) / (SELECT n FROM ({BY_WARD})) FROM visits": "one number",
    f"SELECT COUNT(*) / ({BY_WARD}) FROM visits": "one number",
    "SELECT COUNT(*) - (SELECT age FROM visits LIMIT 1) FROM visits": "single rows",
    "SELECT COUNT(*) - (SELECT floor FROM wards LIMIT 1) FROM visits": "private table",
    f"SELECT SUM(n) / (SELECT COUNT(*) FROM visits) FROM ({BY_WARD})": "do not mix",
    f"SELECT a.n FROM ({BY_WARD}) a JOIN visits v ON a.ward = v.ward": "not tables",
    f"SELECT a.n FROM visits v JOIN ({BY_WARD}) a ON a.ward = v.ward": "not tables",
    f"SELECT a.n FROM ({BY_WARD}) a FULL JOIN ({WOMEN}) b ON a.ward = b.ward": "LEFT JOIN",
    f"SELECT a.n FROM ({BY_WARD}) a CROSS JOIN ({WOMEN}) b": "all keys",
    f"SELECT a.n FROM ({BY_WARD}) a JOIN ({WOMEN}) b ON a.n = b.n": "all keys",
    f"SELECT a.n FROM ({BY_WARD}) a JOIN ({WOMEN}) b ON a.n > b.n": "columns of both",
}
MISTAKES = {
    f"{BY_WARD} UNION ALL SELECT COUNT(*) FROM visits": "number of columns",
    f"{BY_WARD} UNION ALL SELECT 1, COUNT(*) FROM visits": "different types",
    f"{BY_WARD} ORDER BY 3": "take numbers from 1",
    f"{BY_WARD} UNION ALL {WOMEN} ORDER BY 3": "points at",
    f"{BY_WARD} UNION ALL {WOMEN} ORDER BY m": "no column",
    f"SELECT n FROM ({BY_WARD}) a JOIN ({WOMEN}) b USING (ward)": "several answers",
    f"SELECT a.x FROM ({BY_WARD}) a JOIN ({WOMEN}) b USING (ward)": "no column",
    f"SELECT a.n, b.n FROM ({BY_WARD}) a JOIN ({WOMEN}) b USING (ward)": "different names",
    f"SELECT a.n FROM ({BY_WARD}) a JOIN (SELECT stay, {N} FROM visits GROUP BY stay) b ON a.ward = b.stay": "one type",
    "SELECT COUNT(*) / (SELECT v.age FROM tests) FROM visits v": "sees its own",
}


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """A few visits of people with one row each, and the public wards."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT i AS patient, (i * 7) % 90 AS age, IF(i % 3 = 0, 'F', 'M') AS sex, "
            "CASE WHEN i % 2 = 0 THEN 'heart' WHEN i % 5 = 0 THEN 'eye' ELSE 'lung' END AS ward, "
            "DATE '2024-03-01' AS day, i % 11 AS stay, CAST(i AS DOUBLE) AS cost, i % 4 = 0 AS readmitted, "
            "'own' AS insurance, 'x' AS diagnosis FROM range(90) AS r(i)"
        )
        connection.execute(
            "CREATE TABLE wards AS FROM (VALUES ('heart', 1, 'A'), ('lung', 2, 'B'), ('eye', 3, 'A')) "
            "AS w(ward, floor, building)"
        )
        yield connection


def planned(sql: str, epsilon: int = 10**6) -> CombinedMeasurement:
    found = measure(interpret(sql, TRADES), TRADES["visits"].unit, QueryTerms(epsilon=Fraction(epsilon)))
    assert isinstance(found, CombinedMeasurement)
    return found


def answered(measured: CombinedMeasurement, tables: duckdb.DuckDBPyConnection) -> Answer:
    collected = tuple(tables.sql(query.sql("duckdb")).to_arrow_table() for query in measured.statistics)
    return measured.answer(collected, SystemCoins())


def rows_of(answer: Answer) -> list[tuple[object, ...]]:
    told = zip(*(column.to_pylist() for column in answer.table.columns), strict=True)
    return [tuple(round(each, 2) if isinstance(each, float) else each for each in row) for row in told]


@pytest.mark.parametrize("sql", TRUE)
def test_without_noise_several_answers_are_what_duckdb_makes_of_them(
    sql: str, tables: duckdb.DuckDBPyConnection
) -> None:
    measured = planned(sql)
    answer = answered(measured, tables)
    found, names = rows_of(answer), [each[0] for each in tables.execute(sql).description or ()]
    assert [told for told, name in zip(answer.table.column_names, names, strict=True) if name.isidentifier()] == [
        name for name in names if name.isidentifier()
    ]
    true = [
        tuple(round(float(each), 2) if isinstance(each, float) else each for each in row)
        for row in tables.execute(sql).fetchall()
    ]
    in_order = "ORDER BY" in sql.rpartition(") ")[2]
    assert (found if in_order else sorted(found, key=repr)) == (true if in_order else sorted(true, key=repr))
    assert normal_text(measured.question.text) == measured.question.text


@pytest.mark.parametrize(("sql", "said"), REFUSED.items())
def test_what_cannot_be_combined_is_refused_with_a_way_out(sql: str, said: str) -> None:
    with pytest.raises(QueryRefused, match=said):
        interpret(sql, TRADES)


@pytest.mark.parametrize(("sql", "said"), MISTAKES.items())
def test_a_mistake_is_told(sql: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        interpret(sql, TRADES)


def test_all_parts_together_cost_what_was_offered_and_the_same_is_asked_once() -> None:
    measured = planned(f"WITH a AS ({BY_WARD}) SELECT ward, n FROM a UNION ALL SELECT 'all', SUM(n) FROM a", 1)
    assert len(measured.question.parts) == 1
    measured = planned(f"{BY_WARD} UNION ALL SELECT 'all', AVG(age) FROM visits", 1)
    assert [each.terms.epsilon for each in measured.measurements] == [Fraction(1, 3), Fraction(2, 3)]
    guarantee = measured.plan.guarantee
    assert float(
        accountant.charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency).epsilon
    ) == pytest.approx(1)
    several, combine = measured.plan.steps
    assert isinstance(several, QueryBatch)
    assert isinstance(combine, Combine)
    assert combine.columns == ("ward", "n")
    assert combine.question == f"{BY_WARD} UNION ALL SELECT 'all', AVG(age) FROM visits"
    (claim,) = measured.plan.claims
    assert claim.epsilon == pytest.approx(1)  # type: ignore[attr-defined]
    assert [each.output for each in measured.expected] == ["n", "n"]


def test_parts_are_paid_by_one_epsilon() -> None:
    asked = interpret(f"{BY_WARD} UNION ALL {WOMEN}", TRADES)
    for terms in (
        QueryTerms(error=Fraction(9)),
        QueryTerms(rho=Fraction(1)),
        QueryTerms(epsilon=Fraction(1), rate=Fraction(1, 2)),
    ):
        with pytest.raises(InvalidParameter, match="one epsilon for all"):
            measure(asked, TRADES["visits"].unit, terms)


def test_rows_below_each_other_keep_their_intervals(tables: duckdb.DuckDBPyConnection) -> None:
    sql = f"{BY_WARD} UNION ALL SELECT 'middle', MEDIAN(age) FROM visits UNION ALL {WOMEN} ORDER BY n DESC LIMIT 5"
    ward, number = answered(planned(sql, 1), tables).columns
    assert ward.low is None
    assert ward.note == ""
    assert number.low is not None
    assert number.high is not None
    middle = ward.values.to_pylist().index("middle") if "middle" in ward.values.to_pylist() else None
    missing = [at for at, end in enumerate(number.low.to_pylist()) if end is None]
    assert missing == ([] if middle is None else [middle])
    assert CHOSEN in number.note


MANY = f"SELECT ward FROM ({BY_WARD}) r WHERE r.n > 1"
ABOVE = f"{BY_WARD} HAVING COUNT(*) > 1"
NOTES = {
    f"SELECT a.ward, a.n FROM ({BY_WARD}) a JOIN (SELECT COUNT(*) AS n FROM visits) b ON a.n = b.n": MET,
    f"SELECT a.ward, a.n FROM ({BY_WARD}) a LEFT JOIN (SELECT COUNT(*) AS n FROM visits) b ON a.n = b.n": "",
    f"SELECT b.n FROM ({WOMEN}) a LEFT JOIN (SELECT COUNT(*) AS n FROM visits) b ON a.n = b.n": MET,
    f"SELECT a.n FROM ({BY_WARD}) a JOIN (SELECT MAX(n) AS n FROM ({BY_WARD}) b) c USING (n)": MET,
    f"SELECT a.ward, a.n FROM ({BY_WARD}) a JOIN ({MANY}) b USING (ward)": MET,
    f"SELECT a.n * 2 AS x FROM ({BY_WARD}) a JOIN ({MANY}) b USING (ward)": MET,
    f"SELECT a.n FROM ({BY_WARD}) a LEFT JOIN ({MANY}) b ON a.ward = b.ward WHERE b.ward IS NOT NULL": MET,
    f"SELECT a.n FROM ({WOMEN}) a JOIN ({MANY}) b USING (ward)": "",
    f"SELECT a.n FROM ({WOMEN}) a JOIN ({ABOVE}) b USING (ward)": "",
    f"SELECT b.n FROM ({WOMEN}) a JOIN ({ABOVE}) b USING (ward)": CHOSEN,
    f"SELECT b.n FROM ({WOMEN}) a JOIN ({BY_WARD} ORDER BY ward LIMIT 2) b USING (ward)": "",
    f"SELECT COUNT(*) AS k FROM ({ABOVE}) a CROSS JOIN (SELECT COUNT(*) AS n FROM visits) b": SEVERAL,
    f"SELECT COUNT(*) AS k FROM ({BY_WARD} ORDER BY n LIMIT 2) a CROSS JOIN (SELECT AVG(age) FROM visits) b": SEVERAL,
    f"SELECT COUNT(*) AS k FROM ({BY_WARD} ORDER BY 1 LIMIT 2) a CROSS JOIN (SELECT AVG(age) FROM visits) b": "",
    f"SELECT COUNT(*) AS k FROM ({BY_WARD}) a CROSS JOIN (SELECT COUNT(*) AS n FROM visits) b": "",
}


@pytest.mark.parametrize(("sql", "note"), NOTES.items())
def test_where_the_noise_of_a_number_decided_that_it_is_shown_its_interval_says_so(
    sql: str, note: str, tables: duckdb.DuckDBPyConnection
) -> None:
    """Noise that is drawn apart decides nothing about the interval of another answer."""
    *_, told = answered(planned(sql, 1), tables).columns
    assert [each for each in (MET, CHOSEN, SEVERAL) if each in told.note] == [each for each in (note,) if each]


def test_what_is_computed_from_two_answers_lies_in_an_interval_of_both(tables: duckdb.DuckDBPyConnection) -> None:
    shown = "a.ward, a.n, a.n - b.n AS rest, (SELECT COUNT(*) FROM visits) AS t"
    sql = f"SELECT {shown} FROM ({BY_WARD}) a JOIN ({WOMEN}) b USING (ward)"
    measured = planned(sql, 1)
    answers = [
        each.noisy_answer(
            tuple(tables.sql(query.sql("duckdb")).to_arrow_table() for query in each.statistics), SystemCoins()
        )
        for each in measured.measurements
    ]
    _, number, rest, total = combined_answer(measured.question, answers).columns
    one, two = (each(2).columns[1] for each in answers[:2])
    assert np.allclose(ends(rest)[0], ends(one)[0] - ends(two)[1])
    assert number.low == answers[0](1).columns[1].low
    assert len(set(ends(total)[0])) == 1
    assert (ends(one)[1] >= ends(number)[1]).all()


def ends(column: AnswerColumn) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    assert column.low is not None
    assert column.high is not None
    return [np.array(end.to_pylist()) for end in (column.low, column.high)]


def test_so_many_answers_at_most_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpretation, "MOST_PARTS", 2)
    assert isinstance(interpret(f"{BY_WARD} UNION ALL {WOMEN} UNION ALL {BY_WARD}", TRADES), Combination)
    with pytest.raises(QueryRefused, match="at most 2 answers"):
        interpret(f"{BY_WARD} UNION ALL {WOMEN} UNION ALL SELECT sex, COUNT(*) FROM visits GROUP BY sex", TRADES)


def test_answers_are_not_joined_without_end() -> None:
    many = " ".join(f"JOIN a a{at} USING (ward)" for at in range(45))
    with pytest.raises(QueryRefused, match="at most 40 times"):
        interpret(f"WITH a AS ({BY_WARD}) SELECT a.n FROM a {many}", TRADES)


@pytest.mark.parametrize(("levels", "known"), [(5, True), (6, False)])
def test_deep_answers_have_intervals_of_few_different_numbers(
    levels: int, known: bool, tables: duckdb.DuckDBPyConnection
) -> None:
    text = f"SELECT ward, n AS a, n AS b, n AS c FROM ({BY_WARD}) WHERE n > (SELECT COUNT(*) FROM visits) / 50"
    for _ in range(levels):
        text = f"SELECT ward, a + b + c AS a, b, c FROM ({text})"
    measured, asked = planned(text, 1), set[int]()

    def noted(each: Measurement) -> NoisyAnswer:
        collected = tuple(tables.sql(query.sql("duckdb")).to_arrow_table() for query in each.statistics)
        made = each.noisy_answer(collected, SystemCoins())

        def presented(together: int) -> Answer:
            asked.add(together)
            return made(together)

        return presented

    answer = combined_answer(measured.question, [noted(each) for each in measured.measurements])
    assert asked <= {1, 3, 16, 64, 256, 1024}
    assert (answer.columns[1].low is not None) is known
    assert answer.columns[2].low is not None


def test_a_question_alone_stays_one_question() -> None:
    for sql in (
        BY_WARD,
        f"SELECT COUNT(*) FROM ({BY_WARD})",
        "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM tests)",
    ):
        assert not isinstance(interpret(sql, TRADES), Combination)


def test_the_least_that_max_groups_can_be_is_one() -> None:
    with pytest.raises(IncrowdError, match="at least one group"):
        interpret(BY_WARD, TRADES, 0)


LEFT = (
    "SELECT w.floor, COUNT(v.patient) AS n FROM wards w LEFT JOIN visits v ON v.ward = w.ward GROUP BY w.floor",
    (
        "SELECT w.ward, w.building AS b, COUNT(v.age), AVG(v.stay) FROM wards w LEFT JOIN visits v ON v.ward = w.ward "
        "WHERE w.floor < 3 GROUP BY w.ward, b ORDER BY w.ward"
    ),
    (
        "SELECT building, COUNT(v.age) AS n FROM wards w LEFT JOIN visits v ON v.ward = w.ward GROUP BY building "
        "HAVING COUNT(v.age) < 46"
    ),
    "SELECT w.floor, MEDIAN(v.stay) FROM wards w LEFT JOIN visits v ON v.ward = w.ward GROUP BY w.floor",
)


@pytest.mark.parametrize("sql", LEFT)
def test_of_a_public_table_that_is_joined_from_its_own_groups_are_shown(
    sql: str, tables: duckdb.DuckDBPyConnection
) -> None:
    question = interpret(sql, TRADES)
    assert isinstance(question, Query)
    measured = measure(question, TRADES["visits"].unit, QueryTerms(epsilon=Fraction(10**6)))
    assert isinstance(measured, Measurement)
    collected = tuple(tables.sql(query.sql("duckdb")).to_arrow_table() for query in measured.statistics)
    found, true = rows_of(measured.answer(collected, SystemCoins())), tables.execute(sql).fetchall()
    told = [tuple(round(each, 2) if isinstance(each, float) else each for each in row) for row in true]
    assert sorted(found, key=repr) == sorted(told, key=repr)
    (step,) = (each for each in measured.steps if isinstance(each, ListedGroups))
    assert step.listed_in == "wards"
    assert "those that the public table wards has are answered" in step.sentence


def test_noise_is_drawn_for_all_declared_groups_whatever_the_public_table_has() -> None:
    question = interpret(LEFT[0], TRADES)
    assert isinstance(question, Query)
    measured = measure(question, TRADES["visits"].unit, QueryTerms(epsilon=Fraction(1)))
    *_, listed = measured.statistics
    assert [table.name for table in listed.find_all(exp.Table)] == ["wards"]
    assert unit_steps(listed, TRADES) == 0
