"""Pandas, hidden from a command: no verb needs it, and its import takes longer than a small release."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoPandas:
    """Makes every import of pandas fail; it is a finder by its shape, since importing their class takes time."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden from the command line.", name=fullname)
        return None


def hide_pandas() -> None:
    """Hide pandas from this process, unless it is loaded already: other packages import it where it is installed."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas())


def show_pandas() -> None:
    """Undo `hide_pandas`.

    >>> hide_pandas()
    >>> show_pandas()
    >>> any(isinstance(finder, _NoPandas) for finder in sys.meta_path)
    False
    """
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _NoPandas)]
