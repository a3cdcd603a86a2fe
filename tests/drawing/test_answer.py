from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.drawing.answer import RenderedColumn, _down, render_answer, up
from incrowd.drawing.card import FIRST_ROWS, card, facts, grid

SEX = RenderedColumn("sex", ["F", "M", "other", None])


def counts(*values: int) -> RenderedColumn:
    return RenderedColumn("n", values, [max(0.0, value - 10.0) for value in values], [value + 10.0 for value in values])


def test_groups_that_may_be_empty_are_one_line() -> None:
    assert render_answer([SEX, counts(90, 70, 3, 0)], [2, 3]).lines[-1] == ("undeclared (2)", "0 to 13")


def test_a_group_that_surely_has_somebody_keeps_its_line() -> None:
    result = render_answer([SEX, counts(90, 70, 30, 0)], [2, 3])
    assert result.folded == 0
    assert result.lines[2:] == (("other", "30 ± 10"), ("–", "0 (0 to 10)"))


def test_nothing_is_folded_where_no_column_names_the_groups() -> None:
    assert render_answer([counts(90, 70, 3, 0)], [2, 3]).folded == 0


@given(st.floats(allow_nan=False, allow_infinity=False, width=64), st.integers(1, 9))
def test_ends_are_rounded_outwards(end: float, digits: int) -> None:
    low, high = (Decimal(text.replace(",", "")) for text in (_down(end, digits), up(end, digits)))
    if 1e-6 <= abs(end) < 1e15 or end == 0.0:
        assert low <= Decimal(repr(end)) <= high


@pytest.mark.parametrize("text", ["<script>", "a & b", '"quoted"'])
def test_a_card_shows_text_as_text(text: str) -> None:
    whole = card(text, facts([(text, text)]), grid([text], [[text]]), note=text)
    assert "<script>" not in whole
    assert text not in whole or text == '"quoted"'


def test_a_table_says_how_many_rows_there_are() -> None:
    assert "1,234 rows" in grid(["n"], [[number] for number in range(FIRST_ROWS)], 1234)
