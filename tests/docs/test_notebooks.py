"""Notebooks of the docs: every one runs from top to bottom, and what it shows is short, in text and as HTML."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PERSONAS = (
    "analyst",
    "data-platform",
    "data-scientist",
    "hospital-researcher",
    "open-data-team",
    "repository",
    "statistical-office",
    "statistician",
)
LINES, WIDE = 100, 120_000


def run(code: str, names: dict[str, Any]) -> Any:
    """Run a cell as a kernel does, and return the value of a last line that is an expression."""
    tree = ast.parse(code)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compile(tree, "cell", "exec"), names)
    value = last.value if isinstance(last, ast.Expr) else ast.Constant(None, lineno=1, col_offset=0)
    return eval(compile(ast.Expression(value), "cell", "eval"), names)


def test_there_is_one_for_each_persona() -> None:
    names = [path.stem for path in NOTEBOOKS]
    assert names == [*PERSONAS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.stem))
def test_a_notebook_runs_and_shows_little(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    notebook = json.loads(path.read_text(encoding="utf-8"))
    shown = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []  # what it prints is not stored: it would grow old
        value = run("".join(cell["source"]), names)
        if value is not None:
            shown += 1
            text = repr(value)
            assert len(text.splitlines()) < LINES
            assert len(text) < 5000
            html = value._repr_html_() if hasattr(value, "_repr_html_") else ""
            assert html is None or len(html) < WIDE
    assert shown >= 3
