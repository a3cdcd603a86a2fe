"""Recount: the smallest class of what was really written, read again from the file."""

from __future__ import annotations

from pathlib import Path

from incrowd.engines.smallest import smallest_class
from incrowd.errors import PromiseBroken


def require_crowds(path: Path, columns: tuple[str, ...], k: int) -> None:
    """Raise unless every tuple in the written file occurs at least k times; an empty file has no tuple."""
    smallest = smallest_class(path, columns)
    if smallest is not None and smallest < k:
        raise PromiseBroken(
            "the written output does not keep its promise: some tuple occurs too rarely. Nothing was published; the "
            "charge stays spent. This is a fault in the software: please report it."
        )
