"""What breaks guarantees at the seams: several datasets, two zeros, more values than were listed, numbers too fine."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.domain import Type
from incrowd.core.unit import Unit
from incrowd.errors import Infeasible, InvalidParameter, QueryRefused
from incrowd.queries.language import sources
from incrowd.queries.language.domain import ExpressionDomain
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import measurement
from incrowd.queries.measuring.groups import collect_groups
from incrowd.queries.query import Key
from tests.queries.asked import asked, terms
from tests.queries.language.hospital import CATALOG, fill, hostile, opened

APART = (
    "SELECT COUNT(*), MODE(t.grade) FROM visits v JOIN tests t ON v.patient = t.patient",
    "SELECT smoker, COUNT(*) FROM visits v JOIN tests t ON v.patient = t.patient AND v.age > t.grade GROUP BY smoker",
    "SELECT AVG(x) FROM (SELECT patient, age AS x FROM visits UNION ALL SELECT patient, score FROM tests)",
    (
        "SELECT n, COUNT(*) FROM (SELECT v.patient, COUNT(*) AS n, MAX(score) AS s FROM visits v "
        "JOIN tests t ON v.patient = t.patient GROUP BY v.patient) GROUP BY n"
    ),
    (
        "SELECT n + m, COUNT(*) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) AS a JOIN "
        "(SELECT patient, COUNT(*) AS m FROM tests GROUP BY patient) AS b USING (patient) GROUP BY n + m"
    ),
)


@pytest.mark.parametrize("sql", APART)
def test_who_leaves_one_of_two_datasets_only_takes_rows_away_and_no_more_than_guaranteed(sql: str) -> None:
    question = understand(sql, CATALOG, max_groups=1)
    chance, base = random.Random(sql), opened({})

    def rows(tables: dict[str, list[tuple[Any, ...]]]) -> Counter[tuple[Any, ...]]:
        for name, each in tables.items():
            fill(base, name, each)
        return Counter(base.execute(question.rows.sql("duckdb")).fetchall())

    for _ in range(4):
        tables = {name: chance.sample(hostile(name, (1, 1, 1, 2, 3)), 8) for name in ("visits", "tests")}
        whole = rows(tables)
        for name, every in tables.items():
            for one in (1, 2, 3):
                fewer = rows(tables | {name: [row for row in every if row[0] != one]})
                assert not fewer - whole
                assert (whole - fewer).total() <= question.contribution.rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits v LEFT JOIN tests t ON v.patient = t.patient",
        (
            "SELECT COUNT(*) FROM (SELECT v.patient FROM visits v JOIN tests t USING (patient)) a "
            "LEFT JOIN visits b USING (patient)"
        ),
        (
            "SELECT AVG(n) FROM (SELECT patient, COUNT(*) AS n FROM (SELECT patient FROM visits UNION ALL "
            "SELECT patient FROM tests) GROUP BY patient)"
        ),
    ],
)
def test_what_would_change_rows_of_another_dataset_is_refused(sql: str) -> None:
    with pytest.raises(QueryRefused, match="dataset"):
        understand(sql, CATALOG)


def test_a_zero_among_keys_has_no_sign_that_one_row_could_decide() -> None:
    question = replace(asked((), keys=(Key("x", Type.DECIMAL, None),)))
    for zero in (0.0, -0.0):
        found = collect_groups(question, pa.table({"x": [zero], "_s0": [5]}), ("_s0",))
        assert str(found.names) == "((0.0,),)"


def test_a_zero_as_a_text_has_no_sign() -> None:
    question = understand("SELECT COUNT(*) FROM visits WHERE CAST(cost AS TEXT) = '-0.0'", CATALOG)
    base = opened({})
    fill(base, "visits", [(1, 5, -0.0, "lung", None, None, None, 1)])
    assert base.execute(question.rows.sql("duckdb")).fetchall() == []


def test_a_person_has_no_more_rows_than_keys_were_listed_whatever_the_engine_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ExpressionDomain, "members", lambda *_: ("one value",))
    monkeypatch.setattr(sources, "_most", lambda *_: 1)
    sql = "SELECT COUNT(*) FROM (SELECT patient, note, COUNT(*) AS n FROM visits GROUP BY patient, note)"
    question = understand(sql, CATALOG)
    assert question.contribution.rows == 1
    base = opened({})
    fill(base, "visits", [(1, 5, 0.5, "lung", None, None, note, 1) for note in ("a", "b", "c")])
    assert len(base.execute(question.rows.sql("duckdb")).fetchall()) == 1


@pytest.mark.parametrize("at", ["0.12345678", "1e-300", "0.99999999"])
def test_a_quantile_too_fine_for_exact_scores_is_refused_before_it_is_charged(at: str) -> None:
    question = understand(f"SELECT QUANTILE(age, {at}) FROM rows", CATALOG)
    with pytest.raises(InvalidParameter, match="six digits"):
        measurement(question, Unit(), terms(epsilon=1))


@pytest.mark.parametrize("epsilon", ["1e-30", "1e30"])
@pytest.mark.parametrize("what", ["MIN(age)", "COUNT(*), AVG(age), VARIANCE(cost)"])
def test_an_epsilon_beyond_reason_is_refused_before_it_is_charged(what: str, epsilon: str) -> None:
    question = understand(f"SELECT {what} FROM rows", CATALOG)
    with pytest.raises((Infeasible, InvalidParameter)):
        measurement(question, Unit(), terms(epsilon=epsilon))


def test_an_error_that_any_noise_keeps_costs_next_to_nothing() -> None:
    question = understand("SELECT COUNT(*) FROM rows", CATALOG)
    settled = measurement(question, Unit(), terms(error="1e30")).noise_choice
    assert 0 < np.float64(settled.noise.epsilon) < 1e-9  # type: ignore[union-attr]
