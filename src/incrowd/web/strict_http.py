"""Strict HTTP: a request that two readers could split differently is refused."""

from __future__ import annotations

import asyncio
import re
from typing import Any, ClassVar

import h11
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

_END = re.compile(rb"\n\r?\n")
_BARE = re.compile(rb"(?<!\r)\n|\r(?!\n)|\x00")
_FRAMING = re.compile(rb"(content-length|transfer-encoding)[ \t]*:", re.IGNORECASE)


class _StrictLines(ReceiveBuffer):
    """Lines of a head that all end with CR LF.

    The standard lets a reader take a bare LF for the end of a line.  A proxy in front that does not would see another
    request than this server does, and a second one could hide in the first.
    """

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines of a complete head; one with a bare LF or CR is refused."""
        end = _END.search(self._data)
        head = self._data[: end.end()] if end is not None else self._data[:2]
        if self._data[:1] == b"\n" or (end is not None and _BARE.search(head)):
            raise h11.RemoteProtocolError("a line of the head ends with something else than CR LF")
        lines = super().maybe_extract_lines()
        if lines:
            _check_framing(lines)
        return lines


def _check_framing(lines: list[bytearray]) -> None:
    """Refuse folded lines, an end that is said twice, and chunks in HTTP/1.0, which has none."""
    framing = [line for line in lines if _FRAMING.match(line)]
    folded = any(line.startswith((b" ", b"\t")) for line in lines)
    old = lines[0].endswith(b"HTTP/1.0") and any(line[:1].lower() == b"t" for line in framing)
    if folded or len(framing) > 1 or any(b"," in line for line in framing) or old:
        raise h11.RemoteProtocolError("a head says in two ways, or in an old one, where its request ends")


class StrictProtocol(H11Protocol):
    """The protocol of uvicorn, with strict lines and a time limit for a head to arrive.

    Without it, connections that send nothing, or one letter at a time, would take the place of others.
    """

    patience: ClassVar[float] = 20.0

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.conn._receive_buffer = _StrictLines()  # noqa: SLF001 (h11 has no setting for it; a test holds it)
        self.limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time of the first head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on; the time of a head starts with its first byte."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        self._done()

    def _wait(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._done()
        elif self.limit is None:
            self.limit = self.loop.call_later(self.patience, self.transport.close)

    def _done(self) -> None:
        if self.limit is not None:
            self.limit.cancel()
            self.limit = None
