"""Plan of a question: like any other, with a promise to each dataset that the question reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from incrowd.core.plan import Plan
from incrowd.core.steps.step import fold
from incrowd.errors import IncrowdError, InvalidParameter, MixedUnits, QuestionFailed, Refused, UnknownColumn

if TYPE_CHECKING:
    from incrowd.core.guarantee import Guarantee
    from incrowd.core.unit import Unit

NAME = "question"
_ABOUT_QUESTIONS = (Refused, InvalidParameter, MixedUnits, UnknownColumn)
"""Errors whose words whoever asks may read, because they are about the question; after the charge none of them is."""


@dataclass(frozen=True)
class QuestionPlan(Plan):
    """How one question is answered, or several that are paid for as one."""

    @property
    def verb(self) -> str:
        """What happens to the output, for messages."""
        return "answered"

    def failure(self, error: IncrowdError) -> IncrowdError:
        """Return how an error after the charge is told: none is about the question any more."""
        told = super().failure(error)
        return QuestionFailed(str(told)) if isinstance(error, _ABOUT_QUESTIONS) else told

    def over(self, units: Mapping[str, Unit]) -> dict[str, Guarantee]:
        """Return what is promised to each of the datasets that are read, by their names."""
        return {name: fold(self.steps, unit, self.promise.delta) for name, unit in units.items()}
