"""Randomizer: how a value of a public domain becomes a report; Randomness: its weights, as certificates tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.ratio import LARGEST, Weights

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

Values = NDArray[np.int64]
Reports = NDArray[Any]
CHUNK = 2**14
"""So many people at a time, where each has a row of bits."""
MOST = 2**48
"""The largest domain."""


class Family(StrEnum):
    """The randomizers by their names in surveys."""

    RESPONSE = "response"
    SYMMETRIC = "symmetric-unary"
    OPTIMAL = "optimal-unary"
    HASHING = "local-hashing"
    HADAMARD = "hadamard"
    SUBSET = "subset"
    DUCHI = "duchi"
    WINDOW = "window"
    MIXTURE = "mixture"


@dataclass(frozen=True)
class Randomness:
    """Everything that a draw needs: the family, the size of its domain, two weights, and what its family adds.

    `width` is the number of hashed values, of values in a subset, or half of a window; `share` how many of 1,024
    reports of a mixture come from the window.
    """

    family: Family
    size: int
    own: int
    other: int
    width: int | None = None
    share: int | None = None


@dataclass(frozen=True)
class Categorical:
    """What randomizers of d values have: a value v is supported by its own reports with chance p, by others with q.

    Guarantee: no report is likelier for one value than for another by more than `ratio`.
    Assumes: draws are exact and independent of everything else; one report is sent, once.
    Source: the weights of each family; Wang, Blocki, Li & Jha 2017 for p and q.
    """

    family: ClassVar[Family]

    size: int
    weights: Weights

    def __post_init__(self) -> None:
        if not 2 <= self.size <= MOST:
            raise InvalidParameter("a question has at least two values, and at most 2^48.")
        if self.total > LARGEST:
            raise InvalidParameter("this epsilon is too large to be drawn exactly over so many values. Ask for less.")

    @property
    def total(self) -> int:
        """The largest whole number below which is drawn."""
        return self.weights.own + self.weights.other

    @property
    def ratio(self) -> Fraction:
        """By how much a report is likelier for one value than for another, at most."""
        return self.weights.value

    @property
    def randomness(self) -> Randomness:
        """The weights as a survey publishes them."""
        return Randomness(self.family, self.size, self.weights.own, self.weights.other)

    @property
    def p(self) -> Fraction:
        """The chance that a report supports the value that it is about."""
        raise NotImplementedError

    @property
    def q(self) -> Fraction:
        """The chance that a report supports another value."""
        raise NotImplementedError

    @property
    def bits(self) -> int:
        """How large a report is."""
        raise NotImplementedError

    def randomize(self, values: Values, coins: Coins) -> Reports:
        """Return one report for each value."""
        raise NotImplementedError

    def support(self, reports: Reports) -> Values:
        """Return by how many reports each value is supported."""
        raise NotImplementedError

    def law(self, value: int) -> Mapping[Any, Fraction]:
        """Return the chance of every report, as the weights say; for small domains."""
        raise NotImplementedError

    def plain(self, reports: Reports) -> list[Any]:
        """Return reports as JSON has them."""
        return [int(report) for report in reports]

    def read(self, plain: Sequence[Any]) -> Reports:
        """Read reports, or refuse what no such report can be."""
        return whole_numbers(plain, self.outcomes)

    @property
    def outcomes(self) -> int:
        """How many different reports there are, where they are numbered."""
        raise NotImplementedError

    @property
    def error(self) -> Fraction:
        """The expected sum of squared errors of all shares, times the number of people, whatever they answer."""
        p, q = self.p, self.q
        return (self.size * q * (1 - q) + (p - q) * (1 - p - q)) / (p - q) ** 2

    def variance(self, share: Fraction) -> Fraction:
        """Return the variance of the estimate of one share, times the number of people."""
        p, q = self.p, self.q
        return (q * (1 - q) + share * (p - q) * (1 - p - q)) / (p - q) ** 2


def check_values(values: Values, size: int) -> None:
    """Refuse values outside of a domain, without saying which."""
    if values.dtype != np.int64 or (values.size and (values.min() < 0 or values.max() >= size)):
        raise InvalidParameter(f"an answer is not among the {size} values of its question. Correct it and try again.")


def whole_numbers(plain: Sequence[Any], outcomes: int) -> Values:
    """Read whole numbers below a bound, or refuse them.

    >>> whole_numbers([1, 0], 2).tolist()
    [1, 0]
    """
    if not all(type(each) is int and 0 <= each < outcomes for each in plain):
        raise InvalidParameter("a report does not have the shape of this survey's reports: it is refused.")
    return np.array(plain, dtype=np.int64)
