"""Bins: rows recoded into bins that were declared, counted, and in which order and how rounded counts are published."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.steps.rows import Recode, recoded
from incrowd.core.steps.step import ClaimBasis, Step
from incrowd.core.terms import KeyedText
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.cells import Cells
    from incrowd.core.claims.claim import Claim


class ListedBins(KeyedText):
    """Which bins are listed in what is released."""

    ALL = "all", "all"
    FROM_K = "from-k", "those of at least k"
    ABOVE_ZERO = "above-zero", "those above zero"
    FROM_THRESHOLD = "from-threshold", "those from the threshold on"
    CHOSEN = "chosen", "those chosen"


@dataclass(frozen=True)
class RecodeToBins(Recode):
    """Each row is recoded by itself, by declared rules, into the labels of its bin; labels need no claim."""

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        return ()


@dataclass(frozen=True)
class BinColumn:
    """The labels of one column in order, None for missing values: listed, or by number and hash; else those that occur.

    >>> BinColumn("sex", ("F", "M", None)).size, BinColumn("zip").size
    (3, None)
    """

    column: str
    labels: tuple[str | None, ...] | None = None
    number: int | None = None
    sha256: str | None = None

    def __post_init__(self) -> None:
        if (self.number is None) != (self.sha256 is None) or (self.labels is not None and self.number is not None):
            raise InvalidParameter("labels are listed, or stated by both their number and their hash.")

    @property
    def size(self) -> int | None:
        """How many labels there are; None if that is not known before rows are read."""
        return self.number if self.labels is None else len(self.labels)


@dataclass(frozen=True)
class Count(Step):
    """Each row falls into one bin of a declared partition; the rows of each bin are counted."""

    kind: ClassVar[str] = "count"
    title: ClassVar[str] = "Count"

    listed: ListedBins
    columns: tuple[BinColumn, ...]

    @property
    def size(self) -> int | None:
        """How many bins there are; None if that is not known before rows are read."""
        sizes = [column.size for column in self.columns]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that make the bins."""
        return tuple(column.column for column in self.columns)

    @property
    def sentence(self) -> str:
        bins = "the bins that occur" if self.size is None else f"{self.size:,} bins"
        part = "" if self.listed is ListedBins.ALL else f" Listed in the release: {self.listed.text}."
        return f"Each row falls into one of {bins}; the rows of each bin are counted.{part}"


@dataclass(frozen=True)
class PublishCounts(Step):
    """Counts are published in the order of the declared classes, perhaps rounded, exact ones perhaps marked."""

    kind: ClassVar[str] = "publish counts"
    title: ClassVar[str] = "Publish counts"

    round: int
    exact: bool

    def __post_init__(self) -> None:
        if self.round < 1:
            raise InvalidParameter("counts are rounded to multiples of a whole number of at least 1.")

    @property
    def sentence(self) -> str:
        rounds = "" if self.round == 1 else f" Counts are rounded to multiples of {self.round}."
        flags = " Exact counts are marked." if self.exact else ""
        return f"Bins are in the order of the declared classes, so their order reveals nothing.{rounds}{flags}"


def counted(cells: Cells, columns: Iterable[BinColumn], listed: ListedBins) -> tuple[RecodeToBins, Count]:
    """Return the steps that recode rows into bins and count them."""
    return RecodeToBins(tuple(map(recoded, cells.recodings))), Count(listed, tuple(columns))
