"""A private preview, checked and drawn: its noise fits what a person can move, and what it showed fits its choices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from incrowd.core.words import counted
from incrowd.drawing.markup import Description, table
from incrowd.drawing.picture import Picture
from incrowd.methods.anonymity.shared.classes import least_width
from incrowd.verifier.check import Check, CheckOutcome, Problem, failed
from incrowd.workflows.plan.preview.output import KeptChoices
from incrowd.workflows.plan.preview.steps import FINENESS, MeasureKept, RecodeAtSeveral

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.plan import Output
    from incrowd.core.statement import Statement


@dataclass(frozen=True, kw_only=True)
class PreviewCheck(Check):
    """A private preview is told by its certificate alone: its noise fits all that a person can move."""

    def contradiction(self, statement: Statement) -> Problem | None:
        recode, measured = statement.basis.need(RecodeAtSeveral), statement.basis.need(MeasureKept)
        if any(len(choice.levels) != len(recode.columns) for choice in measured.choices):
            return Problem("some choice has levels of columns that are not recoded")
        if any(choice.width < least_width(choice.k, choice.rate, FINENESS) for choice in measured.choices):
            return Problem("one row can change a choice by more than the steps say")
        sums = statement.evidence.get("sums")
        if not isinstance(sums, list) or len(sums) != len(measured.choices):
            return Problem("the evidence is not one number for each choice")
        return None

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        yield failed("files", "a private preview has no files: its certificate contains the result")

    def recount(self, statement: Statement, output: Output) -> Problem | None:
        if not isinstance(output, KeptChoices) or output.choices != statement.basis.need(MeasureKept).choices:
            return Problem("the output has other choices than those measured")
        return None if list(output.sums) == statement.evidence.get("sums") else Problem("the output has other numbers")

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Output:
        raise ValueError("a private preview has no files")


class PreviewPicture(Picture):
    """How many choices were weighed, and the table of what each is expected to keep."""

    evidence = MappingProxyType[str, str]({})

    def description(self, statement: Statement) -> Description:
        choices = counted(len(statement.basis.need(MeasureKept).choices), "choice")
        full = f"How many rows {choices} of levels, k and rate would keep, with noise; nobody's row."
        return Description("Noisy numbers", full, "noisy numbers of rows that choices would keep")

    def draw(self, statement: Statement, output: KeptChoices) -> Markup | None:
        rows = (
            (
                " ".join(map(str, estimate.levels.values())),
                estimate.k,
                str(estimate.rate),
                *(f"{number:,.0f}" for number in (estimate.expected, estimate.low, estimate.high)),
            )
            for estimate in output.estimates
        )
        return table("Rows that each choice is expected to keep", ("levels", "k", "rate", "kept", "from", "to"), rows)
