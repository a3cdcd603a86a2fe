"""The file of pieces that were cut again and again, counted again as every table in classes is."""

from __future__ import annotations

from incrowd.core.steps.rows import Arrange, KeepRows, Recode
from incrowd.core.steps.step import Step
from incrowd.methods.anonymity.mondrian.steps import CutRows
from incrowd.methods.anonymity.syntactic.check import CLAIMS, contradiction, hidden, looks, recount, reopen
from incrowd.verifier.check import maybe, one

__all__ = ["CLAIMS", "ORDER", "STEPS", "contradiction", "hidden", "looks", "recount", "reopen"]

STEPS: tuple[type[Step], ...] = (KeepRows, Recode, CutRows, Arrange)
ORDER = (maybe(KeepRows), one(Recode), one(CutRows), one(Arrange))
