"""Several releases by sampled suppression, each with its own fresh sample, composed.

No size of cell is the worst at every epsilon, so the loss distribution of one size proves nothing, and Rényi
divergences are infinite (n counted among n records has no counterpart without the record). What composes is the
*envelope*: the supremum over all sizes of the excess H(a) of "with" over a times "without", for every a > 0. For a >= 1
it is the tight delta of a removal; below 1, since H_a(P, Q) = 1 - a + a H_(1/a)(Q, P), it follows from that of an
addition.

Why it is sound. As a supremum of such functions H is convex and falling, H(0) = 1 and H(a) >= 1 - a: it is the profile
of some pair of laws (Zhu, Dong and Wang 2022), which dominates every pair of neighboring tables. Dominating pairs
compose, also when a release is chosen after seeing earlier ones: given the first outcome o, bound the excess of the
second release at a Q(o) / P(o); exchange the sums; bound the first. For one pair of neighbors all releases lose the
record, or all gain it: each direction is composed on its own and the larger delta counts.

The parameters k and rate must be fixed in advance (the recodings need not be), and the samples must be independent: two
releases from one sample do not compose at all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce

from incrowd.accounting.suppression.likelihood_ratio import LikelihoodRatio
from incrowd.accounting.suppression.loss_distribution import LossDistribution, ProfilePair
from incrowd.accounting.suppression.sampled_cell import SampledCell
from incrowd.accounting.suppression.tight_delta import probability
from incrowd.core.rounding import Number, exact, float_down
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter

Part = tuple[int, Number] | ProfilePair

_WIDEST_STEP, _FINEST_STEP = 0.005, 0.0005


def composed_delta(
    parts: Sequence[Part],
    epsilon: Number,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    step: float | None = None,
) -> float:
    """Return the delta at epsilon of all parts together, rounded up.

    A part is the (k, rate) of a release by sampled suppression, or the profile of anything else under the same
    adjacency, such as `randomized_response(epsilon)` for what is epsilon-differentially private. Deltas below 1e-288
    are reported as about that. Without a step, one is chosen that suits the largest k; a finer one is slightly sharper.

    >>> f"{composed_delta([(20, '0.1')] * 8, 1):.4g}"  # the eight deltas at 1/8 sum to 1.2e-4
    '3.867e-14'
    """
    at = float_down(LikelihoodRatio(exact(epsilon, "epsilon")).epsilon)
    return max(each.delta(at) for each in distributions(parts, adjacency, step))


def composed_epsilon(
    parts: Sequence[Part],
    delta: Number,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    step: float | None = None,
) -> float:
    """Return the least epsilon, rounded up, at which all parts together have at most this delta.

    >>> round(composed_epsilon([(20, "0.1")] * 8, "1e-9"), 4)
    0.5517
    """
    wanted = exact(delta, "delta")
    if not 0 < wanted < 1:
        raise InvalidParameter("delta must lie strictly between 0 and 1, such as 1e-6.")
    return max(each.epsilon(float_down(wanted)) for each in distributions(parts, adjacency, step))


def distributions(
    parts: Sequence[Part], adjacency: Adjacency, step: float | None = None
) -> tuple[LossDistribution, ...]:
    """Return the loss distributions of all parts together: one per direction, a single one if both are alike.

    >>> [round(float(each.masses.sum()), 3) for each in distributions([(5, "0.2")], Adjacency.ADD_REMOVE)]
    [1.0, 1.0]
    """
    if not parts:
        raise InvalidParameter("nothing to compose: give at least one part.")
    counted = Counter(
        part if isinstance(part, ProfilePair) else (part[0], exact(part[1], "the rate")) for part in parts
    )
    grid = step if step is not None else _suitable_step([part[0] for part in counted if isinstance(part, tuple)])
    return _distributions(tuple(counted.items()), adjacency, grid)


@lru_cache(maxsize=32)
def _distributions(
    counted: tuple[tuple[tuple[int, Fraction] | ProfilePair, int], ...], adjacency: Adjacency, grid: float
) -> tuple[LossDistribution, ...]:
    """Compose once what is asked at one ε after the other."""
    profiles = [(_profile(part), times) for part, times in counted]
    ahead = [(LossDistribution.of(profile, grid), times) for profile, times in profiles]
    back = [(LossDistribution.of(profile.swapped(), grid), times) for profile, times in profiles]
    if adjacency is Adjacency.ADD_REMOVE:
        return _together(ahead), _together(back)
    # A replaced record is removed from one cell and added to another: both, for each release of a table.
    replaced = [isinstance(part, tuple) for part, _ in counted]
    both = [(a.composed(b), times) for (a, times), (b, _), cell in zip(ahead, back, replaced, strict=True) if cell]
    given = [tuple(pair for pair, cell in zip(side, replaced, strict=True) if not cell) for side in (ahead, back)]
    return (_together(both),) if all(replaced) else tuple(_together([*both, *side]) for side in given)


def envelope(k: int, rate: Number) -> ProfilePair:
    """Return the profile of the worst removal (forward) and the worst addition (backward) of one release.

    >>> forward = envelope(4, "0.1").forward
    >>> f"{forward(10.0):.4g}"
    '0.0001'
    """
    cell = SampledCell(k, exact(rate, "the rate"))

    def removed(epsilon: float) -> float:
        return probability(cell.log_remove(LikelihoodRatio(Fraction(epsilon))))

    def added(epsilon: float) -> float:
        logarithm = cell.log_add(LikelihoodRatio(Fraction(epsilon)))
        return probability(logarithm) if logarithm > -math.inf else 0.0

    # From the ratio k (1 - rate) on a removal costs rate ** k; from 1 / (1 - rate) on an addition costs nothing.
    unsampled = math.log(cell.q)
    return ProfilePair(removed, added, max(0.0, math.log(k) + unsampled), -unsampled)


def _profile(part: tuple[int, Fraction] | ProfilePair) -> ProfilePair:
    return part if isinstance(part, ProfilePair) else envelope(*part)


def _suitable_step(ks: Sequence[int]) -> float:
    # ln(delta) falls about k times as fast as epsilon grows: a chord lies a share of about (k step)² / 8 above delta.
    return max(_FINEST_STEP, min(_WIDEST_STEP, 0.2 / max(ks, default=1)))


def _together(parts: Sequence[tuple[LossDistribution, int]]) -> LossDistribution:
    return reduce(LossDistribution.composed, [each.repeated(times) for each, times in parts])
