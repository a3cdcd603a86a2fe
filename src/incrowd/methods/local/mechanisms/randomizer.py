"""Randomizer: how a value of a public domain becomes a report; Randomness: its weights, as certificates tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
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
    OPTIONS = "options"
    DUCHI = "duchi"
    WINDOW = "window"
    MIXTURE = "mixture"


@dataclass(frozen=True)
class Randomness:
    """Everything that a draw needs: the family, the size of its domain, two weights, and what its family adds.

    `width` is the number of hashed values, of values in a subset, of options in which answers differ, or half of a
    window; `share` how many of 1,024 reports of a mixture come from the window.
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
    def values(self) -> int:
        """How many values an answer can have."""
        return self.size

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

    def members(self, reports: Reports) -> NDArray[np.bool_]:
        """Return for each report which values it supports, a row each."""
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
    if not all(type(report) is int and 0 <= report < outcomes for report in plain):
        raise InvalidParameter("a report does not have the shape of this survey's reports: it is refused.")
    return np.array(plain, dtype=np.int64)


@dataclass(frozen=True)
class Response(Categorical):
    """The own value has weight `own`, each of the others weight `other`; two values and 3 : 1 are the lecture's coins.

    Guarantee: ε = ln(own / other) for one report.
    Assumes: one report is sent, once; every draw is uniform.
    Source: Warner 1965; Kairouz, Bonawitz & Ramage 2016 for more than two values.

    >>> from incrowd.methods.local.mechanisms.ratio import Weights
    >>> coins = Response(2, Weights(3, 1))
    >>> coins.p, coins.q, coins.ratio
    (Fraction(3, 4), Fraction(1, 4), Fraction(3, 1))
    """

    family: ClassVar[Family] = Family.RESPONSE

    @property
    def total(self) -> int:
        return self.weights.own + (self.size - 1) * self.weights.other

    @property
    def p(self) -> Fraction:
        return Fraction(self.weights.own, self.total)

    @property
    def q(self) -> Fraction:
        return Fraction(self.weights.other, self.total)

    @property
    def outcomes(self) -> int:
        return self.size

    @property
    def bits(self) -> int:
        return (self.size - 1).bit_length()

    def randomize(self, values: Values, coins: Coins) -> Reports:
        check_values(values, self.size)
        draws = coins.below(self.total, len(values)) - self.weights.own
        other = np.maximum(draws, 0) // self.weights.other
        return np.where(draws < 0, values, other + (other >= values))

    def support(self, reports: Reports) -> Values:
        return np.bincount(reports, minlength=self.size).astype(np.int64)

    def members(self, reports: Reports) -> NDArray[np.bool_]:
        return np.equal(reports[:, None], np.arange(self.size)[None, :])

    def law(self, value: int) -> Mapping[Any, Fraction]:
        return {report: self.p if report == value else self.q for report in range(self.size)}


Levelled = tuple[NDArray[np.int64], tuple[Any, ...]]
"""For each report its level, and the reports level by level in the order of people."""


@dataclass(frozen=True)
class LevelTree:
    """Levels from the coarsest to the finest; at each, a value belongs to node value // step.

    Guarantee: the largest loss of a level, since the level is drawn without the value.
    Assumes: one report is sent, once; every draw is uniform.
    Source: Cormode, Kulkarni & Srivastava 2019 (ranges); Bassily, Nissim, Stemmer & Thakurta 2017 (prefixes).
    """

    size: int
    steps: tuple[int, ...]
    levels: tuple[Categorical, ...]

    def __post_init__(self) -> None:
        sizes = tuple(-(-self.size // step) for step in self.steps)
        if not self.levels or tuple(level.size for level in self.levels) != sizes or self.steps[-1] != 1:
            raise InvalidParameter("each level of a tree has a randomizer of as many values as it has nodes.")

    @property
    def ratio(self) -> Fraction:
        """By how much a report is likelier for one value than for another, at most."""
        return max(level.ratio for level in self.levels)

    def randomize(self, values: Values, coins: Coins) -> Levelled:
        """Draw a level for each person, and report the node there."""
        check_values(values, self.size)
        places = coins.below(len(self.levels), len(values))
        parts = tuple(
            level.randomize(values[places == place] // step, coins)
            for place, (step, level) in enumerate(zip(self.steps, self.levels, strict=True))
        )
        return places, parts

    def plain(self, reports: Levelled) -> list[Any]:
        """Return reports as pairs of a level and what was reported there, in the order of people."""
        places, parts = reports
        pairs: list[Any] = [None] * len(places)
        for place, (level, part) in enumerate(zip(self.levels, parts, strict=True)):
            for at, report in zip(np.flatnonzero(places == place), level.plain(part), strict=True):
                pairs[at] = [place, report]
        return pairs

    def read(self, plain: Sequence[Any]) -> Levelled:
        """Read reports, or refuse what no such report can be."""
        if not all(isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is int for pair in plain):
            raise InvalidParameter("a report does not have the shape of this survey's reports: it is refused.")
        places = np.array([pair[0] for pair in plain], np.int64)
        if places.size and not 0 <= places.min() <= places.max() < len(self.levels):
            raise InvalidParameter("a report names a level that this question does not have: it is refused.")
        parts = (level.read([pair[1] for pair in plain if pair[0] == at]) for at, level in enumerate(self.levels))
        return places, tuple(parts)

    def nodes(self, first: int, last: int) -> tuple[tuple[int, int], ...]:
        """Return the fewest nodes, as level and place, that make up the values from `first` to `last`.

        >>> from incrowd.methods.local.mechanisms.ratio import Weights
        >>> from incrowd.methods.local.mechanisms.randomizer import Response
        >>> tree = LevelTree(8, (4, 2, 1), tuple(Response(n, Weights(3, 1)) for n in (2, 4, 8)))
        >>> tree.nodes(2, 7), tree.nodes(3, 3)
        (((1, 1), (0, 1)), ((2, 3),))
        """
        if not 0 <= first <= last < self.size:
            raise InvalidParameter("a range begins at a value of the question and ends at it or at a later one.")
        nodes = []
        while first <= last:
            fits = (
                place
                for place, step in enumerate(self.steps)
                if first % step == 0 and min(first + step, self.size) - 1 <= last
            )
            place = next(fits)
            nodes.append((place, first // self.steps[place]))
            first += self.steps[place]
        return tuple(nodes)

    @cached_property
    def bits(self) -> int:
        """How large the largest report is."""
        return max(level.bits for level in self.levels)
