"""Queries, batches and their cost estimates; tables, budgets, history, releases and certificates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field

from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.queries.declarations import declaration_answer, may_be_declaration
from incrowd.queries.language.reading import Parameter, bind_parameters, is_explain
from incrowd.queries.query import QueryTerms
from incrowd.web import replies
from incrowd.web.answering import JsonDocument, Prepared, QueryTask, ReadyDocument, reply_to
from incrowd.web.caller import Asker, Caller, Reader
from incrowd.web.services import Here, Services
from incrowd.web.shapes import (
    PLAIN,
    BatchShape,
    BudgetShape,
    DateShape,
    HistoryShape,
    NumberShape,
    ParameterShape,
    QueryShape,
    ReleasesShape,
    Shape,
    StatementShape,
    failures,
)
from incrowd.workflows.query.history import HistoryRange
from incrowd.workflows.query.planning import numbered
from incrowd.workflows.query.request import BatchRequest, QueryRequest
from incrowd.workflows.query.system_catalog import Visitor

router = APIRouter()
_QUERIES: dict[str, Any] = {
    "tags": ["queries"],
    "responses": {200: {"model": dict[str, Any]}, **failures(422, 504)},
}
_FACTS: dict[str, Any] = {"tags": ["what is known"]}
_PER_REQUEST = 16
"""How many queries of a batch are planned for what one request counts against the rate."""


@router.post("/v1/query", summary="Ask", **_QUERIES)
async def query(query: QueryShape, caller: Asker, services: Here) -> Response:
    """Charge a query, then answer it with noise; a repetition takes as long as an answer."""
    return await _declared(query, caller, services) or await answered(query, caller, services)


async def answered(query: QueryShape, caller: Caller, services: Services) -> Response:
    """Return the reply to a query about rows, in its time; every door asks here."""
    with services.limit.hold(caller.user.name):
        return await reply_to(query_task("query", query, caller, services))


@router.post("/v1/price", summary="Price", **_QUERIES)
async def price(query: QueryShape, caller: Reader, services: Here) -> Response:
    """Estimate the cost of a query and the accuracy of its answer; no row is read and nothing is charged."""
    return await _declared(query, caller, services) or await reply_to(query_task("price", query, caller, services))


@router.post("/v1/batch", summary="Ask several", **_QUERIES)
async def query_batch(batch: BatchShape, caller: Asker, services: Here) -> Response:
    """Charge several queries as one, then answer each with noise; the same ones again get the same answers.

    A refusal names the query that it is about by its number, and then none is batch.
    """
    return await _reply_to_batch("query_batch", batch, caller, services)


@router.post("/v1/batch/price", summary="Price several", **_QUERIES)
async def price_batch(batch: BatchShape, caller: Reader, services: Here) -> Response:
    """Estimate the cost of several queries together and the accuracy of each answer; nothing is charged."""
    return await _reply_to_batch("price_batch", batch, caller, services)


async def _declared(query: QueryShape, caller: Caller, services: Services) -> Response | None:
    """Return the reply to SHOW TABLES and the like, and to what reads public tables alone; else None."""
    if is_explain(query.sql)[0]:
        return None
    queries = caller.queries(services)

    def answer() -> Response | None:
        try:
            sql = bound(query)
            declared = declaration_answer(sql, queries.schema())
            declared = declared or queries.public_answer(sql, Visitor(caller.user.name))
        except IncrowdError as problem:
            return replies.refusal(problem)
        return None if declared is None else replies.as_json(declared.to_json())

    if not may_be_declaration(query.sql) and not queries.may_be_public(query.sql):
        return None
    return await asyncio.wrap_future(services.public.submit(answer, caller.user.name))


def query_task(action: str, query: QueryShape, caller: Caller, services: Services) -> QueryTask:
    """Return what is done about a query: plan it, then answer it, or estimate its cost or tell its columns."""
    only_price, sql = is_explain(query.sql)
    only_price, queries = only_price or action == "price", caller.queries(services)

    def request() -> QueryRequest:
        delta = Fraction(0) if query.delta is None else query.delta
        terms = QueryTerms(query.epsilon, delta, query.error, query.rate, query.rho)
        return QueryRequest(bound(query, sql), terms, caller.analyst, query.account)

    def prepare() -> Prepared:
        new = request()
        if only_price:
            estimate = queries.price(new)  # before the wait: the time of planning shows whether others asked the same
            return ReadyDocument(lambda: estimate)
        empty = queries.empty_answer(new)
        return queries.prepare(new) if empty is None else ReadyDocument(lambda: empty)

    def recall() -> Prepared | None:
        return None if only_price or query.parameters or "?" in sql else queries.recall(request())

    about = _offer(query, "epsilon", "delta", "error", "rate", "rho") | query_note(_text(query), services)
    pool = services.quick if action == "price" else services.pool
    return QueryTask(action, caller, services, pool, prepare, about, recall)


async def _reply_to_batch(action: str, batch: BatchShape, caller: Caller, services: Services) -> Response:
    """Return the reply in its time.  Planning many queries is work: it is limited, and counts as several requests."""

    def prepare() -> Prepared:
        terms = QueryTerms(batch.epsilon, Fraction(0) if batch.delta is None else batch.delta)
        request, queries = BatchRequest(_bound_batch(batch), terms, caller.analyst), caller.queries(services)
        if action == "query_batch":
            return queries.prepare(request)
        estimate = queries.price(request)
        return ReadyDocument(lambda: estimate)

    services.requests.owe(caller.rate_key, (len(batch.questions) - 1) // _PER_REQUEST)
    about = _offer(batch, "epsilon", "delta") | {"questions": str(len(batch.questions))}
    about |= query_note("; ".join(map(_text, batch.questions)), services)
    with services.limit.hold(caller.user.name):
        return await reply_to(QueryTask(action, caller, services, services.pool, prepare, about))


def _bound_batch(batch: BatchShape) -> tuple[str, ...]:
    statements = list[str]()
    for number, statement in enumerate(batch.questions, start=1):
        with numbered(number):
            statements.append(bound(statement))
    return tuple(statements)


def bound(statement: StatementShape, sql: str | None = None) -> str:
    """Return a statement with its parameters in place, as literals of the parsed tree."""
    parameters = [_value(parameter) for parameter in statement.parameters or ()]
    return bind_parameters(statement.sql if sql is None else sql, parameters)


def _value(parameter: ParameterShape) -> Parameter:
    match parameter:
        case NumberShape():
            return Decimal(parameter.number) if "." in parameter.number else int(parameter.number)
        case DateShape():
            try:
                return date.fromisoformat(parameter.date)
            except ValueError:
                raise InvalidParameter("a parameter is a date that is not in the calendar: write 2020-12-31.") from None
    return parameter


def _offer(shape: Shape, *names: str) -> dict[str, Any]:
    """Return what the audit log holds of the terms."""
    return {name: str(value) for name, value in shape.model_dump(include=set(names)).items() if value is not None}


def _text(statement: StatementShape) -> str:
    """Return a statement and its parameters as one text."""
    return statement.sql + (
        "" if not statement.parameters else f" -- {statement.model_dump_json(include={'parameters'})}"
    )


def query_note(text: str, services: Services) -> dict[str, Any]:
    """Return what the audit log holds of a query: a fingerprint, unless the operator chose to log its text."""
    return {"question": text if services.settings.show_queries else services.stores.audit.mark(text)}


@router.get("/v1/history", summary="History", responses={200: {"model": HistoryShape}, **failures(504)}, **_FACTS)
async def history(
    caller: Reader,
    services: Here,
    before: Annotated[Annotated[int, Field(ge=1, le=2**53), PLAIN] | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=200), PLAIN] = 50,
    others: bool = False,
) -> Response:
    """Return a page of the caller's queries, the latest first, with texts, costs and what remained.

    With `others` it also holds queries of others, for analysts whom the policy names, auditors, curators and owners.
    """
    range_, reads_all = HistoryRange(limit, before, others), caller.reader is None

    def page() -> JsonDocument:
        return caller.queries(services).history.page(caller.analyst, range_, reads_all=reads_all)

    return await _reply_with("history", page, caller, services, others=str(others).lower())


@router.get(
    "/v1/answers/{number}",
    summary="Answer",
    responses={200: {"model": dict[str, Any]}, **failures(404, 504)},
    **_FACTS,
)
async def answer(number: str, caller: Asker, services: Here) -> Response:
    """Return an answer that the caller was given before, or that is for everyone; no charge, and no row is read."""

    def stored() -> JsonDocument:
        document = caller.queries(services).history.answer(number, caller.analyst)
        if document is None:
            raise replies.NotFound
        return document

    return await _reply_with("answer", stored, caller, services)


async def _reply_with(
    action: str, find: Callable[[], JsonDocument], caller: Caller, services: Services, **about: str
) -> Response:
    """Find a document while the caller's queries go on, and reply with it after the pace of one."""

    def prepare() -> ReadyDocument:
        document = find()
        return ReadyDocument(lambda: document)

    with services.limit.hold(caller.user.name):
        return await reply_to(QueryTask(action, caller, services, services.quick, prepare, about))


