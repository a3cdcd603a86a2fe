"""A compiled template is used as long as its text, its options and Jinja are the same, else it is compiled anew."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jinja2
import pytest

from incrowd.drawing import templates
from incrowd.drawing.templates import TemplateCache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    (tmp_path / "page.html").write_text("{% if true %}\n{{ value }}{% endif %}")
    return tmp_path


def render(folder: Path, **options: Any) -> str:
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(folder), autoescape=True, **options)
    environment.bytecode_cache = TemplateCache(str(folder / "page.py"), environment)
    return environment.get_template("page.html").render(value="<a>")


def refuse(*_words: object, **_options: object) -> None:
    raise AssertionError("compiled again")


def test_a_template_is_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = render(folder)
    monkeypatch.setattr(jinja2.Environment, "compile", refuse)
    assert render(folder) == first == "\n&lt;a&gt;"


def test_another_text_or_option_or_version_is_compiled_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    render(folder)
    assert render(folder, trim_blocks=True) == "&lt;a&gt;"
    (folder / "page.html").write_text("{{ value }}{{ value }}")
    assert render(folder, trim_blocks=True) == "&lt;a&gt;&lt;a&gt;"
    monkeypatch.setattr(templates, "version", lambda _name: "another")
    monkeypatch.setattr(jinja2.Environment, "compile", refuse)
    with pytest.raises(AssertionError, match="compiled again"):
        render(folder, trim_blocks=True)


def test_a_damaged_file_is_compiled_anew(folder: Path) -> None:
    first = render(folder)
    (kept,) = (folder / "__pycache__").iterdir()
    kept.write_bytes(kept.read_bytes()[:-40])
    assert render(folder) == first
