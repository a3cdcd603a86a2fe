"""Answer: noisy numbers with their intervals, as people read them; undeclared groups are one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, NamedTuple

UNDECLARED = (
    "undeclared: groups of missing values or of other, which the policy does not list and which may be empty; all "
    "their intervals lie in these ranges."
)
_ALIKE = 0.01


class RenderedColumn(NamedTuple):
    """A column of an answer: its values, and the ends of their intervals if it has any."""

    name: str
    values: Sequence[object]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None


class RenderedAnswer(NamedTuple):
    """An answer as text: its lines; if `folded` is positive, the last line is for so many groups."""

    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    folded: int


def render_answer(columns: Sequence[RenderedColumn], undeclared: Sequence[int] = ()) -> RenderedAnswer:
    """Return the lines of an answer: numbers with their intervals, "1,234 ± 5" where the number is the middle.

    Of the undeclared groups, by their places, those that may be empty become one line, if there are several and some
    column without intervals names them.

    >>> sex = RenderedColumn("sex", ["F", "M", "other", None])
    >>> n = RenderedColumn("n", [90, 70, 3, 0], [80.0, 60.0, 0.0, 0.0], [100.0, 80.0, 13.0, 9.0])
    >>> render_answer([sex, n], [2, 3]).lines
    (('F', '90 ± 10'), ('M', '70 ± 10'), ('undeclared (2)', '0 to 13'))
    """
    lines = list(zip(*map(_cells, columns), strict=True))
    perhaps_empty = [place for place in undeclared if not _occurs(columns, place)]
    folded = perhaps_empty if any(column.low is None for column in columns) and len(perhaps_empty) > 1 else []
    single = [line for place, line in enumerate(lines) if place not in set(folded)]
    one = [_folded(columns, folded)] if folded else []
    return RenderedAnswer(tuple(column.name for column in columns), (*single, *one), len(folded))


def expected_words(column: Mapping[str, Any]) -> str:
    """Return how exact a column of an answer will be, from the plain form of a cost estimate.

    >>> expected_words({"output": "n", "half_width": 120.0})
    'expected n: ± 120'
    >>> expected_words({"output": "s", "by_size": [[10, 5.5], [100, 2.0]], "note": "worst case"})
    'expected s: ± 5.5 in a group of 10; ± 2 in a group of 100; worst case'
    """
    whole = [f"± {up(column['half_width'], 6)}"] if "half_width" in column else []
    sizes = [f"± {up(width, 4)} in a group of {size:,}" for size, width in column.get("by_size", ())]
    note = [str(column["note"])] if column.get("note") else []
    return f"expected {column['output']}: {'; '.join((*whole, *sizes, *note))}"


def _occurs(columns: Sequence[RenderedColumn], place: int) -> bool:
    """Whether the interval of some count or sum of a group is above 0."""
    return any(
        column.low is not None and type(column.values[place]) is int and (column.low[place] or 0.0) > 0.0
        for column in columns
    )


def _folded(columns: Sequence[RenderedColumn], places: Sequence[int]) -> tuple[str, ...]:
    """Return one line for several groups: their number, and the range of all their intervals."""
    name, cells = f"undeclared ({len(places)})", list[str]()
    for column in columns:
        if column.low is None or column.high is None:
            cells.append(name)
            name = ""
            continue
        lows = [low for place in places if (low := column.low[place]) is not None]
        highs = [high for place in places if (high := column.high[place]) is not None]
        cells.append(f"{_down(min(lows))} to {up(max(highs))}" if lows and highs else "")
    return tuple(cells)


def _cells(column: RenderedColumn) -> list[str]:
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
    """Return a number with commas; a decimal one with six digits.

    >>> number(1234), number(1234567.89)
    ('1,234', '1,234,570')
    """
    return _rounded(value, 6, ROUND_HALF_EVEN) if isinstance(value, float) else f"{value:,}"


def _down(end: float, digits: int = 5) -> str:
    return _rounded(end, digits, ROUND_FLOOR)


def up(end: float, digits: int = 5) -> str:
    """Return the number rounded up to so many significant digits.

    >>> up(35420.3, 4)
    '35,430'
    """
    return _rounded(end, digits, ROUND_CEILING)


def _rounded(value: float, digits: int, way: str) -> str:
    """Return a number with so many significant digits, without an exponent in the usual range.

    >>> _down(23_685_417.2), up(23_685_417.2), up(200_000.0), up(0.00012345678, 3), up(1e300)
    ('23,685,000', '23,686,000', '200,000', '0.000124', '1e+300')
    """
    exact = Decimal(repr(float(value)))
    if not exact.is_finite() or not -6 <= exact.adjusted() < 15:
        return f"{value:,.{digits}g}"
    place = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{exact.quantize(place, way).normalize():,f}"
