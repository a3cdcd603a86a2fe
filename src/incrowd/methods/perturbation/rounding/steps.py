"""Steps: numbers become multiples of a base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar

from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.steps import Exactness, KeptStatistic, Masking, check_columns, some


class Direction(StrEnum):
    """To which of the two neighboring multiples a number is rounded."""

    NEAREST = "nearest"
    RANDOM = "random"


_WORDS = {
    Direction.NEAREST: "the nearest one, up where two are as near",
    Direction.RANDOM: "one of the two around it, by a coin that keeps the mean",
}


@dataclass(frozen=True, kw_only=True)
class RoundValues(Masking):
    """Numbers become multiples of a base, each by itself."""

    kind: ClassVar[str] = "round values"
    title: ClassVar[str] = "Round"
    source: ClassVar[Theorem] = Theorem(
        "rounding-error", "a rounded number lies within one base of the number; by fair coins its mean is the number"
    )

    bases: Mapping[str, Fraction]
    direction: Direction

    def __post_init__(self) -> None:
        check_columns(self.changes)
        if any(base <= 0 for base in self.bases.values()):
            raise InvalidParameter("a base for rounding is above 0.")

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        return tuple(self.bases)

    @property
    def record_wise(self) -> bool:
        """Whether each row is changed by itself, given nothing but its own values."""
        return self.household is None

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        """The columns whose values are moved, and how far."""
        return {name: Displacement(DistanceKind.NUMBER, float(base)) for name, base in self.bases.items()}

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept: each value nearly, and where coins round, means on average."""
        near = (KeptStatistic.NEARNESS, Exactness.EXACT)
        return (near, (KeptStatistic.MEANS, Exactness.MEAN)) if self.direction is Direction.RANDOM else (near,)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"In {some(self.changes)}, each number becomes a multiple of a base: {_WORDS[self.direction]}."
