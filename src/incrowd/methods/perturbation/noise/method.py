"""Noise: numbers get normal noise in proportion to how much they vary."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from incrowd.core import domain
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.covariance import covariance, need_spread, robust_covariance, robust_estimator, root
from incrowd.methods.perturbation.frame import Numbers, RowFrame, need_numbers, normals
from incrowd.methods.perturbation.masks import GroupedMask
from incrowd.methods.perturbation.noise.steps import AddMaskingNoise, MaskingLaw

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema

_OUTLYING = 3.0
_MAD = 1.4826


@dataclass(frozen=True)
class NoiseMask(GroupedMask):
    """Numbers get normal noise: independent in each column, or with the covariances that the columns have.

    Guarantee: none to people.  Means are kept on average; independent noise also keeps covariances among columns,
    correlated noise the correlations, and with `restore` variances too, the better the more rows there are.

    Assumes: nothing.

    Source: Kim 1986; Brand 2002; Hundepool et al. 2012, §3.6.1.

    >>> NoiseMask(("income",), Fraction(1, 4)).settings()
    {'noise': 'income', 'variance': Fraction(1, 4), 'law': 'uncorrelated'}
    """

    name: ClassVar[str] = "noise"
    numeric: ClassVar[bool] = True

    columns: tuple[str, ...]
    variance: Fraction = Fraction(1, 10)
    law: Literal["uncorrelated", "correlated", "robust"] = "uncorrelated"
    restore: bool = False
    inside: bool = False
    outliers: Fraction | None = None

    def step(self, schema: Schema) -> AddMaskingNoise:
        """Return what happens, from the schema alone."""
        need_numbers(schema, self.columns, whole=self.law != "uncorrelated")
        if self.law == "robust":
            robust_estimator()
        for name in self.columns if self.inside else ():
            if not isinstance(schema[name].domain, domain.Numbers) or None in _bounds(schema, name):
                raise InvalidParameter(
                    f"noise cannot stay inside the bounds of {name!r}, which has none: declare bounds."
                )
        return AddMaskingNoise(
            columns=self.columns,
            variance=self.variance,
            law=MaskingLaw(self.law),
            restored=self.restore,
            inside=self.inside,
            outliers=self.outliers,
            **self.scope(schema, self.columns),
        )

    def examine(self, frame: RowFrame, schema: Schema) -> None:  # noqa: ARG002 - the same for every schema
        """Refuse columns that do not vary, or not independently where their covariances are used."""
        need_spread(frame, self.columns, whole=self.law != "uncorrelated")

    def masked(self, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:
        """Return the frame with noise; missing values stay missing."""
        values = frame.matrix(self.columns)
        noise = normals(coins, *values.shape) @ self._root(values, coins) * float(self.variance) ** 0.5
        if self.outliers is not None:
            noise *= np.where(_outlying(values), float(self.outliers), 1.0)
        noisy = values + noise
        if self.restore:
            means = np.nanmean(values, axis=0)
            noisy = means + (noisy - means) / (1.0 + float(self.variance)) ** 0.5
        if self.inside:
            noisy = np.column_stack([_mirrored(noisy[:, n], schema, name) for n, name in enumerate(self.columns)])
        return frame.replaced(**{name: noisy[:, n] for n, name in enumerate(self.columns)})

    def _root(self, values: Numbers, coins: Coins) -> Numbers:
        if self.law == "uncorrelated":
            return np.diag(np.nanstd(values, axis=0))
        return root(robust_covariance(values, coins) if self.law == "robust" else covariance(values))

    def settings(self) -> dict[str, Any]:
        """Return what people are told of the parameters."""
        return {"noise": ", ".join(self.columns), "variance": self.variance, "law": self.law}


def _outlying(values: Numbers) -> NDArray[np.bool_]:
    """Return which values lie more than three robust standard deviations from the median of their column."""
    middle = np.nanmedian(values, axis=0)
    away = np.abs(values - middle)
    flags: NDArray[np.bool_] = away > _OUTLYING * _MAD * np.nanmedian(away, axis=0)
    return flags


def _mirrored(values: Numbers, schema: Schema, name: str) -> Numbers:
    """Return values mirrored at the declared bounds, as often as it takes."""
    low, high = (float(bound) for bound in _bounds(schema, name) if bound is not None)
    if low == high:
        return np.where(np.isnan(values), np.nan, low)
    place = np.mod(values - low, 2 * (high - low))
    return low + np.minimum(place, 2 * (high - low) - place)


def _bounds(schema: Schema, name: str) -> tuple[Any, Any]:
    numbers = schema[name].domain
    return (numbers.low, numbers.high) if isinstance(numbers, domain.Numbers) else (None, None)
