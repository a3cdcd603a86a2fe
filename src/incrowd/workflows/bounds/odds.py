"""Odds: what ε and δ mean for an attacker, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from incrowd.core.certificate import Amounts
from incrowd.core.rounding import Number, exact, float_up, not_below
from incrowd.core.unit import Adjacency
from incrowd.core.words import chance, percent_up, short_up, times_up
from incrowd.errors import InvalidParameter

_CERTAINTY = Fraction(1000)  # an ε: beyond, every belief is certain to 400 digits
PRIORS = (Fraction(1, 2), Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000))
_RELATIVE = 1e-12  # six roundings are below 10⁻¹⁵


def guessing_limit(epsilon: float, delta: float) -> float:
    """Return how often an attacker can be right about a fair coin: is this unit in the data?  Rounded up.

    Source: Wasserman & Zhou 2010, Theorem 2.4, in the form of Kairouz, Oh & Viswanath 2015: the total variation of an
    (ε, δ)-close pair is at most (e^ε − 1 + 2δ)/(e^ε + 1), and the best guess is right with probability (1 + it)/2.

    >>> guessing_limit(0.0, 0.0)
    0.5
    >>> round(guessing_limit(1.0, 0.0), 4)
    0.7311
    """
    if math.isinf(epsilon):
        return 1.0
    fading = math.exp(-epsilon)
    return min(1.0, (1.0 + delta * fading) / (1.0 + fading))


def one_in(delta: float) -> str:
    """Return a probability as "1 in N", never smaller than it is.

    >>> one_in(2.6e-11)
    '1 in 38 billion'
    >>> one_in(0.25), one_in(1e-9)
    ('1 in 4', '1 in 1 billion')
    >>> one_in(1e-40)
    'less than 1 in 10^39'
    >>> one_in(0.7)
    '1 in 1'
    """
    if delta <= 0.0:
        return "none"
    people = 1.0 / delta
    for size, word in ((1e15, ""), (1e12, " trillion"), (1e9, " billion"), (1e6, " million")):
        if people >= size * (1.0 - 1e-12):
            if not word:
                return f"less than 1 in 10^{math.ceil(-math.log10(delta)) - 1}"
            return f"1 in {_floor(people / size)}{word}"
    return f"1 in {_floor(people):,}"


def in_words(epsilon: float, delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> str:
    """Return the guarantee as one sentence about an attacker who guesses what the adjacency protects.

    >>> print(in_words(0.5, 2.6e-11))
    Someone who knows all other rows and guesses whether one particular unit is in the data, at even odds, is right at
    most 62.3 % of the time (50 % is the baseline), plus a failure probability of 1 in 38 billion.
    """
    beyond = f", plus a failure probability of {one_in(delta)}" if delta > 0.0 else ", without exception"
    percent = math.ceil(guessing_limit(epsilon, 0.0) * 1000.0 - 1e-9) / 10.0
    hidden = "whether one particular unit is in the data"
    if adjacency is Adjacency.REPLACE:
        hidden = "which of two rows one particular unit has"
    return (
        f"Someone who knows all other rows and guesses {hidden}, at even odds, is "
        f"right at most {percent:g} % of the time (50 % is the baseline){beyond}."
    )


def _floor(number: float) -> int:
    return math.floor(number * (1.0 + 1e-12))


def guess_right(epsilon: Number | Decimal, delta: Number | Decimal) -> str:
    """Return how often a guess at even odds is right at most, after a release with this ε and δ.

    Source: see `guessing_limit`.

    >>> guess_right(1, "1e-8"), guess_right("Infinity", 0)
    ('73.2 %', '100 %')
    """
    loss = _CERTAINTY if str(epsilon) == "Infinity" else min(exact(epsilon, "epsilon"), _CERTAINTY)
    return percent_up(guessing_limit(float_up(loss), float_up(exact(delta, "delta"))))


@dataclass(frozen=True)
class Odds:
    """An (ε, δ) and what follows from it; ε is infinite where nothing is bounded.

    Source: Kairouz, Oh & Viswanath 2015. What any attacker learns from an (ε, δ)-private release about one of two
    inputs can be simulated: with probability δ the attacker gets the truth, and otherwise an answer that is right with
    probability e^ε/(1 + e^ε). So a guess at even odds is right with probability at most (e^ε + δ)/(1 + e^ε); and
    without the truth, the odds of a belief grow by at most the factor e^ε.

    >>> guarantee = Odds(Decimal(1), Decimal("1e-8"))
    >>> guarantee.guess, guarantee.times, guarantee.failure
    ('73.2 %', '2.72', 'at most 1 in 100 million')
    >>> guarantee.belief(Fraction(1, 100))
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
            odds = cls(*(_amount(text) for text in (amounts.epsilon, amounts.delta)))
            readable = odds.epsilon >= 0 and 0 <= odds.delta <= 1
        except (TypeError, ValueError, InvalidOperation):
            readable = False
        if not readable:
            raise InvalidParameter("the accounting of this certificate has amounts that cannot be read.")
        return odds

    @property
    def bounded(self) -> bool:
        """Whether the privacy loss is bounded."""
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
        """The failure probability δ as text."""
        return chance(self.delta)

    @property
    def numbers(self) -> str:
        """Both numbers, rounded up."""
        return f"ε ≤ {short_up(self.epsilon)}, δ ≤ {short_up(self.delta)}"

    def belief(self, prior: Fraction) -> str:
        """Return the largest belief in a fact after the release, from the belief before.

        A prior π becomes at most π·e^ε/(1 − π + π·e^ε).
        """
        fading = math.exp(-float_up(min(Fraction(self.epsilon), _CERTAINTY))) * float((1 - prior) / prior)
        return percent_up(min(1.0, not_below(1.0 / (1.0 + fading), _RELATIVE)))


def _amount(written: str) -> Decimal:
    if written != "Infinity":
        exact(written)  # refuses texts that are not numbers, and numbers with too many digits to compute with
    return Decimal(written)
