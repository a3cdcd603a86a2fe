"""The page about the papers shows numbers that the library still computes, and names tests that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs import papers
from tests.docs.pages import DOCS

ROOT = DOCS.parent
PAGE = (DOCS / "explanation" / "papers.md").read_text(encoding="utf-8")
STORED: dict[str, Any] = json.loads((DOCS / "_static" / "papers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def computed() -> dict[str, Any]:
    return papers.data()


def test_table_1_is_what_the_library_computes(computed: dict[str, Any]) -> None:
    assert len(STORED["table1"]) == len(computed["table1"]) == 18
    for stored, cell in zip(STORED["table1"], computed["table1"], strict=True):
        assert (stored["rate"], stored["epsilon"]) == (cell["rate"], cell["epsilon"])
        assert stored["theorem1"] == pytest.approx(cell["theorem1"], rel=1e-9)
        assert stored["tight"] == pytest.approx(cell["tight"], rel=1e-9)


def test_the_page_prints_table_1() -> None:
    rows = [
        line for line in PAGE.split("<!-- table1 -->")[1].split("<!-- end")[0].splitlines() if line.startswith("| 0.")
    ]
    printed = [cell for row in rows for cell in row.strip("| ").split(" | ")[1:]]
    assert printed == [f"{cell['theorem1']:.2e} ({cell['tight']:.2e})" for cell in STORED["table1"]]


@pytest.mark.parametrize("number", range(2, 8))
def test_every_figure_shows_what_the_library_computes(number: int, computed: dict[str, Any]) -> None:
    stored, again = STORED[f"figure{number}"], computed[f"figure{number}"]
    assert list(stored) == list(again)
    for curve, points in again.items():
        assert len(points) > 20
        for (x, y), (x_again, y_again) in zip(stored[curve], points, strict=True):
            assert x == pytest.approx(x_again, abs=1e-6)
            assert y == pytest.approx(y_again, abs=2e-6), curve


@pytest.mark.parametrize("number", range(2, 8))
def test_every_figure_is_drawn_and_shown_with_an_alternative_text(number: int) -> None:
    picture = (DOCS / "_static" / f"figure{number}.svg").read_text(encoding="utf-8")
    assert picture.startswith("<svg")
    for curve in papers.figures()[f"figure{number}"].curves:
        assert curve.name in picture
    shown = PAGE.split(f"figure{number}.svg")[1].split("```")[0]
    assert re.search(r":alt: .{30,}", shown)


def named_tests() -> list[tuple[Path, str]]:
    return [(ROOT / path, name) for path, name in re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)]


def test_every_point_of_the_list_names_a_test() -> None:
    listed = PAGE.split("## What is wrong or loose")[1]
    points = re.split(r"^\d+\. ", listed, flags=re.MULTILINE)[1:]
    assert len(points) >= 20
    for point in points:
        assert "`tests/" in point, point[:80]


@pytest.mark.parametrize(("path", "name"), named_tests(), ids=lambda part: part if isinstance(part, str) else part.name)
def test_named_tests_exist(path: Path, name: str) -> None:
    assert re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE)
