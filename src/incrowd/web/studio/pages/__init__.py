"""The pages of the studio, in the order of the menu: one file each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from incrowd.web.studio.page import Page

PAGES = (
    *("open", "columns", "hierarchies", "output", "workbench", "plan", "released", "proof", "lattice", "policy"),
    *("board", "verify", "console", "users", "map", "consent", "survey", "graph"),
)
"""Every page, by the name of its file; the road from a table to a release comes first, then the tools."""


def pages() -> tuple[Page, ...]:
    """Return every page."""
    return tuple(cast("Page", import_module(f"{__package__}.{name}").PAGE) for name in PAGES)
