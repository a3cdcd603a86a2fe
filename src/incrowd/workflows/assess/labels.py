"""Labels: which values each label of a released column stands for, in whatever way a method writes it.

A label is a value or a class of the hierarchy (`F`, `[20, 40)`, `2020 or earlier`, `*`), the range of a line
(`[20, 29]`, `low to high`, `>= 20`, `2024-05-01 or later`), or several of these (`Paris or Rome or missing`).  An empty
cell is a missing value, or any value where cells were suppressed.  A number that is none of them was masked: it counts
as the nearest value, and its loss is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import Dates, Numbers, Type
from incrowd.core.hierarchy.hierarchy import ANY
from incrowd.core.reading import canonical, read
from incrowd.core.recoding import Classes
from incrowd.errors import InvalidParameter
from incrowd.quality.ladder import class_losses

_RANGE = re.compile(r"^\[(?P<low>[^,\[\]]+), (?P<high>[^,\[\]]+)\]$")
_SIDE = re.compile(r"^(?P<sign><=|>=) (?P<number>[^ ]+)$|^(?P<day>[0-9-]{10}) or (?P<words>earlier|later)$")
_OR = re.compile(r" or (?!(?:earlier|later)\b)")  # `2024 or earlier` is one label
_MISSING = "missing"
CHANGED, RANGES, EMPTY = "changed", "ranges", "empty cells"


@dataclass(frozen=True, eq=False)
class LabelMap:
    """The labels of one column: for each the codes of the values it stands for, and the loss of a row with it.

    `level` is the level of the labels: a number, several, or a text; `changed` where some are not labels.
    """

    classes: Classes
    starts: NDArray[np.intp]
    members: NDArray[np.int32]
    losses: NDArray[np.float64]
    level: int | str
    changed: bool

    @property
    def lengths(self) -> NDArray[np.intp]:
        """How many values each label stands for."""
        return np.diff(self.starts)

    @property
    def apart(self) -> bool:
        """Whether no value has two labels."""
        return len(self.members) == len(np.unique(self.members))

    def owner(self) -> NDArray[np.int64]:
        """Return for each value its label, −1 if there is none; only where labels are apart."""
        owners = np.full(len(self.classes), -1, np.int64)
        owners[self.members] = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return owners

    def holds(self, label: int) -> NDArray[np.bool_]:
        """Return for each value whether a label stands for it."""
        inside = np.zeros(len(self.classes), np.bool_)
        inside[self.members[self.starts[label] : self.starts[label + 1]]] = True
        return inside

    def spread(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of each value, if the rows of each label are spread evenly over its values."""
        rows_of_value = np.repeat(rows / np.maximum(self.lengths, 1), self.lengths)
        spread = np.bincount(self.members, rows_of_value, len(self.classes))
        return np.asarray(spread / max(float(spread.sum()), 1e-300))

    def sampled(self, labels: NDArray[np.integer], chance: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return a value for each row, evenly among those its label stands for."""
        places = self.starts[labels] + np.minimum(
            (chance * self.lengths[labels]).astype(np.intp), self.lengths[labels] - 1
        )
        return np.asarray(self.members[places])


def label_map_of(classes: Classes, labels: Sequence[str | None], levels: Sequence[int], *, blanks: bool) -> LabelMap:
    """Return what labels stand for among the values of a column; `levels` are searched before all others."""
    reader = _Reader.of(classes, levels, blanks=blanks)
    meanings = [reader.read(label) for label in _spelled(classes, labels)]
    starts = np.concatenate(([0], np.cumsum([len(meaning.values) for meaning in meanings]))).astype(np.intp)
    members = np.concatenate([np.zeros(0, np.int32), *(meaning.values for meaning in meanings)]).astype(np.int32)
    places = sorted({meaning.where for meaning in meanings}, key=str)
    level = places[0] if len(places) == 1 else ", ".join(map(str, places)) or 0
    losses = np.array([meaning.loss for meaning in meanings], np.float64)
    return LabelMap(classes, starts, members, losses, level, CHANGED in places)


def _spelled(classes: Classes, labels: Sequence[str | None]) -> list[str | None]:
    """Return labels as the column writes its values, where they are values."""
    column = classes.recoding.column
    if column.type is Type.TEXT or column.separator is not None:
        return list(labels)
    canonical_values = canonical(read(pa.array(labels, pa.string()), column.type).values).to_pylist()
    return [label if value is None else value for label, value in zip(labels, canonical_values, strict=True)]


class LabelMeaning(NamedTuple):
    """The codes of values, the loss of a row with such a label, and the level of the label."""

    values: NDArray[np.int32]
    loss: float
    where: int | str


@dataclass(frozen=True, eq=False)
class _Level:
    """The labels of a column at one level: which values lie under each."""

    finest: Classes
    number: int

    @cached_property
    def risen(self) -> tuple[Classes, NDArray[np.int32]]:
        return self.finest.rise(self.number)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        return np.argsort(self.risen[1], kind="stable")

    @cached_property
    def codes(self) -> dict[str, int]:
        names = self.risen[0].labels().to_pylist()
        return {name: code for code, name in reversed(list(enumerate(names))) if name is not None}

    @cached_property
    def losses(self) -> NDArray[np.float64]:
        return class_losses(self.risen[0], self.finest.marks)

    def find(self, label: str) -> LabelMeaning | None:
        """Return what a label of this level stands for."""
        code = self.codes.get(label)
        return None if code is None else LabelMeaning(self.values(code, code), float(self.losses[code]), self.number)

    def between(self, low: str, high: str) -> NDArray[np.int32] | None:
        """Return the values from one label of this level to another."""
        ends = [self.codes.get(_value(self.finest, end)) for end in (low, high)]
        return None if ends[0] is None or ends[1] is None else self.values(ends[0], ends[1])

    def values(self, low: int, high: int) -> NDArray[np.int32]:
        first, last = np.searchsorted(self.risen[1][self.order], (low, high + 1))
        return np.sort(self.order[first:last]).astype(np.int32)


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads the labels of one column."""

    classes: Classes
    levels: tuple[_Level, ...]
    blanks: bool

    @classmethod
    def of(cls, classes: Classes, levels: Sequence[int], *, blanks: bool) -> _Reader:
        height = classes.recoding.column.hierarchy.height
        order = dict.fromkeys([*(level for level in levels if 0 <= level <= height), *range(height + 1)])
        return cls(classes, tuple(_Level(classes, level) for level in order), blanks)

    def read(self, label: str | None) -> LabelMeaning:
        """Return what a label stands for, or refuse one that stands for nothing."""
        if label is None:
            return self._empty()
        meaning = self._listed(label) or self._stretch(label) or self._nearest(label)
        if meaning is None:
            raise InvalidParameter(
                f"the column {self.classes.recoding.column.name!r} of the release has labels that this policy does not "
                "have: it was made from other data or under another policy. Name the ones it was made from."
            )
        return meaning

    def _empty(self) -> LabelMeaning:
        everything = np.arange(len(self.classes), dtype=np.int32)
        if self.classes.has_missing and not self.blanks:
            return LabelMeaning(everything[-1:], 0.0, self.levels[0].number)
        return LabelMeaning(everything, 1.0, EMPTY)

    def _listed(self, label: str) -> LabelMeaning | None:
        matches = (level.find(label) for level in self.levels)
        return next((meaning for meaning in matches if meaning is not None), None)

    def _stretch(self, label: str) -> LabelMeaning | None:
        """Return the values of a range, or of several labels side by side."""
        parts = [self._part(part) for part in _OR.split(label)]
        if any(values_of_part is None for values_of_part in parts):
            return None
        values = np.unique(
            np.concatenate([values_of_part for values_of_part in parts if values_of_part is not None])
        ).astype(np.int32)
        return LabelMeaning(values, self._share(values), RANGES)

    def _part(self, part: str) -> NDArray[np.int32] | None:
        if part == _MISSING and self.classes.has_missing:
            return np.array([len(self.classes) - 1], np.int32)
        listed = self._listed(part)
        if listed is not None:
            return listed.values
        if part == ANY:
            return np.arange(len(self.classes.marks), dtype=np.int32)
        if side := _SIDE.match(part):
            return self._side(side)
        inside = _RANGE.match(part)
        low, to, high = (inside["low"], ", ", inside["high"]) if inside else part.partition(" to ")
        ranges = (level.between(low, high) for level in self.levels) if to else iter(())
        return next((values for values in ranges if values is not None), None)

    def _side(self, side: re.Match[str]) -> NDArray[np.int32] | None:
        """Return the values up to a number or day, or from one on; those beyond a bound were moved to it."""
        column = self.classes.recoding.column
        end = read(pa.array([side["number"] or side["day"]]), column.type).values
        if not isinstance(column.domain, Numbers | Dates) or end[0].as_py() is None:
            return None
        positions, edge = _line(self.classes.marks), _line(end)[0]
        below = side["sign"] == "<=" or side["words"] == "earlier"
        return np.flatnonzero(positions <= edge if below else positions >= edge).astype(np.int32)

    def _nearest(self, label: str) -> LabelMeaning | None:
        """Return the value nearest to a number or day that is not a label."""
        positions, kind = positions_of(self.classes), self.classes.recoding.column.type
        parsed = read(pa.array([label]), Type.DECIMAL if kind is Type.INTEGER else kind)
        if positions is None or parsed.unreadable[0] or not np.isfinite(positions).any():
            return None
        return LabelMeaning(
            np.array([np.nanargmin(np.abs(positions - _line(parsed.values)[0]))], np.int32), np.nan, CHANGED
        )

    def _share(self, values: NDArray[np.int32]) -> float:
        """Return the loss of a row that could have any of these values; of decimals, by length."""
        ordinary, column = len(self.classes.marks), self.classes.recoding.column
        inside = values[values < ordinary]
        if self.classes.has_other and (values == ordinary).any():
            return 1.0
        if column.type is not Type.DECIMAL or not isinstance(column.domain, Numbers):
            return max(0, len(inside) - 1) / max(1, ordinary - 1)
        positions = _line(self.classes.marks)
        low, high = (np.nan if end is None else float(end) for end in column.domain.bounds)
        span = high - low if np.isfinite(high - low) else float(np.ptp(positions))
        return float(np.clip(np.ptp(positions[inside]) / span, 0.0, 1.0)) if span > 0 and len(inside) else 0.0


def _value(classes: Classes, end: str) -> str:
    spelled = _spelled(classes, [end])[0]
    return end if spelled is None else spelled


def positions_of(classes: Classes) -> NDArray[np.float64] | None:
    """Return the values of a column as numbers, days too, NaN for missing ones; None without an order."""
    if not isinstance(classes.recoding.column.domain, Numbers | Dates):
        return None
    return np.concatenate([_line(classes.marks), np.full(len(classes) - len(classes.marks), np.nan)])


def _line(values: pa.Array) -> NDArray[np.float64]:
    plain = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
    return np.asarray(plain.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
