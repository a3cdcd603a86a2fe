"""Formats: what `incrowd export` can write, each a function of a release and of what its holder adds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from incrowd.errors import InvalidParameter

FORMATS = {
    "onnx": "incrowd.workflows.export.onnx_model",
    "croissant": "incrowd.workflows.export.croissant",
    "ro-crate": "incrowd.workflows.export.ro_crate",
    "ddi": "incrowd.workflows.export.ddi",
    "dp-registry": "incrowd.workflows.export.deployment",
}
"""Each format, and the module whose `exported` returns its bytes and what is to be said of them."""


@dataclass(frozen=True)
class PublisherInfo:
    """What no certificate knows, and forms ask for: who publishes, under which licence, at which address."""

    curator: str | None = None
    license: str | None = None
    url: str | None = None


@dataclass(frozen=True)
class Exported:
    """What a format makes of a release: the content of a file, and notes for people.

    Where the format is a folder, the file has a `name` in it, and `files` are copied beside it.
    """

    content: bytes
    notes: tuple[str, ...] = ()
    name: str | None = None
    files: tuple[Path, ...] = ()


def exported(source: Path, to: str, holder: PublisherInfo | None = None) -> Exported:
    """Return a release in another format: it is read as anyone can read it, and costs nothing."""
    make: Callable[[Path, PublisherInfo], Exported] = import_module(_module(to)).exported
    return make(source, holder or PublisherInfo())


def _module(to: str) -> str:
    if to not in FORMATS:
        raise InvalidParameter(f"{to!r} is no format to export to: choose one of {', '.join(FORMATS)}.")
    return FORMATS[to]


def export(source: Path, to: str, out: Path, holder: PublisherInfo | None = None) -> Exported:
    """Write a release in another format to a new file, or to a new folder where the format is one."""
    _module(to)
    if out.exists():
        raise InvalidParameter(f"{out} exists already, and nothing is overwritten: name a new one.")
    if not out.parent.is_dir():
        raise InvalidParameter(f"{out.parent} is no folder that anything could be written into.")
    made, partial = exported(source, to, holder), out.with_name(f".{out.name}.{os.getpid()}")
    try:
        _write(made, partial)
        partial.rename(out)
    except OSError as error:
        raise InvalidParameter(f"{out} cannot be written: {error.strerror or 'no reason given'}.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if partial.is_file():
            partial.unlink()
    return made


def _write(made: Exported, path: Path) -> None:
    if made.name is None:
        path.write_bytes(made.content)
        return
    path.mkdir()
    for file in made.files:
        shutil.copyfile(file, path / file.name)
    (path / made.name).write_bytes(made.content)
