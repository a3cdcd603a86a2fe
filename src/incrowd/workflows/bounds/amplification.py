"""What a secret sample saves: a mechanism's guarantee before and after sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from incrowd.accounting.amplification import amplify, before_sampling
from incrowd.core.rounding import Number, exact
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.workflows.bounds.parameters import missing_one, stated_epsilon

_RELATIVE = 1e-12
RULE = "amplification by Poisson sampling (Li, Qardaji & Su 2010, Theorem 3, for standard (ε, δ))"


@dataclass(frozen=True)
class AmplifyQuestion:
    """Two of `rate`, `epsilon` and `sampled_epsilon`; the third is asked for.

    `epsilon` and `delta` are the mechanism's on its sample, `sampled_epsilon` and `sampled_delta` those of the whole.
    """

    rate: Number | None = None
    epsilon: Number | None = None
    sampled_epsilon: Number | None = None
    delta: Number | None = None
    sampled_delta: Number | None = None


@dataclass(frozen=True)
class Amplification:
    """The guarantee of a mechanism on its sample, and of the mechanism and the sampling together."""

    rate: float
    epsilon: float
    delta: float
    sampled_epsilon: float
    sampled_delta: float
    solved: str
    rule: str = RULE

    def to_json(self) -> dict[str, Any]:
        """Return the plain form printed by `--json`."""
        return dict(vars(self))


def solve_amplification(question: AmplifyQuestion) -> Amplification:
    """Solve for the guarantee after sampling, the guarantee before it, or the largest rate.

    >>> found = solve_amplification(AmplifyQuestion(rate="0.1", epsilon=1, delta="1e-6"))
    >>> round(found.sampled_epsilon, 6), found.solved
    (0.158565, 'sampled_epsilon')
    """
    solved = missing_one(
        {"rate": question.rate, "epsilon": question.epsilon, "sampled_epsilon": question.sampled_epsilon}
    )
    match solved:
        case "sampled_epsilon":
            return _after(question)
        case "epsilon":
            return _before(question)
    return _largest_rate(question)


def _after(question: AmplifyQuestion) -> Amplification:
    _belongs(question.sampled_delta, "sampled-delta", "sampled-epsilon")
    rate, epsilon, delta = _rate(question.rate), _epsilon(question.epsilon, "epsilon"), _delta(question.delta)
    after, failing = amplify(epsilon, delta, rate)
    return Amplification(float(rate), float(epsilon), float(delta), after, failing, "sampled_epsilon")


def _before(question: AmplifyQuestion) -> Amplification:
    _belongs(question.delta, "delta", "epsilon")
    rate, after = _rate(question.rate), _epsilon(question.sampled_epsilon, "sampled-epsilon")
    failing = _delta(question.sampled_delta)
    before, allowed = before_sampling(after, failing, rate)
    return Amplification(float(rate), before, allowed, float(after), float(failing), "epsilon")


def _largest_rate(question: AmplifyQuestion) -> Amplification:
    _belongs(question.sampled_delta, "sampled-delta", "a rate; when the rate is asked for, give delta")
    before, after = _epsilon(question.epsilon, "epsilon"), _epsilon(question.sampled_epsilon, "sampled-epsilon")
    if not 0 < after < before:
        raise Infeasible(
            "sampling saves something and never everything: sampled-epsilon must be above 0 and below epsilon."
        )
    rate = Fraction(math.exp(_log_expm1(after) - _log_expm1(before)) * (1.0 - _RELATIVE))
    if rate <= 0:
        raise Infeasible("no usable sampling rate brings epsilon down to sampled-epsilon: allow a larger one.")
    delta = _delta(question.delta)
    _, failing = amplify(before, delta, rate)
    return Amplification(float(rate), float(before), float(delta), float(after), failing, "rate")


def _epsilon(number: Number | None, name: str) -> Fraction:
    return stated_epsilon("" if number is None else number, name)


def _rate(number: Number | None) -> Fraction:
    return exact("" if number is None else number, "rate")


def _delta(number: Number | None) -> Fraction:
    return Fraction(0) if number is None else exact(number, "delta")


def _belongs(number: Number | None, name: str, partner: str) -> None:
    if number is not None:
        raise InvalidParameter(f"{name} goes together with {partner}.")


def _log_expm1(epsilon: Fraction) -> float:
    value = float(epsilon)
    return math.log(math.expm1(value)) if value < 30.0 else value + math.log1p(-math.exp(-value))
