"""Steps: numbers get noise in proportion to how much they vary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar

from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.steps import Exactness, KeptStatistic, Masking, alike, check_columns, some


class MaskingLaw(StrEnum):
    """How the noise of different columns hangs together."""

    UNCORRELATED = "uncorrelated"
    CORRELATED = "correlated"
    ROBUST = "robust"


_WORDS = {
    MaskingLaw.UNCORRELATED: "Independent normal noise with {} times the variance of each column",
    MaskingLaw.CORRELATED: "Normal noise with {} times the covariances of the columns",
    MaskingLaw.ROBUST: "Normal noise with {} times robust covariances of the columns, which outliers hardly move,",
}


@dataclass(frozen=True, kw_only=True)
class AddMaskingNoise(Masking):
    """Numbers get normal noise whose variance is a multiple of their own.

    `restored`: values are drawn together so that variances are as before; `inside`: what leaves the declared bounds is
    mirrored at them; `outliers`: by how much the noise of outlying values is larger.
    """

    kind: ClassVar[str] = "add noise"
    title: ClassVar[str] = "Add noise"
    glyph: ClassVar[str | None] = None
    source: ClassVar[Theorem] = Theorem(
        "noise-moments", "Kim 1986; Brand 2002: moments of a sum of independent variables, and of its rescaling"
    )

    columns: tuple[str, ...]
    variance: Fraction
    law: MaskingLaw
    restored: bool
    inside: bool
    outliers: Fraction | None = None

    def __post_init__(self) -> None:
        check_columns(self.columns)
        if self.variance <= 0:
            raise InvalidParameter("the variance of noise is above 0, as a multiple of that of the column.")
        if self.outliers is not None and self.outliers <= 1:
            raise InvalidParameter("noise of outlying values is larger by a factor above 1.")

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        return self.columns

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        """The columns whose values are moved, and how far."""
        return dict.fromkeys(self.columns, Displacement(DistanceKind.DEVIATION, float(self.variance) ** 0.5))

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept, unless bounds or outliers bend it."""
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
        """What happens, for people."""
        noise = _WORDS[self.law].format(f"{float(self.variance):g}")
        parts = [f"{noise} is added to {some(self.columns)}{alike(self.within)}."]
        if self.outliers is not None:
            parts.append(f"Outlying values get {float(self.outliers):g} times as much.")
        if self.restored:
            parts.append("Values are then drawn towards their mean, so that variances are about as before.")
        if self.inside:
            parts.append("What would leave the declared bounds is mirrored at them.")
        return " ".join([*parts, "How large the noise is depends on all rows."])
