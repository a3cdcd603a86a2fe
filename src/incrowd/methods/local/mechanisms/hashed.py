"""Hashed: reports about a few hashed values: local hashing over a finite field, and Hadamard response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.galois import Galois
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

_LARGEST_SEED = 2**53
_CELLS = 2**24


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
        """The sum of the weights of all hashed values."""
        return self.weights.own + (self.width - 1) * self.weights.other

    @property
    def randomness(self) -> Randomness:
        """The weights, with the number of hashed values."""
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
        """The chance that the answer is the hashed value."""
        return Fraction(self.weights.own, self.total)

    @property
    def q(self) -> Fraction:
        """The chance that another value's hash is the answer."""
        return Fraction(1, self.width)

    @property
    def outcomes(self) -> int:
        """Every hash with every answer."""
        return self.seeds * self.width

    @property
    def bits(self) -> int:
        """How large a report is."""
        return (self.outcomes - 1).bit_length()

    @cached_property
    def field(self) -> Galois:
        """The field of the hashed values."""
        return Galois(self.width)

    def hashed(self, seeds: Values, values: Values) -> Values:
        """Return the hash of values under seeds."""
        left, right = (self.field.digits(each, self.places) for each in (seeds, values))
        terms = self.field.product[left, right]
        total = terms[..., 0]
        for place in range(1, self.places):
            total = self.field.sum[total, terms[..., place]]
        return np.asarray(total, np.int64)

    def randomize(self, values: Values, coins: Coins) -> Reports:
        """Draw a hash, then an answer by the weights: the hashed value, or another one."""
        check_values(values, self.size)
        seeds = coins.below(self.seeds, len(values))
        drawn = coins.below(self.total, len(values)) - self.weights.own
        other = np.maximum(drawn, 0) // self.weights.other
        own = np.concatenate(
            [np.zeros(0, np.int64)]
            + [self.hashed(seeds[at : at + CHUNK], values[at : at + CHUNK]) for at in range(0, len(values), CHUNK)]
        )
        return seeds * self.width + np.where(drawn < 0, own, other + (other >= own))

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

    def law(self, value: int) -> Mapping[Any, Fraction]:
        """Return the chance of every hash with every answer."""
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
        """The chance of a column with +1."""
        return Fraction(self.weights.own, self.total)

    @property
    def q(self) -> Fraction:
        """Half of the columns of another value's row are +1 in either half of this one's."""
        return Fraction(1, 2)

    @property
    def outcomes(self) -> int:
        """The number of columns."""
        return 1 << self.size.bit_length()

    @property
    def bits(self) -> int:
        """How large a report is."""
        return self.size.bit_length()

    def randomize(self, values: Values, coins: Coins) -> Reports:
        """Draw the sign, then one of the columns that have it."""
        check_values(values, self.size)
        minus = (coins.below(self.total, len(values)) >= self.weights.own).astype(np.int64)
        drawn = coins.below(self.outcomes // 2, len(values))
        rows = values + 1
        lowest = rows & -rows
        column = (drawn & (lowest - 1)) | ((drawn & ~(lowest - 1)) << 1)
        odd = np.bitwise_count(column & rows).astype(np.int64) & 1
        return column | np.where(odd == minus, 0, lowest)

    def support(self, reports: Reports) -> Values:
        """Return how often each value's row is +1, by one fast transform of all counts."""
        counts = np.bincount(reports, minlength=self.outcomes).astype(np.int64)
        rows = (len(reports) + _transformed(counts)) // 2
        return rows[1 : self.size + 1]

    def law(self, value: int) -> Mapping[Any, Fraction]:
        """Return the chance of every column."""
        half = self.outcomes // 2
        signs = [((value + 1) & column).bit_count() % 2 for column in range(self.outcomes)]
        return {column: (1 - self.p if sign else self.p) / half for column, sign in enumerate(signs)}


def _transformed(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the Walsh–Hadamard transform."""
    found, step = counts.copy(), 1
    while step < len(found):
        pairs = found.reshape(-1, 2, step)
        found = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        step *= 2
    return found
