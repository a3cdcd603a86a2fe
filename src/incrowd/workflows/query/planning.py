"""Planning: a query, or a batch of them, understood and measured; no row is read and nothing is charged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incrowd.core.domain import Type
from incrowd.core.guarantee import Guarantee
from incrowd.core.steps.periods import ReadPeriod
from incrowd.core.unit import Unit
from incrowd.engines.sql.engine import QueryTables
from incrowd.errors import IncrowdError, InvalidParameter, Refused
from incrowd.queries.answer_work import answer_steps
from incrowd.queries.batch import Batch, batch
from incrowd.queries.combined_measurement import measure
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.language.outer import answer_columns
from incrowd.queries.language.periods import reading_periods
from incrowd.queries.language.row_query import Context
from incrowd.queries.language.tables import table_rows
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import QueryPlan
from incrowd.queries.query import Catalog, Query, QueryTerms
from incrowd.queries.work import check_work, unit_steps
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.query.answers import LruCache, query_digest
from incrowd.workflows.query.budgets import check_account, check_highest_cost
from incrowd.workflows.query.request import BatchRequest, QueryEstimate, QueryRequest
from incrowd.workflows.query.system_catalog import SystemCatalog
from incrowd.workflows.query.tables import available, declared_units, describe_catalog

if TYPE_CHECKING:
    from sqlglot import exp

Request = QueryRequest | BatchRequest
_PLANS, _BATCHES, _CATALOGS = 256, 4, 16
"""How many plans are remembered: one of a batch is large."""


@dataclass(frozen=True)
class PlannedQuery:
    """A query or a batch that is understood and measured, with its guarantee to each dataset.

    `estimates` tells how exact the answer to each query will be, `statistics` what is read of the rows, `notes` what
    else is said beforehand, `steps` how much work it is at most.  Equal queries of a batch are answered once: `places`
    tells for each query of the request which answer it has.
    """

    plan: QueryPlan
    estimates: Callable[[], tuple[QueryEstimate, ...]]
    statistics: tuple[exp.Query, ...]
    notes: tuple[str, ...]
    guarantees: Mapping[str, Guarantee]
    policies: tuple[Policy, ...]
    query_id: str
    steps: int
    places: tuple[int, ...] = (0,)
    columns: tuple[tuple[str, Type], ...] = ()
    """The names and types of the answer's columns, of a single query."""
    periods: tuple[str, ...] | None = None
    """The periods that it is charged to, where it reads the rows of these alone; None for every one."""


