"""Noise: numbers get normal noise in proportion to how much they vary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from incrowd.core import domain
from incrowd.core.coins import Coins
from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.core.schema import Schema
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter, PackageMissing
from incrowd.methods.perturbation.shared.frame import Numbers, RowFrame, covariance, normals, root, shuffled
from incrowd.methods.perturbation.shared.masks import GroupedMask, MaskInput, need_numbers, need_spread
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskPicture
from incrowd.methods.perturbation.shared.steps import (
    ColumnMasking,
    Exactness,
    KeptStatistic,
    Statistics,
    by_group,
    column_list,
)

_OUTLYING = 3.0  # three robust deviations, the usual rule
_MAD = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""
_FITTED = 5000
"""The rows that a robust covariance is fitted to, at most."""


class MaskingLaw(StrEnum):
    """How the noise of different columns is correlated."""

    UNCORRELATED = "uncorrelated"
    CORRELATED = "correlated"
    ROBUST = "robust"


_WORDS = {
    MaskingLaw.UNCORRELATED: "Independent normal noise with {} times the variance of each column",
    MaskingLaw.CORRELATED: "Normal noise with {} times the covariances of the columns",
    MaskingLaw.ROBUST: "Normal noise with {} times robust covariances of the columns, which outliers hardly move,",
}


@dataclass(frozen=True, kw_only=True)
class AddMaskingNoise(ColumnMasking):
    """Numbers get normal noise whose variance is a multiple of their own.

    `restored`: values are then scaled towards their mean so that variances are as before.  `inside`: values beyond the
    declared bounds are mirrored at them.  `outliers`: the factor by which the noise of outlying values is larger.
    """

    kind: ClassVar[str] = "add noise"
    title: ClassVar[str] = "Add noise"
    glyph: ClassVar[str | None] = None
    numeric: ClassVar[bool] = True
    source: ClassVar[Theorem] = Theorem(
        "noise-moments", "Kim 1986; Brand 2002: moments of a sum of independent variables, and of its rescaling"
    )

    variance: Fraction
    law: MaskingLaw
    restored: bool
    inside: bool
    outliers: Fraction | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variance <= 0:
            raise InvalidParameter("the variance of noise is above 0, as a multiple of that of the column.")
        if self.outliers is not None and self.outliers <= 1:
            raise InvalidParameter("noise of outlying values is larger by a factor above 1.")

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        return dict.fromkeys(self.columns, Displacement(DistanceKind.DEVIATION, float(self.variance) ** 0.5))

    @property
    def statistics(self) -> Statistics:
        if self.inside:
            return ()
        means = (KeptStatistic.MEANS, Exactness.MEAN)
        if self.outliers is not None or self.law is MaskingLaw.ROBUST:
            return (means,)
        if self.law is MaskingLaw.UNCORRELATED:
            return (means,) if self.restored else (means, (KeptStatistic.COVARIANCES, Exactness.MEAN))
        moments = KeptStatistic.MOMENTS if self.restored else KeptStatistic.CORRELATIONS
        return (means, (moments, Exactness.LIMIT))

    @property
    def sentence(self) -> str:
        noise = _WORDS[self.law].format(f"{float(self.variance):g}")
        parts = [f"{noise} is added to {column_list(self.columns)}{by_group(self.within)}."]
        if self.outliers is not None:
            parts.append(f"Outlying values get {float(self.outliers):g} times as much.")
        if self.restored:
            parts.append("Values are then drawn towards their mean, so that variances are about as before.")
        if self.inside:
            parts.append("What would leave the declared bounds is mirrored at them.")
        return " ".join([*parts, "How large the noise is depends on all rows."])


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

    columns: tuple[str, ...]
    variance: Fraction = Fraction(1, 10)
    law: Literal["uncorrelated", "correlated", "robust"] = "uncorrelated"
    restore: bool = False
    inside: bool = False
    outliers: Fraction | None = None

    def step(self, schema: Schema) -> AddMaskingNoise:
        need_numbers(schema, self.columns, whole=self.law != "uncorrelated")
        if self.law == "robust":
            robust_estimator()
        for name in self.columns if self.inside else ():
            _bounds(schema, name)
        return AddMaskingNoise(
            columns=self.columns,
            variance=self.variance,
            law=MaskingLaw(self.law),
            restored=self.restore,
            inside=self.inside,
            outliers=self.outliers,
            **self.scope(schema, self.columns),
        )

    def examine(self, rows: MaskInput) -> None:
        """Refuse columns that do not vary, or not independently where their covariances are used."""
        need_spread(rows.frame, self.columns, whole=self.law != "uncorrelated")

    def masked(self, rows: MaskInput) -> RowFrame:
        """Return the rows with noise; missing values stay missing."""
        values = rows.frame.matrix(self.columns)
        noise = normals(rows.coins, *values.shape) @ self._root(values, rows.coins) * float(self.variance) ** 0.5
        if self.outliers is not None:
            noise *= np.where(_outlying(values), float(self.outliers), 1.0)
        noisy = values + noise
        if self.restore:
            means = np.nanmean(values, axis=0)
            noisy = means + (noisy - means) / (1.0 + float(self.variance)) ** 0.5
        if self.inside:
            bounds = [_bounds(rows.schema, name) for name in self.columns]
            noisy = np.column_stack([_mirrored(column, *ends) for column, ends in zip(noisy.T, bounds, strict=True)])
        return rows.frame.replaced(**dict(zip(self.columns, noisy.T, strict=True)))

    def _root(self, values: Numbers, coins: Coins) -> Numbers:
        if self.law == "uncorrelated":
            return np.diag(np.nanstd(values, axis=0))
        return root(robust_covariance(values, coins) if self.law == "robust" else covariance(values))

    def settings(self) -> dict[str, Any]:
        return {"noise": ", ".join(self.columns), "variance": self.variance, "law": self.law}


def robust_covariance(values: Numbers, coins: Coins) -> Numbers:
    """Return the covariances of the part of the rows that lies closest together; of many rows, a sample is used.

    Source: Rousseeuw & Van Driessen 1999, the minimum covariance determinant, as scikit-learn computes it.
    """
    seed = int(coins.below(2**31, 1)[0])
    sample = values[shuffled(coins, len(values))[:_FITTED]]
    covariances: Numbers = robust_estimator()(random_state=seed).fit(sample).covariance_
    return covariances


def robust_estimator() -> Any:
    """Return scikit-learn's estimator, or say how to install it; the plan calls this, so that nothing is charged."""
    try:
        from sklearn.covariance import MinCovDet
    except ImportError:
        raise PackageMissing("robust covariances need scikit-learn: pip install 'incrowd[learn]'.") from None
    return MinCovDet


def _outlying(values: Numbers) -> NDArray[np.bool_]:
    """Return which values lie more than three robust standard deviations from the median of their column."""
    middle = np.nanmedian(values, axis=0)
    away = np.abs(values - middle)
    flags: NDArray[np.bool_] = away > _OUTLYING * _MAD * np.nanmedian(away, axis=0)
    return flags


def _mirrored(values: Numbers, low: float, high: float) -> Numbers:
    """Return values mirrored at bounds, as often as necessary."""
    if low == high:
        return np.where(np.isnan(values), np.nan, low)
    place = np.mod(values - low, 2 * (high - low))
    return low + np.minimum(place, 2 * (high - low) - place)


def _bounds(schema: Schema, name: str) -> tuple[float, float]:
    """Return the declared bounds of a column, or refuse a column without."""
    numbers = schema[name].domain
    if not isinstance(numbers, domain.Numbers) or numbers.low is None or numbers.high is None:
        raise InvalidParameter(f"noise cannot stay inside the bounds of {name!r}, which has none: declare bounds.")
    return float(numbers.low), float(numbers.high)


CHECK = MaskCheck(AddMaskingNoise)
PICTURE = MaskPicture()
METHOD = NoiseMask
