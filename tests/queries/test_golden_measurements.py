"""Golden: question and terms → statistics, loss, steps.  A change here is a change of a guarantee or a plan."""

from __future__ import annotations

import json

import pytest

from tests.golden.measurements.make import ASKED, FILE, measured

GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("place", range(len(ASKED)), ids=[sql for sql, _ in ASKED])
def test_a_question_is_measured_as_before(place: int) -> None:
    assert measured(*ASKED[place]) == GOLDEN[place]
