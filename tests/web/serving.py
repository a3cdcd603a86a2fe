"""What the tests of the server share: a query service that needs no rows, and a server around it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import uvicorn
from fastapi import FastAPI

from incrowd.errors import BudgetExceeded, InvalidParameter, SourceInvalid, SourceUnavailable
from incrowd.governance.access_list import AccessList, NewToken
from incrowd.governance.audit import ServerStores, open_stores
from incrowd.governance.grant import AccessDecision, AccessRole, User
from incrowd.queries.declarations import DeclarationAnswer, declared_columns, rowless_query
from incrowd.web.app import app
from incrowd.web.settings import Settings
from incrowd.web.strict_http import StrictProtocol
from incrowd.workflows.query.history import HistoryRange
from incrowd.workflows.query.request import BatchRequest, QueryRequest
from incrowd.workflows.query.service import QueryService
from incrowd.workflows.query.system_catalog import SystemCatalog, Visitor, public_rows

OFFICER = AccessDecision("data protection officer", "a test")
FAST = Settings(pace=0.0, threads=2)
PASSWORD = "correct horse battery"
SECRET = "a value from row 7"
ANSWER: dict[str, Any] = {
    "answer": 1,
    "confidence": "0.95",
    "columns": [
        {"name": "sex", "type": "text", "values": ["f", "m", None]},
        {"name": "n", "type": "integer", "values": [42, 7, 0], "low": [40.0, 5.0, -2.0], "high": [44.0, 9.0, 2.0]},
        {"name": "last", "type": "date", "values": ["2020-02-29", None, "1999-12-31"], "note": "has no interval"},
    ],
}


COLUMNS: list[dict[str, Any]] = [
    {"name": "sex", "type": "text", "values": ["f", "m"], "more": 0},
    {"name": "age", "type": "integer", "bounds": ["0", "99"]},
    {"name": "born", "type": "date", "bounds": [None, None]},
]


@dataclass(frozen=True)
class Plain:
    content: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return dict(self.content)


@dataclass
class FakeQueries:
    """A query service that answers 42 to everything it understands, and remembers who asked what."""

    datasets: Collection[str] = ("births", "deaths")
    asked: list[QueryRequest] = field(default_factory=list)
    begun: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    go: threading.Event = field(default_factory=threading.Event)
    gone: bool = False

    def current(self) -> QueryService:
        return cast("QueryService", self)

    @property
    def charges(self) -> SimpleNamespace:
        return SimpleNamespace(folder=None)

    @property
    def budgets(self) -> FakeBudgets:
        return FakeBudgets(self.datasets)

    @property
    def history(self) -> FakeHistory:
        return FakeHistory(self)

    def price(self, request: QueryRequest | BatchRequest) -> Plain:
        cost = {"cost": {"epsilon": str(request.terms.epsilon), "delta": "0"}}
        if isinstance(request, BatchRequest):
            return Plain(cost | {"each": list(request.questions)})
        return Plain(cost | {"datasets": [self._table(request)]})

    def prepare(self, request: QueryRequest | BatchRequest) -> Waiting:
        return Waiting(self, request)

    def recall(self, request: QueryRequest) -> None:
        """Nothing was planned before."""

    def begin(self, request: QueryRequest) -> Begun:
        self._table(request)
        with self.lock:
            self.asked.append(request)
            self.begun.append(time.monotonic())
        if "slow" in request.sql:
            self.go.wait(300)
        if "budget" in request.sql:
            raise BudgetExceeded("this costs epsilon 2; 1 of the budget of 3 remains.")
        if "source" in request.sql:
            raise SourceInvalid(f"line 7: {SECRET}")
        if self.gone:
            raise SourceUnavailable(SECRET)
        if "crash" in request.sql:
            raise ValueError(SECRET)
        return Begun(self, unread="kept" in request.sql)

    def may_be_public(self, sql: str) -> bool:
        return "pg_" in sql.lower() or not any(each in sql for each in self.datasets)

    def public_answer(self, sql: str, visitor: Visitor) -> DeclarationAnswer | None:
        table = _catalog(tuple(self.datasets)).answer(sql, visitor)
        return None if table is None else public_rows(table)

    def empty_answer(self, request: QueryRequest) -> DeclarationAnswer | None:
        tree = rowless_query(request.sql)
        columns = None if tree is None else declared_columns(tree, self.schema())
        if columns is None:
            return None
        return DeclarationAnswer(tuple(one for one, _ in columns), (), tuple(two for _, two in columns))

    def columns(self, request: QueryRequest) -> tuple[tuple[str, str], ...]:
        self._table(request)
        return tuple((column["name"], column["type"]) for column in ANSWER["columns"])

    def schema(self) -> dict[str, Any]:
        return {
            "tables": [{"name": each, "dataset": each, "unit": "one row", "columns": COLUMNS} for each in self.datasets]
        }

    def within(self, datasets: Collection[str]) -> FakeQueries:
        return replace(self, datasets=[each for each in self.datasets if each in datasets])

    def load(self) -> None:
        pass

    def check(self) -> None:
        if self.gone:
            raise SourceUnavailable(SECRET)

    def _table(self, request: QueryRequest) -> str:
        for each in self.datasets:
            if each in request.sql:
                return each
        raise InvalidParameter("there is no such table.")


@cache
def _catalog(datasets: tuple[str, ...]) -> SystemCatalog:
    return SystemCatalog.of(FakeQueries(datasets).schema())


@dataclass
class FakeBudgets:
    datasets: Collection[str]

    def report(self, analyst: str | None) -> dict[str, Any]:
        return {each: {"left": {"epsilon": "3", "delta": "0"}, "of": analyst} for each in self.datasets}


@dataclass
class FakeHistory:
    queries: FakeQueries

    def releases(self, analyst: str | None = None) -> list[dict[str, Any]]:
        return [{"id": f"{each}-1", "dataset": each} for each in ("births", "deaths")]

    def certificate(self, id_: str, analyst: str | None = None) -> Plain | None:
        if id_ not in ("births-1", "deaths-1", "both"):
            return None
        dataset = {"name": "births", "together with": ["deaths"]} if id_ == "both" else {"name": id_.removesuffix("-1")}
        return Plain({"certificate": 1, "id": id_, "dataset": dataset})

    def page(self, analyst: str | None, range_: HistoryRange, *, reads_all: bool = False) -> Plain:
        entry = {"number": 7, "id": "births-1", "at": "2020-01-01T00:00:00Z", "questions": ["SELECT 1 FROM births"]}
        paid = {"births": {"epsilon": "1", "delta": "0"}}
        entry |= {"columns": ["n"], "cost": paid, "spent": paid, "left": None, "own": True, "repeated": False}
        entries = [entry | {"state": "answered"}][: range_.limit]
        return Plain({"history": entries, "next": None, "datasets": self.queries.budgets.report(analyst)})

    def answer(self, id_: str, analyst: str | None = None) -> Plain | None:
        several = {"births-1": 0, "deaths-1": 2}
        return Begun(self.queries, several[id_]).finish() if id_ in several else None


@dataclass
class Waiting:
    """A query or a batch that is planned; what is heavy is more work than a pace."""

    queries: FakeQueries
    request: QueryRequest | BatchRequest

    @property
    def query_id(self) -> str:
        return "; ".join(self.request.questions) if isinstance(self.request, BatchRequest) else self.request.sql

    @property
    def steps(self) -> int:
        return 600_000_000 if "heavy" in self.query_id else 10**12 if "endless" in self.query_id else 1000

    def again(self) -> Any:
        """Nothing was asked before."""

    def begin(self) -> Begun:
        if isinstance(self.request, QueryRequest):
            return self.queries.begin(self.request)
        for sql in self.request.questions:
            begun = self.queries.begin(QueryRequest(sql, self.request.terms, self.request.analyst))
        return replace(begun, several=len(self.request.questions))


@dataclass
class Begun:
    """An answer that is there and does not show yet."""

    queries: FakeQueries
    several: int = 0
    unread: bool = False

    def finish(self) -> Plain:
        self.queries.shown.append(time.monotonic())
        rest = {
            "cost": {"epsilon": "1", "delta": "0"},
            "left": {},
            "repeated": False,
            "certificate": {"id": "births-1"},
        }
        return Plain(({"answers": [ANSWER] * self.several} if self.several else {"answer": ANSWER}) | rest)


@dataclass
class Browser:
    """Sends requests to an application in this process, and keeps its cookies."""

    application: FastAPI
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.send("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.send("POST", path, **more)

    def delete(self, path: str, **more: Any) -> httpx.Response:
        return self.send("DELETE", path, **more)

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._send(method, path, **more))

    async def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.application)
        async with httpx.AsyncClient(transport=transport, base_url="http://server", cookies=self.cookies) as client:
            reply = await client.request(method, path, **more)
            self.cookies = client.cookies
            return reply


@dataclass(frozen=True)
class Server:
    """A server in this process, and the books behind it."""

    client: Browser
    books: ServerStores
    queries: FakeQueries

    def token(self, role: AccessRole, name: str = "ann", datasets: tuple[str, ...] | None = None) -> NewToken:
        access = self.books.access
        return access.grant(User(name, role, datasets), access.now() + timedelta(days=1), OFFICER)

    def bearer(self, role: AccessRole, name: str = "ann", datasets: tuple[str, ...] | None = None) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(role, name, datasets).token}"}

    def events(self) -> list[tuple[str, str]]:
        return [(each["action"], each["outcome"]) for each in self.books.audit.read(0, 1000)]


def server(folder: Path, settings: Settings = FAST, queries: FakeQueries | None = None) -> Server:
    address = f"sqlite:///{folder}/ledger.sqlite"
    AccessList.create(address)
    books, queries = open_stores(address), queries or FakeQueries()
    return Server(Browser(app(queries.current, books, settings)), books, queries)


@contextmanager
def listening(application: FastAPI) -> Iterator[str]:
    """Serve an application at a free port of this machine, from a thread of this process."""
    running = uvicorn.Server(
        uvicorn.Config(application, port=0, log_config=None, access_log=False, http=StrictProtocol)
    )
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        while not running.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = running.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        running.should_exit = True
        thread.join()