@dataclass(frozen=True, eq=False)
class QueryPlanner:
    """Plans queries about the tables of some policies, each query once."""

    policies: tuple[Policy, ...]
    catalog: Catalog
    tables: QueryTables
    plans: LruCache[PlannedQuery] = field(default_factory=lambda: LruCache(_PLANS))
    batches: LruCache[PlannedQuery] = field(default_factory=lambda: LruCache(_BATCHES))
    public: LruCache[SystemCatalog] = field(default_factory=lambda: LruCache(_CATALOGS))

    def within(self, datasets: Collection[str]) -> QueryPlanner:
        """Return a planner that knows these datasets and the public tables alone."""
        relations = [table for table in self.catalog.relations if table.dataset is None or table.dataset in datasets]
        policies = tuple(policy for policy in self.policies if policy.name in datasets)
        return replace(self, policies=policies, catalog=Catalog(tuple(relations)))

    def plan(self, request: Request) -> PlannedQuery:
        """Return the plan of a query or a batch, or refuse it.

        A batch is planned once for each analyst: planning it takes time, which would show others that it was asked.
        """
        if isinstance(request, BatchRequest):
            key = self._key(request), request.analyst
            return self.batches.get_or_make(key, lambda: self._plan_batch(request))
        return self.plans.get_or_make(self._key(request), lambda: self._plan(request))

    def recall(self, request: QueryRequest) -> PlannedQuery | None:
        """Return the plan of a query if it is remembered."""
        return self.plans.get(self._key(request))

    def public_catalog(self) -> SystemCatalog:
        """Return the system catalog of these tables, with the rows of public ones."""
        return self.public.get_or_make(tuple(relation.name for relation in self.catalog.relations), self._open_catalog)

    def _open_catalog(self) -> SystemCatalog:
        context, rows = Context(self.catalog, None), dict[str, pa.Table]()
        with available():
            for relation in self.catalog.relations:
                if not relation.private:
                    rows[relation.name] = self.tables.collect(table_rows(relation, context).query)
        return SystemCatalog.of(describe_catalog(self.catalog), rows)

    def may_be_public(self, sql: str) -> bool:
        """Tell at a glance whether a statement could read public tables and the system catalog alone."""
        text = sql.casefold()
        private = (relation.name.casefold() for relation in self.catalog.relations if relation.private)
        named = any(word in text for word in ("pg_", "information_schema", "_privilege"))
        return named or not any(name in text for name in private)

    def _key(self, request: Request) -> Hashable:
        """Return everything that a plan depends on, which of an analyst is only whether there is one."""
        datasets = tuple(policy.name for policy in self.policies)
        return replace(request, analyst=None), request.analyst is None, datasets

    def _plan(self, request: QueryRequest) -> PlannedQuery:
        check_account(request)
        catalog, days = reading_periods(request.sql, self.catalog, self._max_groups)
        query = interpret(request.sql, catalog, self._max_groups)
        policies = tuple(policy for policy in self.policies if policy.name in query.datasets)
        if not policies:
            raise Refused("this query reads public tables only: nobody needs protection from its answer.")
        measured = measure(query, policies[0].schema.unit, request.terms)
        plan, periods = measured.plan, None if days is None else days.periods
        if periods is not None and policies[0].calendar is not None:
            plan = plan.led_by(ReadPeriod.among(policies[0].calendar, periods))
        guarantees = plan.over({policy.name: policy.schema.unit for policy in policies})
        if request.account is None:
            check_highest_cost(self.policies, guarantees, request.analyst)
        units = max(map(declared_units, policies))
        steps = self._require_answerable(measured.statistics, catalog, sampled=request.terms.rate is not None) * units
        steps += answer_steps(measured, units)
        caps = dict.fromkeys(part.question.caps.sentence for part in measured.measurements)

        def estimates() -> tuple[QueryEstimate, ...]:
            return (QueryEstimate(query.text, measured.expected),)

        return PlannedQuery(
            plan,
            estimates,
            measured.statistics,
            (*filter(None, caps), *_charged_to(policies, periods)),
            guarantees,
            policies,
            self._query_id({"text": query.text}, request, policies),
            steps,
            columns=answer_columns(query),
            periods=periods,
        )

    def _plan_batch(self, request: BatchRequest) -> PlannedQuery:
        understood = understand_all(request.questions, lambda sql: understand(sql, self.catalog, self._max_groups))
        first = {query.text: number for number, query in reversed(list(enumerate(understood, start=1)))}
        numbers = sorted(first.values())
        policy = next(policy for policy in self.policies if policy.name in understood[0].datasets)
        queries_by_number = {number: understood[number - 1] for number in numbers}
        planned = plan_together(queries_by_number, policy.schema.unit, request.terms, self.catalog)
        guarantees = {policy.name: planned.plan.guarantee}
        check_highest_cost(self.policies, guarantees, request.analyst)
        texts = {"texts": [query.text for query in queries_by_number.values()]}

        def estimates() -> tuple[QueryEstimate, ...]:
            return tuple(map(QueryEstimate, (query.text for query in planned.questions), planned.expected))

        return PlannedQuery(
            planned.plan,
            estimates,
            tuple(query for _, queries in planned.passes for query in queries),
            planned.notes,
            guarantees,
            (policy,),
            self._query_id(texts, request, (policy,)),
            self._batch_steps(planned, numbers, policy),
            tuple(numbers.index(first[query.text]) for query in understood),
        )

    def _batch_steps(self, planned: Batch, numbers: Sequence[int], policy: Policy) -> int:
        """Return how much work a batch is at most, or refuse it and name the query that is too much."""
        steps, units = 0, declared_units(policy)
        for place, queries in planned.passes:
            with nullcontext() if place is None else numbered(numbers[place]):
                steps += self._require_answerable(queries, self.catalog)
        with refusing("all queries together"):
            return check_work(steps) * units + answer_steps(planned, units)

    def _require_answerable(self, queries: Sequence[exp.Query], catalog: Catalog, *, sampled: bool = False) -> int:
        """Refuse what the engine does not compute; return how many steps one unit of privacy causes at most."""
        for query in queries:
            self.tables.require(query, sampled=sampled)
        return check_work(sum(unit_steps(query, catalog) for query in queries))

    def _query_id(self, texts: dict[str, Any], request: Request, policies: Sequence[Policy]) -> str:
        versions = {policy.name: [policy.hash, policy.section.dataset.version] for policy in policies}
        terms = {"terms": request.terms.to_json(), "versions": versions, "account": request.account}
        return query_digest(texts | terms | {"max_groups": self._max_groups})

    @property
    def _max_groups(self) -> int | None:
        """The fewest groups that some policy lets one person contribute to; it holds for all queries."""
        sections = [policy.section.queries for policy in self.policies]
        limits = [queries.max_groups for queries in sections if queries is not None and queries.max_groups is not None]
        return min(limits, default=None)


