"""Formats: what `incrowd export` can write, each a function of a release and a new file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from incrowd.errors import InvalidParameter

FORMATS = {"onnx": "incrowd.workflows.export.onnx_model"}
"""Each format, and the module whose `exported` returns its bytes and what is to be said of them."""


@dataclass(frozen=True)
class Exported:
    """What a format makes of a release: the content of a file, and notes for people."""

    content: bytes
    notes: tuple[str, ...] = ()


def export(source: Path, to: str, file: Path) -> Exported:
    """Write a release in another format into a new file: it is read as anyone can read it, and costs nothing."""
    if to not in FORMATS:
        raise InvalidParameter(f"{to!r} is no format to export to: choose one of {', '.join(FORMATS)}.")
    if file.exists():
        raise InvalidParameter(f"{file} exists already, and nothing is overwritten: name a new file.")
    if not file.parent.is_dir():
        raise InvalidParameter(f"{file.parent} is no folder that a file could be written into.")
    make: Callable[[Path], Exported] = import_module(FORMATS[to]).exported
    made = make(source)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_bytes(made.content)
    partial.rename(file)
    return made
