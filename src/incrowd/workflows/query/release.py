"""Release of an answer: the road of every release, with the tables of a query service and its store of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from incrowd.accounting.ledger.status import Entry
from incrowd.core.certificate import Certificate, Columns
from incrowd.core.plan import Output
from incrowd.workflows.consent.snapshot import ConsentSnapshot
from incrowd.workflows.policy.sources import DatasetBinding
from incrowd.workflows.query.answers import EVERYONE, Answers, StoredAnswer
from incrowd.workflows.query.prepared import Planned, PreparedQuestion
from incrowd.workflows.query.prices import spent_by
from incrowd.workflows.query.request import AnsweredTogether, AskingTogether, QueryRequest
from incrowd.workflows.release.certify import PlanFacts, dataset_of
from incrowd.workflows.release.perform import ChargeTarget
from incrowd.workflows.release.run import Delivered, OpenedRows, PendingRelease, ReleaseOrder

T = TypeVar("T")


def answer_order(
    planned: Planned, request: QueryRequest | AskingTogether, consent: ConsentSnapshot | None
) -> ReleaseOrder:
    """Return the answer to a planned query as a release; its certificate names a version of the rows."""
    first, *others = planned.policies
    plan = planned.plan.gated(None if consent is None else consent.gate)
    facts = PlanFacts.of(plan, first.hash)
    target = ChargeTarget(first.name, facts.new_id(), request.analyst, request.account, planned.guarantees)
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
    bonds: Mapping[str, DatasetBinding]
    prepared: PreparedQuestion[T]

    def appeared(self) -> bool:
        return False

    @contextmanager
    def deliver(self, made: PendingRelease[QueryRows], certificate: Certificate) -> Iterator[Delivered[T]]:
        request, planned, entry = self.prepared.asking, self.prepared.planned, made.executed.entry
        answers = made.output.answers
        texts = [answer.to_text() for answer in answers]
        text = f"[{','.join(texts)}]" if isinstance(request, AskingTogether) else texts[0]
        new = StoredAnswer(text, certificate, entry.sequence, request.analyst or EVERYONE)
        stored = self.answers.keep(planned.mark, new)
        status = {standing.dataset: standing.left for standing in entry.standings}
        remaining = {name: status[self.bonds[name].root] for name in planned.guarantees}
        reply = AnsweredTogether(
            answers if stored is new else stored.answers,
            stored.certificate,
            spent_by(entry),
            remaining,
            texts=stored.texts,
        )
        yield Delivered(certificate if stored is new else None, self.prepared.reply(reply))
