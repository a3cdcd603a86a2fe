"""Charts show the numbers they are given."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import incrowd.workflows.report
from incrowd.accounting.suppression import tight_delta
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Crowd, Pure, Sampled
from incrowd.core.unit import Unit
from incrowd.workflows.report.axes import LEFT, TALL, TOP, WIDE, Area, rounded_up, ticks
from incrowd.workflows.report.charts import class_sizes, curve, loss_curve, ranges_of
from incrowd.workflows.report.glyphs import START, picture
from incrowd.workflows.report.odds import Odds
from tests.workflows.certificates import counted, policy

ODDS = Odds(Decimal("0.5"), Decimal("1e-9"))
PROMISE = Guarantee(Sampled(Fraction(1, 10), Crowd(20)), Unit(), "the tight curve", delta=Fraction(1, 10**9))
STYLE = (Path(incrowd.workflows.report.__file__).parent / "style.css").read_text(encoding="utf-8")


def test_the_curve_is_the_tight_one_and_reaches_past_the_promise() -> None:
    points = curve(PROMISE, ODDS)
    assert points[0].epsilon == 0.0
    assert points[-1].epsilon == 1.0
    for point in points[::6]:
        assert point.delta == pytest.approx(tight_delta.delta(20, "0.1", repr(point.epsilon)), rel=1e-9)


def test_the_promised_point_lies_on_or_above_the_curve() -> None:
    below = [point for point in curve(PROMISE, ODDS) if point.epsilon <= 0.5]
    assert below[-1].delta <= float(ODDS.delta)


def test_the_promised_point_is_drawn_where_it_belongs() -> None:
    drawn = str(loss_curve(PROMISE, ODDS))
    mark = re.search(r'<circle cx="([\d.]+)%" cy="([\d.]+)"', drawn)
    assert mark is not None
    assert float(mark[1]) == pytest.approx(LEFT + WIDE * 0.5, abs=0.01)
    assert float(mark[2]) == pytest.approx(TOP + TALL * 9 / 14, abs=0.1)


def test_no_curve_is_drawn_where_there_is_none() -> None:
    assert loss_curve(PROMISE, Odds(Decimal("Infinity"), Decimal(0))) is None
    pure = Guarantee(Pure(Fraction(1)), Unit(), "Laplace noise")
    assert loss_curve(pure, Odds(Decimal(1), Decimal(0))) is None


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=40))
def test_every_class_lies_in_exactly_one_bar(sizes: list[int]) -> None:
    ranges = ranges_of(np.array(sizes))
    assert len(ranges) <= 10
    assert ranges[0][0] == min(sizes)
    assert ranges[-1][1] == max(sizes)
    for size in sizes:
        assert sum(low <= size <= high for low, high in ranges) == 1


def test_the_histogram_tells_the_smallest_class() -> None:
    counts = counted(policy()).at_least(50)
    drawn = str(class_sizes(counts))
    assert f"The smallest class has {int(counts.counts.min())} rows" in drawn
    shares = [float(found) for found in re.findall(r"<td>([\d.]+)\u00a0%</td></tr>", drawn)]
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


def test_rows_that_go_are_drawn_as_going_and_then_not_at_all() -> None:
    gone = START.without((5, 9))
    assert picture(gone).count('class="ghost"') == 2
    assert len(gone.present) == len(START.present) - 2
    crossed = gone.without((3,), crossed=True)
    assert crossed.gone == ()
    assert picture(crossed).count("<path") == 1


def colors(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255.0 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_text_stands_out_from_its_page(mode: str) -> None:
    """WCAG 2.2, success criterion 1.4.3: a contrast of at least 4.5 to 1."""
    blocks = dict(zip(("light", "dark", "print"), re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL), strict=True))
    found = colors(blocks[mode])
    for ink in ("ink", "faint", "accent", "good", "warn", "bad"):
        for page in ("page", "soft", *(["bad-soft"] if ink in ("bad", "ink") else [])):
            bright, dim = sorted((luminance(found[ink]), luminance(found[page])), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) >= 4.5, f"{ink} on {page}"
