"""The page about the language names every function, its questions are answered, and its refusals are refusals."""

from __future__ import annotations

import doctest
import re
from typing import Any

import pytest

from incrowd.errors import QueryRefused
from incrowd.queries.language.expressions.table import FUNCTIONS, NAMES, OPERATORS
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.query import Query
from tests.docs.pages import DOCS, blocks

PAGE = DOCS / "reference" / "sql.md"
TEXT = PAGE.read_text(encoding="utf-8")
REFUSED = re.findall(r"^\| [^|`]+ \| `([^`]+)` \|", TEXT.split("## What is refused")[1], re.MULTILINE)


@pytest.fixture(scope="module")
def catalog() -> Any:
    """The catalog that the page declares."""
    names: dict[str, object] = {}
    for example in doctest.DocTestParser().get_examples(blocks(PAGE, "python")[0]):
        exec(example.source, names)
    return names["catalog"]


@pytest.mark.parametrize("sql", blocks(PAGE, "sql"))
def test_the_questions_of_the_page_are_answered(sql: str, catalog: Any) -> None:
    asked = interpret(sql, catalog)
    assert all(part.aggregates for part in ((asked,) if isinstance(asked, Query) else asked.parts))


@pytest.mark.parametrize("sql", REFUSED)
def test_the_refusals_of_the_page_are_refused(sql: str, catalog: Any) -> None:
    with pytest.raises(QueryRefused):
        interpret(sql, catalog)


def test_the_page_shows_refusals() -> None:
    assert len(REFUSED) >= 20


WORDS = {"INTERVAL", "CURRENT_DATE", "INTEGER", "DOUBLE", "TEXT", "DATE", "BOOLEAN"}
"""Words on the page that are neither functions nor operators."""


def _named(section: str) -> set[str]:
    return set(re.findall(r"`([A-Z][A-Z0-9_]*)", section))


def test_the_page_names_every_function_on_rows_and_none_that_is_not_in_the_table() -> None:
    section = TEXT.split("## Rows: expressions")[1].split("- Arithmetic needs")[0]
    operators = {word for function in OPERATORS for word in function.name.split() if word.isidentifier()}
    assert set(NAMES) <= _named(section) <= {*NAMES, *operators, *WORDS}


def test_the_page_names_every_function_on_answers_and_none_that_is_not_in_the_table() -> None:
    section = TEXT.split("## The answer")[1].split("`LIMIT` and")[0]
    answered = {function.name for function in FUNCTIONS if function.answered}
    assert _named(section) - {"SELECT", "HAVING", "ORDER", "CASE"} == answered


def test_the_page_about_places_names_what_postgresql_does_not_compute() -> None:
    page = (DOCS / "how-to" / "query.md").read_text(encoding="utf-8")
    sentence = page.split("and in PostgreSQL also")[1].split(".")[0]
    missing = {function.name for function in (*FUNCTIONS, *OPERATORS) if not function.in_postgres}
    assert set(re.findall(r"[A-Z]{3,}", sentence)) == missing - {"TRY_CAST"}, "TRY_CAST is local only"
