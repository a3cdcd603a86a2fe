"""Rows at levels of several rounds in a report: their crowds, and the sizes of their classes."""

from __future__ import annotations

from incrowd.methods.anonymity.classes import EVIDENCE, description, picture

__all__ = ["EVIDENCE", "description", "picture"]
