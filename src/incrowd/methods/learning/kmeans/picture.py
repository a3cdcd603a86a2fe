"""A learned model in a report."""

from __future__ import annotations

from incrowd.methods.learning.picture import EVIDENCE, description, picture

__all__ = ["EVIDENCE", "description", "picture"]
