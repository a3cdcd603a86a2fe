"""Codec: frozen dataclasses as plain JSON and back, by the types of their fields; unknown fields are refused.

A field that is None is omitted.  Exact numbers are stored as text.  What is read must be written the same way again, so
one value has one text: a number spelled differently, an extra key or a changed word is refused.

Canonical JSON is one text per plain value, so that a hash of the text is a hash of the value.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cache
from hashlib import sha256
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from incrowd.core.rounding import short
from incrowd.core.terms import Term
from incrowd.errors import InvalidParameter

Value = TypeVar("Value")

_TEXTS: dict[type, tuple[Callable[[str], Any], Callable[[Any], str]]] = {
    Fraction: (lambda text: Fraction(short(text)), str),
    Decimal: (lambda text: Decimal(short(text)), str),
    float: (float, repr),
}
_SIMPLE = frozenset({str, int, bool, type(None)})
"""What JSON gives back as it is."""
_READING = (TypeError, ValueError, KeyError, ZeroDivisionError, ArithmeticError, AttributeError, InvalidParameter)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def named(name: str, default: Any = MISSING) -> Any:
    """Return a field that has a name of its own in JSON."""
    return field(metadata={"name": name}) if default is MISSING else field(default=default, metadata={"name": name})


def encode(value: Any) -> Any:
    """Return the plain form of a value.

    >>> encode((Fraction(1, 10), None, "sex", 5))
    ['1/10', None, 'sex', 5]
    """
    cls: Any = type(value)
    return value if cls in _SIMPLE else _writer(cls)(value)


@cache
def _writer(cls: type) -> Callable[[Any], Any]:
    """Return the function that writes the values of a class; computed once a class."""
    if issubclass(cls, Term):
        return lambda value: value.key
    if is_dataclass(cls):
        places = tuple((_name(item), item.name) for item in fields(cls))
        return lambda value: {
            name: encode(part) for name, place in places if (part := getattr(value, place)) is not None
        }
    if issubclass(cls, Mapping):
        return lambda value: {str(key): encode(part) for key, part in value.items()}
    if issubclass(cls, frozenset):
        return lambda value: [encode(part) for part in sorted(value)]
    if issubclass(cls, tuple | list):
        return lambda value: [encode(part) for part in value]
    if issubclass(cls, StrEnum):
        return str
    return _TEXTS[cls][1] if cls in _TEXTS else lambda value: value


def decode(cls: type[Value], plain: Any) -> Value:
    """Read what `encode` wrote, or refuse it without repeating what it holds.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Rate:
    ...     rate: Fraction
    >>> decode(Rate, {"rate": "1/10"})
    Rate(rate=Fraction(1, 10))
    >>> decode(Rate, {"rate": "2/20"})
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: a rate holds a field that cannot be read.
    """
    try:
        value = cast("Value", read_as(cls, plain))
        same = encode(value) == plain
    except _READING:
        same = False
    if not same:
        raise InvalidParameter(f"a {_words(cls)} holds a field that cannot be read.")
    return value


def pick(classes: Iterable[type[Value]], plain: Any, write: Callable[[Value], Any]) -> Value | None:
    """Return the one reading of a plain form among several classes that is written the same way again, or None."""
    cls: Any
    for cls in classes:
        try:
            value = cast("Value", read_as(cls, {name: plain[name] for name in _names(cls) if name in plain}))
            if write(value) == plain:
                return value
        except _READING:  # another class may fit; what fits none is refused by the caller
            continue
    return None


def read_as(hint: Any, plain: Any) -> Any:
    """Read a plain value as a type; one that is not of the type raises TypeError, ValueError or KeyError."""
    return _reader(hint)(plain)


@cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    """Return the function that reads a plain value as a type; computed once a type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        options = [option for option in inner if option is not type(None)]
        return lambda plain: None if plain is None else _first(options, plain)
    if origin is tuple:
        return _tuples(inner)
    if origin is frozenset:
        return lambda plain: frozenset(read_as(inner[0], item) for item in _of(plain, list))
    if origin is not None and issubclass(origin, Mapping):
        return lambda plain: {_of(key, str): read_as(inner[1], item) for key, item in _of(plain, dict).items()}
    if hint in _TEXTS:
        return lambda plain: _TEXTS[hint][0](_of(plain, str))
    if isinstance(hint, type) and issubclass(hint, Term):
        return lambda plain: hint.read(_of(plain, str))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return lambda plain: hint(_of(plain, str))
    return _objects(hint) if is_dataclass(hint) else lambda plain: _of(plain, hint)


