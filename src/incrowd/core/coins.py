"""Coins: where the chance of a release comes from; Sample: a secret sample drawn by them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Out_co = TypeVar("Out_co", covariant=True)

LARGEST_SCALE = 2**48
"""Noise of a larger scale is not drawn; a plan that needs it is refused, before anything is charged."""


def check_scale(scale: Fraction) -> None:
    """Refuse a scale of noise that cannot be drawn.

    >>> check_scale(Fraction(2**49))
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: the scale of noise must be positive and at most 2^48; raise epsilon, or measure ...
    """
    if not 0 < scale <= LARGEST_SCALE:
        raise InvalidParameter(
            "the scale of noise must be positive and at most 2^48; raise epsilon, or measure in a coarser unit."
        )


@runtime_checkable
class Sample(Protocol):
    """A secret Poisson sample of rows: the same row always meets the same coin, however often it is read.

    A coin is a function of a secret key and the row's position or unique id, never of its content.
    """

    @property
    def rate(self) -> Fraction:
        """The stated rate; the true one is never above it."""

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return for each position in [start, stop) whether that row is in the sample."""

    def of(self, ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return for each unique id (one 64-bit word, or a row of two) whether its row is in the sample."""


class Coins(Protocol):
    """Chance, drawn exactly: from the operating system's generator, or in tests from a script."""

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        """Draw `size` independent coins that come up true with exactly `probability`."""

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        """Draw `size` independent integers, uniform on 0, 1, …, bound − 1."""

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw integer Laplace noise: P[z] proportional to exp(−|z| / scale)."""

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw integer Gaussian noise: P[z] proportional to exp(−z² / (2 scale²))."""

    def cube(self, widths: tuple[int, ...], fine: int, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw integer vectors: P[x] proportional to exp(−J / scale), J the largest ⌈fine · |x_j| / width_j⌉."""

    def decay(self, scale: Fraction, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Toss for each number of steps n ≥ 0 a coin that comes up true with exactly exp(−n / scale)."""

    def outliers(self, scale: Fraction, least: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of `size` integer Laplace draws, return where those of at least `least` ≥ 1 lie, and their values."""

    def sample(self, rate: Fraction) -> Sample:
        """Return a fresh secret sample under a key of its own."""
