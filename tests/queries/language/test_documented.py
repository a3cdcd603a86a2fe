"""The page about the language names every function, its questions are answered, and its refusals are refusals."""

from __future__ import annotations

import doctest
import re
from typing import Any

import pytest

from incrowd.errors import QuestionRefused
from incrowd.queries.language.combining import interpret
from incrowd.queries.language.expressions.binder import FUNCTIONS
from incrowd.queries.question import Question
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
    assert all(part.aggregates for part in ((asked,) if isinstance(asked, Question) else asked.parts))


@pytest.mark.parametrize("sql", REFUSED)
def test_the_refusals_of_the_page_are_refused(sql: str, catalog: Any) -> None:
    with pytest.raises(QuestionRefused):
        interpret(sql, catalog)


def test_the_page_shows_refusals() -> None:
    assert len(REFUSED) >= 20


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_on_the_page(name: str) -> None:
    assert re.search(rf"`{name}\b", TEXT)
