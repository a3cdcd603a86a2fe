"""Compiled code is kept only where Python keeps its own, and never in place of another text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from incrowd.store.compiled import compiled_place, read_compiled, write_compiled


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    return compiled_place(str(tmp_path / "page.py"), "page.html")


def test_what_was_written_is_read_again(place: Path) -> None:
    assert read_compiled(place) is None
    write_compiled(place, b"code")
    assert read_compiled(place) == b"code"
    assert [file.name for file in place.parent.iterdir()] == [place.name]


def test_nothing_is_written_where_python_may_not_write(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write_compiled(place, b"code")
    assert not place.parent.exists()


def test_a_folder_that_cannot_be_made_is_no_error(place: Path) -> None:
    place.parent.write_text("a file")
    write_compiled(place, b"code")
    assert read_compiled(place) is None
