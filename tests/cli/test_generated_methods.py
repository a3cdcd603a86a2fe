"""Methods of dataclasses come from kept code only where their text is the same, and behave as if compiled here."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from incrowd.cli.generated_methods import GeneratedMethods


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "release"


def make(place: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...] = ("k", "rate")) -> type:
    methods = GeneratedMethods(place)
    with monkeypatch.context() as patch:
        patch.setattr(dataclasses, "exec", methods.execute, raising=False)
        made = dataclasses.make_dataclass("Made", names, frozen=True)
    methods.write()
    return made


def test_a_class_of_kept_methods_behaves_as_any_other(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, plain = make(place, monkeypatch), dataclasses.make_dataclass("Made", ("k", "rate"), frozen=True)
    size = place.stat().st_mtime_ns
    again = make(place, monkeypatch)
    assert place.stat().st_mtime_ns == size, "nothing was new"
    for made in (first, again):
        assert made(5, rate=1) == made(5, 1) != made(5, 2)
        assert hash(made(5, 1)) == hash(plain(5, 1))
        assert repr(made(5, 1)).endswith("Made(k=5, rate=1)")
        with pytest.raises(dataclasses.FrozenInstanceError):
            made(5, 1).k = 6


def test_other_fields_are_other_methods(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(place, monkeypatch)
    other = make(place, monkeypatch, ("rate", "k"))
    assert (other(1, 5).rate, other(1, 5).k) == (1, 5)


@pytest.mark.parametrize("content", [b"", b"no code", b"i\x01\x00\x00\x00"])
def test_a_damaged_file_is_written_anew(content: bytes, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write_bytes(content)
    assert make(place, monkeypatch)(5, 1).k == 5
    assert len(place.read_bytes()) > len(content)
