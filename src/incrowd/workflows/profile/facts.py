"""Facts: what one pass over the rows learns about a column, in bounded memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.core.fingerprints import dictionary_bits, value_bits
from incrowd.core.reading import as_dictionary, canonical, read
from incrowd.engines.readers.conventions import TOTALS
from incrowd.measures.risk.sketch import Sketch, TupleSpread

LISTED = 1000
"""A column with more different values than this is not listed."""

_TUPLES = 2**22  # different tuples counted: beyond, a column set identifies nearly everyone
_NUMBERS_THAT_ARE_CODES = r"^([+]|-?0[0-9]|[0-9]{19})"
_DIGITS = r"^[0-9]+$"
_CODES = r"^[A-Za-z]{1,3}[-_/]?[0-9][0-9A-Za-z.\-]*$"
_WORDS = 8  # there are no more ways to write true and false in one column
_SAMPLE = 200  # values looked at for their form
_ODD = 12
_NEARLY = 0.8
_MATCHES = {
    "e-mail addresses": r"[A-Za-z0-9._%+'\-]+@[A-Za-z0-9\-]+(\.[A-Za-z0-9\-]+)*\.[A-Za-z]{2,}",
    "web addresses": r"(?i)(https?://|\bwww\.)[a-z0-9\-]+\.[a-z]",
    "phone numbers": (
        r"(?i)(\b(tel|telf|telef|telm|tlf|tfn|tel[eé]fono?|puh|ring|phone|mobile|mob|mobil|handy|gsm|tél|cell|kom)\b"
        r"[^0-9a-z+]{0,5}"
        r"[+(]?[0-9][0-9 ()./\-]{5,}[0-9]"
        r"|(^|\s)\+[1-9][0-9 ()./\-]{7,}[0-9]|\b0[1-9]([ .][0-9]{2}){4}\b)"
    ),
}

_KINDS = (Type.INTEGER, Type.DECIMAL, Type.DATE, Type.BOOLEAN)

End = int | float | date | None
Times = NDArray[np.intp]


@dataclass(frozen=True)
class Facts:
    """Facts about a column.

    `kinds` are the types as which every present value can be read; text is always one.  `low` and `high` belong
    to the first of them.  `values` lists every value with its rows, the most frequent first, or is None if there are
    too many.  `shape` is digits, codes (letters, then digits) or words.  `sample` is a fair sample of the
    different values; `matches` in how many rows there is an address; `nearly` the type that most values have, if a few
    do not.
    """

    name: str
    missing: int
    spread: TupleSpread
    kinds: tuple[Type, ...]
    low: End
    high: End
    lengths: tuple[int, int]
    shape: str
    values: tuple[tuple[str, int], ...] | None
    sample: tuple[str, ...] = ()
    matches: tuple[tuple[str, int], ...] = ()
    nearly: Nearly | None = None


@dataclass(frozen=True)
class Nearly:
    """A type that most values have, the share of rows that do, and the few exceptions."""

    kind: Type
    share: float
    exceptions: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The exceptions, and what to do; it contains values, for the data holder.

        >>> Nearly(Type.INTEGER, 0.994, ("k.A.", "n/a")).sentence
        '99 % are whole numbers; the exceptions are k.A., n/a: add them as nulls?'
        """
        kinds = {Type.INTEGER: "whole numbers", Type.DECIMAL: "numbers", Type.DATE: "days"}
        few = ", ".join(self.exceptions)
        return f"{int(100 * self.share)} % are {kinds[self.kind]}; the exceptions are {few}: add them as nulls?"

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {"type": str(self.kind), "share": self.share, "exceptions": list(self.exceptions)}


