"""Memoized: a permanent answer for each value, drawn once by the person, and randomized again in each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.randomizer import Categorical, Family, Reports, Response, Values
from incrowd.methods.local.mechanisms.ratio import LARGEST, Weights
from incrowd.methods.local.mechanisms.sets import SymmetricUnary, flips

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.coins import Coins

MOST_MEMOS = 64
"""Maximum number of values of an answer: each has a permanent answer that the person keeps."""


@dataclass(frozen=True)
class Memoized(Categorical):
    """The answer is randomized by `weights`, once for each value and for good, and that again by `instant` each time.

    With `unary` each value has a bit, and every bit is flipped twice: RAPPOR, where the chances of an instantaneous 1
    are p and 1 − p.  Else both are randomized response.

    Guarantee: `distinct` times ln of the permanent ratio, for all rounds together, between two histories of answers
    with the same equality pattern and at most `distinct` different answers.  Between any two histories: `rounds`
    times the instantaneous loss, where two permanent answers of RAPPOR can differ in every bit.
    Assumes: permanent answers to all values are drawn before the first answer, and kept; every draw is uniform.
    Source: Erlingsson, Pihur & Korolova 2014; Arcolezi et al. 2022 (chained randomized response).  Over all rounds the
    law of the reports is a product over the different answers, and each factor a mixture of the same kernels with
    weights within the permanent ratio; given the permanent answers, every report has a law within the other one.

    >>> twice = Memoized(2, Weights(3, 1), Weights(3, 1), distinct=2, rounds=6)
    >>> twice.p, twice.q, twice.permanent.ratio**2
    (Fraction(5, 8), Fraction(3, 8), Fraction(9, 1))
    """

    instant: Weights
    distinct: int
    rounds: int
    unary: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size > MOST_MEMOS:
            raise InvalidParameter(f"a memoized question has at most {MOST_MEMOS} categories: join some of them.")
        if not 1 <= self.distinct <= min(self.size, self.rounds):
            raise InvalidParameter("a person has at least one different answer, and at most as many as categories.")
        if self.again.total > LARGEST:
            raise InvalidParameter("this epsilon is too large to be drawn exactly over so many values. Ask for less.")

    @property
    def family(self) -> Family:  # type: ignore[override]
        """The family of both of its randomizers."""
        return self.permanent.family

    @property
    def permanent(self) -> Categorical:
        """What draws the permanent answers."""
        return (SymmetricUnary if self.unary else Response)(self.size, self.weights)

    @property
    def again(self) -> Categorical:
        """What draws a report from a permanent answer."""
        return (SymmetricUnary if self.unary else Response)(self.size, self.instant)

    @property
    def total(self) -> int:
        return self.permanent.total

    @property
    def ratio(self) -> Fraction:
        """By how much all reports are likelier for one history than for another of the same pattern, at most."""
        return self.permanent.ratio**self.distinct

    @property
    def p(self) -> Fraction:
        memo, again = self.permanent, self.again
        return memo.p * again.p + (1 - memo.p) * again.q

    @property
    def q(self) -> Fraction:
        memo, again = self.permanent, self.again
        if self.unary:
            return memo.q * again.p + (1 - memo.q) * again.q
        return memo.q * again.p + memo.p * again.q + (self.size - 2) * memo.q * again.q

    @property
    def bits(self) -> int:
        return self.again.bits

    @property
    def outcomes(self) -> int:
        return self.again.outcomes

    def memos(self, coins: Coins) -> Reports:
        """Draw the permanent answers of one person, to every value, whatever the answers will be."""
        values = [np.array([value], np.int64) for value in range(self.size)]  # one by one, as a page draws them
        return np.concatenate([self.permanent.randomize(value, coins) for value in values])

    def reports(self, memos: Reports, coins: Coins) -> Reports:
        """Draw an instantaneous report for each permanent answer."""
        if not self.unary:
            return self.again.randomize(memos, coins)
        flipped = flips(coins, self.again.q, len(memos) * self.size).reshape(len(memos), self.size)
        return np.packbits(self.again.members(memos) ^ flipped, axis=1, bitorder="little")

    def randomize(self, values: Values, coins: Coins) -> Reports:
        """Return one report for each value, of people whose permanent answers are new."""
        return self.reports(self.permanent.randomize(values, coins), coins)

    def support(self, reports: Reports) -> Values:
        return self.again.support(reports)

    def members(self, reports: Reports) -> NDArray[np.bool_]:
        return self.again.members(reports)

    def plain(self, reports: Reports) -> list[Any]:
        return self.again.plain(reports)

    def read(self, plain: Sequence[Any]) -> Reports:
        return self.again.read(plain)

    def law(self, value: int) -> Mapping[Any, Fraction]:
        """Return the chance of every report of one round."""
        law: dict[Any, Fraction] = {}
        for memo, chance in self.permanent.law(value).items():
            for report, part in self.law_of(memo).items():
                law[report] = law.get(report, Fraction(0)) + chance * part
        return law

    def law_of(self, memo: Any) -> Mapping[Any, Fraction]:
        """Return the chance of every report of one round, given a permanent answer."""
        if not self.unary:
            return self.again.law(memo)
        flipped = {}
        for report in self.again.law(0):
            same = sum((place in memo) == (place in report) for place in range(self.size))
            flipped[report] = self.again.p**same * self.again.q ** (self.size - same)
        return flipped
