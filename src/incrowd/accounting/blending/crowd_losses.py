"""Crowds under a secret sample as differential privacy: which theorem covers which loss.

Post-processing needs no rule: people whom a release does not distinguish, or ignores, stay so in everything computed
from it. Two crowd-blending releases do not compose: with k people v and one x, the counts of {v, x} together and of v
and x apart, both shown from k on, differ by exactly one if x is there, and x does not blend.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from incrowd.accounting.blending import robust, sampled_crowd
from incrowd.accounting.bound import INFINITE, LossBound, least_epsilon
from incrowd.accounting.suppression import inverses, loss_distribution, tight_delta
from incrowd.accounting.suppression.loss_distribution import randomized_response
from incrowd.core.loss import (
    Approximate,
    Crowd,
    Loss,
    LossRule,
    NoisyWhenSmall,
    Pure,
    RobustlySampled,
    Sampled,
    Sequence,
)
from incrowd.core.rounding import Number, exact, float_down, float_up, not_below
from incrowd.core.unit import Adjacency
from incrowd.errors import DoesNotCompose, Infeasible, InvalidParameter


def delta_of(loss: Sampled | RobustlySampled, epsilon: float, adjacency: Adjacency) -> LossBound | None:
    """Return δ of a crowd under a secret sample, or None if there is no crowd under it.

    >>> delta_of(Sampled(Fraction(1, 10), Crowd(20)), 0.5, Adjacency.ADD_REMOVE).rule
    (<LossRule.SUPPRESSION: 'sampled-suppression'>,)
    """
    if isinstance(loss, RobustlySampled):
        inner, bias = loss.inner, robust.Bias(loss.low, loss.high, loss.irregular, loss.max_rate)
        return LossBound(
            _either(lambda x: robust.delta(inner.k, inner.epsilon, bias, x), epsilon, adjacency),
            (LossRule.BIASED_CROWD,),
        )
    crowd, rate = _crowd(loss.inner, adjacency), loss.rate
    if crowd is None:
        return None
    if crowd.epsilon == 0:
        return LossBound(tight_delta.delta(crowd.k, rate, epsilon, adjacency), (LossRule.SUPPRESSION,))
    if isinstance(crowd, NoisyWhenSmall):
        return LossBound(
            _either(lambda x: sampled_crowd.histogram_delta(crowd.k, rate, x, crowd.epsilon), epsilon, adjacency),
            (LossRule.NOISY_CROWD,),
        )
    return LossBound(
        _either(lambda x: sampled_crowd.delta(crowd.k, crowd.epsilon, rate, x), epsilon, adjacency),
        (LossRule.CROWD,),
    )


def epsilon_of(loss: Sampled | RobustlySampled, delta: Fraction, adjacency: Adjacency) -> LossBound | None:
    """Return the least ε of a crowd under a secret sample at `delta`, or None if there is no crowd under it.

    >>> bound = epsilon_of(Sampled(Fraction(1, 10), Crowd(20)), Fraction(1, 10**6), Adjacency.ADD_REMOVE)
    >>> round(bound.value, 5)
    0.18299
    """
    crowd = _crowd(loss.inner, adjacency)
    if isinstance(loss, Sampled) and crowd is not None and crowd.epsilon == 0 and delta:
        try:
            return LossBound(inverses.smallest_epsilon(delta, crowd.k, loss.rate, adjacency), (LossRule.SUPPRESSION,))
        except Infeasible:
            return INFINITE
    if (at_zero := delta_of(loss, 0.0, adjacency)) is None:
        return None

    def curve(epsilon: float) -> float:
        bound = delta_of(loss, epsilon, adjacency)
        return bound.value if bound is not None else 1.0

    least = least_epsilon(curve, float_down(delta))
    if math.isinf(least) and isinstance(loss, Sampled):
        least = _at_the_floor(loss, delta, adjacency)
    return LossBound(least, at_zero.rule)


def _at_the_floor(loss: Sampled, delta: Fraction, adjacency: Adjacency) -> float:
    """Return ε at a δ of exactly rate ** k, which no float on the curve needs to meet."""
    match loss:
        case Sampled(rate, Crowd(k, crowd_epsilon)) if crowd_epsilon == 0 and rate**k == delta:
            return inverses.smallest_epsilon(delta, k, rate, adjacency)
    return math.inf


def composed_delta(loss: Sequence, epsilon: float, adjacency: Adjacency) -> LossBound | None:
    """Return δ of several releases by sampled suppression, beside pure ones, or None if something else is among them.

    >>> composed_delta(Sequence((Sampled(Fraction(1, 10), Crowd(20)),) * 8), 1.0, Adjacency.ADD_REMOVE).value < 4e-14
    True
    """
    if (parts := _releases(loss)) is None:
        return None
    return LossBound(loss_distribution.composed_delta(parts, epsilon, adjacency), (LossRule.COMPOSED_SUPPRESSION,))


def composed_epsilon(loss: Sequence, delta: Fraction, adjacency: Adjacency) -> LossBound | None:
    """Return ε of several releases by sampled suppression, beside pure ones, or None if something else is there."""
    if not delta or (parts := _releases(loss)) is None:
        return None
    try:
        return LossBound(loss_distribution.composed_epsilon(parts, delta, adjacency), (LossRule.COMPOSED_SUPPRESSION,))
    except Infeasible:  # no ε by this rule; another one may have a bound
        return None


def _releases(loss: Sequence) -> tuple[loss_distribution.Part, ...] | None:
    parts: list[loss_distribution.Part] = []
    for part in loss.parts:
        match part:
            case Sampled(rate, Crowd(k, crowd_epsilon)) if crowd_epsilon == 0:
                parts.append((k, rate))
            case Pure(private):
                parts.append(randomized_response(float_up(private)))
            case Approximate(private, small):
                parts.append(randomized_response(float_up(private), float_up(small)))
            case _:
                return None
    return tuple(parts) if any(isinstance(part, tuple) for part in parts) else None


def _crowd(loss: Loss, adjacency: Adjacency) -> Crowd | None:
    """Return the crowd that a loss on one sample amounts to.

    One crowd-blending release and pure differentially private ones from the same sample are together
    (k, ε + 2ε′)-crowd-blending: inside a crowd one record is replaced, which costs the private part twice.
    That needs the private ones' ε′ for rows added or removed: for replaced rows the exact size of the sample has
    ε′ = 0, and beside a suppressed count it shows how many were suppressed.
    """
    match loss:
        case Crowd():
            return loss
        case Sequence(parts):
            crowds = [part for part in parts if isinstance(part, Crowd)]
            private = [part.epsilon for part in parts if isinstance(part, Pure)]
            if len(crowds) == 1 and len(crowds) + len(private) == len(parts):
                if private and adjacency is not Adjacency.ADD_REMOVE:
                    raise DoesNotCompose(
                        "a crowd and a private release from one secret sample compose only when the private one is "
                        "stated for rows added and removed. State the guarantee for those, or draw a fresh sample for "
                        "each."
                    )
                return with_private(crowds[0], sum(private, Fraction(0)))
    return None


def with_private(crowd: Crowd, private_epsilon: Number, replaced_epsilon: Number | None = None) -> Crowd:
    """Return the joint guarantee of a crowd-blending release and private ones on the same rows: (k, ε + 2ε′).

    `private_epsilon` is ε′, the sum of the private releases' ε for people added or removed; `replaced_epsilon` the one
    for people replaced, if it is known to be below 2ε′ (a single count has ε′). Proof: who is ignored by the first is
    ignored by both, at ε + ε′. Whoever t can be exchanged for at ε costs the private part one replacement. So t's crowd
    stays whole at ε + max(ε′, replaced). The factor 2 is real: beside a suppressed count of {v, w}, a noisy histogram
    of v and w has a likelihood ratio of e^(2ε′) when one v becomes a w.

    Requires pure private releases whose ε′ is counted on the very rows the crowd is counted on (not amplified by a
    sample), with coins of their own. They may be chosen after seeing the crowd's release, never the other way round.

    >>> with_private(Crowd(20), "0.1")
    Crowd(k=20, epsilon=Fraction(1, 5))
    >>> with_private(Crowd(20), "0.1", replaced_epsilon="0.1")
    Crowd(k=20, epsilon=Fraction(1, 10))
    """
    private = exact(private_epsilon, "the private epsilon")
    replaced = 2 * private if replaced_epsilon is None else exact(replaced_epsilon, "the epsilon for replaced people")
    if private < 0 or replaced < 0:
        raise InvalidParameter("epsilon cannot be negative.")
    return Crowd(crowd.k, crowd.epsilon + max(private, min(replaced, 2 * private)))


def _either(curve: Callable[[float], float], epsilon: float, adjacency: Adjacency) -> float:
    """Read a curve for added or removed people; a replaced one is one removed and one added: (2ε, (1+e^ε)δ)."""
    if adjacency is Adjacency.ADD_REMOVE:
        return curve(epsilon)
    half = epsilon / 2.0
    return min(1.0, not_below((1.0 + math.exp(min(half, 700.0))) * curve(half), 1e-12))
