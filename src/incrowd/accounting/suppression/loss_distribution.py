"""Privacy loss distributions on a grid: pessimistic, composed by sums of positive terms, right in relative terms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from incrowd.accounting.bound import least_epsilon
from incrowd.accounting.suppression.sampled_cell import LikelihoodRatio, SampledCell
from incrowd.core.rounding import Number, exact, float_down, probability_up
from incrowd.core.unit import Adjacency
from incrowd.errors import Infeasible, InvalidParameter

Floats = NDArray[np.float64]

_INFLATION = 1e-10  # what rounding could have taken from one discretized distribution, given back at once
_CUT = 1e-12  # share of what is left that a cut may move upwards
_LEAST = 1e-290  # smaller masses become infinite losses
_SCALE = 1e150  # products of scaled masses neither vanish nor overflow, nor slow down as tiny floats do


@dataclass(frozen=True)
class ProfilePair:
    """Two privacy profiles of one pair of laws P, Q: epsilon to delta for P against Q, and for Q against P.

    Each must be, at every epsilon >= 0, at least the true hockey-stick divergence at e^epsilon. The reaches
    say from which epsilon on a profile is taken as constant, at its value there.
    """

    forward: Callable[[float], float]
    backward: Callable[[float], float]
    forward_reach: float
    backward_reach: float

    def swapped(self) -> ProfilePair:
        """Return the profiles of Q against P."""
        return ProfilePair(self.backward, self.forward, self.backward_reach, self.forward_reach)


def randomized_response(epsilon: float, delta: float = 0.0) -> ProfilePair:
    """Return the profile that dominates everything (epsilon, delta)-differentially private.

    Source: Kairouz, Oh and Viswanath 2015, Theorem 3.3.

    >>> randomized_response(1.0).forward(1.0)
    0.0
    """
    if not (0.0 <= epsilon < math.inf and 0.0 <= delta <= 1.0):
        raise InvalidParameter("randomized response needs a finite epsilon >= 0 and a delta in [0, 1].")

    def profile(at: float) -> float:
        gap = -math.expm1(at - epsilon) / (1.0 + math.exp(-epsilon)) if at < epsilon else 0.0
        return delta + (1.0 - delta) * gap

    return ProfilePair(profile, profile, epsilon, epsilon)


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """How probable each privacy loss is under P: `masses[i]` at (lowest + i) * step, and `infinite`.

    A distribution here dominates the pair it was made from: its delta is never below the true one. Masses
    are non-negative and convolved directly, so a delta of 1e-200 is as right, relatively, as one of 0.1;
    the Fourier transform would drown it in noise near 1e-16.

    >>> response = LossDistribution.of(randomized_response(0.5), step=0.01)
    >>> round(response.repeated(2).delta(0.5), 6), round(response.delta(0.25), 6)
    (0.152452, 0.137688)
    """

    step: float
    lowest: int
    masses: Floats
    infinite: float

    @classmethod
    def of(cls, profile: ProfilePair, step: float) -> LossDistribution:
        """Discretize a profile by connecting its values at multiples of `step` with straight lines in e^epsilon.

        A convex function lies below its chords, so the result dominates; at the knots it is exact.
        Source: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, "Connect the dots".
        """
        if not 0.0 < step < math.inf:
            raise InvalidParameter("the step of a loss distribution must be a positive number, such as 0.005.")
        ahead, behind = _knots(profile.forward_reach, step), _knots(profile.backward_reach, step)
        dots = connect_the_dots(
            (ahead, np.array([profile.forward(x) for x in ahead.tolist()])),
            (behind, np.array([profile.backward(x) for x in behind.tolist()])),
        )
        return cls._without_faint(step, 1 - len(behind), dots.masses * _SCALE**2, dots.infinite).trimmed()

    def composed(self, other: LossDistribution) -> LossDistribution:
        """Return the distribution of both releases together, made with independent coins."""
        if self.step != other.step:
            raise InvalidParameter("loss distributions compose on one grid only: give both the same step.")
        scaled = np.convolve(self.masses * _SCALE, other.masses * _SCALE)
        scaled *= 1.0 + 4e-16 * min(len(self.masses), len(other.masses))
        infinite = (self.infinite + other.infinite * (1.0 - min(1.0, self.infinite))) * (1.0 + 1e-15)
        return self._without_faint(self.step, self.lowest + other.lowest, scaled, infinite).trimmed()

    def repeated(self, times: int) -> LossDistribution:
        """Return the distribution of so many such releases, by repeated squaring."""
        if times < 1:
            raise InvalidParameter("a release is repeated at least once.")
        if times == 1:
            return self
        half = self.repeated(times // 2)
        whole = half.composed(half)
        return whole.composed(self) if times % 2 else whole

    def trimmed(self) -> LossDistribution:
        """Cut both ends where that costs at most one part in 10¹²: the top becomes infinite, the bottom moves up.

        With d the decreasing delta of whatever is composed with this, the bottom's share 1e-12 is moved to a
        loss x at or above which all the rest lies: the delta grows by 1e-12 d(x) and was at least
        (1 - 1e-12) d(x). The top's mass is at most 1e-12 of what is infinite anyway.
        """
        from_top = np.cumsum(self.masses[::-1])
        top = int(np.searchsorted(from_top, _CUT * self.infinite, side="right"))
        retained = self.masses[: len(self.masses) - top]
        if len(retained) == 0:
            return LossDistribution(self.step, self.lowest, np.zeros(1), min(1.0, float(from_top[-1]) + self.infinite))
        bottom = min(int(np.searchsorted(np.cumsum(retained), _CUT, side="right")), len(retained) - 1)
        masses = retained[bottom:].copy()
        masses[0] += retained[:bottom].sum()
        moved = float(from_top[top - 1]) if top else 0.0
        return LossDistribution(self.step, self.lowest + bottom, masses, self.infinite + moved)

    @classmethod
    def _without_faint(cls, step: float, lowest: int, scaled: Floats, infinite: float) -> LossDistribution:
        faint = (scaled > 0.0) & (scaled < _LEAST * _SCALE**2)
        moved = float(scaled[faint].sum()) / _SCALE**2 + 1e-300 if faint.any() else 0.0
        return cls(step, lowest, np.where(faint, 0.0, scaled) / _SCALE**2, infinite + moved)

    def delta(self, epsilon: float) -> float:
        """Return the delta at this epsilon, rounded up."""
        losses = (self.lowest + np.arange(len(self.masses))) * self.step
        first = int(np.searchsorted(losses, epsilon, side="right"))
        finite = float(self.masses[first:] @ -np.expm1(epsilon - losses[first:]))
        return min(1.0, (self.infinite + finite) * (1.0 + 1e-12))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon at which the delta is not above `delta`, rounded up."""
        if delta < self.infinite:
            raise Infeasible(
                f"no epsilon gives a delta of {delta:.3g}: with probability {self.infinite:.3g} the loss has no bound. "
                "Ask for a larger delta, or raise k or lower the rate."
            )
        return least_epsilon(self.delta, delta)


