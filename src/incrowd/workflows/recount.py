"""Recount: the smallest class of what was really written, read again from the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.engines.smallest import smallest_class
from incrowd.errors import PromiseBroken

if TYPE_CHECKING:
    from incrowd.core.counts import Counts


def require_crowds(path: Path, columns: tuple[str, ...], k: int) -> None:
    """Raise unless every tuple in the written file occurs at least k times; an empty file has no tuple."""
    _require(smallest_class(path, columns), k)


def require_counted(counts: Counts, k: int) -> None:
    """Raise unless every tuple of a release that stays in memory occurs at least k times."""
    _require(int(counts.counts.min()) if len(counts) else None, k)


def _require(smallest: int | None, k: int) -> None:
    if smallest is not None and smallest < k:
        raise PromiseBroken(
            "the output does not keep its promise: some tuple occurs too rarely. Nothing was published; the charge "
            "stays spent. This is a fault in the software: please report it."
        )
