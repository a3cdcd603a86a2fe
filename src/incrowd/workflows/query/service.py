"""The query service: it estimates the cost of queries without a row, charges them, answers them, and stores answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar, overload

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.certificate import Certificate
from incrowd.core.table import Progress
from incrowd.engines.settings import Settings
from incrowd.engines.sql.engine import Limits
from incrowd.engines.writers.sinks import Folders, staged
from incrowd.errors import LedgerUnavailable, SourceUnavailable
from incrowd.queries.answer import AnswerTables
from incrowd.queries.declarations import DeclarationAnswer, declared_columns, rowless_query
from incrowd.queries.language.periods import first_period
from incrowd.queries.language.row_query import Context
from incrowd.queries.language.tables import table_rows
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sources import FingerprintFile
from incrowd.workflows.query.answers import EVERYONE, Answers, StoredAnswer
from incrowd.workflows.query.budgets import Budgets, highest_cost
from incrowd.workflows.query.history import AnswerHistory, PaymentIndex
from incrowd.workflows.query.open_charges import OpenCharges, QueryInFlight, open_charges
from incrowd.workflows.query.planning import PlannedQuery, QueryPlanner, Request
from incrowd.workflows.query.release import InAnswerStore, QueryRows, answer_order
from incrowd.workflows.query.request import BatchAnswer, BatchRequest, CostEstimate, QueryAnswer, QueryRequest
from incrowd.workflows.query.system_catalog import Visitor, public_rows
from incrowd.workflows.query.tables import admission_to, available, describe_catalog, gated_rows, open_tables
from incrowd.workflows.release.deliver import Destination, write_files
from incrowd.workflows.release.run import finish, pending

T = TypeVar("T", bound=BatchAnswer)
RETRY = 0.05
"""Seconds after which is looked again for an answer that another process or thread is making."""
_FREE = "It reads public tables and declarations alone."


@dataclass(frozen=True, eq=False)
class QueryService:
    """Answers queries about some tables; safe for many threads, and for many processes with one ledger.

    The answers that were given are in its `history`, what they cost and what remains in its `budgets`.
    """

    planner: QueryPlanner
    budgets: Budgets
    history: AnswerHistory
    charges: OpenCharges

    def within(self, datasets: Collection[str]) -> QueryService:
        """Return a service that knows these datasets and the public tables alone: all else does not exist there."""
        return replace(
            self,
            planner=self.planner.within(datasets),
            budgets=self.budgets.within(datasets),
            history=self.history.within(datasets),
        )

    def schema(self) -> dict[str, Any]:
        """Return the tables that may be queried: columns, domains and units, as declared."""
        return describe_catalog(self.planner.catalog)

    def price(self, request: Request) -> CostEstimate:
        """Estimate the cost of a query or a batch and its accuracy; no row is read and nothing is written.

        A query of others that the analyst may not read is estimated as if it were new: nobody learns what others asked.
        """
        free = self.public_price(request.sql) if isinstance(request, QueryRequest) else None
        if free is not None:
            return free
        planned = self.planner.plan(request)
        stored = self.history.answers.find(planned.query_id)
        repeated = stored is not None and self.history.readable(stored, request.analyst)
        cost = Amount() if repeated or request.account is not None else highest_cost(planned.guarantees.values())
        estimates = planned.estimates()
        return CostEstimate(
            "; ".join(estimate.question for estimate in estimates),
            tuple(planned.guarantees),
            cost,
            self.budgets.remaining(planned.guarantees, cost),
            tuple(column for estimate in estimates for column in estimate.expected),
            repeated,
            tuple(query.sql(dialect="duckdb", pretty=True) for query in planned.statistics),
            planned.notes,
            tuple(estimates[place] for place in planned.places) if isinstance(request, BatchRequest) else (),
        )

    def columns(self, request: QueryRequest) -> tuple[tuple[str, str], ...]:
        """Return the names and types of the columns that an answer would have; no row is read, nothing is charged."""
        return tuple((name, str(kind)) for name, kind in self.planner.plan(request).columns)

    def empty_answer(self, request: QueryRequest) -> DeclarationAnswer | None:
        """Answer a query that can have no row (LIMIT 0, WHERE FALSE) from declarations; None where it can."""
        open_query = rowless_query(request.sql)
        if open_query is None:
            return None
        columns = declared_columns(open_query, self.schema())
        if columns is None:
            columns = self.columns(replace(request, sql=open_query.sql(dialect="duckdb")))
        return DeclarationAnswer(tuple(name for name, _ in columns), (), tuple(kind for _, kind in columns))

    def may_be_public(self, sql: str) -> bool:
        """Tell at a glance whether a statement could read public tables and the system catalog alone."""
        return self.planner.may_be_public(sql)

    def public_price(self, sql: str) -> CostEstimate | None:
        """Estimate the cost of a statement that reads public tables alone, which is nothing; None of any other."""
        if not self.may_be_public(sql) or self.planner.public_catalog().tree(sql) is None:
            return None
        return CostEstimate(sql, (), Amount(), {}, (), repeated=False, plan=(), notes=(_FREE,))

    def public_answer(self, sql: str, visitor: Visitor) -> DeclarationAnswer | None:
        """Answer a statement that reads public tables, the system catalog or nothing; None where it reads more."""
        if not self.may_be_public(sql):
            return None
        table = self.planner.public_catalog().answer(sql, visitor)
        return None if table is None else public_rows(table)

    @overload
    def ask(self, request: QueryRequest) -> QueryAnswer: ...
    @overload
    def ask(self, request: BatchRequest) -> BatchAnswer: ...
    def ask(self, request: Request) -> BatchAnswer:
        """Charge a query or a batch, read the rows, add noise, certify and store; or return the stored answer."""
        return self.prepare(request).ask()

    @overload
    def prepare(self, request: QueryRequest) -> PreparedQuery[QueryAnswer]: ...
    @overload
    def prepare(self, request: BatchRequest) -> PreparedQuery[BatchAnswer]: ...
    def prepare(self, request: Request) -> PreparedQuery[Any]:
        """Plan a query or a batch, or refuse it; no row is read and nothing is written."""
        return PreparedQuery(self, request, self.planner.plan(request))

    def recall(self, request: QueryRequest) -> PreparedQuery[QueryAnswer] | None:
        """Return a query whose plan is remembered, with no work at all; None tells nothing."""
        planned = self.planner.recall(request)
        return None if planned is None else PreparedQuery(self, request, planned)

    def load(self) -> None:
        """Read all that queries and the history read, as a server does before the first request.

        Raise SourceUnavailable where rows cannot be read.
        """
        context = Context(self.planner.catalog, None)
        tables = self.planner.catalog.relations
        relations = [relation for relation in tables if relation.askable]
        relations += [one for relation in tables if (one := first_period(relation)) is not None]
        with available():
            self.planner.tables.load([table_rows(relation, context).query for relation in relations])
        with suppress(LedgerUnavailable):  # whoever reads the history is told
            self.history.payments.read()

    def check(self) -> None:
        """Raise SourceUnavailable if a source is known to be unreadable, or is no longer what it was."""
        with available():
            self.planner.tables.check()

    def begin(self, prepared: PreparedQuery[T]) -> PendingAnswer[T]:
        """Charge a query that was planned here and read the rows; nobody can see its answer yet.

        A new query, or one of another analyst, needs an allowance.  For a stored answer nothing is charged or read.
        While the same query is being answered elsewhere, QueryInFlight is raised.
        """
        analyst, planned, answers = prepared.request.analyst, prepared.planned, self.history.answers
        with ExitStack() as stack:
            stored = answers.remembered(planned.query_id)
            if stored is None:
                # Alone before the look into the store: else two could find nothing there, and both charge.
                stack.enter_context(self.charges.alone(planned.query_id))
                stored = answers.find(planned.query_id)
            if analyst is not None and (stored is None or not stored.paid_for(analyst)):
                self.budgets.require_allowance(analyst, planned.policies)
            if stored is not None:
                return self.repeat(prepared, stored)
            return self._new(prepared, stack.pop_all())

    def repeat(self, prepared: PreparedQuery[T], stored: StoredAnswer) -> PendingAnswer[T]:
        """Give a stored answer again."""
        return PendingAnswer(partial(self._again, prepared, stored), unread=True)

    def _again(self, prepared: PreparedQuery[T], stored: StoredAnswer) -> T:
        analyst = prepared.request.analyst
        if stored.asker not in (EVERYONE, analyst):  # else it was paid for already
            self.budgets.ledger.repeat(stored.charge, analyst)
        left = self.budgets.remaining(prepared.planned.guarantees)
        answer = BatchAnswer(stored.answers, stored.certificate, Amount(), left, repeated=True, texts=stored.texts)
        return prepared.reply(answer)

    def _new(self, prepared: PreparedQuery[T], alone: ExitStack) -> PendingAnswer[T]:
        """Charge and read; `alone` is closed when the query is answered, or cannot be."""
        request, planned = prepared.request, prepared.planned
        with alone as stack:
            try:
                with available():
                    self.planner.tables.load(planned.statistics)  # what cannot be read costs nothing
            except SourceUnavailable:
                if request.account is None:  # refused as a query of others is, for which no row is read
                    self.budgets.preview(planned.guarantees, request.analyst, planned.periods)
                raise
            consent = admission_to(planned.policies)
            order = answer_order(planned, request, consent)
            rows = gated_rows(self.planner.tables, self.planner.catalog, order.target.dataset, consent)
            bonds = tuple(self.budgets.bonds[name] for name in planned.guarantees)
            opened = QueryRows(rows, self.budgets.ledger, bonds, None, self.charges.conclude)
            stack.enter_context(self.charges.named(order.id))
            made = stack.enter_context(pending(order, lambda: nullcontext(opened)))
            later = stack.pop_all()

        def finish_later() -> T:
            with later:
                return finish(made, InAnswerStore(self.history.answers, self.budgets, prepared))

        return PendingAnswer(finish_later)


@dataclass(frozen=True, eq=False)
class PreparedQuery(Generic[T]):
    """A query or a batch that was planned and will be answered."""

    service: QueryService
    request: Request
    planned: PlannedQuery

    @property
    def steps(self) -> int:
        """How much work it is at most, for as many units as the policies declare."""
        return self.planned.steps

    @property
    def query_id(self) -> str:
        """What equal queries share."""
        return self.planned.query_id

    def again(self) -> PendingAnswer[T] | None:
        """Return the stored answer, if this process remembers it and no allowance is needed for it."""
        stored = self.service.history.answers.remembered(self.query_id)
        return (
            None if stored is None or not stored.paid_for(self.request.analyst) else self.service.repeat(self, stored)
        )

    def begin(self) -> PendingAnswer[T]:
        """Charge it and read the rows, or find the stored answer."""
        return self.service.begin(self)

    def ask(self) -> T:
        """Answer it and conclude its charge; where the same is being answered elsewhere, wait for that answer."""
        while True:
            try:
                answer = self.begin().finish()
            except QueryInFlight:
                time.sleep(RETRY)
            else:
                self.service.charges.settle()
                return answer

    def reply(self, answer: BatchAnswer) -> T:
        """Return the answers to what was measured as the answer to the request."""
        reply: Any = answer.placed(self.planned.places) if isinstance(self.request, BatchRequest) else answer.alone
        return reply  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class PendingAnswer(Generic[T]):
    """An answer that exists, and that nobody can see yet: neither here nor in the list of releases."""

    finish: Callable[[], T]
    """Certify it, store it and return it; to be called once, by any thread."""
    unread: bool = False
    """Whether no row was read for it, because it was stored before."""


def publish_answer(answer: BatchAnswer, ledger: Ledger, destination: Destination) -> Certificate:
    """Write an answer into a folder that anyone may have; return its certificate with the hashes of the files.

    Answers to a batch have a file each.  The ledger records this certificate, too, for the charge.
    """
    with staged(Folders(destination.place)) as stage:
        certificate = write_files(answer.certificate, AnswerTables(answer.different), stage.public, destination)
        charge = next(ledger.entries(answer.certificate.ledger.sequence - 1))
        ledger.conclude(charge, certificate.digest())
    return certificate


@contextmanager
def open_queries(
    policies: Sequence[Policy],
    data: object = None,
    limits: Limits | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Iterator[QueryService]:
    """Open a service for the tables of policies that share a ledger; settings name another engine than they do."""
    with open_tables(policies, data, limits, settings, progress) as opened:
        answers = Answers.beside(policies[0].ledger_address)
        with open_charges(FingerprintFile.of(policies[0]).path.parent, opened.ledger, answers) as charges:
            budgets = Budgets(opened.policies, opened.ledger, opened.bonds)
            history = AnswerHistory(opened.policies, budgets, answers, PaymentIndex(opened.ledger))
            planner = QueryPlanner(opened.policies, opened.catalog, opened.warehouse)
            yield QueryService(planner, budgets, history, charges)
