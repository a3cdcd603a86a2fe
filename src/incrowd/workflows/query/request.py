"""Requests and replies: a query with its terms, its cost estimate, and its answer with the certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from incrowd.accounting.budget import Amount
from incrowd.core.certificate import Certificate
from incrowd.core.codec import public_text
from incrowd.core.words import short_down, short_up
from incrowd.drawing.card import answer_card, card, facts, plain
from incrowd.queries.answer import Answer
from incrowd.queries.combined_measurement import MET
from incrowd.queries.measuring.columns import CHOSEN, Expected
from incrowd.queries.query import QueryTerms

UNASKED = "Nothing was asked and nothing was spent."
REPEATED = "Asked before: the same answer, at no cost to the dataset."
COVERED = "True numbers lie in their intervals in 95 of 100 answers."


def coverage(*answers: Answer) -> str:
    """Return how often intervals hold, unless noisy numbers chose what is shown: then notes say it."""
    notes = [column.note for answer in answers for column in answer.columns]
    return "" if any(reason in note for reason in (CHOSEN, MET) for note in notes) else COVERED


@dataclass(frozen=True)
class QueryRequest:
    """A query as it arrives: SQL, what is paid for it, and the analyst (None: the answer is for everyone).

    With an `account`, its ρ is taken from a part of the budget that the owner set aside.
    """

    sql: str
    terms: QueryTerms
    analyst: str | None = None
    account: str | None = None


@dataclass(frozen=True)
class BatchRequest:
    """Several queries about one dataset that are planned together and paid for as one, by no account."""

    account: ClassVar[None] = None

    questions: tuple[str, ...]
    terms: QueryTerms
    analyst: str | None = None


@dataclass(frozen=True)
class QueryEstimate:
    """One query of a request: its text in normal form, and how accurate its answer would be.

    A query of a batch has no cost of its own: only the whole batch is answered.
    """

    question: str
    expected: tuple[Expected, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {"question": self.question, "expected": [column.to_json() for column in self.expected]}


@dataclass(frozen=True, repr=False)
class CostEstimate:
    """The cost of a query and the accuracy of its answer, from declarations and parameters alone; no row is read.

    `left` is what would remain of each dataset's budget, None where it does not suffice or none is set; `notes` say
    what the numbers would be of, where that is not the whole table; `queries` are those of a batch.
    """

    question: str
    datasets: tuple[str, ...]
    cost: Amount
    left: Mapping[str, Amount | None]
    expected: tuple[Expected, ...]
    repeated: bool
    plan: tuple[str, ...]
    notes: tuple[str, ...] = ()
    queries: tuple[QueryEstimate, ...] = ()

    @property
    def costs(self) -> list[tuple[str, str]]:
        """What it costs and what would remain, in words."""
        again = [("asked before", "yes: the same answer again, at no cost to the dataset")] if self.repeated else []
        return [*_costs(self.cost, self.left), *again]

    @property
    def _lines(self) -> list[tuple[str, str]]:
        return [("query", self.question), *self.costs, *((column.output, column.words) for column in self.expected)]

    def __repr__(self) -> str:
        return plain("cost estimate", [*self._lines, *(("note", note) for note in (*self.notes, UNASKED))])

    def _repr_html_(self) -> str:
        return card("cost estimate", facts(self._lines), note=" ".join((*self.notes, UNASKED)))

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {
            "question": self.question,
            "datasets": list(self.datasets),
            **_plain_costs(self.cost, self.left),
            "expected": [column.to_json() for column in self.expected],
            "repeated": self.repeated,
            "plan": list(self.plan),
            "notes": list(self.notes),
            **({"each": [query.to_json() for query in self.queries]} if self.queries else {}),
        }


class AnswerTexts(NamedTuple):
    """An answer and its certificate as JSON, as they are sent."""

    answer: str
    certificate: str


@dataclass(frozen=True, repr=False)
class BatchAnswer:
    """Noisy answers, one for each query in order, with their one certificate.

    `cost` is what this request took from the datasets: nothing, if the same was answered before (`repeated`).
    """

    answers: tuple[Answer, ...]
    certificate: Certificate
    cost: Amount
    left: Mapping[str, Amount | None]
    repeated: bool = False
    texts: AnswerTexts | None = field(default=None, repr=False, compare=False)
    """Answers and certificate as JSON, where they were written already."""

    @property
    def costs(self) -> list[tuple[str, str]]:
        """The cost, what remains, and what is guaranteed, in words."""
        return [*_costs(self.cost, self.left), ("guarantee", self.certificate.claims[0].kind)]

    @property
    def alone(self) -> QueryAnswer:
        """The same as the answer to a single query."""
        return QueryAnswer(self.answers, self.certificate, self.cost, self.left, self.repeated, self.texts)

    @property
    def different(self) -> tuple[Answer, ...]:
        """The answers of the certificate, in order: equal queries of a batch share one."""
        return tuple({id(answer): answer for answer in self.answers}.values())

    def placed(self, places: Sequence[int]) -> BatchAnswer:
        """Return the answers at these places: a query that is in a batch twice has its answer twice."""
        return replace(self, answers=tuple(self.answers[place] for place in places), texts=None)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        answers = [answer.to_json() for answer in self.answers]
        return {"answers": answers, **self._paid, "certificate": self.certificate.to_json()}

    def to_text(self) -> str:
        """Return the plain form as JSON."""
        return public_text(self.to_json())

    @property
    def _paid(self) -> dict[str, Any]:
        warnings = list(dict.fromkeys(answer.note for answer in self.answers if answer.note))
        return {**_plain_costs(self.cost, self.left), "repeated": self.repeated, "warnings": warnings}

    @property
    def _note(self) -> str:
        return REPEATED if self.repeated else coverage(*self.answers)

    def __repr__(self) -> str:
        numbered = enumerate(self.answers, start=1)
        cards = [plain(f"answer {number}", _notes(answer), answer.rendered) for number, answer in numbered]
        return "\n".join([*cards, plain("cost of all", [*self.costs, *_noted(self._note)])])

    def _repr_html_(self) -> str:
        cards = (
            answer_card(f"answer {number}", answer.rendered, answer.notes)
            for number, answer in enumerate(self.answers, start=1)
        )
        return "".join(cards) + card("cost of all", facts(self.costs), note=self._note)


@dataclass(frozen=True, repr=False)
class QueryAnswer(BatchAnswer):
    """A noisy answer to one query with its certificate, never one without the other."""

    @property
    def answer(self) -> Answer:
        """The one answer."""
        return self.answers[0]

    def to_json(self) -> dict[str, Any]:
        return {"answer": self.answer.to_json(), **self._paid, "certificate": self.certificate.to_json()}

    def to_text(self) -> str:
        if self.texts is None:
            return super().to_text()
        return (
            f'{{"answer":{self.texts.answer},{public_text(self._paid)[1:-1]},"certificate":{self.texts.certificate}}}'
        )

    def __repr__(self) -> str:
        lines = [*self.costs, ("certificate", self.certificate.id), *_notes(self.answer), *_noted(self._note)]
        return plain("answer", lines, self.answer.rendered)

    def _repr_html_(self) -> str:
        lines = [*self.costs, ("certificate", self.certificate.id)]
        return answer_card("answer", self.answer.rendered, (*self.answer.notes, *filter(None, [self._note])), lines)


def _notes(answer: Answer) -> list[tuple[str, str]]:
    return [("note", note) for note in answer.notes]


def _noted(note: str) -> list[tuple[str, str]]:
    return [("note", note)] if note else []


def _plain_costs(cost: Amount, left: Mapping[str, Amount | None]) -> dict[str, Any]:
    return {"cost": cost.to_json(), "left": {name: amount and amount.to_json() for name, amount in left.items()}}


def _costs(cost: Amount, left: Mapping[str, Amount | None]) -> list[tuple[str, str]]:
    lines = [("costs", f"epsilon {short_up(cost.epsilon, 6)}, delta {short_up(cost.delta, 6)}")]
    for dataset, amount in left.items():
        rest = "" if amount is None else f"epsilon {short_down(amount.epsilon, 6)}, delta {short_down(amount.delta, 6)}"
        lines.append((f"left of {dataset}", rest or "not enough"))
    return lines
