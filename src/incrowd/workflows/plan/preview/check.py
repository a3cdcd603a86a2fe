"""A private look, checked: its noise is made for all that a person can move, and what it showed fits its choices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.step import Step
from incrowd.methods.anonymity.scheme.check import least_width
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one
from incrowd.workflows.plan.preview.output import KeptChoices
from incrowd.workflows.plan.preview.steps import FINENESS, MeasureKept, RecodeAtSeveral

STEPS: tuple[type[Step], ...] = (KeepRows, RecodeAtSeveral, MeasureKept)
CLAIMS: tuple[type[Claim], ...] = (PurePrivacy,)
ORDER = (maybe(KeepRows), one(RecodeAtSeveral), one(MeasureKept))


def contradiction(statement: Statement) -> Problem | None:
    """Return that a row can move some choice further than the noise is made for, or that levels do not fit; or None."""
    recode, measured = statement.basis.need(RecodeAtSeveral), statement.basis.need(MeasureKept)
    if any(len(choice.levels) != len(recode.columns) for choice in measured.choices):
        return Problem("some choice has levels of columns that are not recoded")
    if any(choice.width < least_width(choice.k, choice.rate, FINENESS) for choice in measured.choices):
        return Problem("one row can change a choice by more than the steps say")
    sums = statement.evidence.get("sums")
    if not isinstance(sums, list) or len(sums) != len(measured.choices):
        return Problem("the evidence is not one number for each choice")
    return None


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:  # noqa: ARG001 - every check has it
    """Say that a look is told by its certificate alone."""
    yield CheckOutcome("files", Problem("a private preview has no files: its certificate contains the result"), "")


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold what was shown against the statement."""
    if not isinstance(output, KeptChoices) or output.choices != statement.basis.need(MeasureKept).choices:
        return Problem("the output has other choices than those measured")
    return None if list(output.sums) == statement.evidence.get("sums") else Problem("the output has other numbers")


def reopen(statement: Statement, files: tuple[Path, ...]) -> Output:  # noqa: ARG001 - every check has it
    """Refuse: there is no file."""
    raise ValueError("a private preview has no files")
