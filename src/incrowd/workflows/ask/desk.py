"""Desk: where questions are asked; it prices them without a row, charges them, answers them, and remembers answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.standing import Standing
from incrowd.core.certificate import Certificate, Columns
from incrowd.core.guarantee import Guarantee
from incrowd.core.table import Progress
from incrowd.engines.settings import Settings
from incrowd.engines.sql.engine import Asked, Limits
from incrowd.errors import InvalidParameter, Refused
from incrowd.queries.batch import Batch, batch
from incrowd.queries.catalog import Catalog
from incrowd.queries.language.row_query import Context
from incrowd.queries.language.tables import table_rows
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.question import Question
from incrowd.queries.work import check_work, unit_steps
from incrowd.workflows.ask.answers import EVERYONE, Answers, StoredAnswer, question_mark
from incrowd.workflows.ask.asking import Answered, AnsweredTogether, Asking, AskingTogether, Priced
from incrowd.workflows.ask.description import describe_catalog
from incrowd.workflows.ask.gated import admission_to, gated_rows
from incrowd.workflows.ask.open_charges import OpenCharges, SameQuestion, open_charges
from incrowd.workflows.ask.prices import check_most, highest_price, price_of, spent_by
from incrowd.workflows.ask.recent import Recent
from incrowd.workflows.ask.tables import available, declared_units, open_tables
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sources import Bond, SourceBook
from incrowd.workflows.release.certify import Stated, certify, dataset_of
from incrowd.workflows.release.perform import Payer, Performed, concluding, perform

__all__ = ["Answered", "AnsweredTogether", "Asking", "AskingTogether", "Desk", "Priced", "open_desk"]
_PLANS = 256
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
AGAIN = 0.05
"""Seconds after which is looked again for an answer that somebody else is making."""


@dataclass(frozen=True)
class _Planned:
    """A question that was understood and measured: what it promises to each dataset that it reads."""

    question: Question
    measurement: Measurement
    promises: Mapping[str, Guarantee]
    policies: tuple[Policy, ...]
    mark: str
    steps: int


@dataclass(frozen=True, eq=False)
class Desk:
    """Tables, a ledger and the answers given so far; safe for many threads, and for many processes at one ledger."""

    policies: tuple[Policy, ...]
    catalog: Catalog
    warehouse: Asked
    ledger: Ledger
    answers: Answers
    bonds: Mapping[str, Bond]
    open: OpenCharges
    plans: Recent[_Planned] = field(default_factory=lambda: Recent(_PLANS))

    def price(self, asking: Asking) -> Priced:
        """Say what a question costs and how good its answer would be; no row is read and nothing is written.

        What others asked whom this one may not read is priced as if it were new.
        """
        planned = self._plan(asking)
        kept = self.answers.find(planned.mark)
        repeated = kept is not None and self._readable(kept, asking.analyst)  # nobody learns what others asked
        cost = Amount() if repeated or asking.account is not None else highest_price(planned.promises.values())
        left = {name: self._left(name, cost) for name in planned.promises}
        expected, text = planned.measurement.expected, plan_of(planned.measurement)
        notes = _notes([planned.measurement])
        return Priced(planned.question.text, tuple(planned.promises), cost, left, expected, repeated, text, notes)

    def ask(self, asking: Asking) -> Answered:
        """Answer a question: charge it, read the rows, add noise, certify; or give the answer that was given before."""
        prepared = self.prepare(asking)
        while True:
            try:
                return prepared.begin().finish()
            except SameQuestion:
                time.sleep(AGAIN)

    def prepare(self, asking: Asking) -> PreparedQuestion:
        """Plan a question, or refuse it; no row is read and nothing is written."""
        return PreparedQuestion(self, asking, self._plan(asking))

    def begin(self, asking: Asking, planned: _Planned) -> BegunAnswer:
        """Charge a question that was planned at this desk and read the rows; nobody can see yet what came of it.

        What is new, or others asked, needs an allowance.  An answer that was given before is found, and nothing done;
        while somebody else is answering the same question, SameQuestion is raised.
        """
        with ExitStack() as stack:
            kept = self.answers.remembered(planned.mark)
            if kept is None:
                stack.enter_context(self.open.alone(planned.mark))
                kept = self.answers.find(planned.mark)
            if asking.analyst is not None and (kept is None or not _paid(kept, asking)):
                self._allowed(asking.analyst, planned.policies)
            if kept is not None:
                return self.known(asking, planned, kept)
            return self._new(asking, planned, stack.pop_all())

    def known(self, asking: Asking, planned: _Planned, kept: StoredAnswer) -> BegunAnswer:
        """Give an answer that was given before."""
        return BegunAnswer(partial(self._again, kept, planned, asking))

    def _new(self, asking: Asking, planned: _Planned, alone: ExitStack) -> BegunAnswer:
        """Charge and read; `alone` is closed when the question is answered, or cannot be."""
        with alone as stack:
            with available():
                self.warehouse.load(planned.measurement.statistics)  # what cannot be read costs nothing
            admission = admission_to(planned.policies)
            plan = planned.measurement.plan.gated(None if admission is None else admission.gate)
            first, stated = planned.policies[0], Stated.of(plan, planned.policies[0])
            rows = gated_rows(self.warehouse, self.catalog, first.name, admission)
            bonds = tuple(self.bonds[name] for name in planned.promises)
            payer = Payer(first.name, stated.fresh_id(), asking.analyst, asking.account, planned.promises, bonds)
            stack.enter_context(self.open.of(payer.release))
            stack.enter_context(concluding(self.ledger, plan, payer))
            performed = perform(plan, rows, self.ledger, payer)
            later = stack.pop_all()

        def finish() -> Answered:
            with later:
                certificate = _certified(payer, stated, performed, planned.policies)
                return self._kept(asking, planned, performed, certificate)

        return BegunAnswer(finish)

    def _kept(self, asking: Asking, planned: _Planned, performed: Performed, certificate: Certificate) -> Answered:
        """Keep an answer and conclude its charge; if the same was answered meanwhile, that one is given."""
        (answer,) = performed.output.answers
        written, everyone = _ENCODER.encode(answer.to_json()), asking.analyst or EVERYONE
        new = StoredAnswer(written, certificate, performed.entry.sequence, everyone)
        kept = self.answers.keep(planned.mark, new)
        self.ledger.conclude(performed.entry, certificate.digest() if kept is new else None)
        given = answer if kept is new else kept.parsed
        stood = {standing.dataset: standing.left for standing in performed.entry.standings}
        left = {name: stood[self.bonds[name].root] for name in planned.promises}
        return Answered(given, kept.certificate, spent_by(performed.entry), left, texts=kept.texts)

    def price_batch(self, asking: AskingTogether) -> Priced:
        """Say what several questions cost together, and how good their answers would be."""
        planned, _ = self._plan_batch(asking)
        cost = price_of(planned.plan.promise)
        names = tuple(planned.measurements[0].question.datasets)
        expected = tuple(each for measured in planned.measurements for each in measured.expected)
        texts = tuple(text for measured in planned.measurements for text in plan_of(measured))
        question = "; ".join(measured.question.text for measured in planned.measurements)
        left, notes = {name: self._left(name, cost) for name in names}, _notes(planned.measurements)
        return Priced(question, names, cost, left, expected, False, texts, notes)

    def ask_batch(self, asking: AskingTogether) -> AnsweredTogether:
        """Answer several questions that were planned together, for one charge."""
        planned, policy = self._plan_batch(asking)
        if asking.analyst is not None:
            self._allowed(asking.analyst, (policy,))
        with available():
            self.warehouse.load([query for each in planned.measurements for query in each.statistics])
        admission = admission_to((policy,))
        plan = planned.plan.gated(None if admission is None else admission.gate)
        rows = gated_rows(self.warehouse, self.catalog, policy.name, admission)
        stated = Stated.of(plan, policy)
        payer = Payer(policy.name, stated.fresh_id(), asking.analyst, bonds=(self.bonds[policy.name],))
        with concluding(self.ledger, plan, payer):
            performed = perform(plan, rows, self.ledger, payer)
            certificate = _certified(payer, stated, performed, (policy,))
            self.ledger.conclude(performed.entry, certificate.digest())
        left = {policy.name: self._left(policy.name, Amount())}
        return AnsweredTogether(performed.output.answers, certificate, spent_by(performed.entry), left)

    def schema(self) -> dict[str, Any]:
        """Return what may be asked about: tables, columns, domains and units, as declared."""
        return describe_catalog(self.catalog)

    def budget(self, analyst: str | None) -> dict[str, Any]:
        """Return how the datasets stand, for an analyst with what he has spent and may spend."""
        return {policy.name: self._standing(policy.name, analyst) for policy in self.policies}

    def releases(self, analyst: str | None = None) -> list[dict[str, Any]]:
        """Return the certificates of all answers in short, the earliest first; for an analyst, those he may read."""
        return [_listed(kept.certificate) for kept in self.answers.all() if self._readable(kept, analyst)]

    def certificate(self, id_: str, analyst: str | None = None) -> Certificate | None:
        """Return the certificate of an answer; for an analyst, if he may read what was asked."""
        kept = self.answers.named(id_)
        return kept.certificate if kept is not None and self._readable(kept, analyst) else None

    def within(self, datasets: Collection[str]) -> Desk:
        """Return a desk that knows these datasets and the public tables alone: all else does not exist there."""
        relations = (each for each in self.catalog.relations if each.dataset is None or each.dataset in datasets)
        policies = tuple(policy for policy in self.policies if policy.name in datasets)
        return replace(self, policies=policies, catalog=Catalog(tuple(relations)))

    def load(self) -> None:
        """Read all that questions read, as a server does before the first of them comes; or raise SourceUnavailable."""
        context, relations = Context(self.catalog, None), [each for each in self.catalog.relations if each.askable]
        with available():
            self.warehouse.load([table_rows(relation, context).query for relation in relations])

    def check(self) -> None:
        """Raise SourceUnavailable if a source is known to be unreadable, or is no longer what it was."""
        with available():
            self.warehouse.check()

    def standing(self, dataset: str) -> Standing:
        """Return how a dataset stands; one of which nothing was charged yet, as its policy declares it."""
        return self.ledger.standing(self.bonds[dataset].declaration)

    def _again(self, kept: StoredAnswer, planned: _Planned, asking: Asking) -> Answered:
        if kept.asker not in (EVERYONE, asking.analyst):  # else it was paid for already
            self.ledger.repeat(kept.charge, asking.analyst)
        left = {name: self._left(name, Amount()) for name in planned.promises}
        return Answered(kept.parsed, kept.certificate, Amount(), left, repeated=True, texts=kept.texts)

    def _plan(self, asking: Asking) -> _Planned:
        """Return how a question is answered; the same question is planned once."""
        key = (replace(asking, analyst=None), asking.analyst is None, tuple(policy.name for policy in self.policies))
        return self.plans.of(key, lambda: self._planned(asking))

    def _planned(self, asking: Asking) -> _Planned:
        if asking.account is not None and (asking.terms.rho is None or asking.terms.delta):
            raise InvalidParameter("an account pays in rho alone: give rho, and neither epsilon, an error nor a delta.")
        if asking.account is None and asking.terms.rho is not None and not asking.terms.delta:
            raise InvalidParameter("rho alone is paid from an account: name one, or give a delta as well.")
        question = understand(asking.sql, self.catalog, self._max_groups)
        policies = tuple(policy for policy in self.policies if policy.name in question.datasets)
        if not policies:
            raise Refused("this question reads public tables only: nobody needs protection from its answer.")
        measured = measurement(question, policies[0].schema.unit, asking.terms)
        promises = measured.plan.over({policy.name: policy.schema.unit for policy in policies})
        if asking.account is None:
            check_most(self.policies, promises, asking.analyst)
        steps = self._answerable(measured) * max(map(declared_units, policies))
        return _Planned(question, measured, promises, policies, self._mark(question, asking, policies), steps)

    def _plan_batch(self, asking: AskingTogether) -> tuple[Batch, Policy]:
        found = [understand(sql, self.catalog, self._max_groups) for sql in asking.questions]
        questions = list({question.text: question for question in found}.values())
        names = {name for question in questions for name in question.datasets}
        policies = [policy for policy in self.policies if policy.name in names]
        if len(policies) != 1 or any(not question.datasets for question in questions):
            raise Refused("questions that are paid for as one are all about one dataset.")
        planned = batch(questions, policies[0].schema.unit, asking.terms)
        check_most(self.policies, {policies[0].name: planned.plan.promise}, asking.analyst)
        for each in planned.measurements:
            self._answerable(each)
        return planned, policies[0]

    def _answerable(self, measured: Measurement) -> int:
        """Refuse what the place where the rows are does not compute, or not in time, before anything is charged.

        Return how many steps one unit of privacy causes at most.
        """
        for query in measured.statistics:
            self.warehouse.require(query, sampled=measured.terms.rate is not None)
        return check_work(sum(unit_steps(query, self.catalog) for query in measured.statistics))

    def _mark(self, question: Question, asking: Asking, policies: Sequence[Policy]) -> str:
        versions = {policy.name: [policy.hash, policy.section.dataset.version] for policy in policies}
        told = {"text": question.text, "terms": asking.terms.to_json(), "versions": versions, "account": asking.account}
        return question_mark(told | {"max_groups": self._max_groups})

    @property
    def _max_groups(self) -> int | None:
        """The fewest groups that some policy lets one person take part in; it holds for all questions of this desk."""
        told = [policy.section.queries.max_groups for policy in self.policies if policy.section.queries is not None]
        return min((each for each in told if each is not None), default=None)

    def _allowed(self, analyst: str, policies: Sequence[Policy]) -> None:
        """Refuse an analyst without an allowance, where the policy does not say that none is needed."""
        for policy in policies:
            if policy.section.queries is not None and policy.section.queries.open:
                continue
            if self.ledger.analyst(self.bonds[policy.name].declaration, analyst)[1] is None:
                raise Refused(
                    f"{analyst} has no allowance for {policy.name}. Ask its owner for one (incrowd ledger grant "
                    "… --analyst), or to open the budget to all analysts (queries: {open: true} in the policy)."
                )

    def _readable(self, kept: StoredAnswer, analyst: str | None) -> bool:
        """Return whether an analyst may read what was asked: for everyone, by himself, or where he is named."""
        if analyst is None or kept.asker in (EVERYONE, analyst):
            return True
        dataset = kept.certificate.dataset
        named = {policy.name for policy in self.policies if analyst in _readers(policy)}
        return {dataset.name, *(dataset.together_with or ())} <= named

    def _left(self, dataset: str, cost: Amount) -> Amount | None:
        left = self.standing(dataset).left
        return left.minus(cost) if left is not None and cost.within(left) else None

    def _standing(self, dataset: str, analyst: str | None) -> dict[str, Any]:
        standing = self.standing(dataset)
        told: dict[str, Any] = {"unit": str(standing.terms.unit), "left": standing.left and standing.left.to_json()}
        if analyst is not None:
            own, allowance = self.ledger.analyst(self.bonds[dataset].declaration, analyst)
            told |= {"spent": own.to_json(), "allowance": allowance and allowance.to_json()}
        return told


@dataclass(frozen=True, eq=False)
class PreparedQuestion:
    """A question that was planned and will be answered; what is known of it is known without a row."""

    desk: Desk
    asking: Asking
    planned: _Planned

    @property
    def steps(self) -> int:
        """How much work it is at most, for as many units as the policies declare."""
        return self.planned.steps

    @property
    def mark(self) -> str:
        """What all askings of the same question share."""
        return self.planned.mark

    def again(self) -> BegunAnswer | None:
        """Return the answer that was given before, if this process remembers it and no allowance is needed for it."""
        kept = self.desk.answers.remembered(self.planned.mark)
        return (
            self.desk.known(self.asking, self.planned, kept) if kept is not None and _paid(kept, self.asking) else None
        )

    def begin(self) -> BegunAnswer:
        """Charge it and read the rows, or find the answer that was given before."""
        return self.desk.begin(self.asking, self.planned)


@dataclass(frozen=True, eq=False)
class BegunAnswer:
    """An answer that is there, and that nobody can see yet: neither here nor in the list of releases."""

    finish: Callable[[], Answered]
    """Certify it, keep it and return it; to be called once, by any thread."""


def _paid(kept: StoredAnswer, asking: Asking) -> bool:
    """Return whether an answer costs its asker nothing more: it is for everyone, or his own."""
    return asking.analyst is None or kept.asker in ("", EVERYONE, asking.analyst)


def _readers(policy: Policy) -> tuple[str, ...]:
    return policy.section.queries.readers if policy.section.queries is not None else ()


@contextmanager
def open_desk(
    policies: Sequence[Policy],
    data: object = None,
    limits: Limits | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Iterator[Desk]:
    """Open a desk for the tables of some policies that share a ledger; settings name another engine than they do."""
    with open_tables(policies, data, limits, settings, progress) as found:
        answers = Answers.beside(policies[0].ledger_address)
        with open_charges(SourceBook.of(policies[0]).path.parent, found.ledger, answers) as own:
            yield Desk(found.policies, found.catalog, found.warehouse, found.ledger, answers, found.bonds, own)


def _notes(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """Return what numbers would be of, each once, where that is not the whole table."""
    return tuple(dict.fromkeys(each.question.caps.sentence for each in measurements if each.question.caps.sentence))


def _certified(payer: Payer, stated: Stated, performed: Performed, policies: Sequence[Policy]) -> Certificate:
    """Return the certificate of an answer; rows that are asked again and again are told by their version."""
    others = tuple(policy.name for policy in policies[1:])
    columns = Columns((), tuple(performed.output.schema.names))
    return certify(payer.release, stated, performed, dataset_of(policies[0], None, others), columns)


def _listed(certificate: Certificate) -> dict[str, Any]:
    dataset = certificate.dataset
    told: dict[str, Any] = {"id": certificate.id, "created": certificate.created, "dataset": dataset.name}
    return told | ({"together with": list(dataset.together_with)} if dataset.together_with else {})


def plan_of(measurement: Measurement) -> tuple[str, ...]:
    """Return the SQL that reads the rows, one text for each pass over them."""
    return tuple(query.sql(dialect="duckdb", pretty=True) for query in measurement.statistics)
