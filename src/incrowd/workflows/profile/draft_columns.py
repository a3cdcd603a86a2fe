"""Columns of a draft: what a policy would say about each, read off the rows and marked as such."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.workflows.profile.profile import ColumnProfile

DERIVED = {"derived": "rows"}
"""The mark of what was read off the rows."""

_STEPS = 20  # the finest intervals cut a range into about so many
_LEVELS = 3
_FEW = 5
_LONGEST_CODE = 20
_PREFIXES = 4
_LONG_TIME = 20


def drafted_section(column: ColumnProfile) -> dict[str, Any]:
    """Return the section of one column, as a policy writes it.

    Bounds are rounded outward, so that they do not name the oldest person or the highest bill.
    """
    if column.role is Role.IDENTIFIER:
        return {"role": "identifier"}
    section: dict[str, Any] = {"role": str(column.role), "type": str(column.type)}
    match column.type:
        case Type.INTEGER | Type.DECIMAL:
            return section | number_rule(column.facts.low, column.facts.high, column.type)
        case Type.DATE:
            return section | date_rule(column.facts.low, column.facts.high)
        case Type.BOOLEAN:
            return section
        case Type.TEXT:
            return _text(column, section)


def number_rule(low: Any, high: Any, kind: Type) -> dict[str, Any]:
    """Return bounds and nested intervals around numbers from `low` to `high`.

    >>> number_rule(3, 97, Type.INTEGER)["bounds"], number_rule(3, 97, Type.INTEGER)["hierarchy"]["intervals"]
    (['0', '99'], ['5', '10', '20'])
    """
    if low is None or high is None:
        return {}
    lowest, highest = Decimal(str(low)), Decimal(str(high))
    whole = kind is Type.INTEGER
    span = highest - lowest + (1 if whole else 0)
    if span <= 0 or (whole and span <= _FEW):
        return {"bounds": [_number(lowest), _number(highest)], **DERIVED}
    width = max(_round_number(span / _STEPS), Decimal(2) if whole else Decimal(0))
    start = _floor(lowest / width) * width
    end = (_floor(highest / width) + 1) * width - 1 if whole else -_floor(-highest / width) * width
    widths = [width * 2**step for step in range(_LEVELS) if width * 2**step < end - start]
    bounds: dict[str, Any] = {"bounds": [_number(start), _number(end)], **DERIVED}
    return bounds | ({"hierarchy": {"intervals": [_number(each) for each in widths], **DERIVED}} if widths else {})


def date_rule(low: Any, high: Any) -> dict[str, Any]:
    """Return bounds of whole years, and the periods of the calendar.

    >>> date_rule(date(2025, 2, 3), date(2025, 11, 30))["bounds"]
    ['2025-01-01', '2025-12-31']
    """
    if not isinstance(low, date) or not isinstance(high, date):
        return {}
    periods = ["month", "quarter", "year", *(["decade"] if high.year - low.year >= _LONG_TIME else [])]
    bounds = [f"{low.year:04d}-01-01", f"{high.year:04d}-12-31"]
    return {"bounds": bounds, **DERIVED, "hierarchy": {"dates": periods, **DERIVED}}


def prefix_lengths(longest: int, values: Sequence[str] = ()) -> list[int]:
    """Return how many characters of a code are kept on each level, down to where the values still differ.

    >>> prefix_lengths(5), prefix_lengths(5, ["02139", "02210"]), prefix_lengths(1)
    ([4, 3, 2, 1], [4, 3], [])
    """
    ends = zip(min(values), max(values), strict=False) if len(values) > 1 else ()
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], ends))
    return list(range(longest - 1, shared, -1))[:_PREFIXES]


def _text(column: ColumnProfile, section: dict[str, Any]) -> dict[str, Any]:
    shortest, longest = column.facts.lengths
    codes = column.facts.shape in ("digits", "codes") and longest <= _LONGEST_CODE
    values = sorted(value for value, _ in column.facts.values or ())
    lengths = prefix_lengths(longest, values) if codes and shortest == longest else []
    prefixes = {"hierarchy": {"prefix": [str(length) for length in lengths], **DERIVED}} if lengths else {}
    if values:
        return section | {"categories": values, **DERIVED} | prefixes
    return section | prefixes if prefixes else {"role": "identifier"}


def _round_number(least: Decimal) -> Decimal:
    """Return the least of …, 1, 2, 5, 10, 20, 50, … that is not below."""
    power = Decimal(10) ** math.floor(least.log10())
    return next(power * step for step in (1, 2, 5, 10) if power * step >= least)


def _floor(number: Decimal) -> int:
    return math.floor(number)


def _number(number: Decimal) -> str:
    text = f"{number.normalize():f}"
    return "0" if text == "-0" else text
