"""Session: the messages of one connection whose user is known, in PostgreSQL's order; errors skip to the next Sync."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date

from incrowd.errors import IncrowdError
from incrowd.web.caller import Caller
from incrowd.web.logs import note
from incrowd.web.postgres import messages as m
from incrowd.web.postgres.door import Door, StatementResult
from incrowd.web.postgres.statements import (
    FAILED,
    FEATURE,
    ClientStatement,
    Complaint,
    ConnectionSettings,
    Prepared,
    setting_of,
    statements_of,
)
from incrowd.web.postgres.values import SIZES, TEXT, BadValue, decoded, encoded_column

_MOST_PREPARED = 200
"""Statements and portals that one connection has at once."""
_CANCELED = "canceling statement due to user request; its cost is not refunded"
_REPORTED = ("application_name", "client_encoding", "datestyle", "timezone", "standard_conforming_strings")
_DISPLAY = {"datestyle": "DateStyle", "timezone": "TimeZone", "intervalstyle": "IntervalStyle"}
_TAGS = {"begin": "BEGIN", "commit": "COMMIT", "rollback": "ROLLBACK", "set": "SET", "reset": "RESET"}
_DAY = date(2000, 1, 1)
_LIKELY = {16: True, 20: 1, 21: 1, 23: 1, 26: 1, 700: 1.5, 701: 1.5, 1700: 1.5, 1082: _DAY, 1114: _DAY, 1184: _DAY}
"""Values that stand for parameters while the columns of a statement are found out."""


@dataclass
class Portal:
    """A statement with its values; its rows stay until all were fetched."""

    statement: ClientStatement
    formats: tuple[int, ...]
    announced: tuple[tuple[str, int], ...] | None = None
    """The columns that were told before the statement was executed."""
    wished: bool = False
    """Whether its columns are to be told when it is executed."""
    result: StatementResult | None = None
    sent: int = 0


@dataclass
class Session:
    """One connection: settings, prepared statements and the state of its transaction."""

    door: Door
    caller: Caller
    process: int
    settings: ConnectionSettings = field(default_factory=ConnectionSettings)
    state: str = "I"
    statements: dict[str, tuple[Prepared, tuple[int, ...]]] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    afterwards: ConnectionSettings | None = None
    """The settings after this transaction, where SET LOCAL changed them."""
    canceled: bool = False
    busy: bool = False
    skipping: bool = False

    def cancel(self) -> None:
        """Let the statement that is running end with an error, at the time at which its answer would show."""
        self.canceled = self.canceled or self.busy

    async def replies(self, message: m.Message) -> bytes:
        """Return all that is sent in reply to a message."""
        if self.skipping and not isinstance(message, m.Sync | m.SimpleQuery):
            return b""
        try:
            return await self._handled(message)
        except Complaint as complaint:
            return self._failure(complaint, message)
        except (BadValue, IncrowdError) as problem:
            text, _, hint = str(problem).partition(": ")
            return self._failure(Complaint("22023" if isinstance(problem, BadValue) else "42601", text, hint), message)
        except Exception as problem:  # noqa: BLE001 (the last resort; an exception's own text may hold data)
            note("fault", fault=type(problem).__name__, action="postgres")
            return self._failure(Complaint("58000", "the server could not do this"), message)

    def _failure(self, complaint: Complaint, message: m.Message) -> bytes:
        self.state = "E" if self.state != "I" else "I"
        self.skipping = not isinstance(message, m.SimpleQuery | m.Sync)
        for portal in self.portals.values():
            portal.wished = False
        reply = m.complaint("ERROR", complaint.state, complaint.text, complaint.hint)
        return reply if self.skipping else reply + m.ready(self.state)

    async def _handled(self, message: m.Message) -> bytes:
        match message:
            case m.SimpleQuery():
                self.skipping = False
                return await self._simple(message.sql)
            case m.Parse():
                return self._parse(message)
            case m.Bind():
                return self._bind(message)
            case m.Describe():
                return await self._describe(message)
            case m.Execute():
                return await self._execute(message)
            case m.Close():
                (self.portals if message.portal else self.statements).pop(message.name, None)
                return m.CLOSE_COMPLETE
            case m.Sync():
                self.skipping = False
                late = await self._late_descriptions()
                self.portals = {} if self.state == "I" else self.portals
                return late + m.ready(self.state)
            case m.Flush():
                return await self._late_descriptions()
        raise Complaint(FEATURE, "COPY and calls of functions are not answered")

    async def _simple(self, sql: str) -> bytes:
        parts = list[bytes]()
        self.statements.pop("", None)
        for statement in statements_of(sql):
            try:
                result = await self._run(statement)
            except Complaint as complaint:  # what came before is paid for: it is sent
                return b"".join([*parts, self._failure(complaint, m.SimpleQuery(sql))])
            parts += [*_notices(result), _description(result.columns, ()), *_rows(result, (), result.columns)]
            parts.append(self._done(result))
        return b"".join(parts or [m.EMPTY_QUERY]) + m.ready(self.state)

    def _done(self, result: StatementResult) -> bytes:
        changed = result.tag in ("SET", "RESET", "DISCARD ALL")
        statuses = (
            [m.parameter_status(_DISPLAY.get(name, name), self.settings.values[name]) for name in _REPORTED]
            if changed
            else []
        )
        return b"".join([*statuses, m.command_complete(result.tag)])

    async def _run(self, statement: ClientStatement) -> StatementResult:
        """Execute a statement; one that is canceled meanwhile is still paid, and its error comes no earlier."""
        if self.state == "E" and statement.kind not in ("commit", "rollback", "savepoint"):
            raise Complaint(FAILED, "current transaction is aborted, commands ignored until end of transaction block")
        own = self._own(statement)
        if own is not None:
            return own
        self.busy, self.canceled = True, False
        try:
            self.caller = await self.door.recognized(self.caller)
            result = await self.door.result(self.caller, statement, self.settings, self.process)
        except Complaint:
            if not self.canceled:
                raise
        finally:
            self.busy = False
        if self.canceled:
            raise Complaint("57014", _CANCELED, "Ask the same again: a stored answer costs the dataset nothing.")
        return result

    def _own(self, statement: ClientStatement) -> StatementResult | None:
        """Do what needs no query service: transactions and settings."""
        match statement.kind:
            case "begin":
                self.state = "T"
            case "commit" | "rollback":
                tag = "ROLLBACK" if self.state == "E" else _TAGS[statement.kind]
                self.state, self.settings, self.afterwards = "I", self.afterwards or self.settings, None
                return StatementResult(tag)
            case "savepoint":
                self.state = "T" if self.state != "I" else "I"
                return StatementResult(statement.sql.split()[0].upper())
            case "set" | "reset":
                setting = setting_of(statement.sql)
                if setting is not None:
                    self._set(*setting, local=statement.sql.lower().split()[1] == "local")
            case "discard":
                words = statement.sql.upper().split()
                if words[:2] == ["DISCARD", "ALL"]:
                    self.settings = self.settings.set("all", "default")
                    self.statements, self.portals = {}, {}
                return StatementResult(" ".join(words[:2]))
            case _:
                return None
        return StatementResult(_TAGS[statement.kind])

    def _set(self, name: str, value: str, *, local: bool) -> None:
        """Change a setting; with SET LOCAL until the end of the transaction, and not at all outside of one."""
        changed = self.settings.set(name, value)
        if not local:
            self.settings, self.afterwards = changed, self.afterwards and self.afterwards.set(name, value)
        elif self.state != "I":
            self.settings, self.afterwards = changed, self.afterwards or self.settings

    def _parse(self, message: m.Parse) -> bytes:
        if message.name and message.name in self.statements:
            raise Complaint("42P05", "a prepared statement of this name exists already")
        if len(self.statements) >= _MOST_PREPARED:
            raise Complaint("54000", f"a connection has at most {_MOST_PREPARED} prepared statements")
        prepared = Prepared.of(message.sql)
        types = message.types
        if prepared.parameters:
            types = prepared.types(message.types, self.door.column_types(self.caller))
        self.statements[message.name] = prepared, types
        return m.PARSE_COMPLETE

    def _bind(self, message: m.Bind) -> bytes:
        prepared, types = self._statement(message.statement)
        if len(message.values) < prepared.parameters or len(message.values) > len(types):
            raise Complaint("08P01", "give one value for each parameter")
        if len(self.portals) >= _MOST_PREPARED:
            raise Complaint("54000", f"a connection has at most {_MOST_PREPARED} portals")
        formats = message.formats or (0,)
        formats = formats * len(message.values) if len(formats) == 1 else formats
        rows = zip(message.values, types, formats, strict=False)
        values = [decoded(value, type_, bool(binary)) for value, type_, binary in rows]
        self.portals[message.portal] = Portal(self._filled(prepared, values), message.results)
        return m.BIND_COMPLETE

    def _filled(self, prepared: Prepared, values: Sequence[object]) -> ClientStatement:
        """Put values into a statement: by the rules of queries, or of PostgreSQL where it is about the catalog."""
        written = prepared.written(values)  # type: ignore[arg-type]
        if written.kind != "query" or self.caller.queries(self.door.services).may_be_public(written.sql):
            return written
        return prepared.bound(values)  # type: ignore[arg-type]

    def _statement(self, name: str) -> tuple[Prepared, tuple[int, ...]]:
        if name not in self.statements:
            raise Complaint("26000", "there is no prepared statement of this name")
        return self.statements[name]

    def _portal(self, name: str) -> Portal:
        if name not in self.portals:
            raise Complaint("34000", "there is no portal of this name")
        return self.portals[name]

    async def _describe(self, message: m.Describe) -> bytes:
        if message.portal:  # told when it is executed, or at the latest before the next Sync
            self._portal(message.name).wished = True
            return b""
        prepared, types = self._statement(message.name)
        if not types:
            return m.parameter_description(()) + _described(await self._columns(prepared.statement), ())
        try:
            columns = await self._columns(self._filled(prepared, [_LIKELY.get(type_, "") for type_ in types]))
        except (Complaint, IncrowdError):  # these values are refused; others, which are not known yet, may not be
            columns = tuple((name, TEXT) for name in prepared.names)
        return m.parameter_description(types) + _described(columns, ())

    async def _columns(self, statement: ClientStatement) -> tuple[tuple[str, int], ...] | None:
        self.caller = await self.door.recognized(self.caller)
        return await self.door.columns(self.caller, statement, self.settings, self.process)

    async def _late_descriptions(self) -> bytes:
        """Tell the columns of portals that were described and not executed."""
        parts = []
        for portal in self.portals.values():
            if portal.wished:
                portal.wished, portal.announced = False, await self._columns(portal.statement)
                parts.append(_described(portal.announced, portal.formats))
        return b"".join(parts)

    async def _execute(self, message: m.Execute) -> bytes:
        portal = self._portal(message.portal)
        if portal.statement.kind == "empty":
            return (m.NO_DATA if portal.wished else b"") + m.EMPTY_QUERY
        parts = []
        if portal.result is None:
            portal.result = await self._run(portal.statement)
            parts += _notices(portal.result)
            if portal.wished:
                parts.append(_described(portal.result.columns, portal.formats))
                portal.wished = False
        columns = portal.announced or portal.result.columns
        rows = list(_rows(portal.result, portal.formats, columns, portal.sent, message.rows))
        portal.sent += len(rows)
        if portal.sent < len(portal.result.rows):
            return b"".join([*parts, *rows, m.PORTAL_SUSPENDED])
        return b"".join([*parts, *rows, self._done(portal.result)])


def _notices(result: StatementResult) -> list[bytes]:
    return [
        m.complaint(severity, "01000" if severity == "WARNING" else "00000", text) for severity, text in result.notices
    ]


def _format(formats: tuple[int, ...], place: int) -> int:
    return 0 if not formats else formats[0] if len(formats) == 1 else formats[place] if place < len(formats) else 0


def _described(columns: tuple[tuple[str, int], ...] | None, formats: tuple[int, ...]) -> bytes:
    return _description(columns, formats) or m.NO_DATA


def _description(columns: tuple[tuple[str, int], ...] | None, formats: tuple[int, ...]) -> bytes:
    if columns is None:
        return b""
    return m.row_description(
        m.ResultColumn(name, type_, SIZES.get(type_, -1), _format(formats, place))
        for place, (name, type_) in enumerate(columns)
    )


def _rows(
    result: StatementResult,
    formats: tuple[int, ...],
    columns: tuple[tuple[str, int], ...] | None,
    first: int = 0,
    most: int = 0,
) -> Iterator[bytes]:
    rows = result.rows[first : first + most if most else None]
    if not rows:
        return
    typed = zip(zip(*rows, strict=True), columns or (), strict=True)
    parts = [encoded_column(values, type_, bool(_format(formats, at))) for at, (values, (_, type_)) in enumerate(typed)]
    for row in zip(*parts, strict=True):
        yield m.data_row(row)
