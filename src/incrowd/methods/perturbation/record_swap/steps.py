"""Steps: households that stand out change places with like ones of another area."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.steps import Exactness, KeptStatistic, Masking, some


@dataclass(frozen=True, kw_only=True)
class SwapRecords(Masking):
    """Pairs of households that agree in some columns exchange their areas; those that stand out first."""

    kind: ClassVar[str] = "swap records"
    title: ClassVar[str] = "Swap households"
    glyph: ClassVar[str | None] = None
    source: ClassVar[Theorem] = Theorem(
        "record-swapping",
        "Dalenius & Reiss 1982; Shlomo, Tudor & Groom 2010, targeted record swapping: only areas "
        "are exchanged, between households alike in the named columns",
    )

    area: str
    risk: tuple[str, ...]
    similar: tuple[str, ...]
    k: int
    rate: Fraction

    def __post_init__(self) -> None:
        if self.area in (*self.risk, *self.similar):
            raise InvalidParameter("the area is exchanged: it is neither a risk nor what households are alike in.")
        if self.k < 1 or not 0 <= self.rate <= 1:
            raise InvalidParameter("swapping needs k of at least 1, and a share from 0 to 1.")

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        return (self.area,)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that are read beside those that are changed."""
        return (*self.risk, *self.similar)

    @property
    def households(self) -> bool:
        """Whether what is kept is kept of households, not of rows: partners have as many rows."""
        return False

    def rests_on(self, kept: KeptStatistic) -> frozenset[str] | None:
        """Return the columns that a statistic speaks of: tables without the area speak of all the others."""
        return None if kept is KeptStatistic.TABLES else frozenset(self.changes)

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        """The columns whose values are moved, and how far."""
        return {self.area: Displacement(DistanceKind.CATEGORY, float(self.rate))}

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept: everything but where households are, and how many of each kind are where."""
        return ((KeptStatistic.VALUES, Exactness.EXACT), (KeptStatistic.TABLES, Exactness.EXACT))

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        whom = "households" if self.household is not None else "rows"
        alike = f" alike in {some(self.similar)}" if self.similar else ""
        return (
            f"{whom.capitalize()}{alike} exchange {some((self.area,))} with others of another area, as near as there "
            f"is one: those with a combination that fewer than {self.k} rows of their area have, and at least a share "
            f"of {float(self.rate):g} of all. Which ones are swapped is not told; some may find no partner."
        )
