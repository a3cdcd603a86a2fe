"""Rows with missing cells in a report: their crowds, the sizes of their classes, and how many cells are empty."""

from __future__ import annotations

from incrowd.methods.anonymity import classes
from incrowd.methods.anonymity.classes import description, picture

__all__ = ["EVIDENCE", "description", "picture"]

EVIDENCE = {**classes.EVIDENCE, "missing cells": "Empty cells in the quasi-identifiers"}
