"""Numbers: where the numbers of a column lie, in pieces of its classes, and numbers drawn from them.

Numbers are drawn as whole steps of their last decimal, so that sums and comparisons of drawn numbers are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.days import DayRule
from incrowd.core.domain import Type, Weekday
from incrowd.core.hierarchy.calendar import Period

Codes = NDArray[np.int64]
_FAINT = 1e-12  # a part of a class with less than this chance is drawn evenly
_DECIMALS, _STEPS, _MOST_STEPS = 9, 1000, 2.0**53  # decimals at most; steps of a class; whole numbers that floats hold
_CLOSE = 1e-5  # shares are printed to six digits
_EARLIER = 6  # the decimals of models that state none


@dataclass(frozen=True, eq=False)
class NumberRange:
    """Where each piece of a column's numbers starts, where the last one ends, to which class it belongs, its chance.

    Days are whole numbers, counted from 1970-01-01.  Without `classes` every piece is a class; without `chances` every
    number of a class has the same one.  Of whole numbers, the share of each of the `grains` is made a multiple of it.
    With a rule of `allowed` days, only these are numbers of a class; a class without such a day is never drawn.

    >>> chance = np.random.default_rng(1)
    >>> NumberRange((0.0, 31.0), 59.0, whole=True, days=True).draw(np.array([0, 1, 2]), chance).to_pylist()
    [datetime.date(1970, 1, 16), datetime.date(1970, 2, 27), None]
    """

    starts: tuple[float, ...]
    end: float
    whole: bool
    days: bool = False
    decimals: int = 0
    classes: tuple[int, ...] = ()
    chances: tuple[float, ...] = ()
    grains: tuple[tuple[int, float], ...] = ()
    allowed: DayRule | None = None

    def draw(self, codes: Codes, chance: np.random.Generator) -> pa.Array:
        """Return a number in the class of each row; classes after the last hold what is missing."""
        return self.released(self.steps(codes, *self.ends(codes), chance), codes)

    def missing(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which rows have no number."""
        return codes >= len(self._first)

    def ends(self, codes: Codes) -> tuple[Codes, Codes]:
        """Return the lowest and the highest number of each row's class, in steps; of what is missing, of the first."""
        place = np.where(self.missing(codes), 0, codes)
        below, above = self._rank(self._low[self._first[place]]), self._rank(self._high[self._last[place]])
        return self._day(below), self._day(above - 1)

    def steps(self, codes: Codes, low: Codes, high: Codes, chance: np.random.Generator) -> Codes:
        """Return for each row a number of its class from a low to a high one, all in steps."""
        place = np.where(self.missing(codes), 0, codes)
        first, last = self._first[place], self._last[place]
        start, end = self._below(low, first, last), self._below(high + 1, first, last)
        aim = start + (end - start) * chance.random(len(codes))
        piece = np.clip(np.searchsorted(self._sums[1:], aim, side="right"), first, last)
        share = (aim - self._sums[piece]) / np.maximum(self._weights[piece], _FAINT)
        number = self._rank(self._low[piece]) + np.floor(share * self.values[piece]).astype(np.int64)
        ranks = self._rank(low), self._rank(high + 1)
        even = ranks[0] + np.floor(chance.random(len(codes)) * (ranks[1] - ranks[0])).astype(np.int64)
        inside = self.within(self._day(np.where(end - start < _FAINT, even, number)), low, high)
        single = (self._high - self._low)[piece] == 1
        return self._rounded(inside, np.where(single, inside, low), np.where(single, inside, high), chance)

    def _rounded(self, numbers: Codes, low: Codes, high: Codes, chance: np.random.Generator) -> Codes:
        """Return numbers of which the share of each grain is a multiple of it, where one lies between the ends."""
        aim = chance.random(len(numbers)) if self.grains else np.zeros(len(numbers))
        for grain, share in self.grains:
            near = (numbers + grain // 2) // grain * grain
            near = np.where(near < low, near + grain, np.where(near > high, near - grain, near))
            numbers = np.where((aim >= 0) & (aim < share) & (near >= low) & (near <= high), near, numbers)
            aim = aim - share
        return numbers

    def within(self, numbers: Codes, low: Codes, high: Codes) -> Codes:
        """Return numbers moved to such as can be drawn, between ends: a day that is not allowed to the next one.

        >>> from incrowd.core.domain import Weekday
        >>> week = NumberRange((0.0,), 14.0, whole=True, days=True, allowed=DayRule((Weekday.MON, Weekday.FRI)))
        >>> week.within(np.array([0, 5, 20]), np.array([2, 2, 2]), np.array([9, 9, 9])).tolist()
        [4, 8, 8]
        """
        return self._day(np.clip(self._rank(numbers), self._rank(low), self._rank(high + 1) - 1))

    def below(self, steps: Codes) -> NDArray[np.float64]:
        """Return the chance of all that lies below some numbers, where all pieces are of one class."""
        return self._below(steps, np.zeros_like(steps), np.full_like(steps, len(self.starts) - 1))

    def law(self, code: int) -> tuple[Codes, NDArray[np.float64]]:
        """Return every number of a class in steps, and its chance.

        >>> NumberRange((0.0, 2.0), 4.0, whole=True).law(1)
        (array([2, 3]), array([0.5, 0.5]))
        """
        low, high = (int(end[0]) for end in self.ends(np.array([code])))
        below, above = self._rank(np.array([low, high + 1]))
        steps = self._day(np.arange(below, above))
        first, last = np.full_like(steps, self._first[code]), np.full_like(steps, self._last[code])
        return steps, self._below(steps + 1, first, last) - self._below(steps, first, last)

    def released(self, steps: Codes, codes: Codes) -> pa.Array:
        """Return numbers as they are released, null for what is missing."""
        missing = self.missing(codes)
        if self.whole:
            numbers = pa.array(steps, pa.int64(), mask=missing)
            return numbers.cast(pa.int32()).cast(pa.date32()) if self.days else numbers
        return pa.array(steps / 10.0**self.decimals, pa.float64(), mask=missing)

    @property
    def values(self) -> Codes:
        """How many numbers each piece has."""
        return self._rank(self._high) - self._rank(self._low)

    @property
    def size(self) -> int:
        """How many classes have numbers."""
        return len(self._first)

    def to_json(self) -> dict[str, Any]:
        """Return the range as plain JSON."""
        return {
            "starts": list(self.starts),
            "end": self.end,
            "whole": self.whole,
            **({"days": True} if self.days else {}),
            **({} if self.whole else {"decimals": self.decimals}),
            **({"pieces": list(self.classes)} if self.classes else {}),
            **({"chances": [float(f"{chance:.6g}") for chance in self.chances]} if self.chances else {}),
            **({"grains": [list(own) for own in self.grains]} if self.grains else {}),
            **({} if self.allowed is None else {"allowed": _plain(self.allowed)}),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> NumberRange:
        """Read what `to_json` wrote."""
        whole = bool(plain["whole"])
        numbers = cls(
            tuple(map(float, plain["starts"])),
            float(plain["end"]),
            whole,
            bool(plain.get("days", False)),
            0 if whole else int(plain.get("decimals", _EARLIER)),
            tuple(map(int, plain.get("pieces", ()))),
            tuple(map(float, plain.get("chances", ()))),
            tuple((int(grain), float(share)) for grain, share in plain.get("grains", ())),
            None if plain.get("allowed") is None else _read(plain["allowed"]),
        )
        numbers.require_sound()
        return numbers

    def require_sound(self) -> None:
        """Refuse pieces that are no partition of classes in order, and chances that are none."""
        number, owners = len(self.starts), self.classes or tuple(range(len(self.starts)))
        ordered = list(self.starts) == sorted(self.starts) and list(owners) == sorted(owners)
        whole = bool(number) and set(owners) == set(range(owners[-1] + 1)) and len(owners) == number
        proper = all(0 <= chance <= 1 for chance in self.chances) and len(self.chances) in (0, number)
        shares = [share for _, share in self.grains]
        proper &= all(grain > 1 for grain, _ in self.grains) and all(share >= 0 for share in shares)
        proper &= self.allowed is None or self.days
        proper &= sum(shares) <= 1 + _CLOSE and (self.whole or not shares)
        if not (ordered and whole and proper and 0 <= self.decimals <= _DECIMALS and np.isfinite(self.end)):
            raise ValueError("pieces of numbers")

    @cached_property
    def _owners(self) -> Codes:
        return np.array(self.classes or range(len(self.starts)), np.int64)

    @cached_property
    def _first(self) -> Codes:
        return np.searchsorted(self._owners, np.arange(self._owners[-1] + 1), side="left")

    @cached_property
    def _last(self) -> Codes:
        return np.searchsorted(self._owners, np.arange(self._owners[-1] + 1), side="right") - 1

    @cached_property
    def _low(self) -> Codes:
        """The lowest number of each piece, in steps: the first one that is not below its start."""
        return _at_least(np.array(self.starts), self.decimals)

    @cached_property
    def _high(self) -> Codes:
        """Above the highest number of each piece, in steps."""
        end = int(self.end) if self.whole else int(_at_most(np.array([self.end]), self.decimals)[0]) + 1
        following = np.append(self._low[1:], max(end, int(self._low[-1]) + 1))
        high: Codes = np.maximum(following, self._low)
        return high

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """The chance of each piece among those of its class."""
        widths = self.values.astype(np.float64)
        measured = np.array(self.chances) * (widths > 0) if self.chances else widths
        sums = np.bincount(self._owners, measured)[self._owners]
        wide = np.maximum(np.bincount(self._owners, widths)[self._owners], 1.0)
        weights: NDArray[np.float64] = np.where(sums > 0, measured / np.maximum(sums, _FAINT), widths / wide)
        return weights

    @cached_property
    def _sums(self) -> NDArray[np.float64]:
        return np.append(0.0, np.cumsum(self._weights))

    def _below(self, steps: Codes, first: Codes, last: Codes) -> NDArray[np.float64]:
        """Return the chances of all that lies below a number, which is in a class or at its end."""
        piece = np.clip(np.searchsorted(self._low, steps, side="right") - 1, first, last)
        share = (self._rank(steps) - self._rank(self._low)[piece]) / np.maximum(self.values[piece], 1)
        below: NDArray[np.float64] = self._sums[piece] + self._weights[piece] * np.clip(share, 0.0, 1.0)
        return below

    def _rank(self, steps: Codes) -> Codes:
        """Return how many allowed days lie before a day, where some are not; else the number itself."""
        return steps if self.allowed is None else np.searchsorted(self._allowed, steps)

    def _day(self, ranks: Codes) -> Codes:
        """Return the day of a rank, as the next allowed one; before the first, and after the last, a day outside."""
        if self.allowed is None:
            return ranks
        outside = int(self.starts[0]) - 1, int(self.end)
        days: Codes = np.array([outside[0], *self._allowed, outside[1]], np.int64)
        return days[np.clip(ranks, -1, len(self._allowed)) + 1]

    @cached_property
    def _allowed(self) -> Codes:
        """The days that can be drawn, in order."""
        return np.zeros(0, np.int64) if self.allowed is None else self.allowed.days(int(self.starts[0]), int(self.end))


def default_decimals(kind: Type, starts: NDArray[np.float64], end: float) -> int:
    """Return how many decimals numbers get where none are declared: so many that a class has a thousand values.

    >>> default_decimals(Type.DECIMAL, np.array([0.0, 500.0]), 1000.0)
    1
    >>> default_decimals(Type.INTEGER, np.array([0.0, 500.0]), 1000.0)
    0
    """
    if kind is not Type.DECIMAL:
        return 0
    widths = np.diff(np.append(starts, end))
    wide = widths[widths > 1e-9 * max(1.0, abs(end))]
    narrow, largest = float(wide.min()) if len(wide) else 1.0, max(1.0, abs(end), abs(float(starts[0])))
    decimals = 0
    while decimals < _DECIMALS and narrow * 10**decimals < _STEPS and largest * 10 ** (decimals + 1) < _MOST_STEPS:
        decimals += 1
    return decimals


def _plain(rule: DayRule) -> dict[str, Any]:
    last = None if rule.last_of is None else str(rule.last_of)
    return {"weekdays": list(map(str, rule.weekdays)), "last of": last, "off": list(rule.off)}


def _read(plain: Mapping[str, Any]) -> DayRule:
    last = None if plain["last of"] is None else Period(plain["last of"])
    return DayRule(tuple(map(Weekday, plain["weekdays"])), last, tuple(map(str, plain["off"])))


def _at_least(numbers: NDArray[np.float64], decimals: int) -> Codes:
    """Return the first step that is not below a number, as both are written.

    >>> _at_least(np.array([0.29, np.nextafter(0.29, 1)]), 2).tolist()
    [29, 30]
    """
    near = np.rint(numbers * 10.0**decimals)
    return (near + (near / 10.0**decimals < numbers)).astype(np.int64)


def _at_most(numbers: NDArray[np.float64], decimals: int) -> Codes:
    near = np.rint(numbers * 10.0**decimals)
    return (near - (near / 10.0**decimals > numbers)).astype(np.int64)
