"""Galois: finite fields of at most 256 elements, by their tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter

LARGEST = 256

Table = NDArray[np.int64]


def prime_power(size: int) -> tuple[int, int] | None:
    """Return the prime and the exponent of a prime power up to 256, else None.

    >>> prime_power(9), prime_power(7), prime_power(6)
    ((3, 2), (7, 1), None)
    """
    if not 2 <= size <= LARGEST:
        return None
    prime = next(each for each in range(2, size + 1) if size % each == 0)
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
        found = [_times(x, y, self.prime, reducer) for x, y in pairs]
        return np.array(found, np.int64).reshape(self.size, self.size)

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
    found = []
    while number:
        number, digit = divmod(number, prime)
        found.append(digit)
    return found


def _times(x: int, y: int, prime: int, reducer: list[int]) -> int:
    """Return the product of two elements: of polynomials, reduced by a monic one."""
    left, right, degree = _polynomial(x, prime), _polynomial(y, prime), len(reducer) - 1
    found = [0] * (2 * degree)
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            found[i + j] = (found[i + j] + one * other) % prime
    if degree > 1:
        for place in range(len(found) - 1, degree - 1, -1):
            factor, found[place] = found[place], 0
            for j in range(degree):
                found[place - degree + j] = (found[place - degree + j] - factor * reducer[j]) % prime
    return sum(digit * prime**place for place, digit in enumerate(found[:degree]))


@lru_cache(maxsize=64)
def _modulus(prime: int, degree: int) -> int:
    """Return the first monic polynomial that no two polynomials of lower degree multiply to."""
    if degree == 1:
        return prime
    products = set()
    for low in range(1, degree // 2 + 1):
        for x in range(prime**low, 2 * prime**low):
            products |= {_bare(x, y, prime) for y in range(prime ** (degree - low), 2 * prime ** (degree - low))}
    return next(each for each in range(prime**degree, 2 * prime**degree) if each not in products)


def _bare(x: int, y: int, prime: int) -> int:
    left, right = _polynomial(x, prime), _polynomial(y, prime)
    found = [0] * (len(left) + len(right))
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            found[i + j] = (found[i + j] + one * other) % prime
    return sum(digit * prime**place for place, digit in enumerate(found))
