"""The same question has one text, however it is written; different questions never share one."""

from __future__ import annotations

import itertools

import pytest

from incrowd.queries.language.normal import normal_text
from incrowd.queries.language.reading import read
from incrowd.queries.language.trees import copied
from incrowd.queries.language.understanding import understand
from tests.golden.questions.make import QUESTIONS
from tests.queries.language.hospital import CATALOG

SAME = (
    (
        "SELECT ward, COUNT(*) FROM visits WHERE age > 5 AND smoker GROUP BY ward",
        "select  Ward ,\n count( * ) from VISITS where SMOKER and ((age > 5)) group by WARD -- comment",
        "SELECT v.ward, COUNT(*) FROM visits AS v WHERE (v.age > 5) AND v.smoker GROUP BY v.ward;",
        'SELECT "ward", COUNT(*) FROM "visits" WHERE smoker AND age > 5 AND smoker GROUP BY 1',
        "/* hello */ (SELECT ward, COUNT(*) FROM visits x WHERE x.smoker AND x.age > 5 GROUP BY ALL)",
    ),
    (
        "SELECT AVG(age) FROM visits WHERE ward IN ('a', 'b') OR note = 'x' OR smoker",
        "SELECT AVG(age) FROM visits WHERE (smoker OR note = 'x') OR ward IN ('b', 'a', 'b')",
        """SELECT AVG(age) FROM visits WHERE ward = ANY('{b,"a"}') OR note = 'x' OR smoker""",
    ),
    (
        "SELECT STRFTIME(day, '%Y-%m') AS month, COUNT(*) FROM visits GROUP BY month",
        "SELECT TO_CHAR(day, 'YYYY-MM') AS month, COUNT(*) FROM visits GROUP BY month",
    ),
    (
        "SELECT AVG(x) FROM (SELECT age AS x FROM visits)",
        "WITH q AS (SELECT age AS x FROM visits) SELECT AVG(x) FROM q",
        "SELECT AVG(z.x) FROM (SELECT y.age AS x FROM visits y) AS z",
    ),
    (
        "SELECT AVG(a.age - b.age) FROM visits a JOIN visits b ON a.patient = b.patient",
        "SELECT AVG(one.age - two.age) FROM visits one INNER JOIN visits two ON (one.patient = two.patient)",
    ),
    (
        "SELECT QUANTILE_CONT(age, 0.5) FROM visits",
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM visits",
    ),
)
DIFFERENT = (
    "SELECT AVG(age) FROM visits",
    "SELECT AVG(age) AS mean FROM visits",
    "SELECT AVG(age) FROM rows",
    "SELECT SUM(age) FROM visits",
    "SELECT AVG(age) FROM visits WHERE smoker",
    "SELECT AVG(age) FROM visits WHERE NOT smoker",
    "SELECT AVG(age) FROM visits WHERE smoker AND age > 1 OR age > 2",
    "SELECT AVG(age) FROM visits WHERE smoker AND (age > 1 OR age > 2)",
    "SELECT AVG(age - 1 - 2) FROM visits",
    "SELECT AVG(age - (1 - 2)) FROM visits",
    "SELECT AVG(age / 2 / 3) FROM visits",
    "SELECT AVG(age / (2 / 3)) FROM visits",
    "SELECT AVG(-age % 3) FROM visits",
    "SELECT AVG(-(age % 3)) FROM visits",
    "SELECT AVG(age) FROM visits WHERE note = 'a'",
    "SELECT AVG(age) FROM visits WHERE note = 'A'",
    "SELECT AVG(age) FROM visits WHERE note = 'a '",
    "SELECT AVG(age) FROM visits WHERE NOT (smoker AND age > 1)",
    "SELECT AVG(age) FROM visits WHERE NOT smoker AND age > 1",
    "SELECT AVG(age) FROM visits LIMIT 1",
    "SELECT AVG(a.age - b.age) FROM visits a JOIN visits b ON a.patient = b.patient",
    "SELECT AVG(b.age - a.age) FROM visits a JOIN visits b ON a.patient = b.patient",
    "SELECT AVG(a.age - b.age) FROM visits a LEFT JOIN visits b ON a.patient = b.patient",
)


@pytest.mark.parametrize("texts", SAME)
def test_ways_to_write_a_question_share_a_text_and_a_meaning(texts: tuple[str, ...]) -> None:
    questions = [understand(text, CATALOG) for text in texts]
    assert len({question.text for question in questions}) == 1
    assert len({question.rows.sql("duckdb") for question in questions}) == 1


def test_different_questions_have_different_texts() -> None:
    texts = [normal_text(sql) for sql in DIFFERENT]
    for one, other in itertools.combinations(texts, 2):
        assert one != other


@pytest.mark.parametrize("sql", [*QUESTIONS, *DIFFERENT])
def test_the_normal_form_is_a_question_with_the_same_meaning(sql: str) -> None:
    question = understand(sql, CATALOG)
    again = understand(question.text, CATALOG)
    assert again.text == question.text
    assert again.rows.sql("duckdb") == question.rows.sql("duckdb")
    assert [output.name for output in again.outputs] == [output.name for output in question.outputs]


def test_the_answer_keeps_the_names_that_were_asked_for() -> None:
    question = understand(
        'SELECT ward AS "My Ward", COUNT(*) AS N, AVG(age), AVG(cost) AS n FROM rows GROUP BY ward', CATALOG
    )
    assert [output.name for output in question.outputs] == ["My Ward", "n", "avg(age)", "n_2"]


@pytest.mark.parametrize("sql", sorted({text for texts in SAME for text in texts}))
def test_a_copy_of_a_tree_is_the_same_and_shares_no_node(sql: str) -> None:
    tree = read(sql)
    copy = copied(tree)
    assert copy == tree
    assert copy.sql("duckdb", comments=False) == tree.sql("duckdb", comments=False)
    assert not {id(node) for node in copy.walk()} & {id(node) for node in tree.walk()}
    assert all(node.parent is not None for node in copy.walk() if node is not copy)