class FactLearner:
    """One column, learned batch by batch.

    >>> learner = FactLearner("zip", capacity=1000)
    >>> learner.add(pa.array(["02139", "02139", None, "94305"]))
    >>> facts = learner.facts()
    >>> facts.kinds, facts.missing, facts.spread.unique, facts.shape
    ((<Type.TEXT: 'text'>,), 1, 2, 'digits')
    """

    def __init__(self, name: str, capacity: int) -> None:
        self._name = name
        self._sketch = Sketch(capacity)
        self._missing = 0
        self._blank = 0
        self._kinds = list(_KINDS)
        self._ends: dict[Type, tuple[End, End]] = {}
        self._lengths = (2**31, 0)
        self._shapes = {"digits": _DIGITS, "codes": _CODES}
        self._values: Counter[str] | None = Counter()
        self._sample: dict[int, str] = {}
        self._matches: Counter[str] = Counter()
        self._odd: dict[Type, Counter[str]] = {kind: Counter() for kind in self._kinds if kind is not Type.BOOLEAN}

    def add(self, array: pa.Array) -> None:
        """Learn from some rows."""
        values, indices = as_dictionary(array)
        if indices is None:
            values = pc.add(values, 0.0) if pa.types.is_floating(values.type) else values  # -0 is 0
            absent = pc.is_null(values, nan_is_null=True)
            values = pc.if_else(absent, pa.scalar(None, values.type), values).dictionary_encode()
            indices = values.indices.fill_null(len(values.dictionary)).to_numpy(zero_copy_only=False)
            values = values.dictionary
        times = np.bincount(indices, minlength=len(values) + 1)
        self._missing += int(times[-1])
        bits, occurring = dictionary_bits(values, 0), np.flatnonzero(times)
        self._sketch.add_counted(bits[occurring], times[occurring])
        used = np.flatnonzero(times[:-1])
        if len(used) < len(values):
            values = values.take(pa.array(used))
        times = times[used]
        self._list(values, times)
        if pa.types.is_string(values.type):
            blank = pc.equal(pc.utf8_trim_whitespace(values), "").to_numpy(zero_copy_only=False)
            self._blank += int(times[blank].sum())
            values, times = values.filter(pa.array(~blank)), times[~blank]
            self._see_text(values)
        self._see_some(values)
        self._see_kinds(values, times)
        if pa.types.is_string(values.type):
            self._see_addresses(values, times)

    def merge(self, other: FactLearner) -> None:
        """Add the facts of other rows of the same column; the order does not matter.

        >>> whole, parts = FactLearner("age", 1000), FactLearner("age", 1000)
        >>> whole.add(pa.array(["41", "7"]))
        >>> parts.add(pa.array(["1.5", None]))
        >>> whole.merge(parts)
        >>> facts = whole.facts()
        >>> facts.kinds[0], facts.low, facts.high, facts.missing
        (<Type.DECIMAL: 'decimal'>, 1.5, 41, 1)
        """
        self._sketch.merge(other._sketch)
        self._missing += other._missing
        self._blank += other._blank
        self._kinds = [kind for kind in self._kinds if kind in other._kinds]
        met = [(self._met(kind), other._met(kind)) for kind in self._kinds]
        ends = {kind: _spanned(one, two) for kind, (one, two) in zip(self._kinds, met, strict=True)}
        self._ends = {kind: both for kind, both in ends.items() if both is not None}
        self._lengths = (min(self._lengths[0], other._lengths[0]), max(self._lengths[1], other._lengths[1]))
        self._shapes = {name: pattern for name, pattern in self._shapes.items() if name in other._shapes}
        self._values = None if self._values is None or other._values is None else self._values + other._values
        if self._values is not None and len(self._values) > LISTED:
            self._values = None
        self._sample = _fewest(self._sample | other._sample)
        self._matches += other._matches
        both = {kind: odd + other._odd[kind] for kind, odd in self._odd.items() if kind in other._odd}
        self._odd = {kind: odd for kind, odd in both.items() if len(odd) <= _ODD}

    def facts(self) -> Facts:
        """Return the facts so far."""
        some = self._sketch.spread().rows > self._missing + self._blank
        kinds = tuple(self._kinds) if some else ()
        low, high = self._ends.get(kinds[0], (None, None)) if kinds else (None, None)
        missing = self._missing + (self._blank if kinds else 0)
        listed = None
        if self._values is not None:  # by frequency, then text: the order of the rows does not matter
            listed = tuple(sorted(self._values.items(), key=lambda item: (-item[1], item[0])))
        shape = next(iter(self._shapes), "words") if some else "words"
        return Facts(
            self._name,
            missing,
            self._sketch.spread(),
            (*kinds, Type.TEXT),
            low,
            high,
            self._lengths,
            shape,
            listed,
            tuple(self._sample.values()),
            tuple(sorted(self._matches.items())),
            None if kinds else self._nearly(),
        )

    def _nearly(self) -> Nearly | None:
        """Return the first type that most rows have, with a few exceptions."""
        present = self._sketch.spread().rows - self._missing - self._blank
        for kind, odd in self._odd.items():
            share = 1.0 - odd.total() / max(1, present)
            if _NEARLY <= share < 1.0:
                return Nearly(kind, share, tuple(sorted(odd, key=lambda text: (-odd[text], text))))
        return None

    def _list(self, values: pa.Array, times: Times) -> None:
        if self._values is None:
            return
        if len(values) <= LISTED:
            texts = canonical(values).to_pylist()
            self._values.update(dict(zip(texts, times.tolist(), strict=True)))
        if len(values) > LISTED or len(self._values) > LISTED:
            self._values = None

    def _see_some(self, values: pa.Array) -> None:
        """Retain the values with the lowest hashes: a fair sample of the different ones, for any order of rows."""
        bits = value_bits(values, 0)
        lowest = np.argsort(bits)[:_SAMPLE]
        texts = canonical(values.take(pa.array(lowest))).to_pylist()
        self._sample = _fewest(self._sample | dict(zip(bits[lowest].tolist(), texts, strict=True)))

    def _see_text(self, values: pa.Array) -> None:
        if not len(values):
            return
        ends = pc.min_max(pc.utf8_length(values))
        shortest, longest = ends["min"].as_py(), ends["max"].as_py()
        self._lengths = (min(self._lengths[0], shortest), max(self._lengths[1], longest))
        self._shapes = {
            name: pattern for name, pattern in self._shapes.items() if pc.all(_matches(values, pattern)).as_py()
        }
        if pc.any(_matches(values, _NUMBERS_THAT_ARE_CODES)).as_py():
            self._kinds = [kind for kind in self._kinds if kind not in (Type.INTEGER, Type.DECIMAL)]
            self._odd = {kind: odd for kind, odd in self._odd.items() if kind is Type.DATE}

    def _see_addresses(self, values: pa.Array, times: Times) -> None:
        """Count addresses; digits, codes, numbers and days hold none."""
        if self._shapes or any(kind is not Type.BOOLEAN for kind in self._kinds):
            return
        for name, pattern in _MATCHES.items():
            rows = int(times[_matches(values, pattern).to_numpy(zero_copy_only=False)].sum())
            self._matches.update({name: rows} if rows else {})

    def _see_kinds(self, values: pa.Array, times: Times) -> None:
        if pa.types.is_boolean(values.type):
            self._kinds, self._odd = [kind for kind in self._kinds if kind is Type.BOOLEAN], {}
        whole = Type.INTEGER in self._kinds
        for kind in _KINDS:
            if kind not in self._kinds and kind not in self._odd:
                continue
            if kind is Type.DECIMAL and whole and Type.INTEGER in self._kinds:
                continue  # what reads as an integer reads as a decimal
            if kind is Type.BOOLEAN and len(values) > _WORDS:
                self._kinds.remove(kind)
                continue
            parsed = read(values, kind)
            if parsed.unreadable.any():
                self._see_odd(kind, values, times, parsed.unreadable)
                self._kinds = [candidate for candidate in self._kinds if candidate is not kind]
            elif kind in self._kinds and kind is not Type.BOOLEAN and len(values):
                self._ends[kind] = _widened(self._met(kind), parsed.values)

    def _see_odd(self, kind: Type, values: pa.Array, times: Times, odd: NDArray[np.bool_]) -> None:
        """Retain the exceptions to a type, while they are few."""
        before = self._odd.pop(kind, None)
        if before is None or np.count_nonzero(odd) > _ODD:
            return
        texts = canonical(values.filter(pa.array(odd))).to_pylist()
        both = before + Counter(dict(zip(texts, times[odd].tolist(), strict=True)))
        if len(both) <= _ODD:
            self._odd = {
                candidate: self._odd.get(candidate, both)
                for candidate in _KINDS
                if candidate in self._odd or candidate is kind
            }

    def _met(self, kind: Type) -> tuple[End, End] | None:
        """Return the range of the values; integers were not read again as decimals."""
        before = self._ends.get(Type.INTEGER) if kind is Type.DECIMAL else None
        return self._ends.get(kind, before)


