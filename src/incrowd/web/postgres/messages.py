"""Messages: version 3 of PostgreSQL's protocol as frozen values and bytes; nothing here reads, waits or remembers.

A message is read completely and exactly, or refused with a constant text: no part of it is repeated.

Source: PostgreSQL 17 documentation, chapter 53, "Frontend/Backend Protocol".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

LARGEST_STARTUP = 10_000
"""Bytes of the first message, as PostgreSQL allows."""
_PROTOCOL, _CANCEL, _SSL, _GSS = 3, 80877102, 80877103, 80877104
_MOST_PARAMETERS = 200
_TEXT, _BINARY = 0, 1


class ProtocolViolation(Exception):
    """Bytes that are not a message; the connection ends."""


@dataclass(frozen=True)
class Startup:
    """The first message: the user, and settings; `minor` is above 0 where a newer protocol is wished."""

    parameters: Mapping[str, str]
    minor: int = 0


@dataclass(frozen=True)
class EncryptionRequest:
    """A wish for TLS (or GSS, which is not spoken here) before the first message."""

    tls: bool


@dataclass(frozen=True)
class CancelRequest:
    """A wish to cancel what another connection is doing, by its secret."""

    process: int
    secret: int = field(repr=False)


First = Startup | EncryptionRequest | CancelRequest


@dataclass(frozen=True)
class Password:
    """A password, or a token in its place."""

    text: str = field(repr=False)


@dataclass(frozen=True)
class SimpleQuery:
    """Statements to be executed at once."""

    sql: str = field(repr=False)


@dataclass(frozen=True)
class Parse:
    """A statement to be prepared under a name, with the types of parameters as far as the client knows them."""

    name: str
    sql: str = field(repr=False)
    types: tuple[int, ...] = ()


@dataclass(frozen=True)
class Bind:
    """Values for the parameters of a prepared statement; the result is a portal."""

    portal: str
    statement: str
    formats: tuple[int, ...] = ()
    values: tuple[bytes | None, ...] = field(default=(), repr=False)
    results: tuple[int, ...] = ()


@dataclass(frozen=True)
class Describe:
    """Which columns a statement or a portal has."""

    portal: bool
    name: str


@dataclass(frozen=True)
class Execute:
    """The next rows of a portal, at most so many; 0 means all."""

    portal: str
    rows: int = 0


@dataclass(frozen=True)
class Close:
    """A statement or portal to be forgotten."""

    portal: bool
    name: str


@dataclass(frozen=True)
class Sync:
    """The end of a group of messages."""


@dataclass(frozen=True)
class Flush:
    """A wish to send what is there."""


@dataclass(frozen=True)
class Terminate:
    """The end of a connection."""


@dataclass(frozen=True)
class Unsupported:
    """A message that exists and is not answered: of COPY, or a call of a function."""


Message = Password | SimpleQuery | Parse | Bind | Describe | Execute | Close | Sync | Flush | Terminate | Unsupported


class _MessageReader:
    """The bytes of one message, taken from the front."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def number(self, form: str) -> int:
        size = struct.calcsize(form)
        (value,) = struct.unpack(form, self.take(size))
        return int(value)

    def count(self) -> int:
        many = self.number("!h")
        if not 0 <= many <= _MOST_PARAMETERS:
            raise ProtocolViolation("a message counts more parts than it may have")
        return many

    def take(self, size: int) -> bytes:
        part = self._body[self._at : self._at + size]
        if size < 0 or len(part) < size:
            raise ProtocolViolation("a message is shorter than it says")
        self._at += size
        return part

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation("a text in a message has no end")
        part, self._at = self._body[self._at : end], end + 1
        try:
            return part.decode("utf-8")
        except UnicodeDecodeError:
            raise ProtocolViolation("a text in a message is not UTF-8") from None

    def value(self) -> bytes | None:
        size = self.number("!i")
        return None if size == -1 else self.take(size)

    def end(self) -> None:
        if self._at != len(self._body):
            raise ProtocolViolation("a message is longer than it says")

    @property
    def over(self) -> bool:
        return self._at >= len(self._body)


def read_first(body: bytes) -> First:
    r"""Return the first message of a connection, without its length.

    >>> read_first(struct.pack("!I", 196608) + b"user\0ann\0\0")
    Startup(parameters={'user': 'ann'}, minor=0)
    >>> read_first(struct.pack("!I", 80877103))
    EncryptionRequest(tls=True)
    """
    reader = _MessageReader(body)
    code = reader.number("!I")
    if code in (_SSL, _GSS):
        reader.end()
        return EncryptionRequest(code == _SSL)
    if code == _CANCEL:
        request = CancelRequest(reader.number("!I"), reader.number("!I"))
        reader.end()
        return request
    if code >> 16 != _PROTOCOL:
        raise ProtocolViolation("version 3 of the protocol is spoken here")
    parameters = dict[str, str]()
    while name := reader.text():
        if name in parameters:
            raise ProtocolViolation("a setting is given twice")
        parameters[name] = reader.text()
    reader.end()
    return Startup(parameters, code & 0xFFFF)


