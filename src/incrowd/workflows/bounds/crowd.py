"""Crowd-blending after a secret sample, even or biased: δ at an ε, or ε at a δ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from incrowd.accounting.blending import robust, sampled_crowd
from incrowd.core.loss import LossRule
from incrowd.core.rounding import Number, exact, probability_up
from incrowd.errors import InvalidParameter
from incrowd.workflows.bounds.parameters import stated_epsilon

EXACT = LossRule.CROWD.text
ROBUST = LossRule.BIASED_CROWD.text
_ROUNDING = 1.0 + 4e-12
"""A δ is enlarged by this factor, so that its printed digits, read again, are still reachable."""


@dataclass(frozen=True)
class CrowdQuestion:
    """A (k, crowd ε)-crowd-blending mechanism on a secret sample; δ at `epsilon`, ε at `delta`, or the paper's ε.

    With any of the last three the sample is biased: `rate` is then the lowest regular rate.
    """

    k: int | None = None
    rate: Number | None = None
    crowd_epsilon: Number = 0
    epsilon: Number | None = None
    delta: Number | None = None
    high_rate: Number | None = None
    irregular: int | None = None
    max_rate: Number | None = None


@dataclass(frozen=True)
class CrowdBound:
    """The guarantee, for people added or removed; `epsilon_zk` and the closed forms follow the paper's theorem."""

    k: int
    rate: float
    crowd_epsilon: float
    epsilon: float
    delta: float
    solved: str
    log10_delta: float
    epsilon_zk: float
    delta_closed: float
    delta_closed_simple: float
    high_rate: float | None
    irregular: int | None
    max_rate: float | None
    rule: str
    unit: str = "one person with one row, added or removed"

    def to_json(self) -> dict[str, Any]:
        """Return the values for `--json`."""
        return dict(vars(self))


@dataclass(frozen=True)
class CrowdOnSample:
    """A crowd under its sample: one place for the even and the biased theorem."""

    k: int
    crowd_epsilon: Fraction
    rate: Fraction
    bias: robust.Bias | None = None

    def log_delta(self, epsilon: Number) -> float:
        """Return ln δ at ε, rounded up.

        >>> round(CrowdOnSample(20, Fraction(0), Fraction(1, 10)).log_delta("0.5"), 6)
        -24.360774
        """
        if self.bias is not None:
            return robust.log_delta(self.k, self.crowd_epsilon, self.bias, epsilon)
        return sampled_crowd.log_delta(self.k, self.crowd_epsilon, self.rate, epsilon)

    def smallest_epsilon(self, delta: Number) -> float:
        """Return the least ε at which δ is reached."""
        if self.bias is not None:
            return robust.smallest_epsilon(delta, self.k, self.crowd_epsilon, self.bias)
        return sampled_crowd.smallest_epsilon(delta, self.k, self.crowd_epsilon, self.rate)

    def published(self) -> tuple[float, float, float]:
        """Return the ε of the paper's theorem, and two closed forms of δ there: the sharper and the simpler one."""
        if self.bias is not None:
            epsilon = robust.zero_knowledge_epsilon(self.crowd_epsilon, self.bias)
            return epsilon, robust.theorem2_delta(self.k, self.bias), robust.theorem2_simple_delta(self.k, self.bias)
        forms = sampled_crowd
        epsilon = forms.zero_knowledge_epsilon(self.crowd_epsilon, self.rate)
        return epsilon, forms.theorem1_delta(self.k, self.rate), forms.theorem1_simple_delta(self.k, self.rate)


def solve(question: CrowdQuestion) -> CrowdBound:
    """Evaluate the exact worst case of crowd-blending after sampling.

    Source: Gehrke, Hay, Lui & Pass 2012, Theorems 1 and 2, without slack and at any ε.

    >>> found = solve(CrowdQuestion(k=20, rate="0.1", crowd_epsilon="0.1"))
    >>> f"{found.epsilon:.5f} {found.delta:.3g} {found.delta_closed:.3g}"
    '0.12515 2.21e-05 0.0212'
    """
    if question.epsilon is not None and question.delta is not None:
        raise InvalidParameter("both epsilon and delta were given, so there is nothing to solve for: omit one.")
    crowd = crowd_of(question)
    published, closed, simple = crowd.published()
    if question.delta is not None:
        epsilon, solved = crowd.smallest_epsilon(question.delta), "epsilon"
    else:
        epsilon, solved = published if question.epsilon is None else float(stated_epsilon(question.epsilon)), "delta"
    logarithm = crowd.log_delta(epsilon if question.epsilon is None else question.epsilon)
    reached = min(1.0, probability_up(logarithm) * _ROUNDING)
    return CrowdBound(
        k=crowd.k,
        rate=float(crowd.rate),
        crowd_epsilon=float(crowd.crowd_epsilon),
        epsilon=epsilon,
        delta=reached if question.delta is None else float(exact(question.delta, "delta")),
        solved=solved,
        log10_delta=logarithm / math.log(10.0),
        epsilon_zk=published,
        delta_closed=closed,
        delta_closed_simple=simple,
        high_rate=float(crowd.bias.high) if crowd.bias else None,
        irregular=crowd.bias.irregular if crowd.bias else None,
        max_rate=float(crowd.bias.max_rate) if crowd.bias else None,
        rule=ROBUST if crowd.bias else EXACT,
    )


def crowd_of(question: CrowdQuestion) -> CrowdOnSample:
    """Return the crowd of a question, biased if any of the three parameters of bias is given."""
    if question.k is None or question.rate is None:
        raise InvalidParameter("a crowd after sampling needs k and rate: give both, such as --k 20 --rate 0.1.")
    crowd, rate = stated_epsilon(question.crowd_epsilon, "crowd-epsilon"), exact(question.rate, "rate")
    if question.high_rate is None and question.irregular is None and question.max_rate is None:
        return CrowdOnSample(question.k, crowd, rate)
    high = rate if question.high_rate is None else exact(question.high_rate, "high-rate")
    largest = high if question.max_rate is None else exact(question.max_rate, "max-rate")
    return CrowdOnSample(question.k, crowd, rate, robust.Bias(rate, high, question.irregular or 0, largest))
