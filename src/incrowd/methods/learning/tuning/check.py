"""The files of a tuned model, looked at again: it is one of the candidates, and its table is the model's."""

from __future__ import annotations

from dataclasses import replace

from incrowd.core.statement import Statement
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.step import Step
from incrowd.methods.learning import check
from incrowd.methods.learning.check import CLAIMS, looks, recount, reopen
from incrowd.methods.learning.steps import LearnFrom, PublishModel
from incrowd.methods.learning.tuning.steps import TryModels
from incrowd.verifier.check import Problem, in_order, maybe, one

__all__ = ["CLAIMS", "ORDER", "STEPS", "contradiction", "looks", "recount", "reopen"]

STEPS: tuple[type[Step], ...] = (*check.STEPS, TryModels)
ORDER = (maybe(KeepRows), one(TryModels), one(PublishModel))
_CANDIDATE = tuple(place for place in check.ORDER if not {KeepRows, PublishModel} & set(place.classes))


def contradiction(statement: Statement) -> Problem | None:
    """Return that a candidate contradicts itself, or predicts something else than the others, or None."""
    tried = statement.basis.need(TryModels)
    predicted = set()
    for steps in tried.candidates:
        if not in_order(steps, _CANDIDATE):
            return Problem("the steps of a candidate are not those of a model")
        one_alone = replace(statement, basis=replace(statement.basis, steps=steps))
        problem = check.contradiction(one_alone)
        if problem is not None:
            return problem
        learn, recode = one_alone.basis.need(LearnFrom), one_alone.basis.need(RecodeToBins)
        predicted.add((learn.target, learn.outputs, recode.names[-1]))
    return None if len(predicted) == 1 else Problem("candidates predict different things")
