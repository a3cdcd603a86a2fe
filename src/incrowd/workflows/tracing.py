"""Tracing: spans in the form of OpenTelemetry, sent to a collector by HTTP and JSON (OTLP 1.0).

A command sends its steps when it ends, a server one span for each request, whose time is the paced time of its reply.
What a collector does not take is dropped: no command and no reply waits for one longer than a few seconds.
"""

from __future__ import annotations

import json
import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any
from urllib.parse import unquote, urlsplit

from incrowd import __version__
from incrowd.errors import InvalidParameter
from incrowd.workflows.events import End, Facts

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
"""The variable with headers for the collector, such as a token: `name=value`, separated by commas."""
_PATH = "/v1/traces"
_SECONDS = 5.0  # that a collector may take
_WAITING, _AT_ONCE, _EVERY = 2048, 512, 2.0  # spans that wait at most, are sent together, and seconds between sendings
_INTERNAL, _SERVER = 1, 2
_OK, _ERROR = 1, 2
_BILLION = 1_000_000_000

Export = Callable[[Sequence["Span"]], bool]
"""Sends spans; returns whether the collector took them."""


@dataclass
class Span:
    """One step or request: when it began and ended, in nanoseconds, inside which other one, and its facts."""

    name: str
    trace: str
    parent: str = ""
    facts: Facts = field(default_factory=dict)
    kind: int = _INTERNAL
    start: int = field(default_factory=time.time_ns)
    end: int = 0
    error: str | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def to_json(self) -> dict[str, Any]:
        """Return the span as OTLP writes it."""
        status = {"code": _OK} if self.error is None else {"code": _ERROR, "message": self.error}
        return {
            "traceId": self.trace,
            "spanId": self.id,
            **({"parentSpanId": self.parent} if self.parent else {}),
            "name": self.name,
            "kind": self.kind,
            "startTimeUnixNano": str(self.start),
            "endTimeUnixNano": str(self.end),
            "attributes": _attributes(self.facts),
            "status": status,
        }


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return facts as attributes.

    >>> _attributes({"incrowd.entry": 3})
    [{'key': 'incrowd.entry', 'value': {'intValue': '3'}}]
    """
    return [{"key": name, "value": _value(value)} for name, value in facts.items()]


def _value(value: Any) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}


def document(spans: Sequence[Span]) -> dict[str, Any]:
    """Return the request that carries spans."""
    about = {"service.name": "incrowd", "service.version": __version__}
    scope = {"scope": {"name": "incrowd", "version": __version__}, "spans": [span.to_json() for span in spans]}
    return {"resourceSpans": [{"resource": {"attributes": _attributes(about)}, "scopeSpans": [scope]}]}


def exporter_to(address: str) -> Export:
    """Return what sends spans to a collector, such as `http://localhost:4318`.

    >>> exporter_to("localhost:4318")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: a collector has an address such as otlp:http://localhost:4318. ...
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise InvalidParameter(
            "a collector has an address such as otlp:http://localhost:4318. Headers with a token belong into the "
            f"variable {HEADERS}."
        )
    url = address.rstrip("/") + ("" if parts.path.rstrip("/").endswith(_PATH) else _PATH)
    headers = {"Content-Type": "application/json", **_headers(os.environ.get(HEADERS, ""))}

    def export(spans: Sequence[Span]) -> bool:
        body = json.dumps(document(spans)).encode()
        request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310 - http or https, see above
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310
                return 200 <= int(reply.status) < 300
        except (urllib.error.URLError, OSError, ValueError):
            return False

    return export


def _headers(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


@dataclass
class Tracer:
    """Collects the steps of a command in one trace and sends them at its end."""

    export: Export
    trace: str = field(default_factory=lambda: secrets.token_hex(16))
    spans: list[Span] = field(default_factory=list)
    open: list[Span] = field(default_factory=list)
    lost: bool = False

    def begin(self, name: str, facts: Facts) -> End:
        parent = self.open[-1].id if self.open else ""
        span = Span(name, self.trace, parent)
        self.open.append(span)

        def end(kind: str | None) -> None:
            self.open.remove(span)
            span.end, span.error = time.time_ns(), kind
            span.facts = {f"incrowd.{name}": value for name, value in facts.items()}
            self.spans.append(span)

        return end

    def close(self) -> None:
        self.lost = bool(self.spans) and not self.export(self.spans)


class RequestSpans:
    """Sends a span for each request of a server, in a thread of its own; what does not fit is dropped."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self._waiting: Queue[Span] = Queue(_WAITING)
        self._over = Event()
        self._thread = Thread(target=self._send, daemon=True, name="spans")
        self._thread.start()

    def add(self, name: str, seconds: float, facts: Facts, error: str | None) -> None:
        """Add the span of a request that has just been replied to, of this length."""
        end = time.time_ns()
        span = Span(name, secrets.token_hex(16), "", facts, _SERVER, end - int(seconds * _BILLION), end, error)
        with suppress(Full):
            self._waiting.put_nowait(span)

    def close(self) -> None:
        """Send what waits, and end."""
        self._over.set()
        self._thread.join(2 * _SECONDS)

    def _send(self) -> None:
        while not self._over.wait(_EVERY):
            self._send_waiting()
        self._send_waiting()

    def _send_waiting(self) -> None:
        spans: list[Span] = []
        with suppress(Empty):
            while len(spans) < _AT_ONCE:
                spans.append(self._waiting.get_nowait())
        if spans:
            self._export(spans)
