"""Values: numbers, texts, dates and truth values in PostgreSQL's text and binary formats.

Source: PostgreSQL 17 documentation, chapters 8 and 53; binary numerics as in `src/backend/utils/adt/numeric.c`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from incrowd.queries.language.reading import Parameter
from incrowd.workflows.query.system_tables import TYPE_OIDS

BOOL, INT8, TEXT, FLOAT8, DATE = (TYPE_OIDS[name] for name in ("boolean", "integer", "text", "decimal", "date"))
SIZES = {BOOL: 1, INT8: 8, TEXT: -1, FLOAT8: 8, DATE: 4}
_WHOLE = {20: "!q", 21: "!h", 23: "!i", 26: "!I"}
_FLOATS = {700: "!f", 701: "!d"}
_NUMERIC, _DATE, _TIMES = 1700, 1082, (1114, 1184)
_TEXTS = (0, 18, 19, 25, 705, 1009, 1015, 1042, 1043)
"""Texts, and lists of texts, which are sent as {a,b}."""
_LISTS = (1009, 1015)
_EPOCH = date(2000, 1, 1)
_TRUTHS = {"t": True, "true": True, "1": True, "on": True, "yes": True,
           "f": False, "false": False, "0": False, "off": False, "no": False}  # fmt: skip
_ZONED = re.compile(r"\A([0-9]{4}-[0-9]{2}-[0-9]{2}) [+-][0-9]{2}(?::[0-9]{2})?\Z")
"""How JDBC writes a day whose type it leaves open."""
_MOST_DIGITS = 320


class BadValue(Exception):
    """Bytes that are not a value of their type."""


def type_of(kind: str) -> int:
    """Return the number of a type by its name in an answer.

    >>> type_of("integer"), type_of("of another kind")
    (20, 25)
    """
    return TYPE_OIDS.get(kind, TEXT)


def encoded(value: Any, type_: int, binary: bool) -> bytes | None:
    """Return a value of a type as it is sent, or None for NULL; a whole number of a type with a point gets one.

    >>> encoded(7, INT8, False), encoded(True, BOOL, False), encoded(1, FLOAT8, True).hex()
    (b'7', b't', '3ff0000000000000')
    """
    value = _fitted(value, type_)
    if value is None:
        return None
    if binary and type_ in _PACKED:
        return _PACKED[type_](value)
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, float) and not math.isfinite(value):
        return b"NaN" if math.isnan(value) else b"Infinity" if value > 0 else b"-Infinity"
    return str(value).replace("\0", "").encode("utf-8", "replace")


def encoded_column(values: Sequence[Any], type_: int, binary: bool) -> list[bytes | None]:
    """Return the values of a column as they are sent, the same as one by one; columns of one plain kind are fast.

    >>> encoded_column([7, None], INT8, False), encoded_column(["web"], TEXT, True)
    ([b'7', None], [b'web'])
    """
    kinds = set(map(type, values))
    if type_ == TEXT and kinds == {str}:
        return [value.replace("\0", "").encode("utf-8", "replace") for value in values]
    if type_ == INT8 and kinds == {int} and min(values) >= -(2**63) and max(values) < 2**63:
        return [_INT8.pack(value) if binary else b"%d" % value for value in values]
    if type_ == FLOAT8 and kinds == {float} and (binary or all(map(math.isfinite, values))):
        return [_FLOAT8.pack(value) if binary else repr(value).encode() for value in values]
    return [encoded(value, type_, binary) for value in values]


_INT8, _FLOAT8 = struct.Struct("!q"), struct.Struct("!d")


def _fitted(value: Any, type_: int) -> Any:
    """Return a value in the type that was announced for it."""
    if value is None or type_ == TEXT:
        return value
    if type_ == FLOAT8:
        return float(value)
    if type_ == INT8:
        whole = round(value) if math.isfinite(value) else None
        return whole if whole is not None and -(2**63) <= whole < 2**63 else None
    if type_ == DATE and isinstance(value, str):
        return date.fromisoformat(value)
    return value


_PACKED: dict[int, Callable[[Any], bytes]] = {
    BOOL: lambda value: struct.pack("!?", value),
    INT8: lambda value: struct.pack("!q", value),
    FLOAT8: lambda value: struct.pack("!d", value),
    DATE: lambda value: struct.pack("!i", (value - _EPOCH).days),
}


def decoded(value: bytes | None, type_: int, binary: bool) -> Parameter:
    """Return a parameter; one whose type the client left open is a text.

    >>> decoded(b"7", 23, False), decoded(bytes([0, 7]), 21, True), decoded(b"web", 0, False), decoded(None, 0, False)
    (7, 7, 'web', None)
    """
    if value is None:
        return None
    try:
        return _from_binary(value, type_) if binary else _from_text(value.decode("utf-8"), type_)
    except (struct.error, ValueError, KeyError, OverflowError, InvalidOperation):
        raise BadValue("a parameter is not a value of its type.") from None


def _from_text(text: str, type_: int) -> Parameter:
    if "\0" in text or (len(text) > _MOST_DIGITS and type_ not in _TEXTS):
        raise ValueError
    if type_ in (0, _DATE, *_TIMES):
        text = _ZONED.sub(r"\1", text)
    if type_ in _TEXTS:
        return text
    if type_ in _WHOLE:
        return int(text) if text.lstrip("+-").isascii() else _never()
    if type_ == BOOL:
        return _TRUTHS[text.strip().lower()]
    if type_ in _FLOATS or type_ == _NUMERIC:
        return _finite(Decimal(text))
    if type_ == _DATE:
        return date.fromisoformat(text)
    if type_ in _TIMES:
        return _day(datetime.fromisoformat(text))
    return _never()


def _from_binary(value: bytes, type_: int) -> Parameter:
    if type_ in _TEXTS and type_ not in _LISTS:
        return _from_text(value.decode("utf-8"), TEXT)
    if type_ in _WHOLE:
        return int(struct.unpack(_WHOLE[type_], value)[0])
    if type_ in _FLOATS:
        (number,) = struct.unpack(_FLOATS[type_], value)
        return float(number) if math.isfinite(number) else _never()
    if type_ == BOOL:
        return {b"\0": False, b"\1": True}[value]
    if type_ == _DATE:
        return _EPOCH + timedelta(days=struct.unpack("!i", value)[0])
    if type_ in _TIMES:
        start = datetime(2000, 1, 1, tzinfo=UTC)
        return _day(start + timedelta(microseconds=struct.unpack("!q", value)[0]))
    return _numeric(value) if type_ == _NUMERIC else _never()


def _never() -> Parameter:
    raise ValueError


def _finite(number: Decimal) -> Decimal:
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) + len(number.as_tuple().digits) > _MOST_DIGITS:
        raise ValueError
    return number


def _day(moment: datetime) -> date:
    """Return the day of a moment at its beginning: queries know days, and no times."""
    if moment.time() != datetime.min.time():
        raise ValueError
    return moment.date()


def _numeric(value: bytes) -> Decimal:
    """Return a number of PostgreSQL's decimal type: groups of four digits, a weight, a sign and a scale."""
    many, weight, sign, scale = struct.unpack("!hhHh", value[:8])
    if sign not in (0, 0x4000) or many < 0 or abs(weight) > _MOST_DIGITS // 4 or not 0 <= scale <= _MOST_DIGITS:
        raise ValueError
    groups: Sequence[int] = struct.unpack(f"!{many}H", value[8:])
    if any(group > 9999 for group in groups):
        raise ValueError
    whole = sum((Decimal(group).scaleb(4 * (weight - at)) for at, group in enumerate(groups)), Decimal(0))
    return _finite(-whole if sign else whole)