def read_message(kind: bytes, body: bytes) -> Message:
    r"""Return a message from its kind and its body.

    >>> read_message(b"Q", b"SELECT 1\0")
    SimpleQuery()
    >>> read_message(b"Q", b"SELECT 1")
    Traceback (most recent call last):
    incrowd.web.postgres.messages.ProtocolViolation: a text in a message has no end
    """
    reader = _MessageReader(body)
    message = _read(kind, reader)
    if not isinstance(message, Unsupported):
        reader.end()
    return message


def _read(kind: bytes, reader: _MessageReader) -> Message:
    match kind:
        case b"p":
            return Password(reader.text())
        case b"Q":
            return SimpleQuery(reader.text())
        case b"P":
            return Parse(reader.text(), reader.text(), tuple(reader.number("!I") for _ in range(reader.count())))
        case b"B":
            return _bind(reader)
        case b"D":
            return Describe(_is_portal(reader), reader.text())
        case b"E":
            return Execute(reader.text(), max(0, reader.number("!i")))
        case b"C":
            return Close(_is_portal(reader), reader.text())
        case b"S":
            return Sync()
        case b"H":
            return Flush()
        case b"X":
            return Terminate()
        case b"F" | b"d" | b"c" | b"f":
            return Unsupported()
    raise ProtocolViolation("there is no message of this kind")


def _is_portal(reader: _MessageReader) -> bool:
    kind = reader.take(1)
    if kind not in (b"S", b"P"):
        raise ProtocolViolation("a message names neither a statement nor a portal")
    return kind == b"P"


def _bind(reader: _MessageReader) -> Bind:
    names = reader.text(), reader.text()
    formats = _formats(reader)
    values = tuple(reader.value() for _ in range(reader.count()))
    if len(formats) not in (0, 1, len(values)):
        raise ProtocolViolation("formats and values of parameters do not match")
    return Bind(*names, formats, values, _formats(reader))


def _formats(reader: _MessageReader) -> tuple[int, ...]:
    formats = tuple(reader.number("!h") for _ in range(reader.count()))
    if not {_TEXT, _BINARY}.issuperset(formats):
        raise ProtocolViolation("a format is neither text nor binary")
    return formats


def _packed(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return kind + struct.pack("!I", len(body) + 4) + body


def _text(text: str) -> bytes:
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


def authentication_ok() -> bytes:
    """Say that the user is known."""
    return _packed(b"R", struct.pack("!I", 0))


def ask_password() -> bytes:
    """Ask for a password as it is; the connection must be encrypted or local."""
    return _packed(b"R", struct.pack("!I", 3))


def negotiate(unknown: Sequence[str]) -> bytes:
    """Say that version 3.0 is spoken, and which wishes are not known."""
    return _packed(b"v", struct.pack("!II", 0, len(unknown)), *map(_text, unknown))


def parameter_status(name: str, value: str) -> bytes:
    """Tell a setting."""
    return _packed(b"S", _text(name), _text(value))


def key_data(process: int, secret: int) -> bytes:
    """Tell by what this connection can be canceled."""
    return _packed(b"K", struct.pack("!II", process, secret))


def ready(state: str) -> bytes:
    """Say that the next query may come: I outside a transaction, T inside one, E inside one that failed."""
    return _packed(b"Z", state.encode())


@dataclass(frozen=True)
class ResultColumn:
    """A column of a result: its name, type and format."""

    name: str
    type: int
    size: int
    format: int = _TEXT


def row_description(fields: Iterable[ResultColumn]) -> bytes:
    """Tell the columns of a result."""
    parts = [
        _text(field_.name) + struct.pack("!IhIhih", 0, 0, field_.type, field_.size, -1, field_.format)
        for field_ in fields
    ]
    return _packed(b"T", struct.pack("!h", len(parts)), *parts)


def data_row(values: Sequence[bytes | None]) -> bytes:
    r"""Return one row.

    >>> data_row([b"1", None])
    b'D\x00\x00\x00\x0f\x00\x02\x00\x00\x00\x011\xff\xff\xff\xff'
    """
    parts = [b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value for value in values]
    return _packed(b"D", struct.pack("!h", len(parts)), *parts)


def parameter_description(types: Sequence[int]) -> bytes:
    """Tell the types of the parameters of a statement."""
    return _packed(b"t", struct.pack("!h", len(types)), *(struct.pack("!I", type_) for type_ in types))


def command_complete(tag: str) -> bytes:
    """Say that a statement is done."""
    return _packed(b"C", _text(tag))


def complaint(severity: str, state: str, text: str, hint: str = "") -> bytes:
    """Return an error or, by its severity, a notice."""
    fields = {"S": severity, "V": severity, "C": state, "M": text} | ({"H": hint} if hint else {})
    kind = b"E" if severity in ("ERROR", "FATAL") else b"N"
    return _packed(kind, *(name.encode() + _text(value) for name, value in fields.items()), b"\0")


PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE = _packed(b"1"), _packed(b"2"), _packed(b"3")
EMPTY_QUERY, NO_DATA, PORTAL_SUSPENDED = _packed(b"I"), _packed(b"n"), _packed(b"s")
