"""A question is understood as it was: same rows, same keys, same aggregates, same contribution."""

from __future__ import annotations

import json

import pytest

from incrowd.queries.language.understanding import understand
from tests.golden.questions.make import FILE, QUESTIONS, plain
from tests.queries.language.hospital import CATALOG

UNDERSTOOD = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_question_is_understood_as_it_was(sql: str) -> None:
    assert json.loads(json.dumps(plain(understand(sql, CATALOG)))) == UNDERSTOOD[sql]


def test_every_golden_question_is_asked() -> None:
    assert list(UNDERSTOOD) == list(QUESTIONS)