@router.get("/v1/schema", summary="Tables", responses=failures(), **_FACTS)
def schema(caller: Reader, services: Here) -> dict[str, Any]:
    """Return the tables that may be queried, as they are declared; no row was read for it."""
    return caller.queries(services).schema()


@router.get("/v1/budget", summary="Budget", responses=failures(), **_FACTS)
def budget(caller: Reader, services: Here) -> BudgetShape:
    """Return what remains of each dataset, and what the caller has spent of it and may spend."""
    return BudgetShape(datasets=caller.queries(services).budgets.report(caller.analyst))


@router.get("/v1/releases", summary="Releases", responses=failures(), **_FACTS)
def releases(caller: Reader, services: Here) -> ReleasesShape:
    """Return the releases of the caller's datasets; for an analyst, those that they asked for or may read."""
    lines = services.queries.history.releases(caller.reader)
    return ReleasesShape(releases=[line for line in lines if caller.user.may_use(_datasets(line["dataset"], line))])


@router.get("/v1/certificates/{number}", summary="Certificate", responses=failures(404), **_FACTS)
def certificate(number: str, caller: Reader, services: Here) -> Response:
    """Return the certificate of a release, as `incrowd verify` reads it."""
    stored = services.queries.history.certificate(number, caller.reader)
    plain = {} if stored is None else stored.to_json()
    if plain and not caller.user.may_use(_datasets(plain["dataset"]["name"], plain["dataset"])):
        services.stores.audit.write(caller.event("certificate", "denied"))
        plain = {}
    return replies.as_json(plain) if plain else replies.refusal(replies.NotFound())


def _datasets(first: str, line: Mapping[str, Any]) -> list[str]:
    return [first, *line.get("together with", ())]
