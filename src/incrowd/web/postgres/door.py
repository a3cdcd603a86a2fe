"""The door: statements of a connection, answered by the query service of HTTP, with its limits, pace and audit log."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from fastapi import Response
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError

from incrowd.drawing.answer import expected_words
from incrowd.errors import AccessDenied, IncrowdError
from incrowd.governance.audit import Event
from incrowd.governance.grant import Permission
from incrowd.queries.declarations import DeclarationAnswer, declaration_answer
from incrowd.queries.query import QueryTerms
from incrowd.web import replies
from incrowd.web.answering import QueryTask, ReadyDocument, reply_to
from incrowd.web.caller import Caller
from incrowd.web.concurrency import RateLimiter
from incrowd.web.postgres.statements import (
    BAD_VALUE,
    FEATURE,
    READ_ONLY,
    ClientStatement,
    Complaint,
    ConnectionSettings,
    shown_setting,
)
from incrowd.web.postgres.values import TEXT, type_of
from incrowd.web.routes.queries import answered, query_note, query_task
from incrowd.web.services import Services
from incrowd.web.shapes import QueryShape
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.system_catalog import Visitor

_STATES = {
    "InvalidParameter": "42601",
    "UnknownColumn": "42703",
    "UnknownTable": "42P01",
    "MixedUnits": "42P10",
    "AccessDenied": "42501",
    "BudgetExceeded": "53400",
}
_BY_STATUS = {400: "42601", 401: "28000", 403: "42501", 413: "54000", 422: FEATURE, 429: "53300", 503: "57P03"}
_FAULT = "58000"
"""The state of everything that could depend on rows: a fault, an answer that took too long, one that was stopped."""
_CATALOG_FACTOR = 10
"""How many statements about declarations count as one request."""
_EXPLAIN = re.compile(
    r"explain\s+(?:(?:privacy|analyze|verbose)\s+|\([^)]*\)\s*)*(?P<query>.+)", re.IGNORECASE | re.DOTALL
)
_WAY_OUT = re.compile(r"(?P<message>.+?)(?:: |\. (?=[A-Z]))(?P<hint>.+)", re.DOTALL)
"""What is wrong, and in the same or the next sentence what to do."""
_INSTEAD_OF_COPY = "Write SELECT; in DuckDB SET pg_use_text_protocol = true, in ADBC adbc.postgresql.use_copy = false."
_UNKNOWN = "the user or the token is wrong, or the token was revoked or expired"


@dataclass(frozen=True)
class StatementResult:
    """What a statement gives: columns with types, rows, what it is called, and notices with their severities."""

    tag: str
    columns: tuple[tuple[str, int], ...] | None = None
    rows: Sequence[tuple[Any, ...]] = ()
    notices: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Columns:
    """The columns of an answer as a document."""

    columns: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        return {"columns": [list(column) for column in self.columns]}


@dataclass(frozen=True, eq=False)
class Door:
    """What all connections of a worker share."""

    services: Services
    catalog_requests: RateLimiter = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "catalog_requests", RateLimiter(self.services.settings.rate * _CATALOG_FACTOR))

    async def caller(self, user: str, token: str, place: str) -> Caller:
        """Return the user of a token, whose name must be right, too; whoever tries often waits."""
        return await run_in_threadpool(self._caller, user, token, place)

    def _caller(self, user: str, token: str, place: str) -> Caller:
        try:
            grant = self.services.stores.access.grant_of(token)
        except AccessDenied:
            grant = None
        if grant is not None and not grant.session and grant.holder.name == user:
            return Caller(grant, token)
        try:
            self.services.logins.require(f"from {place}")
        except replies.RateLimited as problem:
            raise Complaint("53300", f"too many attempts: try again in {problem.seconds} seconds") from None
        self.services.stores.audit.write(Event("access", "unknown"))
        raise Complaint("28P01", _UNKNOWN, "The user is the name that `incrowd access grant` was given.")

    async def recognized(self, caller: Caller) -> Caller:
        """Return the caller with the grant as it is now: a revoked token stops working at once."""
        access = self.services.stores.access
        grant = access.at_hand(caller.token)
        try:
            granted = await run_in_threadpool(access.grant_of, caller.token) if grant is None else grant
        except AccessDenied:
            raise Complaint("28000", _UNKNOWN) from None
        return Caller(granted, caller.token)

    async def result(
        self, caller: Caller, statement: ClientStatement, settings: ConnectionSettings, process: int
    ) -> StatementResult:
        """Answer a statement that reads; SET and transactions are the session's."""
        match statement.kind:
            case "query":
                free = await self._free(caller, statement.sql, process)
                return free if free is not None else await self._paid(caller, statement.sql, settings)
            case "explain":
                return await self._priced(caller, statement.sql, settings, process)
            case "show":
                return await self._show(caller, statement.sql, settings)
            case "change":
                raise Complaint(READ_ONLY, "this server only reads", "Write SELECT.")
        if statement.sql.lower().startswith("copy"):
            raise Complaint(FEATURE, "COPY is not answered", _INSTEAD_OF_COPY)
        raise Complaint(FEATURE, "this statement is not answered", "Write SELECT, SHOW, SET or EXPLAIN.")

    def column_types(self, caller: Caller) -> dict[str, int]:
        """Return the types of all columns that the user may ask about, by their names."""
        types = dict[str, int]()
        for table in caller.queries(self.services).schema()["tables"]:
            for column in table["columns"]:
                kind = type_of(column["type"])
                same = types.get(column["name"].lower(), kind) == kind
                types[column["name"].lower()] = kind if same else TEXT
        return types

    async def columns(
        self, caller: Caller, statement: ClientStatement, settings: ConnectionSettings, process: int
    ) -> tuple[tuple[str, int], ...] | None:
        """Return the columns that a statement would give, from declarations, at no cost; None where it gives none."""
        if statement.kind == "query":
            free = await self._free(caller, statement.sql, process)
            if free is not None:
                return free.columns
            return await self._described(caller, statement.sql, settings)
        if statement.kind == "explain":
            return (("QUERY PLAN", TEXT),)
        return (await self.result(caller, statement, settings, process)).columns if statement.kind == "show" else None

    async def _free(self, caller: Caller, sql: str, process: int) -> StatementResult | None:
        """Answer what reads the catalog and public tables alone."""
        queries = caller.queries(self.services)
        if not queries.may_be_public(sql):
            return None
        _require(caller, Permission.READ)
        self._count(self.catalog_requests, caller)
        try:
            visitor = Visitor(caller.user.name, process)
            job = self.services.public.submit(lambda: queries.public_answer(sql, visitor), caller.user.name)
            answer = await asyncio.wrap_future(job)
        except IncrowdError as problem:
            raise complaint_of(replies.refusal(problem)) from None
        return None if answer is None else _table(answer)

    async def _paid(self, caller: Caller, sql: str, settings: ConnectionSettings) -> StatementResult:
        _require(caller, Permission.ASK)
        self._count(self.services.requests, caller)
        try:
            reply = await answered(_shape(sql, settings), caller, self.services)
        except (replies.TooManyAtOnce, replies.ServerBusy) as problem:
            reply = replies.refusal(problem)
        return _answer(_content(reply), settings)

    async def _priced(self, caller: Caller, sql: str, settings: ConnectionSettings, process: int) -> StatementResult:
        """Tell the cost and the accuracy of a query; nothing reaches an engine."""
        match = _EXPLAIN.fullmatch(sql)
        if match is None:
            raise Complaint("42601", "there is nothing to explain", "Write EXPLAIN SELECT ….")
        _require(caller, Permission.READ)
        if await self._free(caller, match["query"], process) is not None:
            return StatementResult("EXPLAIN", (("QUERY PLAN", TEXT),), [("It reads no private table: it is free.",)])
        self._count(self.services.requests, caller)
        task = query_task("price", _shape(match["query"], settings), caller, self.services)
        lines = list(_estimate(_content(await reply_to(task))))
        return StatementResult("EXPLAIN", (("QUERY PLAN", TEXT),), [(line,) for line in lines])

    async def _described(self, caller: Caller, sql: str, settings: ConnectionSettings) -> tuple[tuple[str, int], ...]:
        _require(caller, Permission.READ)
        self._count(self.services.requests, caller)
        shape, queries = _shape(sql, settings), caller.queries(self.services)
        terms = QueryTerms(shape.epsilon, Fraction(0) if shape.delta is None else shape.delta)
        request = QueryRequest(shape.sql, terms, caller.analyst)

        def prepare() -> ReadyDocument:
            empty = queries.empty_answer(request)
            columns = _Columns(
                queries.columns(request) if empty is None else tuple(zip(empty.names, empty.types, strict=True))
            )
            return ReadyDocument(lambda: columns)

        about = query_note(sql, self.services)
        task = QueryTask("describe", caller, self.services, self.services.quick, prepare, about)
        columns = _content(await reply_to(task))["columns"]
        wide = [(f"{name}{end}", kind if not end else "decimal")
                for name, kind in columns for end in _ends(kind, settings)]  # fmt: skip
        return tuple((name, type_of(kind)) for name, kind in wide)

    async def _show(self, caller: Caller, sql: str, settings: ConnectionSettings) -> StatementResult:
        if setting := shown_setting(sql, settings):
            return StatementResult("SHOW", ((setting[0], TEXT),), [(setting[1],)])
        _require(caller, Permission.READ)
        self._count(self.catalog_requests, caller)
        queries = caller.queries(self.services)
        if sql.lower().split() == ["show", "incrowd.remaining"]:
            report = await run_in_threadpool(queries.budgets.report, caller.analyst)
            names = (
                "dataset",
                "epsilon",
                "delta",
                "your_epsilon_spent",
                "your_epsilon_allowance",
                "your_epsilon_this_month",
                "your_epsilon_a_month",
            )
            rows = [(name, *_amounts(budget)) for name, budget in report.items()]
            return StatementResult("SHOW", tuple((name, TEXT) for name in names), rows)
        try:
            declared = declaration_answer(sql, queries.schema())
        except IncrowdError as problem:
            raise complaint_of(replies.refusal(problem)) from None
        if declared is None:
            raise Complaint("42704", "there is no such setting", "SHOW TABLES and SHOW incrowd.remaining exist.")
        return _table(declared)

    def _count(self, limiter: RateLimiter, caller: Caller) -> None:
        try:
            limiter.require(caller.rate_key)
        except replies.RateLimited as problem:
            raise complaint_of(replies.refusal(problem)) from None


