"""Zero-knowledge privacy: what a release says about a person could be had from a sample of everyone else."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from incrowd.core.rounding import Number, exact, float_up, not_below
from incrowd.errors import InvalidParameter

_RELATIVE = 1e-13


@dataclass(frozen=True)
class ZeroKnowledge:
    """A guarantee that the release and a simulation of it, made without t, are (ε, δ)-indistinguishable, for every t.

    All the simulator sees is one Poisson sample of everyone but t per entry of `rates`, at that rate, the samples being
    independent of each other.

    Source: Gehrke, Hay, Lui & Pass 2012, zero-knowledge privacy with respect to independent random samples.

    >>> ZeroKnowledge(Fraction(1), Fraction(0), (Fraction(1, 10),)).rates
    (Fraction(1, 10),)
    """

    epsilon: Fraction
    delta: Fraction
    rates: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if self.epsilon < 0 or not 0 <= self.delta <= 1:
            raise InvalidParameter("zero-knowledge privacy needs an epsilon of at least 0 and a delta from 0 to 1.")
        if not all(0 < rate <= 1 for rate in self.rates):
            raise InvalidParameter("a sampling rate lies above 0 and is at most 1.")


def from_sampled(epsilon: Number, delta: Number, rate: Number) -> ZeroKnowledge:
    """Return the zero-knowledge guarantee of a mechanism on a Poisson sample that is (ε, δ)-private as a whole.

    Proof: the simulator runs the mechanism on its own sample of everyone but t. That is the release without t, which
    differential privacy for people added or removed puts within (ε, δ) of the release with t, both ways.

    Requires that (ε, δ) holds for people added or removed, with the sampling counted in, as `blending.delta` gives it.

    >>> from_sampled("0.5", "1e-9", "0.1").epsilon
    Fraction(1, 2)
    """
    return ZeroKnowledge(exact(epsilon, "epsilon"), exact(delta, "delta"), (exact(rate, "the sampling rate"),))


def compose(guarantees: Iterable[ZeroKnowledge]) -> ZeroKnowledge:
    """Return the joint guarantee of releases from samples of their own: ε and δ add up, and so do the samples.

    Proof: let each release in turn be chosen after the earlier ones. The joint simulator runs the simulators in turn,
    each on its own sample. Given the same past, the next step of the release and of the simulation are (εᵢ, δᵢ)-close,
    so P[next] ≤ δᵢ + min(1, e^εᵢ·S[next]); summing over the past gives P ≤ Σδᵢ + e^(Σεᵢ)·S, and S against P alike.
    Nothing of this holds for two releases from one sample, where the second step depends on the coins of the first.

    >>> both = compose([from_sampled("0.5", "1e-9", "0.1"), from_sampled(1, "1e-9", "0.2")])
    >>> both.epsilon, both.rates
    (Fraction(3, 2), (Fraction(1, 10), Fraction(1, 5)))
    """
    claims = list(guarantees)
    return ZeroKnowledge(
        sum((claim.epsilon for claim in claims), Fraction(0)),
        min(Fraction(1), sum((claim.delta for claim in claims), Fraction(0))),
        tuple(rate for claim in claims for rate in claim.rates),
    )


def replaced(guarantee: ZeroKnowledge) -> tuple[Fraction, float]:
    """Return the differential privacy that follows when a person is replaced: (2ε, (1 + e^ε)·δ), δ rounded up.

    Proof: with t and with t′ in the same place there is the same everyone else, hence the same simulation, and each
    release is (ε, δ)-close to it. Go from one to the other through the simulation.

    >>> epsilon, delta = replaced(from_sampled("0.5", "1e-9", "0.1"))
    >>> epsilon, round(delta, 12)
    (Fraction(1, 1), 2.649e-09)
    """
    if guarantee.epsilon > 300:
        return 2 * guarantee.epsilon, 1.0 if guarantee.delta else 0.0
    factor = 1.0 + math.exp(float(guarantee.epsilon))
    return 2 * guarantee.epsilon, min(1.0, not_below(factor * float_up(guarantee.delta), _RELATIVE))
