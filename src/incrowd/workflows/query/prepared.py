"""Prepared: a question, or several, understood and measured, and what it takes until they are answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from incrowd.core.guarantee import Guarantee
from incrowd.queries.measurement import QueryPlan
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.query.open_charges import SameQuestion
from incrowd.workflows.query.request import AnsweredTogether, AskingTogether, QueryRequest, QuestionPrice

if TYPE_CHECKING:
    from sqlglot import exp

    from incrowd.workflows.query.service import QueryService

T = TypeVar("T")
AGAIN = 0.05
"""Seconds after which is looked again for an answer that somebody else is making."""


@dataclass(frozen=True)
class Planned:
    """What was asked, understood and measured: one question or several, and what they guarantee to each dataset.

    `prices` tells how exact the answer to each question will be, `statistics` what is read of the rows, `notes` what
    else is said beforehand.  A question that is among several twice is answered once: `places` tells for each one asked
    which answer it has.
    """

    plan: QueryPlan
    prices: Callable[[], tuple[QuestionPrice, ...]]
    statistics: tuple[exp.Query, ...]
    notes: tuple[str, ...]
    guarantees: Mapping[str, Guarantee]
    policies: tuple[Policy, ...]
    mark: str
    steps: int
    places: tuple[int, ...] = (0,)


@dataclass(frozen=True, eq=False)
class PreparedQuestion(Generic[T]):
    """A question, or several, that were planned and will be answered; what is known of them is known without a row."""

    desk: QueryService
    asking: QueryRequest | AskingTogether
    planned: Planned
    reply: Callable[[AnsweredTogether], T]
    """Makes the reply of the answers to what was measured."""

    @property
    def steps(self) -> int:
        """How much work it is at most, for as many units as the policies declare."""
        return self.planned.steps

    @property
    def mark(self) -> str:
        """What all askings of the same question share."""
        return self.planned.mark

    def again(self) -> PendingAnswer[T] | None:
        """Return the answer that was given before, if this process remembers it and no allowance is needed for it."""
        kept = self.desk.answers.remembered(self.planned.mark)
        return self.desk.known(self, kept) if kept is not None and kept.paid_for(self.asking.analyst) else None

    def begin(self) -> PendingAnswer[T]:
        """Charge it and read the rows, or find the answer that was given before."""
        return self.desk.begin(self)

    def ask(self) -> T:
        """Answer it and tell the ledger; where somebody else is answering the same, wait for that answer."""
        while True:
            try:
                found = self.begin().finish()
            except SameQuestion:
                time.sleep(AGAIN)
            else:
                self.desk.open.settle()
                return found


@dataclass(frozen=True, eq=False)
class PendingAnswer(Generic[T]):
    """An answer that is there, and that nobody can see yet: neither here nor in the list of releases."""

    finish: Callable[[], T]
    """Certify it, keep it and return it; to be called once, by any thread."""
    known: bool = False
    """Whether it was given before: no row was read for it."""
