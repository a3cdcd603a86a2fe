"""Plain records: what is kept of a value (numbers, tags, digests), and how a record is written.

Nothing here knows the package.  Numbers are exact texts with one spelling each, so that a number that changes its type
is no difference; a float is rounded to ten digits, because its last bits differ between processors.  Sentences, ids,
times and names of files are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

DIGITS = 10
"""The significant digits of a float."""
LONGEST = 16
"""A longer list or mapping is written as its length and a digest."""
WIDTH = 116
"""A value that fits into so many characters stands on one line."""
KINDS = frozenset({"kind", "step", "loss"})
"""Keys whose texts are names of kinds, also where they have several words."""
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?|-?[1-9]\d*/[1-9]\d*")
_TAG = re.compile(r"[\w.+-]{1,40}")
_ID = re.compile(r"[0-9a-f-]{16,}|[\w-]+\.(js|json|csv|parquet|html)")
"""Ids and names of files, which are no facts."""
_EXACT_DIGITS = 80


def number(value: str | float | Decimal | Fraction) -> str:
    """Return the one text of a number.

    >>> number("0.50"), number(Fraction(1, 3)), number(Decimal("1E-7")), number(1 / 3), number(float("inf"))
    ('0.5', '1/3', '1e-7', '0.3333333333', 'infinity')
    """
    if isinstance(value, float):
        return number(f"{value + 0.0:.{DIGITS}g}") if abs(value) < float("inf") else _no_number(value)
    if isinstance(value, Decimal) and not value.is_finite():
        return _no_number(float(value))
    exact = Fraction(value)
    rest, powers = exact.denominator, [0, 0]
    for place, prime in enumerate((2, 5)):
        while rest % prime == 0:
            rest, powers[place] = rest // prime, powers[place] + 1
    scale = max(powers)
    whole = exact.numerator * 10**scale // exact.denominator
    if rest > 1 or len(str(whole).rstrip("0")) > _EXACT_DIGITS:
        return str(exact)
    return _decimal(whole, scale)


def _decimal(whole: int, scale: int) -> str:
    digits = str(abs(whole)).rstrip("0") or "0"
    exponent = len(str(abs(whole))) - len(digits) - scale if whole else 0
    spelled = f"{'-' if whole < 0 else ''}{digits}"
    if 0 <= exponent <= 20:
        return spelled + "0" * exponent
    return str(Decimal(f"{spelled}e{exponent}")).replace("E", "e")


def _no_number(value: float) -> str:
    if value != value:  # noqa: PLR0124 - this is what is no number
        return "no number"
    return "infinity" if value > 0 else "-infinity"


def facts(value: Any) -> Any:
    """Return what a value states without its sentences: numbers, tags and truth values; None where nothing is left.

    >>> facts({"kind": "a kind", "rate": "2/4", "noise": "laplace", "text": "Some words", "id": "9f" * 8, "n": [1.50]})
    {'kind': 'a kind', 'rate': '0.5', 'noise': 'laplace', 'n': ['1.5']}
    """
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, (list, tuple)):
        stated = [part for part in map(facts, value) if part is not None]
        return shortened(stated) if stated else None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float, Decimal, Fraction)):
        return number(value)
    return _text(str(value))


def _mapping(value: Mapping[Any, Any]) -> Any:
    stated = {
        str(name): str(part) if name in KINDS and isinstance(part, str) else facts(part) for name, part in value.items()
    }
    left = {name: part for name, part in stated.items() if part is not None}
    return shortened(left) if left else None


def _text(text: str) -> str | None:
    if text in ("Infinity", "inf"):
        return "infinity"
    if _NUMBER.fullmatch(text):
        return number(text)
    return text if _TAG.fullmatch(text) and not _ID.fullmatch(text) else None


def shortened(values: list[Any] | dict[str, Any]) -> Any:
    """Return a list or a mapping, or its length and digest where it is long."""
    return values if len(values) <= LONGEST else {"length": number(len(values)), "digest": digest(values)}


def numbers(value: Any) -> list[str]:
    """Return all numbers of a value in the order of their texts, whatever the names and places are.

    >>> numbers({"a": [1.5, {"b": "2/4"}], "c": "words", "d": True})
    ['0.5', '1.5']
    """
    if isinstance(value, Mapping):
        return sorted(each for part in value.values() for each in numbers(part))
    if isinstance(value, (list, tuple)):
        return sorted(each for part in value for each in numbers(part))
    if value is None or isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value)):
        return []
    return [number(value)]


def table(columns: Mapping[str, str], rows: Iterable[Iterable[Any]]) -> dict[str, Any]:
    """Return the record of a table: its columns with their types, how many rows it has, and a digest of them in order.

    >>> table({"n": "int64"}, [[1], [None]])["rows"]
    '2'
    """
    cells = [[cell(value) for value in row] for row in rows]
    return {
        "columns": [f"{name} {kind}" for name, kind in columns.items()],
        "rows": number(len(cells)),
        "digest": digest(cells),
    }


def cell(value: Any) -> Any:
    """Return a value of a table as JSON holds it, and nothing of it left out."""
    if isinstance(value, Mapping):
        return {str(name): cell(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [cell(part) for part in value]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float, Decimal, Fraction)):
        return [number(value)]
    return [value.isoformat() if isinstance(value, date) else str(value)]


def digest(value: Any) -> str:
    """Return sixteen hexadecimal digits of the SHA-256 of a value.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:16]


def text_of(value: Any, indent: str = "") -> str:
    """Return a value as JSON: sorted, and every part on one line that fits there.

    >>> print(text_of({"b": [1, 2], "a": {}}))
    {"a": {}, "b": [1, 2]}
    """
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, (dict, list)) or not value:
        return line
    deeper = indent + " "
    if isinstance(value, list):
        inner = [f"{deeper}{text_of(part, deeper)}" for part in value]
        return "[\n" + ",\n".join(inner) + f"\n{indent}]"
    inner = [
        f"{deeper}{json.dumps(name, ensure_ascii=False)}: {text_of(value[name], deeper)}" for name in sorted(value)
    ]
    return "{\n" + ",\n".join(inner) + f"\n{indent}}}"
