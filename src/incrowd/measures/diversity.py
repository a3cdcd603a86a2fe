"""Diversity: how many values a sensitive column shows in each group of rows that look alike."""

from __future__ import annotations

from incrowd.criteria.variety import distinct, entropy

__all__ = ["distinct", "entropy"]
