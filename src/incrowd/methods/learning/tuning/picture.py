"""A tuned model in a report: that it is the best of several, and what each class of its columns adds to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.core.words import counted
from incrowd.drawing.markup import EMPTY, Description
from incrowd.methods.learning.picture import EVIDENCE, picture
from incrowd.methods.learning.steps import LearnFrom
from incrowd.methods.learning.tuning.steps import TryModels

if TYPE_CHECKING:
    from incrowd.core.statement import Statement

__all__ = ["EVIDENCE", "description", "picture"]


def description(statement: Statement) -> Description:
    """Return in words what was published, from what is stated alone."""
    numbers = int(statement.evidence["coefficients"])
    if numbers == 0:
        return EMPTY
    tried, learn = statement.basis.need(TryModels), statement.basis.need(LearnFrom)
    text = (
        f"A model that predicts {learn.target}, the best of a secret random number of runs among "
        f"{counted(len(tried.candidates), 'candidate')}: {counted(numbers, 'number')}. It is made and chosen from "
        "noisy sums over all rows, and can be used as often as anyone likes."
    )
    return Description("A model", text, "nothing: it holds no row of anyone")
