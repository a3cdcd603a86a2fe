"""Numbers: a number on a public grid from −K to K becomes a report whose mean, rescaled, is the number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.randomizer import Family, Randomness, Reports, Values
from incrowd.methods.local.mechanisms.ratio import LARGEST, Weights

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

SHARES = 1024
"""A mixture draws below this which of its two parts makes the report."""
FINEST = 2**20  # steps of a number: weights stay below 2⁵³, exact in browsers too


@dataclass(frozen=True)
class Numeric:
    """What randomizers of numbers have; `size` is K, the grid has 2K + 1 points.

    Guarantee: no report is likelier for one number than for another by more than `ratio`.
    Assumes: draws are exact and independent of everything else; one report is sent, once.
    Source: the weights of each family.
    """

    family: ClassVar[Family]

    size: int
    weights: Weights

    def __post_init__(self) -> None:
        if not 1 <= self.size <= FINEST:
            raise InvalidParameter("the grid of a number has 2 to 2^21 cells.")
        if self.total > LARGEST:
            raise InvalidParameter("this epsilon is too large to be drawn exactly on so fine a grid. Ask for less.")

    @property
    def total(self) -> int:
        """The largest whole number below which is drawn."""
        raise NotImplementedError

    @property
    def ratio(self) -> Fraction:
        """By how much a report is likelier for one number than for another, at most."""
        return self.weights.value

    @property
    def randomness(self) -> Randomness:
        """The weights as a survey publishes them."""
        return Randomness(self.family, self.size, self.weights.own, self.weights.other)

    @property
    def reach(self) -> int:
        """The largest report; the smallest is its negative."""
        raise NotImplementedError

    def randomize(self, values: Values, coins: Coins) -> Reports:
        """Return one report for each grid point."""
        raise NotImplementedError

    def law(self, value: int) -> Mapping[int, Fraction]:
        """Return the chance of every report, as the weights say."""
        raise NotImplementedError

    def worth(self, report: int) -> Fraction:
        """Return the unbiased estimate of the number, as a part of K, that one report gives."""
        raise NotImplementedError

    def mean_square(self, value: int) -> Fraction:
        """Return the mean of the squared estimate for a grid point; it grows evenly with the point's square."""
        raise NotImplementedError

    @property
    def variance(self) -> Fraction:
        """The variance of one estimate at the worst grid point, as a part of K squared."""
        return max(self.mean_square(0), self.mean_square(self.size) - 1)

    @property
    def fixed_variance(self) -> Fraction:
        """The largest variance of an estimate y about a person with a fixed number x within ±1, rounded to the grid.

        Rounding by a coin makes of x a grid point k/K with mean x and E[(k/K)²] ≤ x² + 1/(4 K²).  E[y | k] = k/K, and
        E[y² | k] = a + b (k/K)² is `mean_square`, where b is not negative.  So Var(y) = E[y²] − x² is at most
        a + (b − 1) x² + b/(4 K²), which is largest at x = 0 or at x = ±1.
        """
        return self.variance + self._rounding

    @property
    def sampled_variance(self) -> Fraction:
        """The largest variance of an estimate y about a person who is drawn at random from a population.

        Now x varies, too: Var(y) = E[Var(y | x)] + Var(x) = E[y²] − E[x]², with E[y²] as for a fixed number.  It is at
        most a + b E[x²] + b/(4 K²) ≤ a + b + b/(4 K²), attained but for rounding where half of the people are at −1 and
        half at 1.  It is larger than the variance for fixed numbers by Var(x), which is 1 at most.

        >>> window = Window(1000, Weights.below(Fraction(8)), 90)
        >>> round(float(window.fixed_variance), 3), round(float(window.sampled_variance), 3)
        (0.008, 1.008)
        """
        return self.mean_square(self.size) + self._rounding

    @property
    def _rounding(self) -> Fraction:
        return (self.mean_square(self.size) - self.mean_square(0)) / (4 * self.size**2)

    @property
    def largest_estimate(self) -> Fraction:
        """The largest absolute estimate that one report gives: that of a sign, or of the window's last point."""
        return max(abs(self.worth(point)) for point in (1, self.reach - 1, self.reach))

    @property
    def bits(self) -> int:
        """How large a report is."""
        return (2 * self.reach).bit_length()

    def estimates(self, reports: Reports) -> NDArray[np.float64]:
        """Return the unbiased estimates of single reports."""
        distinct, places = np.unique(reports, return_inverse=True)
        worth: NDArray[np.float64] = np.array([float(self.worth(int(point))) for point in distinct])[places]
        return worth

    def check(self, values: Values) -> None:
        """Refuse numbers outside of the grid."""
        if values.dtype != np.int64 or (values.size and np.abs(values).max() > self.size):
            raise InvalidParameter("an answer lies outside of its question's bounds. Correct it and try again.")

    def plain(self, reports: Reports) -> list[Any]:
        """Return reports as JSON has them."""
        return [int(report) for report in reports]

    def read(self, plain: Sequence[Any]) -> Reports:
        """Read reports, or refuse what no such report can be."""
        if not all(type(report) is int and self.possible(report) for report in plain):
            raise InvalidParameter("a report does not have the shape of this survey's reports: it is refused.")
        return np.array(plain, dtype=np.int64)

    def possible(self, report: int) -> bool:
        """Whether there is such a report."""
        return -self.reach <= report <= self.reach


@dataclass(frozen=True)
class Duchi(Numeric):
    """Plus or minus one; the closer the number to K, the likelier plus.

    Guarantee: ε = ln(own / other) for one report.
    Assumes: one report is sent, once; every draw is uniform.
    Source: Duchi, Jordan & Wainwright 2018.

    >>> Duchi(1, Weights(3, 1)).worth(1), Duchi(1, Weights(3, 1)).law(1)
    (Fraction(2, 1), {1: Fraction(3, 4), -1: Fraction(1, 4)})
    """

    family: ClassVar[Family] = Family.DUCHI

    @property
    def total(self) -> int:
        return 2 * self.size * (self.weights.own + self.weights.other)

    @property
    def reach(self) -> int:
        return 1

    def randomize(self, values: Values, coins: Coins) -> Reports:
        self.check(values)
        own, other = self.weights.own, self.weights.other
        plus = own * (self.size + values) + other * (self.size - values)
        return np.where(coins.below(self.total, len(values)) < plus, 1, -1)

    def law(self, value: int) -> Mapping[int, Fraction]:
        own, other = self.weights.own, self.weights.other
        plus = Fraction(own * (self.size + value) + other * (self.size - value), self.total)
        return {1: plus, -1: 1 - plus}

    def worth(self, report: int) -> Fraction:
        own, other = self.weights.own, self.weights.other
        return Fraction(report * (own + other), own - other)

    def mean_square(self, value: int) -> Fraction:
        return self.worth(1) ** 2

    def possible(self, report: int) -> bool:
        return report in (-1, 1)


