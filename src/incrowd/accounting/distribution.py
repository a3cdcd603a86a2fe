"""Privacy loss distributions (package dp-accounting): for what was fixed up front, inside one release or one plan.

The package convolves by fast Fourier transform, whose rounding leaves an absolute error near 10⁻¹⁵.  So every δ read
off here is raised by `FLOOR`, and a δ at or below `FLOOR` is not answered at all.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from typing import Any

from incrowd.accounting.amplification import amplify
from incrowd.core.loss import Approximate, Gaussian, Laplace, Loss, Pure, Sampled, Sequence
from incrowd.core.rounding import float_down, float_up, not_below
from incrowd.core.unit import Adjacency

FLOOR = 1e-13
_MOST_BUCKETS = 2.0e5
_FINEST = 1e-4
_RELATIVE = 1e-9

Part = Pure | Approximate | Laplace | Gaussian | Sampled


def epsilon(loss: Sequence, delta: float, adjacency: Adjacency) -> float | None:
    """Return ε at `delta` for a sequence of noisy answers, or None if it is not of that kind, empty, or δ is too small.

    Source: Koskela, Jälkö & Honkela 2020; Doroshenko et al. 2022 (pessimistic discretization).

    >>> parts = (Laplace(Fraction(20)),) * 100
    >>> round(epsilon(Sequence(parts), 1e-6, Adjacency.ADD_REMOVE), 1)
    2.2
    """
    if delta <= 2.0 * FLOOR or not (parts := flattened(loss, adjacency)):
        return None
    return not_below(max(0.0, float(_composed(parts).get_epsilon_for_delta(delta - FLOOR))), _RELATIVE)


def delta(loss: Sequence, epsilon: float, adjacency: Adjacency) -> float | None:
    """Return δ at `epsilon`, raised by `FLOOR`, or None if the loss is not a sequence of noisy answers, or empty."""
    if not (parts := flattened(loss, adjacency)):
        return None
    return min(1.0, not_below(float(_composed(parts).get_delta_for_epsilon(epsilon)), _RELATIVE) + FLOOR)


def flattened(loss: Loss, adjacency: Adjacency) -> tuple[Part, ...] | None:
    """Return the noisy answers a loss consists of, in one row, or None if some part has no known distribution."""
    match loss:
        case Sequence(parts):
            rows = [flattened(part, adjacency) for part in parts]
            finite = [row for row in rows if row is not None]
            return tuple(part for row in finite for part in row) if len(finite) == len(rows) else None
        case Pure() | Approximate() | Laplace() | Gaussian():
            return (loss,)
        case Sampled(rate, Pure(inner)) if adjacency is Adjacency.ADD_REMOVE:
            amplified, _ = amplify(inner, 0, rate)
            return (Pure(Fraction(amplified)),)
        case Sampled(rate, Approximate(inner, small)) if adjacency is Adjacency.ADD_REMOVE:
            amplified, rest = amplify(inner, small, rate)
            return (Approximate(Fraction(amplified), Fraction(rest)),)
        case Sampled(inner=Laplace() | Gaussian()) if adjacency is Adjacency.ADD_REMOVE:
            return (loss,)
    return None


@lru_cache(maxsize=64)
def _composed(parts: tuple[Part, ...]) -> Any:
    step = _step(parts)
    whole: Any = None
    for part, times in sorted(Counter(parts).items(), key=lambda item: repr(item[0])):
        single = _distribution(part, step)
        repeated = single.self_compose(times) if times > 1 else single
        whole = repeated if whole is None else whole.compose(repeated)
    return whole


def _step(parts: tuple[Part, ...]) -> float:
    widest = sum(_width(part) for part in parts)
    return max(_FINEST, 2.0 ** math.ceil(math.log2(widest / _MOST_BUCKETS))) if widest > 0 else _FINEST


def _width(part: Part) -> float:
    match part:
        case Sampled(inner=inner):
            return _width(inner)  # type: ignore[arg-type]  # only noise stands below a sample here
        case Laplace(scale, sensitivity):
            return float(sensitivity / scale)
        case Gaussian(scale, sensitivity):
            return float(sensitivity / scale) * 10.0
        case Pure(epsilon) | Approximate(epsilon, _):
            return float(epsilon)


def _distribution(part: Part, step: float) -> Any:
    from dp_accounting.pld import common, privacy_loss_distribution

    rate, noise = (float_up(part.rate), part.inner) if isinstance(part, Sampled) else (1.0, part)
    options = {"value_discretization_interval": step}
    match noise:
        case Laplace(scale, sensitivity):
            return privacy_loss_distribution.from_discrete_laplace_mechanism(
                float_up(1 / scale), sensitivity, sampling_prob=rate, use_connect_dots=True, **options
            )
        case Gaussian(scale, sensitivity):
            return privacy_loss_distribution.from_discrete_gaussian_mechanism(
                float_down(scale), sensitivity, sampling_prob=rate, use_connect_dots=True, **options
            )
        case Pure(epsilon):
            parameters = common.DifferentialPrivacyParameters(float_up(epsilon), 0.0)
        case Approximate(epsilon, small):
            parameters = common.DifferentialPrivacyParameters(float_up(epsilon), float_up(small))
        case _:
            raise AssertionError(type(noise).__name__)
    return privacy_loss_distribution.from_privacy_parameters(parameters, **options)
