"""Odds: what an ε and a δ let an attacker believe about one person."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from incrowd.core.certificate import Amounts
from incrowd.core.rounding import exact, float_up, not_below
from incrowd.core.words import chance, percent_up, short_up, times_up
from incrowd.errors import InvalidParameter
from incrowd.workflows.bounds.odds import guess_right

PRIORS = (Fraction(1, 2), Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000))
_RELATIVE = 1e-12
_CERTAIN = Fraction(1000)


@dataclass(frozen=True)
class Odds:
    """An (ε, δ) and what follows from it; ε is infinite where nothing is bounded.

    Source: Kairouz, Oh & Viswanath 2015. What any attacker learns from an (ε, δ)-private release about one of two
    possible worlds, he could learn from a game in which he is told the truth with probability δ and otherwise an
    answer that is right with probability e^ε/(1 + e^ε). So a guess at even odds is right with probability at most
    (e^ε + δ)/(1 + e^ε); and where he is not told, the odds of his belief grow by at most the factor e^ε.

    >>> promise = Odds(Decimal(1), Decimal("1e-8"))
    >>> promise.guess, promise.times, promise.failure
    ('73.2 %', '2.72', 'at most 1 in 100 million')
    >>> promise.belief(Fraction(1, 100))
    '2.7 %'
    """

    epsilon: Decimal
    delta: Decimal

    @classmethod
    def of(cls, amounts: Amounts) -> Odds:
        """Read the amounts of a certificate's accounting.

        >>> Odds.of(Amounts("Infinity", "0")).bounded
        False
        """
        try:
            found = cls(*(_amount(text) for text in (amounts.epsilon, amounts.delta)))
            readable = found.epsilon >= 0 and 0 <= found.delta <= 1
        except (TypeError, ValueError, InvalidOperation):
            readable = False
        if not readable:
            raise InvalidParameter("the accounting of this certificate holds amounts that cannot be read.")
        return found

    @property
    def bounded(self) -> bool:
        """Whether anything is promised about what one person may lose."""
        return self.epsilon.is_finite() and self.delta < 1

    @property
    def guess(self) -> str:
        """How often a guess at even odds is right, at most."""
        return guess_right(self.epsilon, self.delta)

    @property
    def times(self) -> str:
        """The factor e^ε, rounded up."""
        return times_up(self.epsilon)

    @property
    def failure(self) -> str:
        """The chance δ in words."""
        return chance(self.delta)

    @property
    def numbers(self) -> str:
        """Both numbers, rounded up."""
        return f"ε ≤ {short_up(self.epsilon)}, δ ≤ {short_up(self.delta)}"

    def belief(self, prior: Fraction) -> str:
        """Return how likely someone can hold a fact after the release, at most, who held it this likely before.

        A prior π becomes at most π·e^ε/(1 − π + π·e^ε).
        """
        fading = math.exp(-float_up(min(Fraction(self.epsilon), _CERTAIN))) * float((1 - prior) / prior)
        return percent_up(min(1.0, not_below(1.0 / (1.0 + fading), _RELATIVE)))


def _amount(written: str) -> Decimal:
    if written != "Infinity":
        exact(written)  # refuses what is no number, and what has too many digits to compute with
    return Decimal(written)
