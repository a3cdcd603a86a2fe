"""Rank swap: each value changes places with one of nearly the same rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from incrowd.core.coins import Coins
from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.core.schema import Schema
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.shared.frame import Numbers, Places, RowFrame
from incrowd.methods.perturbation.shared.masks import GroupedMask, MaskInput, lost_values, need_numbers
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskPicture
from incrowd.methods.perturbation.shared.steps import ColumnMasking, Exactness, KeptStatistic, by_group, column_list


@dataclass(frozen=True, kw_only=True)
class SwapRanks(ColumnMasking):
    """Values are paired with others at most a share of the rows, or one place, away in rank; the two change places."""

    kind: ClassVar[str] = "swap ranks"
    title: ClassVar[str] = "Swap neighbors"
    glyph: ClassVar[str | None] = None
    numeric: ClassVar[bool] = True
    source: ClassVar[Theorem] = Theorem(
        "rank-swapping",
        "Moore 1996, rank swapping: values only change places, with others at most a share of the rows, or one place, "
        "away in rank",
    )
    statistics = ((KeptStatistic.VALUES, Exactness.EXACT), (KeptStatistic.RANKS, Exactness.EXACT))

    share: Fraction
    correlation: Fraction | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share <= 1:
            raise InvalidParameter("ranks move by a share of the rows, above 0 and at most 1.")
        if self.correlation is not None and not 0 < self.correlation < 1:
            raise InvalidParameter("a correlation that is to be kept lies between 0 and 1.")

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        return dict.fromkeys(self.columns, Displacement(DistanceKind.RANK, float(self.share)))

    @property
    def sentence(self) -> str:
        swapped = (
            f"In {column_list(self.columns)}, each value changes places with one whose rank is at most a share of "
            f"{float(self.share):g} of the rows away, or one place{by_group(self.within)}."
        )
        if self.correlation is None:
            return swapped
        return (
            f"{swapped} Ranks move less where otherwise the correlation with the original would be below "
            f"{float(self.correlation):g} on average; how far was found by looking at all rows."
        )

    @property
    def shares(self) -> Mapping[KeptStatistic, Fraction]:
        return {KeptStatistic.RANKS: self.share}


@dataclass(frozen=True)
class RankSwap(GroupedMask):
    """Each value of a column changes places with one of nearly the same rank; columns are swapped independently.

    Neighbors in rank stand in blocks that start at a random place; within a block values are paired at random.  With
    `correlation`, blocks are as large as they may be while the correlation of a column with its original stays at least
    that on average over the coins.

    Guarantee: none to people.  Every value occurs as often as before, and no rank moves by more than the share of the
    rows, or by more than one place where that share is less than a row.  The only row of a group stays as it is.

    Assumes: nothing.

    Source: Moore 1996; Hundepool et al. 2012, §3.6.3.

    >>> RankSwap(("income",), Fraction(1, 20)).settings()
    {'rank-swap': 'income', 'share': Fraction(1, 20)}
    """

    name: ClassVar[str] = "rank-swap"

    columns: tuple[str, ...]
    share: Fraction = Fraction(1, 20)
    correlation: Fraction | None = None

    def step(self, schema: Schema) -> SwapRanks:
        need_numbers(schema, self.columns)
        return SwapRanks(
            columns=self.columns, share=self.share, correlation=self.correlation, **self.scope(schema, self.columns)
        )

    def masked(self, rows: MaskInput) -> RowFrame:
        """Return the rows with swapped values; missing ones stay where they are."""
        frame, columns = rows.frame, {}
        for name in self.columns:
            values = frame.values(name)
            present = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
            numbers = frame.numbers(name)[present]
            source = np.arange(len(values))
            source[present] = present[self.partners(numbers, rows.coins)]
            columns[name] = values.take(source)
        return frame.replaced(**columns)

    def partners(self, numbers: Numbers, coins: Coins) -> Places:
        """Return for each number the place of the one that it changes places with, perhaps its own."""
        order = np.argsort(numbers, kind="stable").astype(np.int64)
        size = self.window(numbers[order]) + 1
        swapped = order.copy()
        if size > 1:
            first = int(coins.below(size, 1)[0])
            swapped[_paired(len(order), size, first, coins)] = order
        partners = np.empty_like(order)
        partners[order] = swapped
        return partners

    def window(self, ascending: Numbers) -> int:
        """Return by how many places a rank may move at most.

        >>> [RankSwap(("income",), Fraction(1, 20)).window(np.arange(rows)) for rows in (1, 2, 19, 60)]
        [0, 1, 1, 3]
        """
        # A share of less than one row would leave small groups unmasked without a word.
        most = max(int(self.share * len(ascending)), min(1, len(ascending) - 1))
        if self.correlation is None or most == 0 or not ascending.std():
            return most
        windows = sorted({int(most * part / 64) for part in range(65)}, reverse=True)
        return next((size for size in windows if expected_correlation(ascending, size + 1) >= self.correlation), 0)

    def broken(self, rows: MaskInput, after: RowFrame) -> str | None:
        return lost_values(rows.frame, after, self.columns)

    def settings(self) -> dict[str, Any]:
        return {"rank-swap": ", ".join(self.columns), "share": self.share}


def expected_correlation(ascending: Numbers, block: int) -> float:
    """Return the correlation of values with those they change places with, on average over all coins.

    Of a block of b values with sum S and sum of squares Q, paired at random, the products sum up to (S² − Q)/(b − 1)
    on average; a value that is left over stays.  The first block has from 0 to b − 1 values, each as likely, so that a
    full block starts at every place once in b, and is cut off at the end.

    >>> expected_correlation(np.array([1.0, 2.0, 3.0, 4.0]), 1)
    1.0
    """
    centered = ascending - ascending.mean()
    number = len(centered)
    starts = np.append(np.arange(number), np.zeros(block - 1, np.int64))
    ends = np.minimum(np.append(np.arange(number) + block, np.arange(1, block)), number)
    sums, squares = (
        running[ends] - running[starts] for running in (np.append(0.0, np.cumsum(centered**power)) for power in (1, 2))
    )
    sizes = ends - starts
    pairs = np.where(sizes > 1, (sums**2 - squares) / np.maximum(1, sizes - 1), squares)
    stays = np.where(sizes % 2 == 1, 1 / sizes, 0.0)
    return float((stays * squares + (1 - stays) * pairs).sum() / block / (centered**2).sum())


def _paired(number: int, size: int, first: int, coins: Coins) -> Places:
    """Return for each place its partner's: in blocks of `size` places, the first of `first` ones, at random."""
    block = (np.arange(number) + size - first) // size
    order = np.lexsort((coins.below(2**62, number), block))
    starts = np.flatnonzero(np.diff(block[order], prepend=-1))
    place = np.arange(number) - np.repeat(starts, np.diff(np.append(starts, number)))
    last = np.repeat(np.append(starts[1:], number), np.diff(np.append(starts, number))) - 1
    other = np.where(place % 2 == 0, np.minimum(np.arange(number) + 1, last), np.arange(number) - 1)
    partners = np.empty(number, np.int64)
    partners[order] = order[other]
    return partners


CHECK = MaskCheck(SwapRanks)
PICTURE = MaskPicture()
METHOD = RankSwap
