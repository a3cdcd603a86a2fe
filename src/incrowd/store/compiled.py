"""Compiled: code that was made from text once, kept beside Python's own compiled modules and trusted as they are.

Whoever can write there can change the compiled modules themselves.  As with them, nothing is written where Python is
told not to write any, or may not: then the text is compiled in each process.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path


def compiled_place(module: str, name: str) -> Path:
    """Return where code named so is kept for the module in a file, by this version of Python.

    >>> compiled_place("/lib/page.py", "page.html").name
    'page.html.cpython-...'
    """
    return Path(cache_from_source(module)).with_name(f"{name}.{sys.implementation.cache_tag}")


def read_compiled(place: Path) -> bytes | None:
    """Return what is kept at a place, or None."""
    try:
        return place.read_bytes()
    except OSError:
        return None


def write_compiled(place: Path, content: bytes) -> None:
    """Keep something at a place, at once or not at all."""
    if sys.dont_write_bytecode:
        return
    fresh = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(content)
        fresh.replace(place)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