@dataclass(frozen=True, eq=False)
class Dots:
    """Losses in rising order, their masses under P, and the mass of an infinite loss."""

    losses: Floats
    masses: Floats
    infinite: float


def connect_the_dots(forward: tuple[Floats, Floats], backward: tuple[Floats, Floats]) -> Dots:
    """Return the law of the privacy loss whose profile joins the given values by lines in e^epsilon.

    Each argument holds the knots, rising from 0, and the values there. With H the profile at a = e^epsilon,
    the mass of Q at a knot is the jump of H's slope and the mass of P is a times that. Below a = 1 the other
    profile B speaks, H(a) = 1 - a + a B(1/a); a line in a for H is a line in 1/a for B, so the mass of P at
    -x is the jump of B's slope at x, and no difference of large numbers is ever formed. A jump that rounding
    made negative becomes zero, which only raises the profile.

    >>> steps = np.array([0.0, 1.0])
    >>> dots = connect_the_dots((steps, np.array([0.4, 0.0])), (steps, np.array([0.4, 0.0])))
    >>> round(float(dots.masses.sum()), 6)
    1.0
    """
    ahead, raised = forward[0], _not_vanishing(forward[1])
    behind, lowered = backward[0], _not_vanishing(backward[1])
    raised[0] = lowered[0] = max(raised[0], lowered[0])
    gains, losses = _jumps(ahead, raised), _jumps(behind, lowered)
    middle = gains.first + 1.0
    if len(behind) > 1:
        middle += (math.exp(-behind[1]) * lowered[1] - raised[0]) / -math.expm1(-behind[1])
    else:
        middle -= raised[0]
    masses = np.concatenate([losses.rest[::-1], [middle], np.exp(ahead[1:]) * gains.rest])
    return Dots(
        np.concatenate([-behind[:0:-1], ahead]),
        np.maximum(masses, 0.0) * (1.0 + _INFLATION),
        min(1.0, float(raised[-1]) * (1.0 + _INFLATION)),
    )