@dataclass(frozen=True)
class Window(Numeric):
    """A grid point up to K + width; those within `width` of the number have weight `own`, the others weight `other`.

    Guarantee: ε = ln(own / other) for one report.
    Assumes: one report is sent, once; every draw is uniform.
    Source: Wang et al. 2019 (piecewise mechanism), here in whole numbers and with the width of least variance.

    >>> Window(2, Weights(3, 1), 1).law(2)
    {-3: Fraction(1, 13), ..., 1: Fraction(3, 13), 2: Fraction(3, 13), 3: Fraction(3, 13)}
    """

    family: ClassVar[Family] = Family.WINDOW

    width: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.width <= 4 * FINEST:
            raise InvalidParameter("the width of a window is a whole number of cells, not below zero.")

    @property
    def span(self) -> int:
        """How many grid points the window has."""
        return 2 * self.width + 1

    @property
    def total(self) -> int:
        return self.weights.own * self.span + 2 * self.weights.other * self.size

    @property
    def randomness(self) -> Randomness:
        return replace(super().randomness, width=self.width)

    @property
    def reach(self) -> int:
        return self.size + self.width

    def randomize(self, values: Values, coins: Coins) -> Reports:
        self.check(values)
        own, other = self.weights.own, self.weights.other
        draws = coins.below(self.total, len(values))
        beyond = draws - own * self.span
        place = np.maximum(beyond, 0) // other - self.reach
        outside = place + np.where(place >= values - self.width, self.span, 0)
        return np.where(beyond < 0, values - self.width + np.minimum(draws // own, self.span - 1), outside)

    def law(self, value: int) -> Mapping[int, Fraction]:
        own, other = Fraction(self.weights.own, self.total), Fraction(self.weights.other, self.total)
        points = range(-self.reach, self.reach + 1)
        return {point: own if abs(point - value) <= self.width else other for point in points}

    def worth(self, report: int) -> Fraction:
        return Fraction(report * self.total, (self.weights.own - self.weights.other) * self.span * self.size)

    def mean_square(self, value: int) -> Fraction:
        half, reach = self.width, self.reach
        inside = self.span * value**2 + Fraction(half * (half + 1) * self.span, 3)
        whole = Fraction(self.weights.other * reach * (reach + 1) * (2 * reach + 1), 3)
        square = ((self.weights.own - self.weights.other) * inside + whole) / self.total
        return square * self.worth(1) ** 2


@dataclass(frozen=True)
class Mixture(Numeric):
    """A window, or with the rest of 1,024 shares a sign; signs are sent as the two points beyond the window's reach.

    Guarantee: ε = ln(own / other): which part is drawn does not depend on the number, so the loss is the larger one.
    Assumes: one report is sent, once; every draw is uniform.
    Source: Wang et al. 2019 (hybrid mechanism), with the width and the share of least variance.

    >>> Mixture(2, Weights(3, 1), 1, 512).reach
    4
    """

    family: ClassVar[Family] = Family.MIXTURE

    width: int
    share: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share <= SHARES:
            raise InvalidParameter("the window of a mixture has 0 to 1,024 of 1,024 shares.")

    @property
    def window(self) -> Window:
        """The window."""
        return Window(self.size, self.weights, self.width)

    @property
    def sign(self) -> Duchi:
        """The sign."""
        return Duchi(self.size, self.weights)

    @property
    def total(self) -> int:
        return max(self.window.total, self.sign.total)

    @property
    def randomness(self) -> Randomness:
        return replace(super().randomness, width=self.width, share=self.share)

    @property
    def reach(self) -> int:
        return self.window.reach + 1

    def randomize(self, values: Values, coins: Coins) -> Reports:
        self.check(values)
        windowed = coins.below(SHARES, len(values)) < self.share
        reports = np.zeros(len(values), np.int64)
        reports[windowed] = self.window.randomize(values[windowed], coins)
        reports[~windowed] = self.sign.randomize(values[~windowed], coins) * self.reach
        return reports

    def law(self, value: int) -> Mapping[int, Fraction]:
        part = Fraction(self.share, SHARES)
        signs = {sign * self.reach: (1 - part) * chance for sign, chance in self.sign.law(value).items()}
        return {point: part * chance for point, chance in self.window.law(value).items()} | signs

    def worth(self, report: int) -> Fraction:
        if abs(report) == self.reach:
            return self.sign.worth(1 if report > 0 else -1)
        return self.window.worth(report)

    def mean_square(self, value: int) -> Fraction:
        part = Fraction(self.share, SHARES)
        return part * self.window.mean_square(value) + (1 - part) * self.sign.mean_square(value)


def best_window(size: int, weights: Weights) -> Window:
    """Return the window whose worst variance is the least; it is wider than that of the piecewise mechanism.

    >>> best_window(1000, Weights.below(Fraction(1))).width
    775
    """
    half = np.arange(1, 2 * size + 1)
    zero, one = _window_moments(size, weights, half)
    return Window(size, weights, int(half[np.argmin(np.maximum(zero, one - 1.0))]))


def best_mixture(size: int, weights: Weights) -> Mixture:
    """Return the mixture whose worst variance is the least.

    For each width both ends' variances are straight lines in the share: the worst is least where they cross, or at an
    end.

    >>> best_mixture(1000, Weights.below(Fraction(1))).share / 1024
    0.416015625
    """
    half = np.arange(1, 2 * size + 1)
    zero, one = _window_moments(size, weights, half)
    square = float(Duchi(size, weights).mean_square(0))
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.clip(np.nan_to_num(1.0 / (one - zero)), 0.0, 1.0)
    shares = np.stack([np.zeros_like(zero), crossing, np.ones_like(zero)])
    rounded = np.round(shares * SHARES) / SHARES
    worst = np.maximum(rounded * zero + (1 - rounded) * square, rounded * (one - 1) + (1 - rounded) * (square - 1))
    which, place = np.unravel_index(np.argmin(worst), worst.shape)
    return Mixture(size, weights, int(half[place]), round(float(rounded[which, place]) * SHARES))


def _window_moments(
    size: int, weights: Weights, half: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean squares of all widths at 0 and at K; only choices are made with them."""
    own, other, width = float(weights.own), float(weights.other), half.astype(np.float64)
    span, reach = 2 * width + 1, size + width
    total = own * span + 2 * other * size
    factor = (total / ((own - other) * span * size)) ** 2 / total
    spread = (own - other) * width * (width + 1) * span / 3 + other * reach * (reach + 1) * (2 * reach + 1) / 3
    return factor * spread, factor * (spread + (own - other) * span * size**2)
