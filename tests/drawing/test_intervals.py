"""Error bars show every number on one scale, whatever its interval, and run nothing."""

from __future__ import annotations

import math
import re

import pytest

from incrowd.drawing.intervals import Estimated, error_bars


def places(drawn: str) -> list[float]:
    return [float(each) for each in re.findall(r'\b(?:cx|x1|x2)="([\d.]+)%"', drawn)]


@pytest.mark.parametrize(
    "shown",
    [
        [Estimated("a", 0.0)],
        [Estimated("a", -5.0, -9.0, -1.0)],
        [Estimated("a", 3.0, 1.0, 5.0), Estimated("b", -2.0, -4.0, 0.0)],
        [Estimated("a", 1e9, 0.0, math.inf), Estimated("b", 1e-9, None, None)],
        [Estimated("a", -0.02, 0.0, 0.1)],
    ],
)
def test_everything_lies_inside_the_picture(shown: list[Estimated]) -> None:
    drawn = str(error_bars("numbers", shown))
    assert drawn.count("<circle") == len(shown)
    assert drawn.count("whisker") == 3 * sum(each.low is not None for each in shown)
    assert all(32.0 <= each <= 94.0 for each in places(drawn))


def test_equal_distances_are_drawn_equal_and_names_are_text() -> None:
    drawn = str(error_bars("<b>", [Estimated("<script>", 50.0, 40.0, 60.0)]))
    start, end = (float(each) for each in re.findall(r'x1="([\d.]+)%" x2="([\d.]+)%"[^>]*whisker', drawn)[0])
    middle = float(re.findall(r'cx="([\d.]+)%"', drawn)[0])
    assert middle - start == pytest.approx(end - middle, abs=0.02)
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn
