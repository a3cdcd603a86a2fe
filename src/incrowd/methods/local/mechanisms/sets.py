"""Sets: reports that are sets of values, one bit each; unary encodings and subset selection."""

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
from incrowd.methods.local.mechanisms.flips import flips
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

Bits = NDArray[np.bool_]
_CELLS = 2**22
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
        """One for each value."""
        return self.size

    def randomize(self, values: Values, coins: Coins) -> Reports:
        """Return a set for each value, people by people."""
        check_values(values, self.size)
        rows = max(64, _CELLS // self.size)
        parts = [self._packed(values[at : at + rows], coins) for at in range(0, len(values), rows)]
        return np.concatenate([np.zeros((0, -(-self.size // 8)), np.uint8), *parts])

    def _packed(self, values: Values, coins: Coins) -> NDArray[np.uint8]:
        return np.packbits(self.drawn(values, coins), axis=1, bitorder="little")

    def drawn(self, values: Values, coins: Coins) -> Bits:
        """Return for each person and each value whether it is in the report."""
        raise NotImplementedError

    def support(self, reports: Reports) -> Values:
        """Return in how many sets each value is."""
        total = np.zeros(self.size, np.int64)
        for part in self._unpacked(reports):
            total += part.sum(axis=0, dtype=np.int64)
        return total

    def _unpacked(self, reports: Reports) -> Iterator[NDArray[np.uint8]]:
        for at in range(0, len(reports), CHUNK):
            yield np.unpackbits(reports[at : at + CHUNK], axis=1, count=self.size, bitorder="little")

    def plain(self, reports: Reports) -> list[Any]:
        """Return each set as hexadecimal digits, the first value in the lowest bit of the first byte."""
        return [report.tobytes().hex() for report in reports]

    def read(self, plain: Sequence[Any]) -> Reports:
        """Read sets, or refuse what no such set can be."""
        width = -(-self.size // 8)
        if not all(isinstance(each, str) and len(each) == 2 * width and each == each.lower() for each in plain):
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
        """The square of the ratio of a bit."""
        return self.weights.value**2

    @property
    def p(self) -> Fraction:
        """The chance that the own bit stays 1."""
        return Fraction(self.weights.own, self.total)

    @property
    def q(self) -> Fraction:
        """The chance that another bit becomes 1."""
        return Fraction(self.weights.other, self.total)

    def drawn(self, values: Values, coins: Coins) -> Bits:
        """Toss a coin for every bit: whether it is flipped."""
        shape = (len(values), self.size)
        bits = flips(coins, self.q, len(values) * self.size).reshape(shape)
        bits[np.arange(len(values)), values] ^= True
        return bits

    def law(self, value: int) -> Mapping[Any, Fraction]:
        """Return the chance of every set."""
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
        """The chance that the own bit is 1."""
        return Fraction(1, 2)

    @property
    def q(self) -> Fraction:
        """The chance that another bit is 1."""
        return Fraction(self.weights.other, self.total)

    def drawn(self, values: Values, coins: Coins) -> Bits:
        """Toss a coin for every bit, and a fair one in place of the own bit's."""
        bits = flips(coins, self.q, len(values) * self.size).reshape(len(values), self.size)
        bits[np.arange(len(values)), values] = coins.below(2, len(values)) == 1
        return bits

    def law(self, value: int) -> Mapping[Any, Fraction]:
        """Return the chance of every set."""
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
        """The weights of sets with the own value and without it, by how many there are of each."""
        return self.width * self.weights.own + (self.size - self.width) * self.weights.other

    @property
    def randomness(self) -> Randomness:
        """The weights, with the width."""
        return replace(super().randomness, width=self.width)

    @property
    def p(self) -> Fraction:
        """The chance that the own value is in the set."""
        return Fraction(self.width * self.weights.own, self.total)

    @property
    def q(self) -> Fraction:
        """The chance that another value is in the set."""
        return (self.width - self.p) / (self.size - 1)

    def drawn(self, values: Values, coins: Coins) -> Bits:
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
        """Return the chance of every set of this width."""
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
        drawn = coins.below(last + 1, len(rows))
        taken = others[rows, drawn]
        others[rows, np.where(taken, last, drawn)] = True


def _product_law(size: int, value: int, p: Fraction, q: Fraction) -> dict[tuple[int, ...], Fraction]:
    law = {}
    for bits in product((0, 1), repeat=size):
        chances = [p if place == value else q for place in range(size)]
        factors = (chance if bit else 1 - chance for bit, chance in zip(bits, chances, strict=True))
        law[tuple(place for place, bit in enumerate(bits) if bit)] = math.prod(factors, start=Fraction(1))
    return law
