"""Answer: noisy numbers with their intervals, as people read them; groups that nobody declared are one line."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

UNDECLARED = (
    "undeclared: groups of missing values or of other, which the policy does not name, and in which there may be "
    "nobody; all their intervals lie in these ranges."
)
_ALIKE = 0.01


class ShownColumn(NamedTuple):
    """A column of an answer: its values, and the ends of their intervals where it has some."""

    name: str
    values: Sequence[object]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None


class ShownAnswer(NamedTuple):
    """An answer as text: its lines, of which the last stands for `folded` groups if there are some."""

    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    folded: int


def shown_answer(columns: Sequence[ShownColumn], undeclared: Sequence[int] = ()) -> ShownAnswer:
    """Return the lines of an answer: each number with its interval, "1,234 ± 5" where it is the middle of one.

    Of the undeclared groups, by their places, those in which there may be nobody are folded into one line, if they are
    several and some column without intervals names them.

    >>> sex = ShownColumn("sex", ["F", "M", "other", None])
    >>> n = ShownColumn("n", [90, 70, 3, 0], [80.0, 60.0, 0.0, 0.0], [100.0, 80.0, 13.0, 9.0])
    >>> shown_answer([sex, n], [2, 3]).lines
    (('F', '90 ± 10'), ('M', '70 ± 10'), ('undeclared (2)', '0 to 13'))
    """
    lines = list(zip(*map(_cells, columns), strict=True))
    perhaps_empty = [place for place in undeclared if not _occurs(columns, place)]
    folded = perhaps_empty if any(column.low is None for column in columns) and len(perhaps_empty) > 1 else []
    kept = [line for place, line in enumerate(lines) if place not in set(folded)]
    one = [_folded(columns, folded)] if folded else []
    return ShownAnswer(tuple(column.name for column in columns), (*kept, *one), len(folded))


def _occurs(columns: Sequence[ShownColumn], place: int) -> bool:
    """Return whether some whole number of a group, a count or a sum, is surely above 0."""
    return any(
        column.low is not None and type(column.values[place]) is int and (column.low[place] or 0.0) > 0.0
        for column in columns
    )


def _folded(columns: Sequence[ShownColumn], places: Sequence[int]) -> tuple[str, ...]:
    """Return one line for several groups: how many they are, and between which ends all their intervals lie."""
    name, found = f"undeclared ({len(places)})", list[str]()
    for column in columns:
        if column.low is None or column.high is None:
            found.append(name)
            name = ""
            continue
        lows = [low for place in places if (low := column.low[place]) is not None]
        highs = [high for place in places if (high := column.high[place]) is not None]
        found.append(f"{_down(min(lows))} to {up(max(highs))}" if lows and highs else "")
    return tuple(found)


def _cells(column: ShownColumn) -> list[str]:
    nothing = [None] * len(column.values)
    return [
        f"{cell} (no interval)" if column.low is not None and low is None and cell != "–" else cell
        for value, low, high in zip(column.values, column.low or nothing, column.high or nothing, strict=True)
        for cell in [_cell(value, low, high)]
    ]


def _cell(value: object, low: float | None, high: float | None) -> str:
    if value is None:
        return "–"
    if not isinstance(value, int | float) or isinstance(value, bool) or low is None or high is None:
        return number(value) if type(value) in (int, float) else str(value)
    below, above = value - low, high - value
    if abs(below - above) <= _ALIKE * max(below, above):
        return f"{number(value)} ± {up(max(below, above), 3)}"
    return f"{number(value)} ({_down(low)} to {up(high)})"


def number(value: object) -> str:
    """Return a number with commas; of one with a point, six digits.

    >>> number(1234), number(1234567.89)
    ('1,234', '1,234,570')
    """
    return _rounded(value, 6, ROUND_HALF_EVEN) if isinstance(value, float) else f"{value:,}"


def _down(end: float, digits: int = 5) -> str:
    return _rounded(end, digits, ROUND_FLOOR)


def up(end: float, digits: int = 5) -> str:
    """Return a number that is not below this one, with so many digits.

    >>> up(35420.3, 4)
    '35,430'
    """
    return _rounded(end, digits, ROUND_CEILING)


def _rounded(value: float, digits: int, way: str) -> str:
    """Return a number with so many significant digits, without an exponent where people write none.

    >>> _down(23_685_417.2), up(23_685_417.2), up(200_000.0), up(0.00012345678, 3), up(1e300)
    ('23,685,000', '23,686,000', '200,000', '0.000124', '1e+300')
    """
    exact = Decimal(repr(float(value)))
    if not exact.is_finite() or not -6 <= exact.adjusted() < 15:
        return f"{value:,.{digits}g}"
    place = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{exact.quantize(place, way).normalize():,f}"
