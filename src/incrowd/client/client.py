"""Client: questions to a server, from Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any
from urllib.parse import quote

from incrowd.client.reply import Reply
from incrowd.client.transport import Transport

Number = int | float | str | Decimal | Fraction


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
        self, sql: str, epsilon: Number | None = None, delta: Number | None = None, **more: Number | str
    ) -> Reply:
        """Ask, and pay for the answer; `error`, `rate`, `rho` and `account` may be said as well.

        The same question at the same price again gets the same answer and costs the dataset nothing.
        """
        return Reply.of(self._transport.post("/v1/query", _asked(sql, epsilon, delta, more)))

    def price(
        self, sql: str, epsilon: Number | None = None, delta: Number | None = None, **more: Number | str
    ) -> dict[str, Any]:
        """Say what a question would cost and how exact its answer would be; nothing is charged."""
        found: dict[str, Any] = self._transport.post("/v1/price", _asked(sql, epsilon, delta, more))
        return found

    def schema(self) -> dict[str, Any]:
        """Return the tables that may be asked about, as they are declared."""
        return dict(self._transport.get("/v1/schema"))

    def budget(self) -> dict[str, Any]:
        """Return what is left of each dataset."""
        return dict(self._transport.get("/v1/budget")["datasets"])

    def releases(self) -> list[dict[str, Any]]:
        """Return what was released so far."""
        return list(self._transport.get("/v1/releases")["releases"])

    def certificate(self, number: str) -> dict[str, Any]:
        """Return the certificate of a release, as `incrowd verify` reads it."""
        return dict(self._transport.get(f"/v1/certificates/{quote(number, safe='')}"))

    @property
    def _transport(self) -> Transport:
        return Transport(self.address, self.token, self.timeout, self.insecure)


def _asked(sql: str, epsilon: Number | None, delta: Number | None, more: dict[str, Any]) -> dict[str, Any]:
    """Return what is sent: numbers as text, so that they arrive as they were written."""
    given = {"sql": sql, "epsilon": epsilon, "delta": delta, **more}
    return {name: None if value is None else str(value) for name, value in given.items()}
