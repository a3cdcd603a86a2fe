"""Rows drawn from a tree in a report."""

from __future__ import annotations

from incrowd.methods.synthesis.marginals.picture import EVIDENCE, description, picture

__all__ = ["EVIDENCE", "description", "picture"]
