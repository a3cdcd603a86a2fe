"""Client: queries to a server, from Python."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from http.client import HTTPException
from numbers import Integral, Real
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from incrowd import errors
from incrowd.client.history import BudgetCard, QueryHistory
from incrowd.client.reply import Replies, Reply
from incrowd.errors import IncrowdError, InvalidParameter, ServerUnavailable

Number = int | float | str | Decimal | Fraction
BatchedQuery = str | tuple[str, Sequence[Any]]
_LARGEST = 1 << 30  # bytes of a reply: a server that never ends must not fill the memory
_EXPLAIN = re.compile(r"\s*explain\b", re.IGNORECASE)
_HERE = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Client:
    """A server and a token for it; it keeps nothing open and can be shared by threads.

    >>> Client("http://localhost:8000", "ic_…")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: a token is printable text: ...
    """

    address: str
    token: str = field(repr=False)
    timeout: float = 90.0
    insecure: bool = False

    def __post_init__(self) -> None:
        _ = self._transport

    def query(
        self,
        sql: str,
        epsilon: Number | None = None,
        delta: Number | None = None,
        parameters: Sequence[Any] = (),
        **more: Number | str,
    ) -> Reply:
        """Ask, and pay for the answer; `error`, `rate`, `rho` and `account` may be said as well.

        Parameters are values for the question marks of the statement.  The same query at the same price again gets
        the same answer and costs the dataset nothing.  After EXPLAIN, the reply is a cost estimate.
        """
        body = _body(sql, epsilon, delta, more) | _parameters(parameters)
        return Reply.of(self._transport.post("/v1/price" if _EXPLAIN.match(sql) else "/v1/query", body))

    def price(
        self,
        sql: str,
        epsilon: Number | None = None,
        delta: Number | None = None,
        parameters: Sequence[Any] = (),
        **more: Number | str,
    ) -> dict[str, Any]:
        """Say what a query would cost and how exact its answer would be; nothing is charged."""
        body = _body(sql, epsilon, delta, more) | _parameters(parameters)
        priced: dict[str, Any] = self._transport.post("/v1/price", body)
        return priced

    def query_batch(self, queries: Sequence[BatchedQuery], epsilon: Number, delta: Number | None = None) -> Replies:
        """Ask several queries about one dataset, and pay for all answers together.

        Each query is a text, or a text and the values for its question marks.  The same ones at the same price again
        get the same answers and cost the dataset nothing.
        """
        return Replies.of(self._transport.post("/v1/batch", _batch(queries, epsilon, delta)))

    def price_batch(
        self, queries: Sequence[BatchedQuery], epsilon: Number, delta: Number | None = None
    ) -> dict[str, Any]:
        """Say what several queries would cost together, and how exact each answer would be; nothing is charged."""
        priced: dict[str, Any] = self._transport.post("/v1/batch/price", _batch(queries, epsilon, delta))
        return priced

    def history(self, limit: int = 50, before: int | None = None, *, others: bool = False) -> QueryHistory:
        """Return what you asked, the latest first, with texts, costs and what is left.

        With `others` it also tells what others asked, as far as you may read it.
        """
        query = {"limit": limit, "before": before, "others": str(others).lower()}
        present = {name: value for name, value in query.items() if value is not None}
        return QueryHistory.of(self._transport.get(f"/v1/history?{urlencode(present)}"))

    def answer(self, number: str) -> Reply | Replies:
        """Return an answer that you were given before, by its id; it costs nothing."""
        reply = self._transport.get(f"/v1/answers/{quote(number, safe='')}")
        return Replies.of(reply) if "answers" in reply else Reply.of(reply)

    def schema(self) -> dict[str, Any]:
        """Return the tables that may be asked about, as they are declared."""
        return dict(self._transport.get("/v1/schema"))

    def budget(self) -> BudgetCard:
        """Return what is left of each dataset, and of your allowance."""
        return BudgetCard(self._transport.get("/v1/budget")["datasets"])

    def releases(self) -> list[dict[str, Any]]:
        """Return what was released so far."""
        return list(self._transport.get("/v1/releases")["releases"])

    def certificate(self, number: str) -> dict[str, Any]:
        """Return the certificate of a release, as `incrowd verify` reads it."""
        return dict(self._transport.get(f"/v1/certificates/{quote(number, safe='')}"))

    @property
    def _transport(self) -> Transport:
        return Transport(self.address, self.token, self.timeout, self.insecure)


def _body(sql: str, epsilon: Number | None, delta: Number | None, more: dict[str, Any]) -> dict[str, Any]:
    """Return what is sent: numbers as text, so that they arrive as they were written."""
    fields = {"sql": sql, "epsilon": epsilon, "delta": delta, **more}
    return {name: None if value is None else str(value) for name, value in fields.items()}


def _batch(queries: Sequence[BatchedQuery], epsilon: Number, delta: Number | None) -> dict[str, Any]:
    if isinstance(queries, str):
        raise InvalidParameter("a batch is a list of queries, or of pairs of a query and its parameters.")
    statements = []
    for query in queries:
        sql, parameters = (query, ()) if isinstance(query, str) else query
        statements.append({"sql": sql} | _parameters(parameters))
    return {"questions": statements, "epsilon": str(epsilon), "delta": None if delta is None else str(delta)}


def _parameters(parameters: Sequence[Any]) -> dict[str, Any]:
    written = written_parameters(parameters)
    return {"parameters": written} if written else {}


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_more: Any) -> None:
        """Follow nothing: another host must not see the token."""


@dataclass(frozen=True)
class Transport:
    """A server's address and a token for it.

    Without HTTPS everybody on the way could read the token, so an address without it must be on this machine, unless
    `insecure` says that the way is safe.

    >>> Transport("http://example.org", "ic_…")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: this address would send the token unencrypted: use https://, ...
    """

    address: str
    token: str = field(repr=False)
    timeout: float = 90.0
    insecure: bool = False

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidParameter("the address of a server is written like https://host:8000.")
        if parts.scheme == "http" and parts.hostname not in _HERE and not self.insecure:
            raise InvalidParameter(
                "this address would send the token unencrypted: use https://, or insecure=True on a safe connection."
            )
        if not self.token.isascii() or not self.token.isprintable() or not self.token:
            raise InvalidParameter("a token is printable text: copy it as `incrowd access grant` showed it.")

    def get(self, path: str) -> Any:
        """Return what is at a path."""
        return self._send(Request(self._url(path), headers=self._headers()))  # noqa: S310 (the scheme was checked)

    def post(self, path: str, content: Mapping[str, Any]) -> Any:
        """Send JSON to a path and return the reply."""
        body = json.dumps({name: value for name, value in content.items() if value is not None}).encode()
        headers = self._headers() | {"Content-Type": "application/json"}
        return self._send(Request(self._url(path), body, headers, method="POST"))  # noqa: S310 (the scheme was checked)

    def _url(self, path: str) -> str:
        return self.address.rstrip("/") + path

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}

    def _send(self, request: Request) -> Any:
        try:
            with build_opener(_NoRedirect).open(request, timeout=self.timeout) as reply:
                return json.loads(reply.read(_LARGEST))
        except HTTPError as problem:
            with problem:
                raise error_of(problem.code, problem.read(_LARGEST)) from None
        except (URLError, OSError, HTTPException, ValueError) as problem:
            raise ServerUnavailable(
                f"the server at {self.address} does not answer correctly ({type(problem).__name__}): check the "
                "address, and the budget before you repeat the query."
            ) from None


def error_of(status: int, body: bytes) -> IncrowdError:
    """Return the error that a server's reply tells.

    >>> error_of(422, b'{"error": "0.4 of the budget of 1 remains.", "kind": "BudgetExceeded"}')
    BudgetExceeded('0.4 of the budget of 1 remains.')
    >>> error_of(502, b"<html>")
    ServerUnavailable('the server replied with status 502 without a reason.')
    """
    try:
        reply = json.loads(body)
        text, kind = str(reply["error"]), str(reply["kind"])
    except (ValueError, KeyError, TypeError):
        return ServerUnavailable(f"the server replied with status {status} without a reason.")
    cls = getattr(errors, kind, None)
    if isinstance(cls, type) and issubclass(cls, IncrowdError):
        return cls(text)
    return ServerUnavailable(text)


_WORDS = "a parameter is a finite number, a text, a date, a truth value or None."


def written_parameters(parameters: Sequence[Any]) -> list[Any]:
    """Return parameters as a server reads them.

    >>> written_parameters([True, None, "it's", -3, date(2020, 1, 31)])
    [True, None, "it's", {'number': '-3'}, {'date': '2020-01-31'}]
    """
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
        raise InvalidParameter("parameters are a list or a tuple, one for each question mark.")
    return [_written(_plain(value)) for value in parameters]


def _plain(value: Any) -> Any:
    """Return a value of NumPy as Python writes it; all others as they are."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind is None or getattr(value, "shape", None) != ():
        return value
    plain = value.astype("datetime64[us]").item() if kind == "M" else value.item()
    if plain is None:
        raise InvalidParameter(_WORDS)
    return plain


def _written(value: Any) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return str(value)
        case datetime():
            return {"date": _day(value).isoformat()}
        case date():
            return {"date": value.isoformat()}
        case Decimal() if value.is_finite():
            return {"number": format(value, "f")}
        case Integral():
            return {"number": str(int(value))}
        case Real():
            return {"number": _finite(float(value))}
    raise InvalidParameter(_WORDS)


def _finite(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 (the test for what is no number)
        raise InvalidParameter(_WORDS)
    written = format(Decimal(repr(value)), "f")
    return written if "." in written else f"{written}.0"


def _day(moment: datetime) -> date:
    """Return the day of a moment at its beginning: pandas has no other way to write a day."""
    if moment != moment or moment.tzinfo is not None or moment.time() != time():  # noqa: PLR0124 (pandas.NaT)
        raise InvalidParameter("a parameter cannot have a time: give a date, or a Timestamp at midnight.")
    return moment.date()
