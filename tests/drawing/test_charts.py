"""Charts show the numbers they are given."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.drawing.charts import (
    LEFT,
    TALL,
    TOP,
    WIDE,
    Area,
    IntervalEstimate,
    class_sizes,
    error_bars,
    ranges_of,
    rounded_up,
    ticks,
)
from incrowd.drawing.glyphs import CHANGES, START, picture, scenes


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=40))
def test_every_class_lies_in_exactly_one_bar(sizes: list[int]) -> None:
    ranges = ranges_of(np.array(sizes))
    assert len(ranges) <= 10
    assert ranges[0][0] == min(sizes)
    assert ranges[-1][1] == max(sizes)
    for size in sizes:
        assert sum(low <= size <= high for low, high in ranges) == 1


def test_the_histogram_tells_the_smallest_class() -> None:
    svg = str(class_sizes(np.array([50, 51, 72, 400, 3000])))
    assert "The smallest class has 50 rows, the largest 3,000 rows." in svg
    shares = [float(result) for result in re.findall(r"<td>([\d.]+)\u00a0%</td></tr>", svg)]
    assert sum(shares) == pytest.approx(100.0, abs=0.5)


@given(st.floats(1e-9, 1e9))
def test_axes_end_at_round_numbers_that_hold_the_values(value: float) -> None:
    assert value * (1 - 1e-9) <= rounded_up(value) <= 2.0 * value
    marks = ticks(rounded_up(value), 5)
    assert 2 <= len(marks) <= 7
    assert marks[-1] <= rounded_up(value) * (1 + 1e-9) + 1e-12


def test_an_area_puts_its_corners_at_its_corners() -> None:
    area = Area(0.0, 2.0, -10.0, 0.0)
    assert (area.x(0.0), area.x(2.0)) == (f"{LEFT:.2f}%", f"{LEFT + WIDE:.2f}%")
    assert (area.y(0.0), area.y(-10.0)) == (TOP, TOP + TALL)


def test_a_step_without_a_glyph_has_no_picture_and_changes_nothing() -> None:
    table, after, none, last = scenes(["drawn", None, "sorted"])
    assert none is None
    assert str(after).count('class="ghost"') == 2
    assert str(last).count('class="ghost"') == 0
    assert len({table, after, last}) == 3


@pytest.mark.parametrize("glyph", CHANGES)
def test_every_change_can_follow_every_other(glyph: str) -> None:
    assert all(svg is not None for svg in scenes([*CHANGES, glyph]))


def test_rows_that_go_are_drawn_as_going_and_then_not_at_all() -> None:
    gone = START.without((5, 9))
    assert picture(gone).count('class="ghost"') == 2
    assert len(gone.present) == len(START.present) - 2
    crossed = gone.without((3,), crossed=True)
    assert crossed.gone == ()
    assert picture(crossed).count("<path") == 1


def places(svg: str) -> list[float]:
    return [float(item) for item in re.findall(r'\b(?:cx|x1|x2)="([\d.]+)%"', svg)]


@pytest.mark.parametrize(
    "rendered",
    [
        [IntervalEstimate("a", 0.0)],
        [IntervalEstimate("a", -5.0, -9.0, -1.0)],
        [IntervalEstimate("a", 3.0, 1.0, 5.0), IntervalEstimate("b", -2.0, -4.0, 0.0)],
        [IntervalEstimate("a", 1e9, 0.0, math.inf), IntervalEstimate("b", 1e-9, None, None)],
        [IntervalEstimate("a", -0.02, 0.0, 0.1)],
    ],
)
def test_everything_lies_inside_the_picture(rendered: list[IntervalEstimate]) -> None:
    svg = str(error_bars("numbers", rendered))
    assert svg.count("<circle") == len(rendered)
    assert svg.count("whisker") == 3 * sum(item.low is not None for item in rendered)
    assert all(32.0 <= item <= 94.0 for item in places(svg))


def test_equal_distances_are_drawn_equal_and_names_are_text() -> None:
    svg = str(error_bars("<b>", [IntervalEstimate("<script>", 50.0, 40.0, 60.0)]))
    start, end = (float(item) for item in re.findall(r'x1="([\d.]+)%" x2="([\d.]+)%"[^>]*whisker', svg)[0])
    middle = float(re.findall(r'cx="([\d.]+)%"', svg)[0])
    assert middle - start == pytest.approx(end - middle, abs=0.02)
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg
