"""Privacy loss distributions: for what was fixed up front, inside one release or one plan.  Every δ is rounded up.

Each answer's loss is put on a grid: mass at a loss between two points goes to both, such that both laws of the pair
keep their mass, which dominates (Doroshenko et al. 2022).  Losses of answers add up, so their masses are convolved, by
a Fourier transform of masses tilted by e^(θ·loss): with θ chosen for the ε in question, the masses that matter are the
large ones, and rounding stays relative to δ, however small.  What leaves the window of the transform, and the rounding
of the transform, are bounded and added.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from incrowd.accounting.loss_laws import SHADE, Floats, LossLaw, Noise, law_of
from incrowd.core.loss import Approximate, Gaussian, GaussianRounds, Laplace, Loss, Pure, Sampled, Sequence
from incrowd.core.rounding import float_up, not_below
from incrowd.core.unit import Adjacency

_FINE = 0.01
"""The grid's step, relative to the deviation of one answer's loss, whose variance grows by 2·10⁻⁵ of itself."""
# fewer is faster, more is finer; any number is sound, as splitting a mass dominates
_FEWEST_POINTS, _MOST_POINTS = 2**15, 2**19
_OUTSIDE = 34.0
"""Aimed at: at most e^(−34) of the tilted mass leaves the window."""
_UNIT = 2.0**-53  # the unit roundoff of a float
_TRANSFORM = 16.0
"""Rounding of a transform, in units and per doubling, relative to the norm (Higham 2002, Theorem 24.2: below 8)."""
_MASS_ERROR = 1e-12
"""More than the relative error of a mass or of its tilt."""
_RELATIVE = 1e-9  # ten thousand roundings, of sums of positive terms
_STEEPEST_TILT = 1e12  # ends the search where a loss has one possible value; any tilt is sound
_FAINT = 45.0  # beyond, e^(−45) = 3·10⁻²⁰ of the tilted mass, which is 1, is added whole

Part = Noise | Sampled
Many = tuple[tuple[LossLaw, int], ...]


def epsilon(loss: Loss, delta: float, adjacency: Adjacency) -> float | None:
    """Return ε at `delta` for noisy answers, or None if δ is 0, a part of the loss has no law, or there is no part.

    Source: Koskela, Jälkö & Honkela 2020; Zhu, Dong & Wang 2022 (dominating pairs); `docs/explanation/accounting.md`.

    >>> round(epsilon(Sequence((Laplace(Fraction(20)),) * 100), 1e-6, Adjacency.ADD_REMOVE), 3)
    2.208
    """
    sides = _sides(loss, adjacency)
    return None if sides is None or delta <= 0.0 else max(not_below(_least(side, delta), _RELATIVE) for side in sides)


def delta(loss: Loss, epsilon: float, adjacency: Adjacency) -> float | None:
    """Return δ at `epsilon`, or None if a part of the loss has no law, or there is none.

    >>> delta(Sequence((Pure(Fraction(1)), Pure(Fraction(1, 2)))), 1.5, Adjacency.ADD_REMOVE)
    0.0
    """
    sides = _sides(loss, adjacency)
    return None if sides is None else max(_delta(side, epsilon) for side in sides)


def _sides(loss: Loss, adjacency: Adjacency) -> tuple[Many, ...] | None:
    """Return the laws of all answers for a unit that is removed, and for one that is added."""
    if not (parts := flattened(loss, adjacency)):
        return None
    sides = [_laws(parts, adjacency is Adjacency.REPLACE, added) for added in (False, True)]
    finite = tuple(side for side in sides if side is not None)
    return finite if len(finite) == len(sides) else None


def flattened(loss: Loss, adjacency: Adjacency) -> tuple[Part, ...] | None:
    """Return the noisy answers a loss consists of, in one row, or None if some part has no known law."""
    match loss:
        case Sequence(parts):
            rows = [flattened(part, adjacency) for part in parts]
            finite = [row for row in rows if row is not None]
            return tuple(part for row in finite for part in row) if len(finite) == len(rows) else None
        case Pure() | Approximate() | Laplace() | Gaussian() | GaussianRounds():
            return (loss,)
        case Sampled(inner=Pure() | Approximate() | Laplace() | Gaussian() | GaussianRounds()):
            return (loss,)
    return None


@lru_cache(maxsize=16)
def _laws(parts: tuple[Part, ...], replaced: bool, added: bool) -> Many | None:
    laws = []
    for part, times in Counter(parts).items():
        rate, noise = (float_up(part.rate), part.inner) if isinstance(part, Sampled) else (None, part)
        law = law_of(noise, rate, added=added, replaced=replaced)  # type: ignore[arg-type]  # as `flattened` says
        if law is None:
            return None
        laws.append((law, times))
    return tuple(laws)


def _infinite(laws: Many) -> float:
    """Return the chance that some answer has an infinite loss, at most."""
    return min(1.0, not_below(math.fsum(times * law.infinite for law, times in laws), _RELATIVE))


def _last(laws: Many) -> float:
    """Return the largest finite loss of all answers together, rounded up."""
    ends = [times * (Fraction(float(law.most.max(initial=0.0))) + Fraction(law.margin)) for law, times in laws]
    return float_up(max(Fraction(0), sum(ends, Fraction(0))))


def _delta(laws: Many, epsilon: float) -> float:
    if epsilon >= _last(laws):
        return _infinite(laws)
    return _composed(laws, _rounded(_tilt(laws, epsilon))).delta(epsilon)


def _least(laws: Many, delta: float) -> float:
    """Return an ε at δ: the least that one transform shows, whose tilt is that of this ε."""
    if _infinite(laws) >= delta:
        return math.inf
    if _delta(laws, 0.0) <= delta:
        return 0.0
    guess, before = _chernoff(laws, delta), math.inf
    while guess < 0.9999 * before:
        before = guess
        guess = _solved(_composed(laws, _rounded(_tilt(laws, guess))), guess, delta)
    while _delta(laws, guess) > delta:
        guess = guess * (1.0 + 1e-6) + 1e-15
    return min(guess, _last(laws)) if _delta(laws, min(guess, _last(laws))) <= delta else guess


def _solved(whole: TiltedDistribution, near: float, delta: float) -> float:
    """Return an ε at δ by one transform, up to one part in 10⁸; near `near`, where that is enough."""
    low, high = 0.0, near
    while whole.delta(high) > delta:
        low, high = high, 2.0 * high
    while high - low > 1e-8 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if whole.delta(middle) <= delta else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class TiltedDistribution:
    """Tilted masses of the sum of all losses, on a window of a grid: δ at every ε, never below the truth."""

    step: float
    first: int
    tilt: float
    log_scale: float
    masses: Floats
    rounding: tuple[float, float]
    outside: float
    margin: float
    infinite: float

    def delta(self, epsilon: float) -> float:
        """Return δ = E[(1 − e^(ε − loss))⁺], with what rounding and the window could hide."""
        below = epsilon - self.margin - 1e-15 * epsilon
        start = max(0, math.floor(below / self.step) - self.first)
        end = len(self.masses)
        if self.tilt > 0.0:  # beyond, a weight is below e^(−45)
            end = min(end, math.ceil((below + _FAINT / self.tilt) / self.step) - self.first + 1)
        end = max(start, end)
        sums = (self.first + np.arange(start, end)) * self.step - below
        weights = np.exp(np.minimum(0.0, -self.tilt * sums)) * np.maximum(0.0, -np.expm1(-sums))
        visible = float((self.masses[start:end] * weights).sum()) + (
            math.exp(-_FAINT) if end < len(self.masses) else 0.0
        )
        hidden = self.rounding[0] * float(weights.sum()) + self.rounding[1] * math.sqrt(
            float((weights * weights).sum())
        )
        exponent = self.log_scale - self.tilt * below
        exponent += 1e-14 * (abs(self.log_scale) + abs(self.tilt * below)) + self.margin
        if exponent > 700.0:
            return 1.0
        total = math.exp(exponent) * (visible + hidden + self.outside)
        return min(1.0, not_below(total + self.infinite, _RELATIVE))


@lru_cache(maxsize=8)
def _composed(laws: Many, tilt: float) -> TiltedDistribution:
    """Return the losses of all answers together, precise for the ε that belongs to a tilt."""
    low, high, deviation, further = _window(laws, tilt)
    answers = sum(times for _, times in laws)
    step = max(min(_FINE * deviation / math.sqrt(answers), (high - low) / _FEWEST_POINTS), (high - low) / _MOST_POINTS)
    first, last, open_ends = _indices(laws, step, low, high)
    length = 2 ** max(4, (last - first).bit_length())
    spectrum, reach = np.ones(length // 2 + 1, np.complex128), np.ones(length // 2 + 1)
    doubt, scale, above, below = np.zeros(length // 2 + 1), 0.0, 0.0, 0.0
    for law, times in laws:
        places, masses, logarithm = _on_grid(law, step, tilt)
        scale += times * logarithm
        above += times * _log_mean(masses, places * (step * further[0]))
        below += times * _log_mean(masses, places * (-step * further[1]))
        grid = np.asarray(np.bincount(np.mod(places, length).astype(np.int64), masses, length), np.float64)
        transform = np.fft.rfft(grid)
        error = _transform_error(length) * math.sqrt(length) * _norm(grid)
        size = np.abs(transform) + error
        doubt += times * (error / size + 8.0 * _UNIT)
        reach *= size**times
        spectrum *= _power(transform, times)
    ends = (above - further[0] * (first + length) * step, below + further[1] * (first - 1) * step)
    outside = math.fsum(math.exp(min(0.0, end)) for end, is_open in zip(ends, open_ends, strict=True) if is_open)
    masses = np.roll(np.fft.irfft(spectrum, length), -first)
    wrong = reach * np.minimum(1.0, doubt * (1.0 + 1e-6)) * 2.0
    return TiltedDistribution(
        step,
        first,
        tilt,
        scale + answers * _MASS_ERROR,
        np.maximum(0.0, masses),
        (float(wrong.sum()) / length, _transform_error(length) * (_norm(masses) + 1e-30)),
        outside * (1.0 + _RELATIVE),
        math.fsum(times * (law.margin + 4.0 * _UNIT * float(np.abs(law.losses).max())) for law, times in laws),
        _infinite(laws),
    )


def _indices(laws: Many, step: float, low: float, high: float) -> tuple[int, int, tuple[bool, bool]]:
    """Return the first and last point of the grid that are needed, and whether sums can lie above or below them."""
    tops = sum(times * (math.ceil(float(law.most.max()) * (1.0 + SHADE) / step) + 2) for law, times in laws)
    bottoms = sum(times * (math.floor(float(law.least.min()) * (1.0 + SHADE) / step) - 2) for law, times in laws)
    first, last = max(bottoms, math.floor(low / step) - 1), min(tops, math.ceil(high / step) + 1)
    return first, last, (last < tops, first > bottoms)


def _norm(values: Floats) -> float:
    return math.sqrt(float((values * values).sum()))


def _transform_error(length: int) -> float:
    return _TRANSFORM * _UNIT * math.log2(length)


def _power(values: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """Return values to a power by repeated squaring, whose rounding is known: 4 units a factor."""
    whole = np.ones_like(values)
    while times:
        if times & 1:
            whole = whole * values
        values, times = values * values, times >> 1
    return whole


def _on_grid(law: LossLaw, step: float, tilt: float) -> tuple[Floats, Floats, float]:
    """Return the points of a grid, their tilted masses, which sum to 1, and ln of what they summed to.

    A mass P at a loss x between the points a and b is split so that P and P·e^(−x) are kept.
    """
    shade = SHADE * (np.abs(law.losses) + law.most - law.least)
    losses = law.losses + shade
    below = np.floor((law.least - shade) / step)
    above = np.maximum(np.ceil((law.most + shade) / step), below + 1.0)
    share = np.clip(np.expm1(below * step - losses) / np.expm1((below - above) * step), 0.0, 1.0)
    share = np.minimum(1.0, share * (1.0 + 1e-14))
    places = np.concatenate([below, above])
    with np.errstate(divide="ignore"):
        logs = np.concatenate([law.log_masses + np.log1p(-share), law.log_masses + np.log(share)])
    logs += tilt * step * places
    largest = float(logs.max())
    masses = np.exp(logs - largest)
    total = float(masses.sum())
    return places, masses / total, largest + math.log(total)


def _log_mean(masses: Floats, exponents: Floats) -> float:
    """Return ln Σ masses·e^exponents."""
    largest = float(exponents[masses > 0.0].max())
    return largest + math.log(float((masses * np.exp(np.minimum(0.0, exponents - largest))).sum()))


def _moments(law: LossLaw, tilt: float) -> tuple[float, float, float]:
    """Return ln E[e^(θ·loss)], and mean and variance of the tilted loss; near enough to choose a grid by."""
    logs = law.log_masses + tilt * law.losses
    largest = float(logs.max())
    weights = np.exp(logs - largest)
    total = float(weights.sum())
    mean = float((weights * law.losses).sum()) / total
    return largest + math.log(total), mean, float((weights * (law.losses - mean) ** 2).sum()) / total


def _all_moments(laws: Many, tilt: float) -> tuple[float, float, float]:
    rows = [(times, _moments(law, tilt)) for law, times in laws]
    cumulant, mean, variance = (math.fsum(times * row[place] for times, row in rows) for place in range(3))
    return cumulant, mean, variance


def _tilt(laws: Many, epsilon: float) -> float:
    """Return θ ≥ 0 whose tilted mean is ε, or nearly."""
    if _all_moments(laws, 0.0)[1] >= epsilon:
        return 0.0
    least, high = 1e-6 * _all_moments(laws, 0.0)[2], 1.0
    while (moments := _all_moments(laws, high))[1] < epsilon and moments[2] > least and high < _STEEPEST_TILT:
        high *= 2.0
    low = 0.0 if high == 1.0 else high / 2.0
    for _ in range(12):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _all_moments(laws, middle)[1] < epsilon else (low, middle)
    return high


def _rounded(tilt: float) -> float:
    """Return nearly the same θ for nearly the same ε, so that transforms are remembered."""
    fraction, exponent = math.frexp(tilt)
    return math.ldexp(round(fraction * 64.0) / 64.0, exponent)


def _chernoff(laws: Many, delta: float) -> float:
    """Return about the ε at δ: the least of (ln E[e^(θ·loss)] − ln δ)/θ."""
    logarithm = -math.log(delta)

    def bound(exponent: float) -> float:
        tilt = 2.0**exponent
        return float((_all_moments(laws, tilt)[0] + logarithm) / tilt)

    coarse = min(range(-24, 48, 3), key=bound)
    return max(0.0, min(bound(coarse + more) for more in (-2, -1, -0.5, 0, 0.5, 1, 2)))


def _window(laws: Many, tilt: float) -> tuple[float, float, float, tuple[float, float]]:
    """Return where nearly all tilted mass lies, its deviation, and the further tilts that show both ends."""
    cumulant, _, variance = _all_moments(laws, tilt)
    deviation = math.sqrt(max(variance, 1e-300))
    ends = []
    for sign in (1.0, -1.0):
        tried = [sign * factor / deviation for factor in (1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 11.0, 16.0)]
        ends.append(
            min(((_all_moments(laws, tilt + more)[0] - cumulant + _OUTSIDE) / abs(more), abs(more)) for more in tried)
        )
    (high, up), (low, down) = ends
    return -low, high, deviation, (up, down)
