"""Asking: who asks what and pays what; Priced: what it would cost; Answered: what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from incrowd.accounting.budget import Amount
from incrowd.core.certificate import Certificate
from incrowd.core.codec import public_text
from incrowd.core.words import short_down, short_up
from incrowd.drawing.card import answer_card, card, facts
from incrowd.queries.answer import Answer
from incrowd.queries.combined_measurement import MET
from incrowd.queries.measuring.columns import CHOSEN, Expected
from incrowd.queries.question import QueryTerms

UNASKED = "Nothing was asked and nothing was spent."
REPEATED = "Asked before: the same answer, at no cost to the dataset."
COVERED = "True numbers lie in their intervals in 95 of 100 answers."


def coverage(*answers: Answer) -> str:
    """Return how often intervals hold, where noisy numbers did not choose what is shown; else notes say it."""
    notes = [column.note for answer in answers for column in answer.columns]
    return "" if any(told in note for told in (CHOSEN, MET) for note in notes) else COVERED


@dataclass(frozen=True)
class QueryRequest:
    """A question as it arrives: SQL, what the asker pays, and who asks (None: the answer is for everyone).

    With an `account`, its ρ is taken from what the owner carved out of the budget before.
    """

    sql: str
    terms: QueryTerms
    analyst: str | None = None
    account: str | None = None


@dataclass(frozen=True)
class AskingTogether:
    """Several questions about one dataset that are planned together and paid for as one, by no account."""

    account: ClassVar[None] = None

    questions: tuple[str, ...]
    terms: QueryTerms
    analyst: str | None = None


@dataclass(frozen=True)
class QuestionPrice:
    """One of several questions that are priced together: its text in a normal form, and how good its answer would be.

    A part of the price has none of its own: only all of them are to be had.
    """

    question: str
    expected: tuple[Expected, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {"question": self.question, "expected": [each.to_json() for each in self.expected]}


@dataclass(frozen=True)
class Priced:
    """What a question costs and how good its answer would be: from declarations and parameters alone, no row is read.

    `left` tells what would be left of each dataset's budget afterwards, None where it does not suffice or none is set;
    `notes` what the numbers would be of, where that is not the whole table; `each` a batch's questions one by one.
    """

    question: str
    datasets: tuple[str, ...]
    cost: Amount
    left: Mapping[str, Amount | None]
    expected: tuple[Expected, ...]
    repeated: bool
    plan: tuple[str, ...]
    notes: tuple[str, ...] = ()
    each: tuple[QuestionPrice, ...] = ()

    @property
    def costs(self) -> list[tuple[str, str]]:
        """What it costs and what would be left, in words."""
        again = [("asked before", "yes: the same answer again, at no cost to the dataset")] if self.repeated else []
        return [*_costs(self.cost, self.left), *again]

    def _repr_html_(self) -> str:
        lines = [("question", self.question), *self.costs, *((each.output, each.words) for each in self.expected)]
        return card("price", facts(lines), note=" ".join((*self.notes, UNASKED)))

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {
            "question": self.question,
            "datasets": list(self.datasets),
            "cost": self.cost.to_json(),
            "left": {name: left and left.to_json() for name, left in self.left.items()},
            "expected": [each.to_json() for each in self.expected],
            "repeated": self.repeated,
            "plan": list(self.plan),
            "notes": list(self.notes),
            **({"each": [one.to_json() for one in self.each]} if self.each else {}),
        }


class AnswerTexts(NamedTuple):
    """An answer and its certificate as JSON, as they are sent."""

    answer: str
    certificate: str


@dataclass(frozen=True)
class Answered:
    """A noisy answer with its certificate, never one without the other.

    `cost` is what this asking took from the datasets: nothing, if the same question was answered before (`repeated`).
    """

    answer: Answer
    certificate: Certificate
    cost: Amount
    left: Mapping[str, Amount | None]
    repeated: bool = False
    texts: AnswerTexts | None = field(default=None, repr=False, compare=False)
    """Answer and certificate as JSON, where they were written already."""

    @property
    def costs(self) -> list[tuple[str, str]]:
        """What it cost, what is left, and what is guaranteed, in words."""
        return [*_costs(self.cost, self.left), ("guarantee", self.certificate.claims[0].kind)]

    def _repr_html_(self) -> str:
        note = REPEATED if self.repeated else coverage(self.answer)
        lines = [*self.costs, ("certificate", self.certificate.id)]
        return answer_card("answer", self.answer.rendered, (*self.answer.notes, *filter(None, [note])), lines)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {
            "answer": self.answer.to_json(),
            **self._paid,
            "certificate": self.certificate.to_json(),
        }

    def to_text(self) -> str:
        """Return the plain form as JSON."""
        if self.texts is None:
            return public_text(self.to_json())
        answer, certificate = self.texts
        return f'{{"answer":{answer},{public_text(self._paid)[1:-1]},"certificate":{certificate}}}'

    @property
    def _paid(self) -> dict[str, Any]:
        left = {name: left and left.to_json() for name, left in self.left.items()}
        return {"cost": self.cost.to_json(), "left": left, "repeated": self.repeated}


@dataclass(frozen=True)
class AnsweredTogether:
    """The noisy answers to several questions, one for each in their order, with their one certificate."""

    answers: tuple[Answer, ...]
    certificate: Certificate
    cost: Amount
    left: Mapping[str, Amount | None]
    repeated: bool = False
    texts: AnswerTexts | None = field(default=None, repr=False, compare=False)
    """All answers, as a list, and the certificate as JSON, where they were written already."""

    @property
    def costs(self) -> list[tuple[str, str]]:
        """What all of it cost, what is left, and what is guaranteed, in words."""
        return [*_costs(self.cost, self.left), ("guarantee", self.certificate.claims[0].kind)]

    @property
    def alone(self) -> Answered:
        """The one answer, where one question was asked."""
        (answer,) = self.answers
        return Answered(answer, self.certificate, self.cost, self.left, self.repeated, self.texts)

    @property
    def different(self) -> tuple[Answer, ...]:
        """The answers in their order, that to a question which was asked twice once: those of the certificate."""
        return tuple({id(answer): answer for answer in self.answers}.values())

    def placed(self, places: Sequence[int]) -> AnsweredTogether:
        """Return the answer at each of these places: a question that was asked twice has its answer twice."""
        return replace(self, answers=tuple(self.answers[at] for at in places), texts=None)

    def _repr_html_(self) -> str:
        each = (answer_card(f"answer {at}", one.rendered, one.notes) for at, one in enumerate(self.answers, start=1))
        return "".join(each) + card(
            "cost of all", facts(self.costs), note=REPEATED if self.repeated else coverage(*self.answers)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {
            "answers": [answer.to_json() for answer in self.answers],
            "cost": self.cost.to_json(),
            "left": {name: left and left.to_json() for name, left in self.left.items()},
            "repeated": self.repeated,
            "certificate": self.certificate.to_json(),
        }


def _costs(cost: Amount, left: Mapping[str, Amount | None]) -> list[tuple[str, str]]:
    lines = [("costs", f"epsilon {short_up(cost.epsilon, 6)}, delta {short_up(cost.delta, 6)}")]
    for dataset, amount in left.items():
        rest = "" if amount is None else f"epsilon {short_down(amount.epsilon, 6)}, delta {short_down(amount.delta, 6)}"
        lines.append((f"left of {dataset}", rest or "not enough"))
    return lines
