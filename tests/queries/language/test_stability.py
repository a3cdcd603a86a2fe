"""One person, added or removed, changes the rows of a question by no more than its contribution says."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings

from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import Query
from tests.queries.language.hospital import CATALOG, fill, opened
from tests.queries.language.test_rows import QUESTIONS as ANY

HOSPITAL = opened({})

# patient, age, cost, ward, day, smoker, note, code
VISITS: list[tuple[Any, ...]] = [
    (1, 30, 10.0, "heart", "2024-01-01", True, "a", 1),
    (1, 30, 10.0, "heart", "2024-01-01", True, "a", 1),
    (1, 31, 20.5, "lung", "2024-05-01", False, "b", 2),
    (1, 99, 0.1, "lung", None, None, None, None),
    (2, 31, 20.5, "lung", "2024-05-01", False, "b", 2),
    (2, 5, 999.0, "heart", "2025-12-31", True, "c", 3),
    (3, 31, 20.5, "lung", "2024-05-01", False, "b", 2),
    (3, 7, 0.2, "other", "2024-05-02", True, "", -1),
    (3, 8, 0.3, "none", "2024-05-03", True, "x", 2**63 - 1),
    (None, 50, 5.0, "heart", "2024-06-01", True, "z", 9),
]
# patient, score, grade, rate, kind, seen, name, drafted
TESTS: list[tuple[Any, ...]] = [
    (1, 1, 1, 0.5, "x", "2024-01-01", "Ann", "p"),
    (1, 5, 2, 0.25, "y", None, "Ann", "p"),
    (1, 9, 3, 2.0, "x", "1999-01-01", "Ann", "q"),
    (2, 3, 7, -0.5, "y", "2024-01-01", "Bob", "p"),
    (2, None, 3, None, "x", "2024-01-01", "Bob", "p"),
    (4, 2, 3, 0.1, None, "2024-01-01", "Cid", "p"),
    (4, 2, 3, 0.1, "x", "2024-01-01", "Cid", "p"),
    (4, 2, 3, 0.1, "x", "2024-01-01", "Cid", "p"),
    (4, 2, 3, 0.1, "x", "2024-01-01", "Cid", "p"),
]
QUESTIONS = (
    "SELECT COUNT(*) FROM visits",
    "SELECT ward, AVG(age), SUM(cost) FROM visits WHERE smoker GROUP BY ward",
    "SELECT score, AVG(rate) FROM tests GROUP BY score",
    "SELECT COUNT(*) FROM visits JOIN wards ON visits.ward = wards.ward WHERE wards.floor > 0",
    "SELECT doctor, COUNT(*) FROM visits JOIN doctors ON visits.ward = doctors.ward GROUP BY doctor",
    "SELECT doctor, COUNT(*) FROM doctors JOIN visits ON visits.ward = doctors.ward GROUP BY doctor",
    (
        "SELECT doctor, floor, AVG(age) FROM visits v LEFT JOIN doctors d ON v.ward = d.ward "
        "LEFT JOIN wards w ON w.ward = v.ward GROUP BY ALL"
    ),
    "SELECT AVG(v.age + t.score) FROM visits v JOIN tests t ON v.patient = t.patient",
    "SELECT AVG(v.grade + t.score) FROM tests v LEFT JOIN tests t ON v.patient = t.patient AND v.score > t.grade",
    "SELECT AVG(a.age - b.age) FROM visits a JOIN visits b ON a.patient = b.patient",
    "SELECT AVG(x) FROM (SELECT patient, age AS x FROM visits UNION ALL SELECT patient, score FROM tests)",
    "SELECT AVG(x) FROM (SELECT age AS x FROM visits UNION ALL SELECT age FROM visits)",
    "SELECT n, AVG(c) FROM (SELECT patient, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY patient) GROUP BY n",
    (
        "SELECT smoker, AVG(c) FROM (SELECT patient, smoker, SUM(cost) AS c FROM visits GROUP BY patient, smoker) "
        "GROUP BY smoker"
    ),
    (
        "SELECT AVG(v.age * n) FROM visits v JOIN (SELECT patient, COUNT(*) AS n FROM tests "
        "GROUP BY patient) t ON v.patient = t.patient"
    ),
    "WITH v AS (SELECT * FROM visits WHERE age > 6) SELECT COUNT(*), COUNT(DISTINCT patient) FROM v",
    "SELECT AVG(age) FROM visits WHERE patient IN (SELECT patient FROM tests WHERE score > 1)",
    "SELECT AVG(age) FROM visits WHERE patient IN (SELECT patient FROM visits GROUP BY patient HAVING COUNT(*) > 1)",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM tests t WHERE t.patient = v.patient AND t.grade > 1)",
    "SELECT AVG(IF(NOT patient IN (SELECT patient FROM visits WHERE age > 30), age, 1)) FROM visits",
    "SELECT COUNT(*) FROM visits v LEFT JOIN visits w ON v.patient = w.patient AND w.age > 90 WHERE w.patient IS NULL",
    "SELECT AVG(v.age + t.score) FROM visits v, tests t WHERE v.patient = t.patient AND t.score < v.age",
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM doctors)",
    "SELECT kind, COUNT(*) FROM (SELECT DISTINCT patient, kind FROM tests) GROUP BY kind",
    "SELECT COUNT(DISTINCT note), COUNT(DISTINCT CASE WHEN smoker THEN patient END), COUNT(patient) FROM visits",
)


def asked(question: Query, visits: list[tuple[Any, ...]], tests: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The rows of a question over these tables, as a multiset."""
    fill(HOSPITAL, "visits", visits)
    fill(HOSPITAL, "tests", tests)
    return Counter(HOSPITAL.execute(question.rows.sql("duckdb")).fetchall())


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_person_changes_no_more_rows_than_the_contribution_says(sql: str) -> None:
    question = understand(sql, CATALOG)
    whole = asked(question, VISITS, TESTS)
    assert whole
    for person in (1, 2, 3, 4):
        without = asked(question, *([row for row in table if row[0] != person] for table in (VISITS, TESTS)))
        assert not without - whole
        assert (whole - without).total() <= question.contribution.rows
        assert {row[-1] for row in (whole - without)} <= {person}


