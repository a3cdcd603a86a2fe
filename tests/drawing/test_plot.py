"""Plots: what they show can be read off the file, and the file needs nothing else."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.drawing.plot import AxisScale, Curve, Plot, looks

TWO = (Curve("tight", ((0.0, -2.0), (1.0, -9.0))), Curve("Theorem 1", ((0.5, -3.0), (1.0, -8.0))))
PLOT = Plot("δ over <ε> & more", "ε", "δ", TWO, mark=(0.5, -5.5))
SVG = "{http://www.w3.org/2000/svg}"


def parsed(plot: Plot) -> ET.Element:
    return ET.fromstring(plot.svg())


def texts(plot: Plot) -> list[str]:
    return [text.text or "" for text in parsed(plot).iter(f"{SVG}text")]


def test_a_plot_is_a_picture_with_a_title_and_a_description() -> None:
    root = parsed(PLOT)
    title, description = (root.find(f"{SVG}{name}") for name in ("title", "desc"))
    assert title is not None
    assert description is not None
    assert (root.get("role"), title.text) == ("img", "δ over <ε> & more")
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert description.text == "δ from 1e-9 to 1e-2 over ε from 0 to 1. Curves: tight; Theorem 1."


def test_a_plot_runs_no_script_and_loads_nothing() -> None:
    assert not re.search(r"<script|href|url\(|@import|<image|<foreignObject", PLOT.svg())


def test_axes_curves_and_legend_are_labeled() -> None:
    assert {"ε", "δ", "tight", "Theorem 1", "0", "0.4", "1", "1e-5"} <= {*texts(PLOT)}


def test_a_curve_runs_where_its_points_are() -> None:
    """The curves share the frame of the axes: their ends lie at the ticks of the same values."""
    root = parsed(Plot("t", "x", "y", (Curve("line", ((0.0, 0.0), (2.0, -10.0))),)))
    line = root.find(f"{SVG}polyline")
    assert line is not None
    (x0, y0), (x1, y1) = ([float(part) for part in pair.split(",")] for pair in line.get("points", "").split())
    grid = [part for part in root.iter(f"{SVG}line") if part.get("class") == "grid"]
    assert {y0, y1} == {float(grid[0].get("y1", "")), float(grid[-1].get("y1", ""))}
    assert (x0, x1) == (float(grid[0].get("x1", "")), float(grid[0].get("x2", "")))
    assert y0 < y1


def test_a_mark_without_a_finite_height_is_left_out() -> None:
    assert parsed(PLOT).find(f"{SVG}circle") is not None
    assert parsed(Plot("t", "x", "y", TWO, mark=(0.5, float("-inf")))).find(f"{SVG}circle") is None


def test_curves_without_points_still_make_a_picture() -> None:
    assert "nothing" in texts(Plot("t", "x", "y", (Curve("nothing", ()),)))


def test_curves_of_two_kinds_share_a_color_and_differ_in_dashes() -> None:
    published, tight = looks((Curve("k = 5", (), "Theorem 1"), Curve("k = 5", (), "tight")))
    assert published.color == tight.color
    assert published.dashes != tight.dashes


def test_curves_without_kinds_differ_in_color_and_dashes() -> None:
    result = looks(tuple(Curve(f"β = {rate}", ()) for rate in (1, 2, 3, 4, 5)))
    assert len({look.color for look in result}) == len({look.dashes for look in result}) == 5


def test_a_plot_can_be_read_in_the_dark() -> None:
    style = parsed(PLOT).find(f"{SVG}style")
    assert style is not None
    assert "prefers-color-scheme: dark" in (style.text or "")
    for look in looks(TWO):
        assert f".c{look.color} {{ stroke:" in (style.text or "")


def test_a_long_title_is_broken_into_lines() -> None:
    title = "Crowd-blending after sampling, k = 20, crowd ε = 0.5, rate 0.1, and some words more than fit"
    lines = [text for text in texts(Plot(title, "ε", "δ", TWO)) if text in title and len(text) > 10]
    assert len(lines) == 2
    assert " ".join(lines) == title


numbers = st.floats(-1e9, 1e9)


@given(values=st.lists(numbers, min_size=1, max_size=5), most=st.integers(3, 9))
def test_an_axis_holds_all_values_between_its_first_and_its_last_tick(values: list[float], most: int) -> None:
    scale = AxisScale.of(values, most)
    slack = 1e-6 * (scale.high - scale.low)
    assert slack > 0
    assert scale.low - slack <= min(values) <= max(values) <= scale.high + slack
    assert len(scale.ticks) <= most + 2


@pytest.mark.parametrize(("low", "high"), [(-3.4, -2.9), (-400.0, -1.0), (0.0, 0.0)])
def test_powers_of_ten_have_whole_ticks(low: float, high: float) -> None:
    assert all(tick == int(tick) for tick in AxisScale.of([low, high], 8, whole=True).ticks)
