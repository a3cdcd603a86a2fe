"""The file of rows at the levels of several rounds, counted again as every table in classes is."""

from __future__ import annotations

from incrowd.core.steps.rows import Arrange, KeepRows, Recode
from incrowd.core.steps.step import Step
from incrowd.methods.anonymity.local.steps import CutRounds
from incrowd.methods.anonymity.syntactic.check import CLAIMS, contradiction, hidden, looks, recount, reopen
from incrowd.verifier.check import maybe, one

__all__ = ["CLAIMS", "ORDER", "STEPS", "contradiction", "hidden", "looks", "recount", "reopen"]

STEPS: tuple[type[Step], ...] = (KeepRows, Recode, CutRounds, Arrange)
ORDER = (maybe(KeepRows), one(Recode), one(CutRounds), one(Arrange))