def _tuples(inner: tuple[Any, ...]) -> Callable[[Any], Any]:
    if inner[1:] == (...,):
        return lambda plain: tuple(read_as(inner[0], item) for item in _of(plain, list))
    return lambda plain: tuple(read_as(part, item) for part, item in zip(inner, _of(plain, list), strict=True))


def _objects(cls: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(cls)
    places = {_name(item): (item.name, hints[item.name]) for item in fields(cls)}

    def read(plain: Any) -> Any:
        values = [(*places[name], value) for name, value in _of(plain, dict).items()]
        return cls(**{place: read_as(hint, value) for place, hint, value in values})

    return read


def _first(hints: list[Any], plain: Any) -> Any:
    for hint in hints[:-1]:
        try:
            value = read_as(hint, plain)
            if encode(value) == plain:
                return value
        except _READING:  # another type of the union may fit; the last one raises
            continue
    return read_as(hints[-1], plain)


def _of(plain: Any, kind: type[Value]) -> Value:
    if type(plain) is not kind:
        raise TypeError
    return plain


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(_name(item) for item in fields(cls))


def _name(item: Field[Any]) -> str:
    return str(item.metadata.get("name", item.name))


def _words(cls: type) -> str:
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in cls.__name__).strip()


def _no_float(_text: str) -> None:
    raise ValueError


_DECODER = json.JSONDecoder(parse_float=_no_float)
_NO_TEXT = "an entry holds something that has no unique text: write numbers as text."


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted by code point, no spaces, nothing escaped that need not be.

    The value must be what JSON gives back: texts, whole numbers, truth values, nulls, lists, and mappings of texts.
    Floats are refused because their text is not unique between programs: amounts travel as decimal text.

    >>> canonical({"b": [1, None], "a": "ε"})
    '{"a":"ε","b":[1,null]}'
    """
    try:
        text = _ENCODER.encode(value)
        text.encode()
        returned = value if _is_plain(value) else _DECODER.decode(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidParameter(_NO_TEXT) from error
    if returned != value:
        raise InvalidParameter("an entry holds something that JSON does not give back: use lists, and texts as keys.")
    return text


def _is_plain(value: Any) -> bool:
    """Whether a value is made of nothing but what JSON gives back; where it is not, JSON may still give it back."""
    if type(value) is dict:
        return all(type(key) is str and _is_plain(part) for key, part in value.items())
    if type(value) is list:
        return all(map(_is_plain, value))
    return type(value) in _SIMPLE


_PUBLIC = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def public_text(value: Any) -> str:
    """Return a value as JSON for a reply; infinite numbers are null, because JSON has no infinity.

    >>> public_text({"high": [math.inf, 1.5]})
    '{"high":[null,1.5]}'
    """
    try:
        return _PUBLIC.encode(value)
    except ValueError:
        return _PUBLIC.encode(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parsed(text: str) -> Any:
    """Return the value of a canonical text; a text that is not the one of its value is refused.

    >>> parsed('{"a":"ε","b":[1,null]}')
    {'a': 'ε', 'b': [1, None]}
    >>> parsed('{"b":1, "a":2}')
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: an entry holds something that has no unique text: write numbers as text.
    """
    try:
        value = _DECODER.decode(text)
        text.encode()
        same = _ENCODER.encode(value) == text
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidParameter(_NO_TEXT) from error
    if not same:
        raise InvalidParameter(_NO_TEXT)
    return value


def reread(value: Any) -> str:
    """Return the canonical text of what JSON gave back: `canonical` without its checks.

    >>> reread(parsed('{"a":"ε"}'))
    '{"a":"ε"}'
    """
    return _ENCODER.encode(value)


def digest(domain: str, value: Any) -> str:
    """Return the SHA-256 of a value's canonical text, under a domain that keeps different uses of hashes apart.

    >>> digest("a use", 1) == digest("another use", 1)
    False
    """
    return text_digest(domain, canonical(value))


def text_digest(domain: str, text: str) -> str:
    """Return the same of a value whose canonical text is known.

    >>> text_digest("a use", "1") == digest("a use", 1)
    True
    """
    return sha256(f"{domain}\n{text}".encode()).hexdigest()


class RepeatedKey(ValueError):
    """An object in a JSON text has a key twice: readers differ in which of its values counts."""


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON text, for `object_pairs_hook`; one with a key twice raises `RepeatedKey`.

    >>> unrepeated([("epsilon", 1), ("epsilon", 9)])
    Traceback (most recent call last):
    ...
    incrowd.core.codec.RepeatedKey
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        raise RepeatedKey
    return content
