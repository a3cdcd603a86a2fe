"""Steps: rows are rotated among each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.steps import Exactness, KeptStatistic, Masking, alike, check_columns, some


@dataclass(frozen=True, kw_only=True)
class Rotate(Masking):
    """Rows in blocks drawn at random are multiplied by a random orthogonal matrix that leaves their sum as it is."""

    kind: ClassVar[str] = "rotate"
    title: ClassVar[str] = "Rotate rows"
    glyph: ClassVar[str | None] = None
    source: ClassVar[Theorem] = Theorem(
        "orthogonal-moments",
        "Ting, Fienberg & Trottini 2008, random orthogonal matrix masking: TX has the means and "
        "covariances of X if T is orthogonal and keeps the vector of ones",
    )

    columns: tuple[str, ...]
    strength: Fraction
    block: int

    def __post_init__(self) -> None:
        check_columns(self.columns)
        if self.strength <= 0 or self.block < 3:
            raise InvalidParameter("rows are rotated by a strength above 0, in blocks of 3 rows at least.")

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        return self.columns

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        """The columns whose values are moved, and how far."""
        far = min(1.0, float(self.strength) * self.block**0.5)
        return dict.fromkeys(self.columns, Displacement(DistanceKind.DEVIATION, far))

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept: means and covariances of the table."""
        return ((KeptStatistic.MOMENTS, Exactness.ROUNDED),)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"In {some(self.columns)}, blocks of about {self.block} rows that were drawn at random are multiplied by a "
            f"random rotation that leaves their sum as it is{alike(self.within)}."
        )
