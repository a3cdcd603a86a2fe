"""Desk: where questions are asked; it prices them without a row, charges them, answers them, and remembers answers."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import BudgetStatus
from incrowd.core.certificate import Certificate
from incrowd.core.table import Progress
from incrowd.engines.settings import Settings
from incrowd.engines.sql.engine import Limits, QueryTables
from incrowd.errors import LedgerUnavailable, Refused, SourceUnavailable
from incrowd.queries.answer_work import answer_steps
from incrowd.queries.combined_measurement import measure
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.language.row_query import Context
from incrowd.queries.language.tables import table_rows
from incrowd.queries.language.understanding import understand
from incrowd.queries.question import Catalog
from incrowd.queries.work import check_work, unit_steps
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sources import DatasetBinding, FingerprintFile
from incrowd.workflows.query.answers import EVERYONE, Answers, StoredAnswer, question_mark
from incrowd.workflows.query.batches import numbered, plan_together, refusing, understand_each
from incrowd.workflows.query.description import describe_catalog
from incrowd.workflows.query.gated import admission_to, gated_rows
from incrowd.workflows.query.history import AnswerHistory, Archive, PageOfHistory, Payments, datasets_of
from incrowd.workflows.query.open_charges import OpenCharges, open_charges
from incrowd.workflows.query.prepared import PendingAnswer, Planned, PreparedQuestion
from incrowd.workflows.query.prices import caps_of, check_account, check_most, highest_price, plan_of
from incrowd.workflows.query.recent import LruCache
from incrowd.workflows.query.release import InAnswerStore, QueryRows, answer_order
from incrowd.workflows.query.request import (
    Answered,
    AnsweredTogether,
    AskingTogether,
    Priced,
    QueryRequest,
    QuestionPrice,
)
from incrowd.workflows.query.tables import available, declared_units, open_tables
from incrowd.workflows.release.run import finish, pending

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Answered", "AnsweredTogether", "AskingTogether", "Priced", "QueryRequest", "QueryService", "open_desk"]
_PLANS, _BATCHES = 256, 4
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class QueryService:
    """Tables, a ledger and the answers given so far; safe for many threads, and for many processes at one ledger."""

    policies: tuple[Policy, ...]
    catalog: Catalog
    warehouse: QueryTables
    ledger: Ledger
    answers: Answers
    bonds: Mapping[str, DatasetBinding]
    open: OpenCharges
    payments: Payments
    plans: LruCache[Planned] = field(default_factory=lambda: LruCache(_PLANS))
    batches: LruCache[Planned] = field(default_factory=lambda: LruCache(_BATCHES))

    @property
    def locks(self) -> Path | None:
        """The folder where all desks of this ledger on this machine hold locks, if there is one."""
        return self.open.folder

    def price(self, asking: QueryRequest) -> Priced:
        """Say what a question costs and how good its answer would be; no row is read and nothing is written.

        What others asked whom this one may not read is priced as if it were new.
        """
        return self._priced(asking, self._plan(asking))

    def price_batch(self, asking: AskingTogether) -> Priced:
        """Say what several questions cost together, and how good their answers would be."""
        planned = self._plan_batch(asking)
        each = planned.prices()
        return replace(self._priced(asking, planned), each=tuple(each[at] for at in planned.places))

    def _priced(self, asking: QueryRequest | AskingTogether, planned: Planned) -> Priced:
        kept = self.answers.find(planned.mark)
        repeated = kept is not None and self._readable(kept, asking.analyst)  # nobody learns what others asked
        cost = Amount() if repeated or asking.account is not None else highest_price(planned.guarantees.values())
        left = {name: self._left(name, cost) for name in planned.guarantees}
        prices = planned.prices()
        expected = tuple(column for each in prices for column in each.expected)
        question, texts = "; ".join(each.question for each in prices), plan_of(planned.statistics)
        return Priced(question, tuple(planned.guarantees), cost, left, expected, repeated, texts, planned.notes)

    def ask(self, asking: QueryRequest) -> Answered:
        """Answer a question: charge it, read the rows, add noise, certify; or give the answer that was given before."""
        return self.prepare(asking).ask()

    def ask_batch(self, asking: AskingTogether) -> AnsweredTogether:
        """Answer several questions that were planned together, for one charge; or give the answers given before."""
        return self.prepare_batch(asking).ask()

    def prepare(self, asking: QueryRequest) -> PreparedQuestion[Answered]:
        """Plan a question, or refuse it; no row is read and nothing is written."""
        return PreparedQuestion(self, asking, self._plan(asking), lambda answered: answered.alone)

    def recall(self, asking: QueryRequest) -> PreparedQuestion[Answered] | None:
        """Return a question that was planned here lately, with no work at all; None tells nothing."""
        planned = self.plans.find(self._key(asking))
        return None if planned is None else PreparedQuestion(self, asking, planned, lambda answered: answered.alone)

    def prepare_batch(self, asking: AskingTogether) -> PreparedQuestion[AnsweredTogether]:
        """Plan several questions together, or refuse them; no row is read and nothing is written."""
        planned = self._plan_batch(asking)
        return PreparedQuestion(self, asking, planned, lambda answered: answered.placed(planned.places))

    def begin(self, prepared: PreparedQuestion[T]) -> PendingAnswer[T]:
        """Charge a question that was planned at this desk and read the rows; nobody can see yet what came of it.

        What is new, or others asked, needs an allowance.  An answer that was given before is found, and nothing done;
        while somebody else is answering the same question, SameQuestion is raised.
        """
        asking, planned = prepared.asking, prepared.planned
        with ExitStack() as stack:
            kept = self.answers.remembered(planned.mark)
            if kept is None:
                stack.enter_context(self.open.alone(planned.mark))
                kept = self.answers.find(planned.mark)
            if asking.analyst is not None and (kept is None or not kept.paid_for(asking.analyst)):
                self._allowed(asking.analyst, planned.policies)
            if kept is not None:
                return self.known(prepared, kept)
            return self._new(prepared, stack.pop_all())

    def known(self, prepared: PreparedQuestion[T], kept: StoredAnswer) -> PendingAnswer[T]:
        """Give an answer that was given before."""
        return PendingAnswer(partial(self._again, kept, prepared), known=True)

    def _new(self, prepared: PreparedQuestion[T], alone: ExitStack) -> PendingAnswer[T]:
        """Charge and read; `alone` is closed when the question is answered, or cannot be."""
        asking, planned = prepared.asking, prepared.planned
        with alone as stack:
            try:
                with available():
                    self.warehouse.load(planned.statistics)  # what cannot be read costs nothing
            except SourceUnavailable:
                if asking.account is None:  # refused as what others asked is, for which no row is read
                    declared = [self.bonds[name].declaration for name in planned.guarantees]
                    self.ledger.preview(planned.guarantees, asking.analyst, declared)
                raise
            consent = admission_to(planned.policies)
            order = answer_order(planned, asking, consent)
            rows = gated_rows(self.warehouse, self.catalog, order.target.dataset, consent)
            bonds = tuple(self.bonds[name] for name in planned.guarantees)
            opened = QueryRows(rows, self.ledger, bonds, None, self.open.conclude)
            stack.enter_context(self.open.of(order.id))
            made = stack.enter_context(pending(order, lambda: nullcontext(opened)))
            later = stack.pop_all()

        def finish_later() -> T:
            with later:
                return finish(made, InAnswerStore(self.answers, self.bonds, prepared))

        return PendingAnswer(finish_later)

    def schema(self) -> dict[str, Any]:
        """Return what may be asked about: tables, columns, domains and units, as declared."""
        return describe_catalog(self.catalog)

    def budget(self, analyst: str | None) -> dict[str, Any]:
        """Return how the datasets stand, for an analyst with what he has spent and may spend."""
        return {policy.name: self._standing(policy.name, analyst) for policy in self.policies}

    def releases(self, analyst: str | None = None) -> list[dict[str, Any]]:
        """Return the certificates of all answers in short, the earliest first; for an analyst, those he may read."""
        return [
            told
            for asker, told in self.answers.listed()
            if self._may_read(asker, {told["dataset"], *told.get("together with", ())}, analyst)
        ]

    def certificate(self, id_: str, analyst: str | None = None) -> Certificate | None:
        """Return the certificate of an answer; for an analyst, if he may read what was asked."""
        kept = self.answers.named(id_)
        return kept.certificate if kept is not None and self._readable(kept, analyst) else None

    def history(self, analyst: str | None, page: PageOfHistory, *, reads_all: bool = False) -> AnswerHistory:
        """Return what an analyst asked and paid for (None: what was asked for everyone), the latest first.

        With `others` it also tells what others asked, as far as the policies name the analyst, or `reads_all`.
        """
        reader = None if reads_all else analyst
        allowed = page if reads_all or self._named(analyst) else replace(page, others=False)
        entries, last = self._archive.page(analyst, allowed, lambda kept: self._readable(kept, reader))
        return AnswerHistory(entries, last, self.budget(analyst))

    def answer(self, id_: str, analyst: str | None = None) -> Answered | AnsweredTogether | None:
        """Return an answer that was kept, for nothing, to whoever was given it before; None to everybody else."""
        kept = self._archive.given(id_, analyst)
        if kept is None:
            return None
        left = {name: self._left(name, Amount()) for name in datasets_of(kept)}
        found = AnsweredTogether(kept.answers, kept.certificate, Amount(), left, repeated=True)
        return found if kept.several else found.alone

    def within(self, datasets: Collection[str]) -> QueryService:
        """Return a desk that knows these datasets and the public tables alone: all else does not exist there."""
        relations = (each for each in self.catalog.relations if each.dataset is None or each.dataset in datasets)
        policies = tuple(policy for policy in self.policies if policy.name in datasets)
        return replace(self, policies=policies, catalog=Catalog(tuple(relations)))

    def load(self) -> None:
        """Read all that questions and the history read, as a server does before the first of them comes.

        Raise SourceUnavailable where rows cannot be read.
        """
        context, relations = Context(self.catalog, None), [each for each in self.catalog.relations if each.askable]
        with available():
            self.warehouse.load([table_rows(relation, context).query for relation in relations])
        with suppress(LedgerUnavailable):  # whoever wants the history is told
            self.payments.read()

    def check(self) -> None:
        """Raise SourceUnavailable if a source is known to be unreadable, or is no longer what it was."""
        with available():
            self.warehouse.check()

    def standing(self, dataset: str) -> BudgetStatus:
        """Return how a dataset stands; one of which nothing was charged yet, as its policy declares it."""
        return self.ledger.standing(self.bonds[dataset].declaration)

    def _again(self, kept: StoredAnswer, prepared: PreparedQuestion[T]) -> T:
        asking = prepared.asking
        if kept.asker not in (EVERYONE, asking.analyst):  # else it was paid for already
            self.ledger.repeat(kept.charge, asking.analyst)
        left = {name: self._left(name, Amount()) for name in prepared.planned.guarantees}
        found = AnsweredTogether(kept.answers, kept.certificate, Amount(), left, repeated=True, texts=kept.texts)
        return prepared.reply(found)

    def _plan(self, asking: QueryRequest) -> Planned:
        """Return how a question is answered; the same question is planned once."""
        return self.plans.of(self._key(asking), lambda: self._planned(asking))

    def _plan_batch(self, asking: AskingTogether) -> Planned:
        """Return how several questions are answered; planned once for each asker: it takes time that others see."""
        return self.batches.of((self._key(asking), asking.analyst), lambda: self._planned_batch(asking))

    def _key(self, asking: QueryRequest | AskingTogether) -> Hashable:
        datasets = tuple(policy.name for policy in self.policies)
        return replace(asking, analyst=None), asking.analyst is None, datasets

    def _planned(self, asking: QueryRequest) -> Planned:
        check_account(asking)
        question = interpret(asking.sql, self.catalog, self._max_groups)
        policies = tuple(policy for policy in self.policies if policy.name in question.datasets)
        if not policies:
            raise Refused("this question reads public tables only: nobody needs protection from its answer.")
        measured = measure(question, policies[0].schema.unit, asking.terms)
        guarantees = measured.plan.over({policy.name: policy.schema.unit for policy in policies})
        if asking.account is None:
            check_most(self.policies, guarantees, asking.analyst)
        units = max(map(declared_units, policies))
        steps = self._answerable(measured.statistics, sampled=asking.terms.rate is not None) * units
        steps += answer_steps(measured, units)
        mark = self._mark({"text": question.text}, asking, policies)
        notes = caps_of([part.question for part in measured.measurements])

        def prices() -> tuple[QuestionPrice, ...]:
            return (QuestionPrice(question.text, measured.expected),)

        return Planned(measured.plan, prices, measured.statistics, notes, guarantees, policies, mark, steps)

    def _planned_batch(self, asking: AskingTogether) -> Planned:
        found = understand_each(asking.questions, lambda sql: understand(sql, self.catalog, self._max_groups))
        first = {question.text: number for number, question in reversed(list(enumerate(found, start=1)))}
        numbers = sorted(first.values())
        policy = next(policy for policy in self.policies if policy.name in found[0].datasets)
        questions = {each: found[each - 1] for each in numbers}
        planned = plan_together(questions, policy.schema.unit, asking.terms, self.catalog)
        guarantees = {policy.name: planned.plan.guarantee}
        check_most(self.policies, guarantees, asking.analyst)
        steps = 0
        for place, queries in planned.passes:
            with nullcontext() if place is None else numbered(numbers[place]):
                steps += self._answerable(queries)
        with refusing("all questions together"):
            steps = check_work(steps) * declared_units(policy) + answer_steps(planned, declared_units(policy))
        mark = self._mark({"texts": [each.text for each in questions.values()]}, asking, (policy,))
        places = tuple(numbers.index(first[question.text]) for question in found)

        def prices() -> tuple[QuestionPrice, ...]:
            return tuple(map(QuestionPrice, (each.text for each in planned.questions), planned.expected))

        statistics = tuple(query for _, queries in planned.passes for query in queries)
        return Planned(planned.plan, prices, statistics, planned.notes, guarantees, (policy,), mark, steps, places)

    def _answerable(self, queries: Sequence[exp.Query], *, sampled: bool = False) -> int:
        """Refuse what the place where the rows are does not compute, before anything is charged.

        Return how many steps one unit of privacy causes at most.
        """
        for query in queries:
            self.warehouse.require(query, sampled=sampled)
        return check_work(sum(unit_steps(query, self.catalog) for query in queries))

    def _mark(self, told: dict[str, Any], asking: QueryRequest | AskingTogether, policies: Sequence[Policy]) -> str:
        versions = {policy.name: [policy.hash, policy.section.dataset.version] for policy in policies}
        terms = {"terms": asking.terms.to_json(), "versions": versions, "account": asking.account}
        return question_mark(told | terms | {"max_groups": self._max_groups})

    @property
    def _archive(self) -> Archive:
        return Archive(self.payments, self.answers, tuple(policy.name for policy in self.policies))

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
        return self._may_read(kept.asker, datasets_of(kept), analyst)

    def _may_read(self, asker: str, datasets: set[str], analyst: str | None) -> bool:
        """Return whether an analyst may read what was asked: for everyone, by himself, or where he is named."""
        return analyst is None or asker in (EVERYONE, analyst) or datasets <= self._named(analyst)

    def _named(self, analyst: str | None) -> set[str]:
        """Return the datasets of which an analyst reads what others asked."""
        told = {policy.name: policy.section.queries for policy in self.policies}
        return {name for name, queries in told.items() if queries is not None and analyst in queries.readers}

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


@contextmanager
def open_desk(
    policies: Sequence[Policy],
    data: object = None,
    limits: Limits | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Iterator[QueryService]:
    """Open a desk for the tables of some policies that share a ledger; settings name another engine than they do."""
    with open_tables(policies, data, limits, settings, progress) as found:
        answers = Answers.beside(policies[0].ledger_address)
        with open_charges(FingerprintFile.of(policies[0]).path.parent, found.ledger, answers) as own:
            rest = (found.ledger, answers, found.bonds, own, Payments(found.ledger))
            yield QueryService(found.policies, found.catalog, found.warehouse, *rest)
