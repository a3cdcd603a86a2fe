"""Planning: the best randomizer for a domain, an ε and a number of people, and the expected error of each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from incrowd.accounting.amplification import shuffled_epsilon
from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter
from incrowd.methods.local.choice import best, optimum, randomizers
from incrowd.methods.local.mechanisms.randomizer import Categorical, Family
from incrowd.workflows.local.survey_file import SurveyOdds


@dataclass(frozen=True)
class ExpectedError:
    """The expected error of a randomizer: the mean squared error of one share, and of all shares together."""

    mechanism: str
    width: int | None
    bits: int
    total_error: float
    mean_error: float

    @classmethod
    def of(cls, randomizer: Categorical, people: int) -> ExpectedError:
        """Return the expected error for a number of people."""
        total = float(randomizer.error) / people
        randomness = randomizer.randomness
        return cls(str(randomizer.family), randomness.width, randomizer.bits, total, total / randomizer.size)


@dataclass(frozen=True)
class LocalPlan:
    """The best randomizer, the others, and the least error that any could have for people drawn at random."""

    domain: int
    epsilon: Fraction
    people: int
    choice: ExpectedError
    others: tuple[ExpectedError, ...]
    optimum: float
    sampled_error: float
    shuffled: tuple[float, float] | None = None

    @property
    def above_optimum(self) -> float:
        """By how much the choice's error exceeds the optimum, both for people drawn at random from even values."""
        return self.sampled_error / self.optimum - 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {
            "domain": self.domain,
            "epsilon": str(self.epsilon),
            "people": self.people,
            **vars(self.choice),
            "sampled_error": self.sampled_error,
            "optimum": self.optimum,
            "above_optimum": self.above_optimum,
            "others": [vars(other) for other in self.others],
            "shuffled": None if self.shuffled is None else dict(zip(("epsilon", "delta"), self.shuffled, strict=True)),
        }


def plan_locally(domain: int, epsilon: str, people: int, delta: str | None = None) -> LocalPlan:
    """Choose a randomizer by public numbers alone; with δ, also compute the ε of all reports shuffled.

    >>> plan_locally(100, "1", 1_000_000).choice.mechanism
    'subset'
    """
    if people < 1 or domain < 2:
        raise InvalidParameter("a survey has two or more values and at least one person: write --domain and --people.")
    odds = SurveyOdds.of(exact(epsilon, "epsilon"))
    tried = list(randomizers(domain, odds.whole, odds.half))
    chosen = best(domain, odds.whole, odds.half)
    least = optimum(domain, float(odds.epsilon)) / people
    spread = (1.0 - 1.0 / domain) / people
    ranked = sorted((ExpectedError.of(error, people) for error in tried), key=lambda error: error.total_error)
    choice = ExpectedError.of(chosen, people)
    values = domain if chosen.family is Family.RESPONSE else None
    shuffled = None
    if delta is not None and people > 1:
        at = exact(delta, "delta")
        shuffled = shuffled_epsilon(chosen.ratio, people, at, values), float(at)
    others = tuple(error for error in ranked if error.mechanism != choice.mechanism)
    return LocalPlan(domain, odds.epsilon, people, choice, others, least, choice.total_error + spread, shuffled)
