"""Release of an answer: the road of every release, with the tables of a query service and its store of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from incrowd.accounting.ledger.status import Entry
from incrowd.core.certificate import Certificate, Columns
from incrowd.core.plan import Output
from incrowd.workflows.consent.snapshot import ConsentSnapshot
from incrowd.workflows.query.answers import EVERYONE, Answers, StoredAnswer
from incrowd.workflows.query.budgets import Budgets, cost_to_first
from incrowd.workflows.query.planning import PlannedQuery, Request
from incrowd.workflows.query.request import BatchAnswer, BatchRequest
from incrowd.workflows.release.certify import PlanFacts, dataset_of
from incrowd.workflows.release.perform import ChargeTarget
from incrowd.workflows.release.run import Delivered, OpenedRows, PendingRelease, ReleaseOrder

if TYPE_CHECKING:
    from incrowd.workflows.query.service import PreparedQuery

T = TypeVar("T", bound=BatchAnswer)


def answer_order(planned: PlannedQuery, request: Request, consent: ConsentSnapshot | None) -> ReleaseOrder:
    """Return the answer to a planned query as a release; its certificate names a version of the rows."""
    first, *others = planned.policies
    plan = planned.plan.gated(None if consent is None else consent.gate)
    facts = PlanFacts.of(plan, first.hash)
    target = ChargeTarget(
        first.name, facts.new_id(), request.analyst, request.account, planned.guarantees, read=planned.read
    )
    return ReleaseOrder(
        plan, facts, target, dataset_of(first, others=tuple(policy.name for policy in others)), _columns
    )


def _columns(output: Output) -> Columns:
    return Columns((), tuple(output.schema.names))


@dataclass(frozen=True, eq=False)
class QueryRows(OpenedRows):
    """The tables of a query; `enter_outcome` writes the outcome of a charge, soon and together with others."""

    enter_outcome: Callable[[Entry, str | None], None]

    def conclude(self, charge: Entry, certificate: str | None) -> None:
        self.enter_outcome(charge, certificate)


@dataclass(frozen=True, eq=False)
class InAnswerStore(Generic[T]):
    """Delivery into the store of answers; where the same query was answered meanwhile, the stored answer is given."""

    answers: Answers
    budgets: Budgets
    prepared: PreparedQuery[T]

    def appeared(self) -> bool:
        return False

    @contextmanager
    def deliver(self, made: PendingRelease[QueryRows], certificate: Certificate) -> Iterator[Delivered[T]]:
        request, planned, entry = self.prepared.request, self.prepared.planned, made.executed.entry
        answers = made.output.answers
        texts = [answer.to_text() for answer in answers]
        text = f"[{','.join(texts)}]" if isinstance(request, BatchRequest) else texts[0]
        new = StoredAnswer(text, certificate, entry.sequence, request.analyst or EVERYONE)
        stored = self.answers.store(planned.query_id, new)
        reply = BatchAnswer(
            answers if stored is new else stored.answers,
            stored.certificate,
            cost_to_first(entry),
            self.budgets.remaining_after(entry, planned.guarantees),
            texts=stored.texts,
        )
        yield Delivered(certificate if stored is new else None, self.prepared.reply(reply))
