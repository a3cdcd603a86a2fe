"""Cover: which values a published label can stand for.

A release has `[20, 30)`, `130**` or `lungs` where the data has 27, 13053 or asthma.  An attacker knows how to read
labels: from the policy's hierarchies, which are public, or from how labels are usually written.  An unreadable label
stands for itself alone.  Labels and values are compared as text, and as numbers or days where both are such.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

ANYTHING = frozenset({"*", "any", "all", "?", "suppressed"})
MISSING = ""
_NUMBER = r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\d{4}-\d{2}-\d{2}"
_RANGE = re.compile(rf"^([\[(]?)\s*({_NUMBER})\s*(?:,|;|\.\.|–|—|-|to|:)\s*({_NUMBER})\s*([\])\[]?)$")
_SIDE = re.compile(rf"^(<=|>=|<|>|≤|≥)\s*({_NUMBER})$|^({_NUMBER})\+$")
_OPEN_DAY = re.compile(r"^(\d{4}-\d{2}-\d{2}) or (earlier|later)$")
_OR = r" or (?!(?:earlier|later)\b)"
_EPOCH = date(1970, 1, 1).toordinal()

Lookup = Callable[[pa.Array], Iterable[pa.Array]]
"""The labels of values at each level of a hierarchy: one array a level."""


@dataclass(frozen=True, eq=False)
class Cover:
    """For each distinct value (a code of `values`) the codes of the labels that cover it, one after the other.

    >>> values, labels = np.array(["27", "31"]), np.array(["[20, 30)", "[30, 40)", "*"])
    >>> cover_of(values, labels).labels_of(0).tolist()
    [0, 2]
    """

    starts: NDArray[np.int64]
    labels: NDArray[np.int64]
    keys: NDArray[np.int64]
    width: int

    def contains(self, values: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each pair of codes whether that label covers that value; a code of −1 covers nothing."""
        pairs = values * self.width + labels
        places = np.minimum(np.searchsorted(self.keys, pairs), max(len(self.keys) - 1, 0))
        covered = self.keys[places] == pairs if len(self.keys) else np.zeros(len(pairs), bool)
        return np.asarray(covered & (labels >= 0), bool)

    def labels_of(self, value: int) -> NDArray[np.int64]:
        """Return the codes of the labels that cover a value."""
        return self.labels[self.starts[value] : self.starts[value + 1]]


def texts(array: pa.Array | pa.ChunkedArray) -> NDArray[np.str_]:
    """Return values as text, missing ones as the empty text; whole numbers without a point.

    >>> texts(pa.array([1.0, 2.5, None])).tolist()
    ['1', '2.5', '']
    """
    return np.asarray(text_array(array).to_numpy(zero_copy_only=False), dtype=str)


