"""Sets: reports with a bit for each value: unary encodings, subset selection, and RAPPOR, which repeats reports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.randomizer import (
    CHUNK,
    Categorical,
    Family,
    Randomness,
    Reports,
    Values,
    check_values,
)

if TYPE_CHECKING:
    from incrowd.core.coins import Coins


_BYTES = 7  # of a word of 64 bits that are used: signed numbers stay positive
_WORD = 2 ** (8 * _BYTES)
_USED = np.dtype([("bytes", f"V{_BYTES}"), ("rest", f"V{8 - _BYTES}")])
"""A word of 64 bits in its two parts: seven bytes are copied at once, not one by one."""


def flips(coins: Coins, chance: Fraction, size: int) -> NDArray[np.bool_]:
    """Toss `size` independent coins that come up true with exactly a chance below 1.

    A chance is (t + f) / 256 with a whole t and f below 1: a uniform byte below t is true, one equal to t is true with
    chance f, which another coin decides.

    >>> from incrowd.noise.system import SystemCoins
    >>> flips(SystemCoins(), Fraction(0), 9).sum()
    np.int64(0)
    """
    limit, rest = threshold(chance)
    words = coins.below(_WORD, -(-size // _BYTES)).astype("<i8", copy=False)
    draws = np.ascontiguousarray(words.view(_USED)["bytes"]).view(np.uint8)[:size]
    result: NDArray[np.bool_] = draws < limit
    if rest:
        ties = np.flatnonzero(draws == limit)
        result[ties] = coins.bernoulli(rest, len(ties))
    return result


def threshold(chance: Fraction) -> tuple[int, Fraction]:
    """Return the whole t and the rest f with chance = (t + f) / 256.

    >>> threshold(Fraction(1, 3))
    (85, Fraction(1, 3))
    """
    limit = int(256 * chance)
    return limit, 256 * chance - limit


Bits = NDArray[np.bool_]
_BYTE = 255
"""So many bits fit into a sum of one byte, which is eight times as quick as one of 64 bits."""
_CELLS = 2**22  # bits of reports at a time: 4 MB
LONGEST = 2**16
"""The largest domain whose values have a bit each."""


@dataclass(frozen=True)
class SetReports(Categorical):
    """A report is a set of values; eight bits are packed into a byte, and sent as hexadecimal digits."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size > LONGEST:
            raise InvalidParameter("a report with a bit for each value has at most 65,536 of them: use local-hashing.")

    @property
    def bits(self) -> int:
        return self.size

    def randomize(self, values: Values, coins: Coins) -> Reports:
        check_values(values, self.values)
        rows = max(64, _CELLS // self.size)
        parts = [self._packed(values[at : at + rows], coins) for at in range(0, len(values), rows)]
        return np.concatenate([np.zeros((0, -(-self.size // 8)), np.uint8), *parts])

    def _packed(self, values: Values, coins: Coins) -> NDArray[np.uint8]:
        return np.packbits(self.draw(values, coins), axis=1, bitorder="little")

    def draw(self, values: Values, coins: Coins) -> Bits:
        """Return for each person and each value whether it is in the report."""
        raise NotImplementedError

    def support(self, reports: Reports) -> Values:
        total = np.zeros(self.size, np.int64)
        for part in self._unpacked(reports):
            for at in range(0, len(part), _BYTE):
                total += part[at : at + _BYTE].sum(axis=0, dtype=np.uint8)
        return total

    def members(self, reports: Reports) -> Bits:
        return np.unpackbits(reports, axis=1, count=self.size, bitorder="little").astype(np.bool_)

    def _unpacked(self, reports: Reports) -> Iterator[NDArray[np.uint8]]:
        for at in range(0, len(reports), CHUNK):
            yield np.unpackbits(reports[at : at + CHUNK], axis=1, count=self.size, bitorder="little")

    def plain(self, reports: Reports) -> list[Any]:
        return [report.tobytes().hex() for report in reports]

    def read(self, plain: Sequence[Any]) -> Reports:
        width = -(-self.size // 8)
        if not all(
            isinstance(digits, str) and len(digits) == 2 * width and digits == digits.lower() for digits in plain
        ):
            raise InvalidParameter("a report does not have the shape of this survey's reports: it is refused.")
        try:
            whole = np.frombuffer(bytes.fromhex("".join(plain)), np.uint8).reshape(len(plain), width)
        except ValueError:
            raise InvalidParameter("a report is no set of hexadecimal digits: it is refused.") from None
        if not self._possible(whole):
            raise InvalidParameter("a report does not have the shape of this survey's reports: it is refused.")
        return whole

    def _possible(self, whole: NDArray[np.uint8]) -> bool:
        unused = 8 * whole.shape[1] - self.size
        return not unused or not bool(np.any(whole[:, -1] >> (8 - unused)))


@dataclass(frozen=True)
class SymmetricUnary(SetReports):
    """Each bit is kept with weight `own` and flipped with weight `other`; its loss is twice that of a bit.

    Guarantee: ε = 2 ln(own / other), since two values differ in two bits.
    Assumes: one report is sent, once; every draw is uniform.
    Source: Erlingsson, Pihur & Korolova 2014 (basic RAPPOR); Wang et al. 2017 (SUE).

    >>> from incrowd.methods.local.mechanisms.ratio import Weights
    >>> SymmetricUnary(3, Weights(2, 1)).ratio
    Fraction(4, 1)
    """

    family: ClassVar[Family] = Family.SYMMETRIC

    @property
    def ratio(self) -> Fraction:
        return self.weights.value**2

    @property
    def p(self) -> Fraction:
        return Fraction(self.weights.own, self.total)

    @property
    def q(self) -> Fraction:
        return Fraction(self.weights.other, self.total)

    def draw(self, values: Values, coins: Coins) -> Bits:
        shape = (len(values), self.size)
        bits = flips(coins, self.q, len(values) * self.size).reshape(shape)
        bits[np.arange(len(values)), values] ^= True
        return bits

    def law(self, value: int) -> Mapping[Any, Fraction]:
        return _product_law(self.size, value, self.p, self.q)


@dataclass(frozen=True)
class OptimalUnary(SetReports):
    """The own bit is a fair coin; every other bit is 1 with weight `other` against `own`.

    Guarantee: ε = ln(own / other) for one report.
    Assumes: one report is sent, once; every draw is uniform.
    Source: Wang, Blocki, Li & Jha 2017 (OUE).

    >>> from incrowd.methods.local.mechanisms.ratio import Weights
    >>> OptimalUnary(3, Weights(3, 1)).q
    Fraction(1, 4)
    """

    family: ClassVar[Family] = Family.OPTIMAL

    @property
    def p(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def q(self) -> Fraction:
        return Fraction(self.weights.other, self.total)

    def draw(self, values: Values, coins: Coins) -> Bits:
        bits = flips(coins, self.q, len(values) * self.size).reshape(len(values), self.size)
        bits[np.arange(len(values)), values] = coins.below(2, len(values)) == 1
        return bits

    def law(self, value: int) -> Mapping[Any, Fraction]:
        return _product_law(self.size, value, self.p, self.q)


@dataclass(frozen=True)
class SubsetSelection(SetReports):
    """Sets of `width` values; those that hold the own value have weight `own`, the others weight `other`.

    Guarantee: ε = ln(own / other) for one report.
    Assumes: one report is sent, once; every draw is uniform.
    Source: Wang et al. 2016, Ye & Barg 2018, who show that no ε-local report does better at the best width.

    >>> from incrowd.methods.local.mechanisms.ratio import Weights
    >>> SubsetSelection(4, Weights(3, 1), 2).p
    Fraction(3, 4)
    """

    family: ClassVar[Family] = Family.SUBSET

    width: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.width < self.size:
            raise InvalidParameter("a subset holds at least one value and not all of them.")

    @property
    def total(self) -> int:
        return self.width * self.weights.own + (self.size - self.width) * self.weights.other

    @property
    def randomness(self) -> Randomness:
        return replace(super().randomness, width=self.width)

    @property
    def p(self) -> Fraction:
        return Fraction(self.width * self.weights.own, self.total)

    @property
    def q(self) -> Fraction:
        return (self.width - self.p) / (self.size - 1)

    def draw(self, values: Values, coins: Coins) -> Bits:
        """Draw whether the own value is in the set, then fill it with others, all sets alike.

        Others are drawn below d − 1; the last value stands at the place of the own one, which is not among them.
        """
        inside = coins.below(self.total, len(values)) < self.width * self.weights.own
        others = np.zeros((len(values), self.size - 1), np.bool_)
        for held in (True, False):
            rows = np.flatnonzero(inside == held)
            _fill(others, rows, self.width - held, coins)
        bits = np.zeros((len(values), self.size), np.bool_)
        bits[:, :-1] = others
        people = np.arange(len(values))
        bits[people, -1] = bits[people, values]
        bits[people, values] = inside
        return bits

    def _possible(self, whole: NDArray[np.uint8]) -> bool:
        return super()._possible(whole) and bool(np.all(np.bitwise_count(whole).sum(axis=1) == self.width))

    def law(self, value: int) -> Mapping[Any, Fraction]:
        number = Fraction(math.comb(self.size - 1, self.width - 1))
        own = self.p / number
        other = (1 - self.p) / math.comb(self.size - 1, self.width)
        return {
            combination: own if value in combination else other
            for combination in combinations(range(self.size), self.width)
        }


def _fill(others: Bits, rows: NDArray[np.intp], width: int, coins: Coins) -> None:
    """Put a uniform subset of `width` values into each row (Floyd's algorithm: Bentley & Floyd 1987)."""
    most = others.shape[1]
    for last in range(most - width, most) if len(rows) else ():
        draws = coins.below(last + 1, len(rows))
        taken = others[rows, draws]
        others[rows, np.where(taken, last, draws)] = True


def _product_law(size: int, value: int, p: Fraction, q: Fraction) -> dict[tuple[int, ...], Fraction]:
    law = {}
    for bits in product((0, 1), repeat=size):
        chances = [p if place == value else q for place in range(size)]
        factors = (chance if bit else 1 - chance for bit, chance in zip(bits, chances, strict=True))
        law[tuple(place for place, bit in enumerate(bits) if bit)] = math.prod(factors, start=Fraction(1))
    return law


@dataclass(frozen=True)
class Rappor:
    """One bit for each of `size` values; `keep_not` (f), `low` (p) and `high` (q) are the paper's three chances.

    A bit is first replaced by a fair coin with chance f: that is kept for ever (memoize it before the first report).
    Each report then shows 1 with chance q where the kept bit is 1, and with chance p where it is 0.

    Guarantee: ln of `ratio(T)` for T reports about one value; `permanent` for any number of them.  A changed value
    costs all of it again, and that it changed can show.
    Assumes: the kept bits of a person and a value are drawn once and never again.
    Source: Erlingsson, Pihur & Korolova 2014.

    >>> chances = Rappor(8, Fraction(1, 2), Fraction(1, 2), Fraction(3, 4))
    >>> import math
    >>> round(math.log(chances.ratio(1, hashes=2)), 4), round(math.log(chances.permanent(hashes=2)), 4)
    (1.0743, 4.3944)
    """

    size: int
    keep_not: Fraction
    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if not 2 <= self.size <= 2**16:
            raise InvalidParameter("RAPPOR has a bit for each of 2 to 65,536 values.")
        if not 0 < self.keep_not <= 1 or not 0 < self.low < self.high < 1:
            raise InvalidParameter(
                "RAPPOR needs 0 < f ≤ 1 and 0 < p < q < 1: else a report shows everything or nothing."
            )

    @property
    def p(self) -> Fraction:
        """The chance that the own bit of a report is 1."""
        half = self.keep_not / 2
        return (1 - half) * self.high + half * self.low

    @property
    def q(self) -> Fraction:
        """The chance that another bit of a report is 1."""
        half = self.keep_not / 2
        return half * self.high + (1 - half) * self.low

    def memoize(self, values: Values, coins: Coins) -> Bits:
        """Draw the bits that are kept for ever, a row for each value."""
        check_values(values, self.size)
        bits = flips(coins, self.keep_not / 2, len(values) * self.size).reshape(len(values), self.size)
        bits[np.arange(len(values)), values] ^= True
        return bits

    def report(self, memoized: Bits, coins: Coins) -> Bits:
        """Draw one report from kept bits."""
        ones = flips(coins, self.high, memoized.size).reshape(memoized.shape)
        zeros = flips(coins, self.low, memoized.size).reshape(memoized.shape)
        return np.where(memoized, ones, zeros)

    def ratio(self, reports: int, hashes: int = 1) -> Fraction:
        """Return by how much a series of so many reports is likelier for one value than for another, at most.

        Two values differ in two bits for every hash: one that is on for the first, and one that is on for the second.
        """
        if reports < 1 or hashes < 1:
            raise InvalidParameter("the cost over time is that of one report or more, with one hash or more.")
        on, off = ([law(ones, reports) for ones in range(reports + 1)] for law in (self.p_of, self.q_of))
        more = max(one / other for one, other in zip(on, off, strict=True))
        less = max(other / one for one, other in zip(on, off, strict=True))
        return (more * less) ** hashes

    def permanent(self, hashes: int = 1) -> Fraction:
        """Return the same for any number of reports: all that the kept bits can show."""
        half = self.keep_not / 2
        return ((1 - half) / half) ** (2 * hashes)

    def p_of(self, ones: int, reports: int) -> Fraction:
        """Return the chance of a series with so many ones in a bit that is on."""
        half = self.keep_not / 2
        return (1 - half) * _series(self.high, ones, reports) + half * _series(self.low, ones, reports)

    def q_of(self, ones: int, reports: int) -> Fraction:
        """Return the chance of a series with so many ones in a bit that is off."""
        half = self.keep_not / 2
        return half * _series(self.high, ones, reports) + (1 - half) * _series(self.low, ones, reports)


def _series(chance: Fraction, ones: int, reports: int) -> Fraction:
    return chance**ones * (1 - chance) ** (reports - ones)
