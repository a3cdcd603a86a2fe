"""Ends: labels of the first and the last days of a range, to which days beyond its bounds are moved."""

from __future__ import annotations

import re
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

ANY = "any"
"""The label of a class that holds both ends of a range, and so every value."""

_OPEN = re.compile(r" or (earlier|later)$")
_EPOCH = date(1970, 1, 1).toordinal()


def open_days(labels: pa.Array, days: pa.Array, ends: tuple[int | None, int | None]) -> pa.Array:
    """Return the labels of days, or of periods by their first days, open at the ends; an end is a day since 1970.

    >>> open_days(pa.array(["2023", "2024"]), pa.array([19358, 19723], pa.int32()), (19358, None)).to_pylist()
    ['2023 or earlier', '2024']
    """
    first, last = ends
    if first is not None and first == last:
        return pc.if_else(pc.equal(days, first), ANY, labels)
    for end, words in ((first, "or earlier"), (last, "or later")):
        if end is not None:
            labels = pc.if_else(pc.equal(days, end), pc.binary_join_element_wise(labels, words, " "), labels)
    return labels


def open_label(label: str, first: str | None, last: str | None) -> str:
    """Return one label, open if it is the first or the last: the rule, slow and obvious.

    >>> open_label("2024", "2020", "2024"), open_label("2024", "2024", "2024"), open_label("2024", "2024", None)
    ('2024 or later', 'any', '2024 or earlier')
    """
    if label == first and label == last:
        return ANY
    return f"{label} or earlier" if label == first else f"{label} or later" if label == last else label


def end_value(label: str) -> str:
    """Return the day in the label of an end; any other label as it is.

    >>> end_value("2024-01-01 or earlier"), end_value("2024-01-02")
    ('2024-01-01', '2024-01-02')
    """
    return _OPEN.sub("", label)


def day_number(day: date | None) -> int | None:
    """Return a day as its number, counted from 1970.

    >>> day_number(date(1970, 1, 2))
    1
    """
    return None if day is None else day.toordinal() - _EPOCH
