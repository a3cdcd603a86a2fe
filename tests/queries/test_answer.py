"""The text of an answer says what its plain form says, whatever numbers it holds and however they lie in memory."""

from __future__ import annotations

import json
import math
from datetime import date

import pyarrow as pa
import pytest

from incrowd.queries.answer import Answer, AnswerColumn

ARRAYS = (
    pa.array([], pa.float64()),
    pa.array([0.0, -0.0, 1e16, 1e22, 5e-324, 1.7976931348623157e308, 0.1]),
    pa.array([1.5, None, math.nan, math.inf, -math.inf]),
    pa.array([None, None], pa.float64()),
    pa.array([2**63 - 1, -(2**63), 0, None]),
    pa.array([9, 1, 2, 9]).slice(1, 2),
    pa.array(["", '\u2028\x00\x7f\b"\\', "😀", "NaN", None]),
    pa.array([True, None, False]),
    pa.array([date(1, 1, 2), None, date(9999, 12, 31)]),
    pa.chunked_array([[1.5], [2.5]]),
)


@pytest.mark.parametrize("values", ARRAYS, ids=lambda values: str(values.type))
def test_the_text_of_an_answer_is_that_of_its_plain_form(values: pa.Array) -> None:
    ends = pa.array([1.0] * len(values), pa.float64())
    answer = Answer((AnswerColumn("é", values, ends, ends, "note"),), "all", (0,))
    read, plain = json.loads(answer.to_text()), answer.to_json()
    assert repr(read) == repr(plain)
    assert repr(Answer.from_json(read).to_json()) == repr(plain)