class ColumnLearners:
    """Learners for every column of a table, batch by batch."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._totals: set[str] = set()
        self._first = names[:1]
        self._learners = {name: FactLearner(name, _TUPLES // max(4, len(names))) for name in names}

    def add(self, batch: pa.RecordBatch) -> None:
        """Learn from some rows."""
        for name, learner in self._learners.items():
            array = batch.column(name)
            learner.add(self._without_totals(array) if name in self._first else array)

    def merge(self, other: ColumnLearners) -> None:
        """Add the facts of other rows."""
        for name, learner in self._learners.items():
            learner.merge(other._learners[name])
        self._totals |= other._totals

    @property
    def totals(self) -> tuple[str, ...]:
        """The cells of the first column that look like the label of a row of sums."""
        return tuple(sorted(self._totals))

    def _without_totals(self, array: pa.Array) -> pa.Array:
        """Note the labels of sums in the first column, and return it without them: they are no values of it."""
        array = array.dictionary_encode() if pa.types.is_string(array.type) else array
        values, _ = as_dictionary(array)
        if not pa.types.is_string(values.type):
            return array
        labels = values.filter(pc.fill_null(_matches(values, TOTALS), False))
        if not len(labels):
            return array
        if len(self._totals) < _ODD:
            self._totals |= {label.strip() for label in labels.to_pylist()[:_ODD]}
        texts = array.cast(pa.string())
        return pc.if_else(pc.is_in(texts, value_set=labels), pa.scalar(None, pa.string()), texts)

    def facts(self) -> tuple[Facts, ...]:
        """Return the facts of each column."""
        return tuple(learner.facts() for learner in self._learners.values())


def _fewest(sample: dict[int, str]) -> dict[int, str]:
    return {bits: sample[bits] for bits in sorted(sample)[:_SAMPLE]}


def _matches(values: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(values, pattern)


def _widened(ends: tuple[End, End] | None, values: pa.Array) -> tuple[End, End]:
    ends_here = pc.min_max(values)
    here = ends_here["min"].as_py(), ends_here["max"].as_py()
    return _spanned(ends, here) or here


def _spanned(one: tuple[End, End] | None, two: tuple[End, End] | None) -> tuple[End, End] | None:
    """Return the range of both together; a column with nothing but missing values has none."""
    ranges = [ends for ends in (one, two) if ends is not None and None not in ends]
    if not ranges:
        return one if one is not None else two
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)
