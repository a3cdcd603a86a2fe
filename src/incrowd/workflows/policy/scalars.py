"""Scalars of a policy file: numbers, days and words, with their types and their published JSON Schema."""

from __future__ import annotations

import re
from datetime import date
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.limits import limit_of


def _exact(value: Any) -> Fraction:
    try:
        return exact(value)
    except InvalidParameter as error:
        raise ValueError(str(error)) from None


def _day(value: Any) -> date:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", str(value)):
        raise ValueError("a day is written as 2025-12-31")
    return date.fromisoformat(str(value))


def _up_to(key: str) -> BeforeValidator:
    most = limit_of(key)

    def read(value: Any) -> int:
        number = _exact(value)
        if number.denominator != 1:
            raise ValueError("must be a whole number")
        if abs(number) > most:
            raise ValueError(f"can be at most {most:,}")
        return int(number)

    return BeforeValidator(read)


def _integer(key: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "integer", "maximum": limit_of(key)})


def whole(key: str) -> Any:
    """Return the type of a key that takes whole numbers up to its public limit.

    >>> from pydantic import TypeAdapter
    >>> TypeAdapter(whole("k")).validate_python("20")
    20
    """
    return Annotated[int, _up_to(key), _integer(key)]


_NUMBER_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[0-9.eE+/-]+$"}]}
Exact = Annotated[Fraction, BeforeValidator(_exact), WithJsonSchema(_NUMBER_SCHEMA)]
Whole = Annotated[int, _up_to(""), _integer("")]
MaxRows = Annotated[int, _up_to("max_rows"), _integer("max_rows")]
MaxGroups = Annotated[int, _up_to("max_groups"), _integer("max_groups")]
MaxLength = Annotated[int, _up_to("max_length"), _integer("max_length"), Field(ge=1)]
Day = Annotated[
    date, BeforeValidator(_day), WithJsonSchema({"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"})
]
Decimals = Annotated[int, _integer("decimals"), Field(ge=0, le=9)]
Prefix = Annotated[int, _up_to("prefix"), _integer("prefix")]
Redaction = Annotated[int, _up_to("redaction"), _integer("redaction")]
HeaderRow = Annotated[int, _up_to("header_row"), _integer("header_row"), Field(ge=1)]
GroupSize = Annotated[int, _up_to("groups"), _integer("groups")]
Word = Annotated[
    str,
    BeforeValidator(lambda value: value if isinstance(value, str) else str(value)),
    WithJsonSchema({"type": ["string", "number"]}),
]
Words = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}),
]
"""Several names; one alone needs no brackets."""
