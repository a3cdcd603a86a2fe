"""The server of the PostgreSQL door: connections, TLS, tokens as passwords, and cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import secrets
import ssl
import struct
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from incrowd.web.logs import note
from incrowd.web.postgres import messages as m
from incrowd.web.postgres.door import Door
from incrowd.web.postgres.session import Session
from incrowd.web.postgres.statements import DEFAULTS, Complaint, ConnectionSettings
from incrowd.web.services import Services

_PATIENCE = 20.0
"""Seconds for a message to arrive once it has begun, and for a user to say who they are."""
_IDLE = 24 * 3600.0
"""Seconds after which a connection that asks nothing ends."""
_MOST_CONNECTIONS, _PER_USER = 200, 40
_REPORTED = {
    "server_version": "server_version", "server_encoding": "server_encoding", "client_encoding": "client_encoding",
    "DateStyle": "datestyle", "integer_datetimes": "integer_datetimes", "IntervalStyle": "intervalstyle",
    "standard_conforming_strings": "standard_conforming_strings", "TimeZone": "timezone",
    "is_superuser": "is_superuser", "application_name": "application_name",
    "default_transaction_read_only": "default_transaction_read_only", "in_hot_standby": "in_hot_standby",
}  # fmt: skip
_UNSAFE = "a token is sent over TLS or on this machine alone"


@dataclass(frozen=True)
class PostgresSettings:
    """Where the door is: a port of an address, a folder for a socket of this machine, and the files for TLS."""

    port: int
    host: str = "127.0.0.1"
    socket: str | None = None
    certificate: str | None = None
    key: str | None = None

    def context(self) -> ssl.SSLContext | None:
        """Return what TLS needs, or None where it is not spoken."""
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        return context


@dataclass(eq=False)
class PostgresServer:
    """The connections of one worker."""

    door: Door
    tls: ssl.SSLContext | None = None
    sessions: dict[int, tuple[int, Session]] = field(default_factory=dict)
    """By the number of a connection: the secret by which it is canceled, and its session."""
    users: Counter[str] = field(default_factory=Counter)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def open(self) -> int:
        """How many connections there are."""
        return len(self.tasks)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends; whatever it sends, no other one notices."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (a coroutine that awaits runs in one)
        self.tasks.add(task)
        try:
            await _Connection(self, reader, writer).run()
        except (m.ProtocolViolation, Complaint) as problem:
            state, text = (
                ("08P01", str(problem)) if isinstance(problem, m.ProtocolViolation) else (problem.state, problem.text)
            )
            hint = problem.hint if isinstance(problem, Complaint) else ""
            with contextlib.suppress(OSError):
                writer.write(m.complaint("FATAL", state, text, hint))
        except (OSError, EOFError, TimeoutError, ssl.SSLError):
            pass
        except Exception as problem:  # noqa: BLE001 (the last resort; an exception's own text may hold data)
            note("fault", fault=type(problem).__name__, action="postgres")
        finally:
            self.tasks.discard(task)
            with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
                writer.close()
                async with asyncio.timeout(_PATIENCE):
                    await writer.wait_closed()

    async def stop(self) -> None:
        """End all connections: those that ask nothing at once, the others when they have their answer."""
        busy = any(session.busy for _, session in self.sessions.values())
        if busy and self.tasks:
            await asyncio.wait(self.tasks, timeout=self.door.services.settings.longest)
        for task in tuple(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def cancel(self, request: m.CancelRequest) -> None:
        """Cancel what a connection of this worker is doing; a wrong secret has the same reply."""
        secret, session = self.sessions.get(request.process, (None, None))
        if secret is None or session is None:
            return
        if hmac.compare_digest(struct.pack("!I", secret), struct.pack("!I", request.secret)):
            session.cancel()


@dataclass(eq=False)
class _Connection:
    server: PostgresServer
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def run(self) -> None:
        async with asyncio.timeout(_PATIENCE):
            startup = await self._startup()
            if startup is None:
                return
            session = await self._authenticated(startup)
        user = session.caller.user.name
        if self.server.users[user] >= _PER_USER:
            raise Complaint("53300", "too many connections of this user")
        self.server.users[user] += 1
        secret = secrets.randbits(32)
        while session.process in self.server.sessions or not session.process:
            session.process = secrets.randbits(31)
        self.server.sessions[session.process] = secret, session
        try:
            await self._send(_greeting(session, secret))
            await self._serve(session)
        finally:
            del self.server.sessions[session.process]
            self.server.users[user] -= 1

    async def _startup(self) -> m.Startup | None:
        """Return the first message after TLS, if that is wished; None where the connection came to cancel another."""
        encrypted = False
        while True:
            (size,) = struct.unpack("!I", await self.reader.readexactly(4))
            if not 8 <= size <= m.LARGEST_STARTUP:
                raise m.ProtocolViolation("the first message has a wrong length")
            first = m.read_first(await self.reader.readexactly(size - 4))
            match first:
                case m.CancelRequest():
                    self.server.cancel(first)
                    return None
                case m.Startup():
                    return first
            if encrypted or not first.tls or self.server.tls is None:
                await self._send(b"N")
                encrypted = encrypted or first.tls
                continue
            if getattr(self.reader, "_buffer", b""):  # sent before TLS, so anybody may have written it
                raise m.ProtocolViolation("nothing may follow a wish for TLS until it is granted")
            await self._send(b"S")
            await self.writer.start_tls(self.server.tls)
            encrypted = True

    async def _authenticated(self, startup: m.Startup) -> Session:
        unknown = [name for name in startup.parameters if name.startswith("_pq_.")]
        if startup.minor or unknown:
            await self._send(m.negotiate(unknown))
        if self.server.open > _MOST_CONNECTIONS:
            raise Complaint("53300", "too many connections")
        place = self._place()
        if not self._is_safe(place):
            raise Complaint("28000", _UNSAFE, "Connect with sslmode=require, to a server that has a certificate.")
        settings = _settings(startup.parameters)
        user = startup.parameters.get("user", "")
        if not user:
            raise Complaint("28000", "a connection names its user")
        await self._send(m.ask_password())
        message = await self._message()
        if not isinstance(message, m.Password):
            raise m.ProtocolViolation("a password was expected")
        caller = await self.server.door.caller(user, message.text, place)
        return Session(self.server.door, caller, secrets.randbits(31), settings)

    def _place(self) -> str:
        peer = self.writer.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) and peer else "this machine"

    def _is_safe(self, place: str) -> bool:
        """Tell whether nobody on the way can read a token: by TLS, a local socket, or an address of this machine."""
        if self.writer.get_extra_info("ssl_object") is not None or place == "this machine":
            return True
        own = self.writer.get_extra_info("sockname")
        try:
            return ip_address(place).is_loopback and ip_address(own[0]).is_loopback
        except ValueError:
            return False

    async def _serve(self, session: Session) -> None:
        while True:
            message = await self._message(_IDLE)
            if isinstance(message, m.Terminate):
                return
            if isinstance(message, m.Password):
                raise m.ProtocolViolation("no password was expected")
            await self._send(await session.replies(message))

    async def _message(self, idle: float = _PATIENCE) -> m.Message:
        async with asyncio.timeout(idle):
            kind = await self.reader.readexactly(1)
        async with asyncio.timeout(_PATIENCE):
            (size,) = struct.unpack("!I", await self.reader.readexactly(4))
            if not 4 <= size <= self.server.door.services.settings.size:
                raise m.ProtocolViolation("a message is too long")
            return m.read_message(kind, await self.reader.readexactly(size - 4))

    async def _send(self, data: bytes) -> None:
        if data:
            self.writer.write(data)
            await self.writer.drain()


def _settings(parameters: Mapping[str, str]) -> ConnectionSettings:
    """Return the settings that the first message gives, in `options` as `-c name=value` too; unknown ones are left."""
    settings = ConnectionSettings()
    if parameters.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise Complaint("0A000", "replication is not answered")
    wishes = {name: value for name, value in parameters.items() if name.lower() in DEFAULTS}
    words = parameters.get("options", "").replace("--", "-c ").replace("-c", " ").split()
    wishes |= {name: value for name, sign, value in (word.partition("=") for word in words) if sign}
    for name, value in wishes.items():
        settings = settings.set(name, value)
    return settings.opened


def _greeting(session: Session, secret: int) -> bytes:
    statuses = [m.parameter_status(name, session.settings.values[setting]) for name, setting in _REPORTED.items()]
    statuses.append(m.parameter_status("session_authorization", session.caller.user.name))
    return b"".join([m.authentication_ok(), *statuses, m.key_data(session.process, secret), m.ready(session.state)])


@asynccontextmanager
async def listening(services: Services, where: PostgresSettings) -> AsyncIterator[PostgresServer]:
    """Listen until the end of the block; connections that are open then are closed."""
    server = PostgresServer(Door(services), where.context())
    limit = services.settings.size
    listeners = [
        await asyncio.start_server(
            server.serve, where.host, where.port, limit=limit, reuse_port=hasattr(os, "fork") or None
        )
    ]
    if where.socket is not None:
        path = Path(where.socket) / f".s.PGSQL.{where.port}"
        listeners.append(await asyncio.start_unix_server(server.serve, path, limit=limit))
        path.chmod(0o600)
    try:
        yield server
    finally:
        for listener in listeners:
            listener.close()
        await server.stop()