def _require(caller: Caller, right: Permission) -> None:
    if not caller.user.may(right):
        raise Complaint("42501", f"a token of the role {caller.user.role} has no right to {right}")


def _shape(sql: str, settings: ConnectionSettings) -> QueryShape:
    """Return a query and its price, checked as HTTP checks them."""
    price = settings.values["incrowd.epsilon"]
    if not price:
        raise Complaint(
            BAD_VALUE,
            "no price is set, and every query about a private table costs one",
            "SET incrowd.epsilon = 0.1, or connect with the option -c incrowd.epsilon=0.1.",
        )
    try:
        return QueryShape(sql=sql, epsilon=price, delta=settings.values["incrowd.delta"] or None)
    except ValidationError:
        raise Complaint(BAD_VALUE, "the query is too long, or the price is too large, too small or too long") from None


def _content(reply: Response) -> dict[str, Any]:
    if reply.status_code != 200:
        raise complaint_of(reply)
    content: dict[str, Any] = json.loads(bytes(reply.body))
    return content


def complaint_of(reply: Response) -> Complaint:
    """Return an error reply as PostgreSQL's; its state depends on the query, budgets and limits, and on no row."""
    content = json.loads(bytes(reply.body))
    kind, text = content["kind"], content["error"]
    state = _STATES.get(kind) or _BY_STATUS.get(reply.status_code, _FAULT)
    parts = _WAY_OUT.fullmatch(text)
    message, hint = (text, "") if parts is None else (parts["message"], parts["hint"])
    return Complaint(state, message, hint[:1].upper() + hint[1:])


