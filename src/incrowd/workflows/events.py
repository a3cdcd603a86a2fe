"""Events: the steps of a command, for a log or a collector of traces that its data holder names; by default for nobody.

A step has a name, ids and amounts that are public or in the ledger, and the class of the error that ended it.  No field
is computed from rows, and no error's text is in one.  A server records no steps: see `incrowd.web.middleware`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Protocol

from incrowd.errors import InvalidParameter, OutputUnavailable

VARIABLE = "INCROWD_LOG"
"""The variable of the environment that names a log: json, a file, or otlp: and the address of a collector."""
STANDARD_ERROR = "json"
OTLP = "otlp:"
Facts = dict[str, str | int | float]
End = Callable[[str | None], None]
"""Called when a step has ended, with the class of its error, or None."""


class Recorder(Protocol):
    """What records steps; inner ones begin and end between the begin and the end of outer ones."""

    def begin(self, name: str, facts: Facts) -> End:
        """Begin a step; facts may still be added until it ends."""

    def close(self) -> None:
        """Deliver everything."""


_recorders: list[Recorder] = []


@contextmanager
def step(name: str, **facts: str | int) -> Iterator[Facts]:
    """Record a step of a command, if anybody records; facts can be added until the block ends.

    >>> with step("charge", release="a1") as facts:
    ...     facts["entry"] = 3
    """
    details: Facts = dict(facts)
    ends = [recorder.begin(name, details) for recorder in _recorders]
    kind: str | None = "Interrupted"
    try:
        yield details
        kind = None
    except BaseException as error:
        kind = type(error).__name__
        raise
    finally:
        for end in reversed(ends):
            end(kind)


@contextmanager
def recorded(recorder: Recorder) -> Iterator[None]:
    """Record every step of this process until the block ends."""
    _recorders.append(recorder)
    try:
        yield
    finally:
        _recorders.remove(recorder)
        recorder.close()


def is_file(place: str) -> bool:
    """Whether a log is a file, and neither standard error nor a collector."""
    return place != STANDARD_ERROR and not place.startswith(OTLP)


def recorder_at(place: str, standard_error: IO[str]) -> Recorder:
    """Return what records steps at a place: `json`, a file, or `otlp:` and the address of a collector."""
    if place.startswith(OTLP):
        from incrowd.workflows.tracing import Tracer, exporter_to

        return Tracer(exporter_to(place.removeprefix(OTLP)))
    if place == STANDARD_ERROR:
        return JsonLog(standard_error)
    return JsonLog(log_file(place), owned=True)


def log_file(place: str) -> IO[str]:
    """Open a log to append to; a new one can be read by its owner alone."""
    if not place.strip():
        raise InvalidParameter("a log is json, a file, or otlp: and the address of a collector.")
    try:
        number = os.open(Path(place), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    except OSError as error:
        raise OutputUnavailable(f"the log {place} cannot be written: {error.strerror or 'no reason given'}.") from None
    return os.fdopen(number, "a", encoding="utf-8")


@dataclass
class JsonLog:
    """Writes one JSON object a line when a step ends.

    >>> import io
    >>> stream = io.StringIO()
    >>> JsonLog(stream).begin("charge", {"release": "a1"})("BudgetExceeded")
    >>> json.loads(stream.getvalue())["error"]
    'BudgetExceeded'
    """

    stream: IO[str]
    owned: bool = False

    def begin(self, name: str, facts: Facts) -> End:
        def end(kind: str | None) -> None:
            at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            outcome: dict[str, Any] = {"outcome": "done"} if kind is None else {"outcome": "failed", "error": kind}
            line = {"at": at, "level": "info" if kind is None else "error", "from": "incrowd", "event": name}
            with suppress(OSError, ValueError):  # a full disk ends no release, and a closed stream has no reader
                self.stream.write(json.dumps(line | facts | outcome, ensure_ascii=False) + "\n")
                self.stream.flush()

        return end

    def close(self) -> None:
        if self.owned:
            with suppress(OSError):
                self.stream.close()
