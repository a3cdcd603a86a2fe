"""Noise: on every count of a partition, those of empty bins too; its sources, and the one claim that it makes."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from incrowd.core.claims.claim import GROUPS, assumed, checked, proved
from incrowd.core.claims.privacy import ApproximatePrivacy, PurePrivacy
from incrowd.core.loss import Gaussian, Laplace
from incrowd.core.steps.counts import ROWS_ALONE
from incrowd.core.steps.samples import SecretSample
from incrowd.core.terms import Condition, Theorem

if TYPE_CHECKING:
    from incrowd.core.steps.step import ClaimBasis

EVERY_BIN = Condition("every-bin-noisy", "every bin of the partition gets noise of its own, the empty ones too")
DECLARED = Condition("written-bins-declared", "the bins in the written output are those of the declaration")


_GEOMETRIC_NOISE = Theorem("geometric-noise", "Ghosh, Roughgarden & Sundararajan 2009 (two-sided geometric noise)")
_GAUSSIAN_NOISE = Theorem("gaussian-noise", "Canonne, Kamath & Steinke 2020 (integer Gaussian noise)")


class Law(StrEnum):
    """The law of the noise, as a step names it."""

    LAPLACE = "integer Laplace"
    GAUSSIAN = "integer Gaussian"

    @property
    def kind(self) -> str:
        """Its name in policies and claims.

        >>> Law.GAUSSIAN.kind
        'gaussian'
        """
        return self.removeprefix("integer ").lower()

    @property
    def source(self) -> Theorem:
        """Who proved what such noise costs."""
        if self is Law.LAPLACE:
            return _GEOMETRIC_NOISE
        return _GAUSSIAN_NOISE

    def loss(self, scale: Fraction) -> Laplace | Gaussian:
        """Return what such noise on a count costs a row."""
        return Laplace(scale) if self is Law.LAPLACE else Gaussian(scale)


def noise_claim(
    noise: str,
    scale: Fraction,
    epsilon: Decimal | Fraction,
    basis: ClaimBasis,
    conditions: tuple[Condition, Condition] = (EVERY_BIN, DECLARED),
) -> PurePrivacy | ApproximatePrivacy:
    """Return the claim of counts with noise: differential privacy, by the theorem of the guarantee.

    `conditions` are what noise falls on, which is proved, and what can be seen of that in the output.
    """
    unit, guarantee, sample = basis.unit, basis.guarantee, basis.find(SecretSample)
    given: dict[str, Any] = {"noise": noise, "scale": scale, "epsilon": epsilon, "unit": unit}
    given |= {"adjacency": unit.adjacency, "max_rows": unit.max_rows, "rate": None if sample is None else sample.rate}
    given["preconditions"] = (
        *proved(conditions[0], ROWS_ALONE),
        *checked(conditions[1]),
        *assumed(guarantee.assumes),
    )
    given |= {"theorem": guarantee.because, "not_protected": (GROUPS,)}
    return ApproximatePrivacy(**given, delta=guarantee.delta) if guarantee.delta else PurePrivacy(**given)