def _table(answer: DeclarationAnswer) -> StatementResult:
    columns = answer.to_json()["answer"]["columns"]
    kinds = tuple((column["name"], type_of(column["type"])) for column in columns)
    return StatementResult(f"SELECT {len(answer.rows)}", kinds, answer.rows)


def _answer(content: Mapping[str, Any], settings: ConnectionSettings) -> StatementResult:
    """Return an answer as a table, its intervals as columns where they are wished, and what else is known of it."""
    answer, columns, values = content["answer"], list[tuple[str, int]](), list[Sequence[Any]]()
    settings = settings if content["certificate"] else ConnectionSettings()
    for column in answer["columns"]:
        parts = {"": ("values", column["type"]), "_low": ("low", "decimal"), "_high": ("high", "decimal")}
        for end in _ends(column["type"], settings):
            part, kind = parts[end]
            columns.append((f"{column['name']}{end}", type_of(kind)))
            values.append(column.get(part) or [None] * len(column["values"]))
    notices = [("WARNING", answer["note"])] if answer.get("note") and content["certificate"] else []
    notices += [
        ("NOTICE", f"{column['name']}: {column['note']}.") for column in answer["columns"] if column.get("note")
    ]
    if content["certificate"]:
        left = [f"{name} {_left(rest)}" for name, rest in content["left"].items()]
        again = " (asked before: the same answer)" if content["repeated"] else ""
        notices.append(("NOTICE", f"cost: epsilon {content['cost']['epsilon']}{again}; left: {'; '.join(left)}"))
    rows = list(zip(*values, strict=True))
    return StatementResult(f"SELECT {len(rows)}", tuple(columns), rows, tuple(notices))


def _ends(kind: str, settings: ConnectionSettings) -> tuple[str, ...]:
    """Return which columns a column of an answer becomes: numbers have intervals, where they are wished."""
    return ("", "_low", "_high") if settings.intervals and kind in ("integer", "decimal") else ("",)


def _estimate(content: Mapping[str, Any]) -> list[str]:
    lines = [f"query: {content.get('question', '')}"]
    lines += [f"cost: epsilon {content['cost']['epsilon']}, delta {content['cost']['delta']}"]
    lines += [f"left of {name}: {_left(rest)}" for name, rest in content.get("left", {}).items()]
    lines += map(expected_words, content.get("expected", ()))
    return [*lines, *content.get("notes", ()), "No row was read and nothing was charged."]


def _left(rest: Mapping[str, Any] | None) -> str:
    return "not enough" if rest is None else ", ".join(f"{name} {value}" for name, value in rest.items())


def _amounts(budget: Mapping[str, Any]) -> tuple[str | None, ...]:
    left, spent, allowance = (budget.get(name) or {} for name in ("left", "spent", "allowance"))
    month = spent.get("epsilon_of_month"), allowance.get("month")
    return left.get("epsilon"), left.get("delta"), spent.get("epsilon"), allowance.get("epsilon"), *month
