"""Closeness: how far a sensitive column in a group is from the same column in the whole table."""

from __future__ import annotations

from incrowd.criteria.distances import equal, ordered

__all__ = ["equal", "ordered"]
