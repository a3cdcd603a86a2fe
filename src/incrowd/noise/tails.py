"""How far noise reaches: whole numbers it passes with at most a given chance, never understated."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from incrowd.noise.chance import exp_enclosure

_DIGITS = 50
_ROOT_OF_TWO_PI = Fraction(25066, 10000)  # below √(2π) = 2.50662…


def laplace_reach(scale: Fraction, chance: Fraction) -> int:
    """Return the least m ≥ 1 with P[z ≥ m] ≤ chance for integer Laplace noise z.

    P[z ≥ m] = a^m / (1 + a) with a = e^(−1/scale), bounded from above to 50 digits.

    >>> laplace_reach(Fraction(1), Fraction(1, 10**6))
    14
    """
    least_ratio = exp_enclosure(1 / scale, _DIGITS)[0]

    def rare(m: int) -> bool:
        return exp_enclosure(m / scale, _DIGITS)[1] / (1 + least_ratio) <= chance

    return least(rare)


def gaussian_reach(scale: Fraction, chance: Fraction) -> int:
    """Return an m ≥ 1 with P[z ≥ m] ≤ chance for integer Gaussian noise z; for rare events within 1 % of the least.

    For i ≥ 0, (m + i)² ≥ m² + 2 m i, so Σ_{z≥m} e^(−z²/2σ²) ≤ e^(−m²/2σ²) / (1 − e^(−m/σ²)); and
    Σ_z e^(−z²/2σ²) ≥ max(1, σ √(2π)): the term of zero alone is 1, and by Poisson summation the sum is
    σ √(2π) Σ_n e^(−2π²σ²n²).  The quotient of the two bounds P[z ≥ m].

    >>> gaussian_reach(Fraction(1), Fraction(1, 10**6))
    6
    """
    variance = scale**2
    total = max(Fraction(1), scale * _ROOT_OF_TWO_PI)

    def rare(m: int) -> bool:
        falls = exp_enclosure(m / variance, _DIGITS)[1]
        return falls < 1 and exp_enclosure(m**2 / (2 * variance), _DIGITS)[1] <= chance * total * (1 - falls)

    return least(rare)


def least(rare: Callable[[int], bool]) -> int:
    """Return the least m ≥ 1 from which on `rare` holds, by doubling and halving.

    >>> least(lambda m: m * m > 50)
    8
    """
    high = 1
    while not rare(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rare(middle) else (middle, high)
    return high