def _charged_to(policies: Sequence[Policy], periods: tuple[str, ...] | None) -> Iterator[str]:
    """Say which periods a query is charged to, where its dataset has periods."""
    if periods is not None:
        listed = periods[0] if len(periods) == 1 else f"each of {periods[0]} to {periods[-1]}"
        yield f"It reads the rows of {listed} alone, and is charged to {'it' if len(periods) == 1 else 'them'}."
    elif any(policy.calendar is not None for policy in policies):
        yield "It may read the rows of all periods, and is charged to every one."


def numbered(number: int) -> AbstractContextManager[None]:
    """Say of which query a refusal is.

    >>> with numbered(2):
    ...     raise InvalidParameter("there is no such table.")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: query 2: there is no such table.
    """
    return refusing(f"query {number}")


@contextmanager
def refusing(subject: str) -> Iterator[None]:
    """Say what a refusal is about."""
    try:
        yield
    except IncrowdError as problem:
        raise type(problem)(f"{subject}: {problem}") from None


def understand_all(texts: Sequence[str], understand: Callable[[str], Query]) -> list[Query]:
    """Return the queries of a batch as they are understood, if all of them are about one dataset."""
    queries = list[Query]()
    for number, text in enumerate(texts, start=1):
        with numbered(number):
            queries.append(understand(text))
            if len(queries[-1].datasets) != 1 or queries[-1].datasets != queries[0].datasets:
                raise Refused("queries that are paid for as one are all about one dataset, the same for all.")
    if not queries:
        raise InvalidParameter("a batch needs at least one query.")
    return queries


def plan_together(queries: Mapping[int, Query], unit: Unit, terms: QueryTerms, catalog: Catalog) -> Batch:
    """Plan different queries together, by their numbers.

    A refusal names the query that would be refused alone, unless all of them would be for the same reason.
    """
    try:
        return batch(list(queries.values()), unit, terms, catalog)
    except IncrowdError as problem:
        refusals = {number: _refusal(query, unit, terms) for number, query in queries.items()}
        if any(refusal is None or str(refusal) != str(problem) for refusal in refusals.values()):
            for number, refusal in refusals.items():
                with numbered(number):
                    if refusal is not None:
                        raise refusal from None
        raise


def _refusal(query: Query, unit: Unit, terms: QueryTerms) -> IncrowdError | None:
    """Return why a query is refused alone, or None."""
    try:
        batch([query], unit, terms)
    except IncrowdError as problem:
        return problem
    return None