@settings(max_examples=20)
@given(ANY)
def test_a_person_changes_no_more_rows_of_any_question(sql: str) -> None:
    try:
        question = understand(sql.replace("FROM rows", "FROM visits"), CATALOG)
    except IncrowdError:
        return
    whole = asked(question, VISITS, [])
    for person in (1, 2, 3):
        without = asked(question, [row for row in VISITS if row[0] != person], [])
        assert not without - whole
        assert (whole - without).total() <= question.contribution.rows


def test_some_person_reaches_the_contribution() -> None:
    question = understand("SELECT AVG(v.age + t.score) FROM visits v JOIN tests t ON v.patient = t.patient", CATALOG)
    visits = [(1, age, 1.0, "heart", None, None, None, 1) for age in (1, 2, 3, 4)]
    tests = [(1, score, 1, 0.0, "x", None, "Ann", "p") for score in (1, 2, 3, 4, 5)]
    assert question.contribution.rows == 6
    assert asked(question, visits, tests).total() == 6


@pytest.mark.parametrize("sql", [QUESTIONS[1], QUESTIONS[2], QUESTIONS[9], QUESTIONS[12]])
def test_the_order_of_storage_decides_nothing(sql: str) -> None:
    question = understand(sql, CATALOG)
    first = asked(question, VISITS, TESTS)
    for shift in (3, 7):
        assert asked(question, VISITS[shift:] + VISITS[:shift], TESTS[::-1]) == first


def test_which_rows_of_a_person_take_part_is_decided_by_that_person_alone() -> None:
    """Exhaustively: the rows of person 1 are the same among all sets of other people."""
    question = understand("SELECT ward, AVG(age) FROM visits GROUP BY ward", CATALOG)
    own = [row for row in VISITS if row[0] == 1]
    others = [[row for row in VISITS if row[0] == person] for person in (2, 3, None)]
    seen = set()
    for chosen in itertools.product((False, True), repeat=3):
        rows = [*itertools.chain(*itertools.compress(others, chosen)), *own]
        mine = tuple(sorted(row for row in asked(question, rows, []).elements() if row[-1] == 1))
        seen.add(mine)
        assert len(mine) == 2
    assert len(seen) == 1


def test_a_person_is_asked_about_in_few_groups_if_so_wished() -> None:
    sql = "SELECT ward, smoker, COUNT(DISTINCT patient) FROM visits GROUP BY ward, smoker"
    plain, one = understand(sql, CATALOG), understand(sql, CATALOG, max_groups=1)
    assert (plain.contribution.groups, one.contribution.groups, one.contribution.rows) == (2, 1, 2)
    assert plain.text != one.text
    whole = asked(one, VISITS, [])
    for person in (1, 2, 3):
        assert len({row[:2] for row in whole if row[-1] == person}) == 1
        without = asked(one, [row for row in VISITS if row[0] != person], [])
        assert not without - whole
        assert {row[-1] for row in (whole - without)} == {person}
    assert understand(sql, CATALOG, max_groups=2) == plain
    assert understand("SELECT COUNT(*) FROM rows", CATALOG, max_groups=1).text == 'SELECT COUNT(*) FROM "rows"'
    with pytest.raises(InvalidParameter):
        understand(sql, CATALOG, max_groups=0)
    assert understand(sql.replace("visits", "swapped"), CATALOG, max_groups=1).contribution.groups == 2


def test_replacing_counts_both_sides() -> None:
    question = understand("SELECT ward, COUNT(*) FROM swapped GROUP BY ward", CATALOG)
    assert (question.contribution.rows, question.contribution.groups) == (4, 4)
    assert understand("SELECT COUNT(*) FROM swapped", CATALOG).contribution.groups == 1


def test_a_row_counts_once_where_rows_are_protected() -> None:
    assert understand("SELECT COUNT(*) FROM rows", CATALOG).contribution.rows == 1
    joined = understand("SELECT COUNT(*) FROM rows JOIN doctors ON rows.ward = doctors.ward", CATALOG)
    assert joined.contribution.rows == 2
