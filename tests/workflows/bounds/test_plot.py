from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from incrowd.drawing.plot import Curve, Plot
from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.workflows.bounds.crowd import CrowdQuestion
from incrowd.workflows.bounds.crowd import solve as solve_crowd
from incrowd.workflows.bounds.plot import crowd_curve, draw, safe_curve
from incrowd.workflows.bounds.safe import SafeQuestion, solve

PLOT = Plot("A <title> & more", "ε", "δ", (Curve("one", ((0.0, -1.0), (1.0, -400.0))), Curve("two", ((0.0, -2.0),))))


def test_a_page_refers_to_nothing_outside_itself(tmp_path: Path) -> None:
    draw(PLOT, str(tmp_path / "plot.html"))
    page = (tmp_path / "plot.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|//|<script|<link|@import|url\(", page)


def test_a_page_holds_the_numbers_for_those_who_do_not_see_the_picture(tmp_path: Path) -> None:
    draw(PLOT, str(tmp_path / "plot.html"))
    page = (tmp_path / "plot.html").read_text(encoding="utf-8")
    assert "<th scope='row'>one<td>1<td>1e-400.000" in page
    assert "A &lt;title&gt; &amp; more" in page
    assert "<title>A <title>" not in page


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("html", b"<!doctype html>"), ("SVG", b"<svg")])
def test_the_ending_decides_the_format(tmp_path: Path, ending: str, start: bytes) -> None:
    draw(PLOT, str(tmp_path / f"plot.{ending}"))
    assert (tmp_path / f"plot.{ending}").read_bytes().startswith(start)


def test_a_plot_replaces_an_older_one_whole(tmp_path: Path) -> None:
    (tmp_path / "plot.svg").write_text("old", encoding="utf-8")
    draw(PLOT, str(tmp_path / "plot.svg"))
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8").endswith("</svg>")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("ending", ["png", "pdf", ""])
def test_an_unknown_ending_is_refused_with_a_way_to_convert(tmp_path: Path, ending: str) -> None:
    with pytest.raises(InvalidParameter, match=r"\.svg or \.html.* convert the \.svg"):
        draw(PLOT, str(tmp_path / f"plot.{ending}"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputUnavailable):
        draw(PLOT, str(tmp_path / "nowhere" / "plot.svg"))


def test_the_curve_passes_through_the_guarantee_that_was_asked_for() -> None:
    found = solve(SafeQuestion(20, "0.1", "0.5"))
    plot = safe_curve(found)
    tight, theorem = plot.curves
    assert plot.mark == (0.5, found.log10_delta)
    assert dict(tight.points)[0.5] == pytest.approx(found.log10_delta)
    assert min(x for x, _ in theorem.points) >= 0.10536
    assert len(tight.points) == 121


def test_a_delta_of_zero_is_left_out_of_the_curve() -> None:
    found = solve_crowd(CrowdQuestion(20, "0.1", epsilon="0.5"))
    assert all(y > -sys.float_info.max for _, y in crowd_curve(found).curves[0].points)