def text_array(array: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """Return values as an array of such texts."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        whole = pc.if_else(pc.equal(pc.floor(array), array), pc.cast(array, pa.int64(), safe=False), None)
        return pc.fill_null(pc.coalesce(pc.cast(whole, pa.string()), pc.cast(array, pa.string())), MISSING)
    if pa.types.is_timestamp(array.type):
        array = pc.cast(array, pa.date32(), safe=False)
    return pc.fill_null(pc.cast(array, pa.string()), MISSING)


def numbers(values: NDArray[np.str_]) -> NDArray[np.float64]:
    """Return each text as a number, a day as its number since 1970, anything else as NaN.

    >>> numbers(np.array(["7", "1970-01-03", "x", ""])).tolist()
    [7.0, 2.0, nan, nan]
    """
    return np.array([_number(text) for text in values.tolist()], np.float64)


def cover_of(
    values: NDArray[np.str_], labels: NDArray[np.str_], lookup: Lookup | None = None, slack: float | None = None
) -> Cover:
    """Return which of the distinct labels cover each of the distinct values; `slack` is how far numbers may be off.

    Without a slack, numbers that mostly occur nowhere among published numbers (means, centers of cells) are taken to
    have moved by up to half the distance between two published ones.
    """
    pairs = [_equal(values, labels)]
    if lookup is not None:
        pairs += [_equal(texts(level), labels) for level in lookup(pa.array(values.tolist()))]
    distinct_values = _Values.of(values)
    pairs.append(_near(distinct_values.numbers, labels, _slack(distinct_values.numbers, labels, slack)))
    for code, label in enumerate(labels.tolist()):
        covered = _read(label, distinct_values)
        if covered is not None:
            pairs.append((covered, np.full(len(covered), code, np.int64)))
    return _joined(pairs, len(values))


@dataclass(frozen=True, eq=False)
class _Values:
    """Distinct values as text and as numbers, and the order of each."""

    texts: NDArray[np.str_]
    numbers: NDArray[np.float64]
    by_text: NDArray[np.int64]
    by_number: NDArray[np.int64]
    place: Mapping[str, int]

    @classmethod
    def of(cls, values: NDArray[np.str_]) -> _Values:
        parsed = numbers(values)
        place = {value: code for code, value in enumerate(values.tolist())}
        return cls(values, parsed, np.argsort(values), np.argsort(parsed), place)

    @cached_property
    def in_order(self) -> NDArray[np.float64]:
        return self.numbers[self.by_number]

    @cached_property
    def sorted_texts(self) -> NDArray[np.str_]:
        return self.texts[self.by_text]

    def starting(self, prefix: str) -> NDArray[np.int64]:
        """Return the codes of the values that start with a text."""
        low = np.searchsorted(self.sorted_texts, prefix)
        high = np.searchsorted(self.sorted_texts, prefix + "\U0010ffff")
        return self.by_text[low:high]


def ends_of(label: str) -> tuple[float, float] | None:
    """Return the two ends of a range, or None if the label is not one.

    >>> ends_of("[20, 35]"), ends_of("20-35"), ends_of("old")
    ((20.0, 35.0), (20.0, 35.0), None)
    """
    range_match = _RANGE.match(label)
    return None if range_match is None else (_number(range_match[2]), _number(range_match[3]))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        try:
            return float(date.fromisoformat(text[:10]).toordinal() - _EPOCH)
        except ValueError:
            return np.nan


def _equal(values: NDArray[np.str_], labels: NDArray[np.str_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of a value and the label that is the same text."""
    places = pc.index_in(pa.array(values.tolist(), pa.string()), value_set=pa.array(labels.tolist(), pa.string()))
    codes = places.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    which = np.flatnonzero(codes >= 0)
    return which, codes[which]


def _slack(values: NDArray[np.float64], labels: NDArray[np.str_], slack: float | None) -> float:
    published = np.unique(numbers(labels))
    published = published[~np.isnan(published)]
    if slack is not None or len(published) < 2 or np.isnan(values).all():
        return slack or 0.0
    finite = values[~np.isnan(values)]
    rare = np.isin(finite, published).mean() < 0.5
    return float(np.diff(published).min()) / 2.0 if rare else 0.0


def _near(
    values: NDArray[np.float64], labels: NDArray[np.str_], slack: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of numbers that are at most the slack apart; equal ones that are written differently too."""
    published = numbers(labels)
    codes = np.flatnonzero(~np.isnan(published))
    codes = codes[np.argsort(published[codes], kind="stable")]
    finite = np.flatnonzero(~np.isnan(values))
    if not len(codes) or not len(finite):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    room = slack * (1.0 + 1e-9)
    low = np.searchsorted(published[codes], values[finite] - room, "left")
    high = np.searchsorted(published[codes], values[finite] + room, "right")
    return np.repeat(finite, high - low), codes[spans(low, high)]


def spans(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the whole numbers of each half-open span, one span after the other.

    >>> spans(np.array([3, 7]), np.array([5, 8])).tolist()
    [3, 4, 7]
    """
    sizes = high - low
    before = np.cumsum(sizes) - sizes
    flattened: NDArray[np.int64] = np.arange(int(sizes.sum())) + np.repeat(low - before, sizes)
    return flattened


def _read(label: str, values: _Values) -> NDArray[np.int64] | None:
    """Return the codes of the values that a label covers; None if it is a value like any other."""
    if label in ANYTHING or (label == MISSING and MISSING not in values.place):
        return np.arange(len(values.texts))
    if (stretch := _stretch(label, values.in_order)) is not None:
        return values.by_number[stretch]
    if "*" in label:
        prefix = label.rstrip("*")
        if "*" not in prefix and prefix != label:
            return values.starting(prefix)
        pattern = re.compile(re.escape(prefix).replace(r"\*", ".") + ("" if prefix == label else ".*"))
        return np.array([code for value, code in values.place.items() if pattern.fullmatch(value)], np.int64)
    inside = label[1:-1] if label[:1] + label[-1:] == "{}" else label
    parts = re.split(r"\s*,\s*" if inside is not label else _OR, inside)
    if len(parts) == 1 and inside is label:
        return None
    covered = [codes for codes in (_read(part, values) for part in parts) if codes is not None]
    covered.append(np.array([values.place[part] for part in parts if part in values.place], np.int64))
    return np.unique(np.concatenate(covered))


def _stretch(label: str, in_order: NDArray[np.float64]) -> slice | None:
    """Return the stretch of ordered numbers inside a range; a bare range and one in [ ] hold both ends."""
    if parsed := _RANGE.match(label):
        low, high = _number(parsed[2]), _number(parsed[3])
        first = np.searchsorted(in_order, low, "right" if parsed[1] == "(" else "left")
        last = np.searchsorted(in_order, high, "left" if parsed[4] in (")", "[") else "right")
        return slice(int(first), int(max(first, last)))
    if day := _OPEN_DAY.match(label):
        label = f"{'<=' if day[2] == 'earlier' else '>='} {day[1]}"
    if parsed := _SIDE.match(label):
        sign, edge = parsed[1] or ">=", _number(parsed[2] or parsed[3])
        end = int(np.searchsorted(in_order, np.nan))
        if sign in ("<", "<=", "≤"):
            return slice(0, int(np.searchsorted(in_order, edge, "left" if sign == "<" else "right")))
        return slice(int(np.searchsorted(in_order, edge, "right" if sign == ">" else "left")), end)
    return None


def _joined(pairs: list[tuple[NDArray[np.int64], NDArray[np.int64]]], values: int) -> Cover:
    which = np.concatenate([codes for codes, _ in pairs]).astype(np.int64)
    codes = np.concatenate([codes for _, codes in pairs]).astype(np.int64)
    width = int(codes.max(initial=0)) + 1
    both = np.unique(which * width + codes)
    which, codes = both // width, both % width
    return Cover(np.searchsorted(which, np.arange(values + 1)).astype(np.int64), codes, both, width)
