"""Rows whose values at risk were left out in a report."""

from __future__ import annotations

from incrowd.methods.perturbation.picture import EVIDENCE, description, picture

__all__ = ["EVIDENCE", "description", "picture"]