@dataclass(frozen=True, eq=False)
class _Jumps:
    first: float
    rest: Floats


def _jumps(knots: Floats, values: Floats) -> _Jumps:
    # The first slope in e^epsilon, and the jumps of the slope at the later knots; beyond the last it is flat.
    slopes = np.append(np.diff(values) / (np.exp(knots[:-1]) * np.expm1(np.diff(knots))), 0.0)
    return _Jumps(float(slopes[0]), np.diff(slopes))


def _knots(reach: float, step: float) -> Floats:
    count = math.ceil(reach / step * (1.0 - 1e-15)) + 1  # a reach on the grid is not doubled by its rounding
    return np.arange(count, dtype=np.float64) * step


def _not_vanishing(values: Floats) -> Floats:
    return np.where((values > 0.0) & (values < _LEAST), _LEAST, values)


Part = tuple[int, Number] | ProfilePair

# finer is sharper, coarser is faster; every chord lies above δ, so any step is sound
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
    return max(distribution.delta(at) for distribution in distributions(parts, adjacency, step))


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
    target = exact(delta, "delta")
    if not 0 < target < 1:
        raise InvalidParameter("delta must lie strictly between 0 and 1, such as 1e-6.")
    return max(distribution.epsilon(float_down(target)) for distribution in distributions(parts, adjacency, step))


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
    stated = [tuple(pair for pair, cell in zip(side, replaced, strict=True) if not cell) for side in (ahead, back)]
    return (_together(both),) if all(replaced) else tuple(_together([*both, *side]) for side in stated)


def envelope(k: int, rate: Number) -> ProfilePair:
    """Return the profile of the worst removal (forward) and the worst addition (backward) of one release.

    >>> forward = envelope(4, "0.1").forward
    >>> f"{forward(10.0):.4g}"
    '0.0001'
    """
    cell = SampledCell(k, exact(rate, "the rate"))

    def removed(epsilon: float) -> float:
        return probability_up(cell.log_remove(LikelihoodRatio(Fraction(epsilon))))

    def added(epsilon: float) -> float:
        logarithm = cell.log_add(LikelihoodRatio(Fraction(epsilon)))
        return probability_up(logarithm) if logarithm > -math.inf else 0.0

    # From the ratio k (1 - rate) on a removal costs rate ** k; from 1 / (1 - rate) on an addition costs nothing.
    unsampled = math.log(cell.q)
    return ProfilePair(removed, added, max(0.0, math.log(k) + unsampled), -unsampled)


def _profile(part: tuple[int, Fraction] | ProfilePair) -> ProfilePair:
    return part if isinstance(part, ProfilePair) else envelope(*part)


def _suitable_step(ks: Sequence[int]) -> float:
    # ln(delta) falls about k times as fast as epsilon grows: a chord lies a share of about (k step)² / 8 above delta.
    return max(_FINEST_STEP, min(_WIDEST_STEP, 0.2 / max(ks, default=1)))


def _together(parts: Sequence[tuple[LossDistribution, int]]) -> LossDistribution:
    return reduce(LossDistribution.composed, [distribution.repeated(times) for distribution, times in parts])
