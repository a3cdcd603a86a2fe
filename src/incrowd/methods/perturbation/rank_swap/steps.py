"""Steps: each value changes places with one of nearly the same rank."""

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
class SwapRanks(Masking):
    """Values are paired with others whose rank is at most a share of the rows away, and the two change places."""

    kind: ClassVar[str] = "swap ranks"
    title: ClassVar[str] = "Swap neighbors"
    glyph: ClassVar[str | None] = None
    source: ClassVar[Theorem] = Theorem(
        "rank-swapping",
        "Moore 1996, rank swapping: values only change places, with others at most a share of the rows away in rank",
    )

    columns: tuple[str, ...]
    share: Fraction
    correlation: Fraction | None = None

    def __post_init__(self) -> None:
        check_columns(self.columns)
        if not 0 < self.share <= 1:
            raise InvalidParameter("ranks move by a share of the rows, above 0 and at most 1.")
        if self.correlation is not None and not 0 < self.correlation < 1:
            raise InvalidParameter("a correlation that is to be kept lies between 0 and 1.")

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        return self.columns

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        """The columns whose values are moved, and how far."""
        return dict.fromkeys(self.columns, Displacement(DistanceKind.RANK, float(self.share)))

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept: all values, and ranks within the share."""
        return ((KeptStatistic.VALUES, Exactness.EXACT), (KeptStatistic.RANKS, Exactness.EXACT))

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        less = (
            ""
            if self.correlation is None
            else (
                f" Ranks move less where otherwise the correlation with the original would be below "
                f"{float(self.correlation):g} on average; how far was found by looking at all rows."
            )
        )
        return (
            f"In {some(self.columns)}, each value changes places with one whose rank is at most a share of "
            f"{float(self.share):g} of the rows away{alike(self.within)}.{less}"
        )

    def share_of(self, kept: KeptStatistic) -> Fraction | None:
        """Return the share that ranks move by at most."""
        return self.share if kept is KeptStatistic.RANKS else None
