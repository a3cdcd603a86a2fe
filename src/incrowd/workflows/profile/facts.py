"""Facts: what one pass over the rows learns of a column, in bounded memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.domain import Type
from incrowd.core.hashing import coded_bits
from incrowd.core.reading import as_dictionary, canonical, read
from incrowd.measures.sketch import Sketch, TupleSpread

LISTED = 1000
"""A column with more different values than this is not listed."""

_KEPT = 2**22
_NUMBERS_THAT_ARE_CODES = r"^([+]|-?0[0-9]|[0-9]{19})"
_DIGITS = r"^[0-9]+$"
_CODES = r"^[A-Za-z]{1,3}[0-9][0-9A-Za-z.\-]*$"
_WORDS = 8  # there are no more ways to write true and false in one column

End = int | float | date | None


@dataclass(frozen=True)
class Facts:
    """A column as it was met.

    `kinds` are the types as which every value that is there can be read; text is always one.  `low` and `high` belong
    to the first of them.  `values` lists every value with its rows, the most frequent first, or is None if there are
    too many.  `shape` is digits, codes (letters, then digits) or words.
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


class Learner:
    """One column, learned batch by batch.

    >>> learner = Learner("zip", capacity=1000)
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
        self._kinds = [Type.INTEGER, Type.DECIMAL, Type.DATE, Type.BOOLEAN]
        self._ends: dict[Type, tuple[End, End]] = {}
        self._lengths = (2**31, 0)
        self._shapes = {"digits": _DIGITS, "codes": _CODES}
        self._values: Counter[str] | None = Counter()

    def add(self, array: pa.Array) -> None:
        """Learn from some rows."""
        values, indices = as_dictionary(array)
        self._sketch.add(coded_bits(values, indices, 0))
        if indices is None:
            values = pc.add(values, 0.0) if pa.types.is_floating(values.type) else values  # -0 is 0
            absent = pc.is_null(values, nan_is_null=True)
            values = pc.if_else(absent, pa.scalar(None, values.type), values).dictionary_encode()
            indices = values.indices.fill_null(len(values.dictionary)).to_numpy(zero_copy_only=False)
            values = values.dictionary
        times = np.bincount(indices, minlength=len(values) + 1)
        self._missing += int(times[-1])
        used = np.flatnonzero(times[:-1])
        values, times = values.take(pa.array(used)), times[used]
        self._list(values, times)
        if pa.types.is_string(values.type):
            blank = pc.equal(pc.utf8_trim_whitespace(values), "").to_numpy(zero_copy_only=False)
            self._blank += int(times[blank].sum())
            values = values.filter(pa.array(~blank))
            self._see_text(values)
        self._see_kinds(values)

    def merge(self, other: Learner) -> None:
        """Learn what was learned from other rows of the same column; in whatever order, the same comes out.

        >>> whole, parts = Learner("age", 1000), Learner("age", 1000)
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

    def facts(self) -> Facts:
        """Return what is known now."""
        some = self._sketch.spread().rows > self._missing + self._blank
        kinds = tuple(self._kinds) if some else ()
        low, high = self._ends.get(kinds[0], (None, None)) if kinds else (None, None)
        missing = self._missing + (self._blank if kinds else 0)
        listed = None
        if self._values is not None:  # the most frequent first, and where rows are met later changes nothing
            listed = tuple(sorted(self._values.items(), key=lambda each: (-each[1], each[0])))
        shape = next(iter(self._shapes), "words") if some else "words"
        found = (*kinds, Type.TEXT)
        return Facts(self._name, missing, self._sketch.spread(), found, low, high, self._lengths, shape, listed)

    def _list(self, values: pa.Array, times: np.ndarray[tuple[int], np.dtype[np.intp]]) -> None:
        if self._values is None:
            return
        if len(values) <= LISTED:
            texts = canonical(values).to_pylist()
            self._values.update(dict(zip(texts, times.tolist(), strict=True)))
        if len(values) > LISTED or len(self._values) > LISTED:
            self._values = None

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

    def _see_kinds(self, values: pa.Array) -> None:
        if pa.types.is_boolean(values.type):
            self._kinds = [kind for kind in self._kinds if kind is Type.BOOLEAN]
        whole = Type.INTEGER in self._kinds
        for kind in tuple(self._kinds):
            if kind is Type.DECIMAL and whole and Type.INTEGER in self._kinds:
                continue  # what reads as an integer reads as a decimal
            if kind is Type.BOOLEAN and len(values) > _WORDS:
                self._kinds.remove(kind)
                continue
            found = read(values, kind)
            if found.unreadable.any():
                self._kinds.remove(kind)
            elif kind is not Type.BOOLEAN and len(values):
                self._ends[kind] = _widened(self._met(kind), found.values)

    def _met(self, kind: Type) -> tuple[End, End] | None:
        """Return the ends of the values met; those that all read as integers were not read as decimals again."""
        before = self._ends.get(Type.INTEGER) if kind is Type.DECIMAL else None
        return self._ends.get(kind, before)


class ColumnLearners:
    """What is learned of every column of a table, batch by batch."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._learners = {name: Learner(name, _KEPT // max(4, len(names))) for name in names}

    def add(self, batch: pa.RecordBatch) -> None:
        """Learn from some rows."""
        for name, learner in self._learners.items():
            learner.add(batch.column(name))

    def merge(self, other: ColumnLearners) -> None:
        """Learn what was learned from other rows."""
        for name, learner in self._learners.items():
            learner.merge(other._learners[name])

    def facts(self) -> tuple[Facts, ...]:
        """Return what is known of each column."""
        return tuple(learner.facts() for learner in self._learners.values())


def _matches(values: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(values, pattern)


def _widened(ends: tuple[End, End] | None, values: pa.Array) -> tuple[End, End]:
    found = pc.min_max(values)
    here = found["min"].as_py(), found["max"].as_py()
    return _spanned(ends, here) or here


def _spanned(one: tuple[End, End] | None, two: tuple[End, End] | None) -> tuple[End, End] | None:
    """Return the ends of both ranges together; one of nothing but missing values has none."""
    given = [ends for ends in (one, two) if ends is not None and None not in ends]
    if not given:
        return one if one is not None else two
    lows, highs = zip(*given, strict=True)
    return min(lows), max(highs)
