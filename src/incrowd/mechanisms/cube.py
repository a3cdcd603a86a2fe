"""Cube noise: one noisy vector per group for all sums of a row's bounded numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.loss import Laplace, Loss, Pure
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.integers import integers, plus
from incrowd.mechanisms.parameters import counting_number, positive
from incrowd.noise.tails import CubeLaw

_STEPS = 16
_FINEST = 2**20


@dataclass(frozen=True)
class AddCube:
    """Adds to each of a list of integer vectors noise x whose chance falls with its largest coordinate.

    P[x] ∝ e^(−epsilon · J(x) / (rows · fine)) with J(x) = ⌈fine · ‖x‖⌉ and ‖x‖ = max_j |x_j| / width_j.

    Promise: epsilon-differential privacy, for all vectors together.
    Assumes: one unit of privacy has at most `rows` rows; a row, added or removed, moves the vector of one group, and
    its coordinate j by at most width_j; the groups are public.
    Source: Hardt and Talwar 2010 (the K-norm mechanism), Steinke and Ullman 2016 (for the largest coordinate).

    Proof.  If r of the unit's rows lie in a group, its vector moves by some v with ‖v‖ ≤ r.  Then J(x + v) is at most
    ⌈fine · ‖x‖ + fine · r⌉ = J(x) + fine · r, because fine · r is whole: rounding up costs nothing.  So the chance of
    each outcome changes by a factor of at most e^(epsilon · r / rows), and the groups' r add up to `rows` at most.  ∎

    With d coordinates their standard deviations are about width_j · rows / epsilon · √((d + 1)(d + 2) / 3); splitting
    epsilon among d Laplace noises gives width_j · rows / epsilon · d √2, which is more from d = 2 on.  With one
    coordinate this is integer Laplace noise.

    >>> AddCube(Fraction(1), (1, 100)).loss
    Pure(epsilon=Fraction(1, 1))
    """

    epsilon: Fraction
    widths: tuple[int, ...]
    rows: int = 1
    because: ClassVar[str] = (
        "Hardt & Talwar 2010 and Steinke & Ullman 2016 (noise by the largest coordinate), on integers"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        counting_number(self.rows, "rows")
        if not self.widths:
            raise InvalidParameter("cube noise needs at least one coordinate.")
        for width in self.widths:
            counting_number(width, "a width")

    @property
    def loss(self) -> Loss:
        """The promise, from the parameters alone."""
        if self.widths == (1,) and self.rows == 1:
            return Laplace(1 / self.epsilon)
        return Pure(self.epsilon)

    @property
    def fine(self) -> int:
        """How many steps of noise one row is: the least power of two that gives 16 steps a factor of e, or more."""
        steps = -(-_STEPS * self.epsilon.numerator // (self.epsilon.denominator * self.rows))
        return min(_FINEST, 1 << max(0, steps - 1).bit_length())

    @property
    def law(self) -> CubeLaw:
        """The law of the noise of one vector."""
        if len(self.widths) == 1:
            return CubeLaw((1,), 1, self.widths[0] * self.rows / self.epsilon)
        return CubeLaw(self.widths, self.fine, self.fine * self.rows / self.epsilon)

    def release(self, vectors: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
        """Return the noisy vectors; each is a row.

        >>> from incrowd.noise.system import SystemCoins
        >>> AddCube(Fraction(1), (1, 100)).release(np.array([[3, 250], [0, 0]]), SystemCoins()).shape
        (2, 2)
        """
        whole = integers(vectors)
        if whole.ndim != 2 or whole.shape[1] != len(self.widths):
            raise InvalidParameter("cube noise takes one row per group with one number per coordinate.")
        law = self.law
        if len(self.widths) == 1:
            return plus(whole, coins.laplace(law.scale, whole.size))
        return plus(whole, coins.cube(law.widths, law.fine, law.scale, len(whole)))
