"""Rows at privately chosen levels in a report: like safe microdata, at the levels that the evidence tells."""

from __future__ import annotations

from incrowd.methods.anonymity.safe.picture import EVIDENCE, description, picture

__all__ = ["EVIDENCE", "description", "picture"]
