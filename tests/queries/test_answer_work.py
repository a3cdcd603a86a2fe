"""What is computed from noisy numbers is bounded by the question, and no question makes it long."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.errors import QueryRefused
from incrowd.queries.answer_work import _AGGREGATE, _EVALUATION, MOST_ANSWER_STEPS, answer_steps
from incrowd.queries.batch import Batch
from incrowd.queries.combined_measurement import measure
from incrowd.queries.language.expressions import table
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import Measurement, measurement
from tests.queries.slow import KIN, joined
from tests.queries.test_work import CATALOG, ONE, OPEN, UNIT
from tests.workflows.query.test_service import asking, service_of

MANY = joined(2, "v1.age < 99", "v1.age AS a, v2.age AS b, v1.ward AS c, {}") + " GROUP BY v1.age, v2.age, v1.ward"


def texts(levels: int) -> str:
    """Return a question whose texts are twice as long after each step that is done with its answer."""
    asked = "SELECT ward AS s, COUNT(*) AS n FROM visits GROUP BY ward"
    for level in range(levels):
        asked = f"SELECT s || s AS s, SUM(n * n) AS n FROM ({asked}) AS t{level} GROUP BY s || s"
    return asked


def below(levels: int) -> str:
    """Return a question in which each level is computed from two numbers of the one below, all with intervals."""
    asked = "SELECT p.age, p.a, q.b FROM (SELECT age, COUNT(*) AS a FROM people GROUP BY age) AS p CROSS JOIN "
    asked += "(SELECT COUNT(*) AS b FROM people) AS q"
    for level in range(levels):
        asked = f"SELECT age, a + b AS a, a - b AS b FROM ({asked}) AS t{level}"
    return asked


def measured(sql: str) -> Measurement:
    question = understand(sql, CATALOG)
    return measurement(question, UNIT, ONE if question.public_keys else OPEN)


@pytest.mark.parametrize(
    "sql",
    [
        MANY.format("COUNT(*)") + " ORDER BY " + ", ".join(f"COUNT(*) + {each}" for each in range(60)),
        MANY.format("SUM(COUNT(*)) OVER (ORDER BY v1.age ROWS BETWEEN 1000 PRECEDING AND 1000 FOLLOWING)"),
        MANY.format(", ".join(f"COUNT(*) / {each} + 1" for each in range(2, 40))),
        texts(23),
    ],
)
def test_an_answer_that_would_take_long_is_refused(sql: str) -> None:
    """Each of these took minutes, or made a reply of a hundred megabytes, for next to no epsilon."""
    with pytest.raises(QueryRefused, match=r"this answer takes [0-9,]+ steps"):
        answer_steps(measured(sql), 50_000)


def test_what_analysts_ask_is_far_from_it_and_a_batch_is_counted_as_a_whole() -> None:
    usual = [measured(sql) for sql in (*KIN[-17:], texts(3), MANY.format("COUNT(*), AVG(v1.cost)"))]
    each = [answer_steps(one, 50_000) for one in usual]
    assert max(each) < MOST_ANSWER_STEPS / 4
    assert answer_steps(Batch(tuple(usual[:3]), UNIT, Fraction(0)), 50_000) == sum(each[:3])
    with pytest.raises(QueryRefused, match="this answer takes"):
        answer_steps(Batch(tuple(usual * 50), UNIT, Fraction(0)), 50_000)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT age, sex, COUNT(*) * 2 AS n FROM people GROUP BY age, sex HAVING COUNT(*) > -9 ORDER BY n DESC, age",
        "SELECT age, 100 * COUNT(*) / SUM(COUNT(*)) OVER () FROM people GROUP BY age",
        "SELECT age, RANK() OVER (PARTITION BY age % 3 ORDER BY COUNT(*) + 1, age) FROM people GROUP BY age",
        "SELECT k || k AS l, SUM(n) FROM (SELECT UPPER(sex) AS k, COUNT(*) AS n FROM people GROUP BY sex) GROUP BY l",
        "SELECT CASE WHEN age > 50 THEN 'old' ELSE 'young' END AS k, COUNT(*) + 1 FROM people GROUP BY ROLLUP (k)",
        "SELECT sex, COUNT(*) + 1 AS n FROM people GROUP BY sex UNION ALL SELECT 'a', COUNT(*) FROM people ORDER BY n",
        "SELECT age, 100 * COUNT(*) / (SELECT COUNT(*) FROM people) AS share FROM people GROUP BY age ORDER BY share",
        (
            "WITH a AS (SELECT age, COUNT(*) AS n FROM people GROUP BY age), b AS (SELECT age, AVG(age) AS m "
            "FROM people GROUP BY age) SELECT age, n * m + 1 AS t, RANK() OVER (ORDER BY n) FROM a JOIN b USING (age)"
        ),
        below(10),
    ],
)
def test_no_more_values_are_computed_than_the_bound_says(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service_of(tmp_path) as service:
        prepared = service.prepare(asking(sql))
        computed = Counter[str]()

        def counting(rule: Any) -> Any:
            def counted(node: Any, row: Any) -> object:
                computed["values"] += 1
                return rule(node, row)

            return counted

        rules = {kind: counting(rule) for kind, rule in table._RULES.items()}
        monkeypatch.setattr(table, "_RULES", rules)
        prepared.begin().finish()
        policy = service.planner.policies[0]
        found = measure(interpret(sql, service.planner.catalog), policy.schema.unit, asking(sql).terms)
        asked = sum(len(each.question.aggregates) for each in found.measurements)
        bound = answer_steps(found, 200) - _AGGREGATE * asked
        assert 0 < computed["values"] * _EVALUATION <= bound
        assert prepared.steps >= bound


def test_numbers_do_not_grow_beyond_all_measure(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        asked = service.ask(asking("SELECT SUM(n) AS n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)"))
        assert asked.answer.rows()[0]["n"] is not None
        huge = "SELECT sex AS s, COUNT(*) + 100 AS n FROM people GROUP BY sex"
        for level in range(12):
            huge = f"SELECT s, SUM(n * n) AS n FROM ({huge}) AS t{level} GROUP BY s"
        assert {row["n"] for row in service.ask(asking(huge)).answer.rows()} == {None}
