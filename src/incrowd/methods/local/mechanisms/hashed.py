"""Hashed: reports about a few hashed values: finite fields, local hashing over them, and Hadamard response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
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


LARGEST = 256  # values a report may name: a byte

Table = NDArray[np.int64]


def prime_power(size: int) -> tuple[int, int] | None:
    """Return the prime and the exponent of a prime power up to 256, else None.

    >>> prime_power(9), prime_power(7), prime_power(6)
    ((3, 2), (7, 1), None)
    """
    if not 2 <= size <= LARGEST:
        return None
    prime = next(factor for factor in range(2, size + 1) if size % factor == 0)
    exponent, rest = 0, size
    while rest % prime == 0:
        exponent, rest = exponent + 1, rest // prime
    return (prime, exponent) if rest == 1 else None


SIZES = tuple(size for size in range(2, LARGEST + 1) if prime_power(size))
"""Every field there is, by its number of elements."""


@dataclass(frozen=True)
class Galois:
    """The field of `size` elements; element e stands for the polynomial whose coefficients are the digits of e.

    `modulus` is the first irreducible polynomial of its degree, read as digits in the same way.

    >>> Galois(4).modulus, int(Galois(4).product[2, 2]), int(Galois(4).sum[2, 3])
    (7, 3, 1)
    """

    size: int

    def __post_init__(self) -> None:
        if prime_power(self.size) is None:
            raise InvalidParameter("a hash has as many values as a finite field: a power of a prime, up to 256.")

    @property
    def prime(self) -> int:
        """The number of elements of the smallest field inside."""
        return (prime_power(self.size) or (0, 0))[0]

    @property
    def degree(self) -> int:
        """The degree of its polynomials."""
        return (prime_power(self.size) or (0, 0))[1]

    @cached_property
    def modulus(self) -> int:
        """The polynomial by which products are reduced; for a prime field it is x."""
        return _modulus(self.prime, self.degree)

    @cached_property
    def sum(self) -> Table:
        """The sums of all pairs of elements."""
        digits = _digits(np.arange(self.size), self.prime, self.degree)
        return _number((digits[:, None] + digits[None, :]) % self.prime, self.prime)

    @cached_property
    def product(self) -> Table:
        """The products of all pairs of elements."""
        reducer = [int(digit) for digit in _digits(np.array([self.modulus]), self.prime, self.degree + 1)[0]]
        pairs = product(range(self.size), repeat=2)
        products = [_times(x, y, self.prime, reducer) for x, y in pairs]
        return np.array(products, np.int64).reshape(self.size, self.size)

    def digits(self, values: Table, number: int) -> Table:
        """Return values as so many digits, the lowest first: points of a space over the field."""
        return _digits(values, self.size, number)


def _digits(values: Table, base: int, number: int) -> Table:
    places: Table = np.array([base**place for place in range(number)], np.int64)
    digits: Table = values[..., None] // places % base
    return digits


def _number(digits: Table, base: int) -> Table:
    places = np.array([base**place for place in range(digits.shape[-1])], np.int64)
    number: Table = digits @ places
    return number


def _polynomial(number: int, prime: int) -> list[int]:
    digits = []
    while number:
        number, digit = divmod(number, prime)
        digits.append(digit)
    return digits


def _times(x: int, y: int, prime: int, reducer: list[int]) -> int:
    """Return the product of two elements: of polynomials, reduced by a monic one."""
    left, right, degree = _polynomial(x, prime), _polynomial(y, prime), len(reducer) - 1
    digits = [0] * (2 * degree)
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            digits[i + j] = (digits[i + j] + one * other) % prime
    if degree > 1:
        for place in range(len(digits) - 1, degree - 1, -1):
            factor, digits[place] = digits[place], 0
            for j in range(degree):
                digits[place - degree + j] = (digits[place - degree + j] - factor * reducer[j]) % prime
    return sum(digit * prime**place for place, digit in enumerate(digits[:degree]))


@lru_cache(maxsize=64)
def _modulus(prime: int, degree: int) -> int:
    """Return the first monic polynomial that no two polynomials of lower degree multiply to."""
    if degree == 1:
        return prime
    products = set()
    for low in range(1, degree // 2 + 1):
        for x in range(prime**low, 2 * prime**low):
            products |= {_bare(x, y, prime) for y in range(prime ** (degree - low), 2 * prime ** (degree - low))}
    return next(number for number in range(prime**degree, 2 * prime**degree) if number not in products)


def _bare(x: int, y: int, prime: int) -> int:
    left, right = _polynomial(x, prime), _polynomial(y, prime)
    digits = [0] * (len(left) + len(right))
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            digits[i + j] = (digits[i + j] + one * other) % prime
    return sum(digit * prime**place for place, digit in enumerate(digits))


_LARGEST_SEED = 2**53  # seeds and reports are computed in browsers too, exact up to 2⁵³
_CELLS = 2**24  # outcomes that are listed for the check: 128 MB


@dataclass(frozen=True)
class LocalHashing(Categorical):
    """A value is hashed to one of `width` values by a hash drawn for this report, and answered at random.

    A value's digits are a point over the field of `width` elements; a hash is the product with a random vector, so two
    values share theirs with a chance of exactly 1 / width.  The report names the hash and the answer.

    Guarantee: ε = ln(own / other) for one report, whatever the hash.
    Assumes: one report is sent, once; the hash is drawn fresh, not assigned to a person.
    Source: Bassily & Smith 2015; Wang, Blocki, Li & Jha 2017 (OLH).

    >>> from incrowd.methods.local.mechanisms.ratio import Weights
    >>> LocalHashing(100, Weights(3, 1), 4).q
    Fraction(1, 4)
    """

    family: ClassVar[Family] = Family.HASHING

    width: int

    def __post_init__(self) -> None:
        super().__post_init__()
        Galois(self.width)
        if self.seeds * self.width > _LARGEST_SEED:
            raise InvalidParameter("a hash over so many values cannot be named by a number of 53 bits.")

    @property
    def total(self) -> int:
        return self.weights.own + (self.width - 1) * self.weights.other

    @property
    def randomness(self) -> Randomness:
        return replace(super().randomness, width=self.width)

    @property
    def places(self) -> int:
        """How many digits a value has."""
        number = 1
        while self.width**number < self.size:
            number += 1
        return number

    @property
    def seeds(self) -> int:
        """How many hashes there are."""
        return int(self.width**self.places)

    @property
    def p(self) -> Fraction:
        return Fraction(self.weights.own, self.total)

    @property
    def q(self) -> Fraction:
        return Fraction(1, self.width)

    @property
    def outcomes(self) -> int:
        return self.seeds * self.width

    @property
    def bits(self) -> int:
        return (self.outcomes - 1).bit_length()

    @cached_property
    def field(self) -> Galois:
        """The field of the hashed values."""
        return Galois(self.width)

    def hashed(self, seeds: Values, values: Values) -> Values:
        """Return the hash of values under seeds."""
        left, right = (self.field.digits(points, self.places) for points in (seeds, values))
        terms = self.field.product[left, right]
        total = terms[..., 0]
        for place in range(1, self.places):
            total = self.field.sum[total, terms[..., place]]
        return np.asarray(total, np.int64)

    def randomize(self, values: Values, coins: Coins) -> Reports:
        check_values(values, self.size)
        seeds = coins.below(self.seeds, len(values))
        draws = coins.below(self.total, len(values)) - self.weights.own
        other = np.maximum(draws, 0) // self.weights.other
        own = np.concatenate(
            [np.zeros(0, np.int64)]
            + [self.hashed(seeds[at : at + CHUNK], values[at : at + CHUNK]) for at in range(0, len(values), CHUNK)]
        )
        return seeds * self.width + np.where(draws < 0, own, other + (other >= own))

    def support(self, reports: Reports) -> Values:
        """Return by how many reports each value is supported: counted by report, then one digit of values at a time.

        Every digit is a small transform over the field, as in a fast Fourier transform.
        """
        if self.outcomes > _CELLS:
            return self.support_of(reports, np.arange(self.size, dtype=np.int64))
        width, counts = self.width, np.bincount(reports, minlength=self.outcomes)
        table = counts.reshape((width,) * (self.places + 1))  # the highest digit of the seed first, the answer last
        for axis in range(self.places):
            moved = np.moveaxis(table, axis, 0)
            new = np.zeros_like(moved)
            for value in range(width):
                for seed in range(width):
                    shifted = self.field.sum[:, self.field.product[seed, value]]
                    new[value] += moved[seed][..., shifted]
            table = np.moveaxis(new, 0, axis)
        return table[..., 0].reshape(-1)[: self.size].astype(np.int64)

    def support_of(self, reports: Reports, candidates: Values) -> Values:
        """Return by how many reports each of some values is supported, report by report."""
        seeds, answers = np.divmod(reports, self.width)
        rows = max(1, CHUNK * 16 // max(1, len(candidates)))
        total = np.zeros(len(candidates), np.int64)
        for at in range(0, len(reports), rows):
            own = self.hashed(seeds[at : at + rows, None], candidates[None, :])
            total += (own == answers[at : at + rows, None]).sum(axis=0)
        return total

    def members(self, reports: Reports) -> NDArray[np.bool_]:
        seeds, answers = np.divmod(reports, self.width)
        return np.equal(self.hashed(seeds[:, None], np.arange(self.size)[None, :]), answers[:, None])

    def law(self, value: int) -> Mapping[Any, Fraction]:
        own = self.hashed(np.arange(self.seeds, dtype=np.int64), np.array(value, np.int64))
        chances = {True: self.p / self.seeds, False: (1 - self.p) / (self.width - 1) / self.seeds}
        return {
            seed * self.width + answer: chances[answer == int(own[seed])]
            for seed in range(self.seeds)
            for answer in range(self.width)
        }


@dataclass(frozen=True)
class HadamardResponse(Categorical):
    """A column of a Hadamard matrix is sent: those with +1 in the value's row have weight `own`, the others `other`.

    Row 0, which is all ones, belongs to no value.

    Guarantee: ε = ln(own / other) for one report.
    Assumes: one report is sent, once; every draw is uniform.
    Source: Acharya, Sun & Zhang 2019, with one block.

    >>> from incrowd.methods.local.mechanisms.ratio import Weights
    >>> HadamardResponse(4, Weights(3, 1)).outcomes
    8
    """

    family: ClassVar[Family] = Family.HADAMARD

    @property
    def p(self) -> Fraction:
        return Fraction(self.weights.own, self.total)

    @property
    def q(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def outcomes(self) -> int:
        return 1 << self.size.bit_length()

    @property
    def bits(self) -> int:
        return self.size.bit_length()

    def randomize(self, values: Values, coins: Coins) -> Reports:
        check_values(values, self.size)
        minus = (coins.below(self.total, len(values)) >= self.weights.own).astype(np.int64)
        draws = coins.below(self.outcomes // 2, len(values))
        rows = values + 1
        lowest = rows & -rows
        column = (draws & (lowest - 1)) | ((draws & ~(lowest - 1)) << 1)
        odd = np.bitwise_count(column & rows).astype(np.int64) & 1
        return column | np.where(odd == minus, 0, lowest)

    def support(self, reports: Reports) -> Values:
        counts = np.bincount(reports, minlength=self.outcomes).astype(np.int64)
        rows = (len(reports) + _transformed(counts)) // 2
        return rows[1 : self.size + 1]

    def members(self, reports: Reports) -> NDArray[np.bool_]:
        odd = np.bitwise_count(reports[:, None] & np.arange(1, self.size + 1)[None, :]) & 1
        even: NDArray[np.bool_] = np.equal(odd, 0)
        return even

    def law(self, value: int) -> Mapping[Any, Fraction]:
        half = self.outcomes // 2
        signs = [((value + 1) & column).bit_count() % 2 for column in range(self.outcomes)]
        return {column: (1 - self.p if sign else self.p) / half for column, sign in enumerate(signs)}


def _transformed(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the Walsh–Hadamard transform."""
    sums, step = counts.copy(), 1
    while step < len(sums):
        pairs = sums.reshape(-1, 2, step)
        sums = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        step *= 2
    return sums
