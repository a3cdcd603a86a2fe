"""Record swap: households that stand out change places with similar ones of another area."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.core.schema import Schema
from incrowd.core.terms import Theorem
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.perturbation.shared.frame import Places, RowFrame, shuffled
from incrowd.methods.perturbation.shared.masks import Mask, MaskInput
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskPicture
from incrowd.methods.perturbation.shared.steps import Exactness, KeptStatistic, Masking, column_list

_NOBODY = -1


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
    statistics = ((KeptStatistic.VALUES, Exactness.EXACT), (KeptStatistic.TABLES, Exactness.EXACT))
    households = False

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
        return (self.area,)

    @property
    def reads(self) -> tuple[str, ...]:
        return (*self.risk, *self.similar)

    def depends_on(self, statistic: KeptStatistic) -> frozenset[str] | None:
        return None if statistic is KeptStatistic.TABLES else frozenset(self.changes)

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        return {self.area: Displacement(DistanceKind.CATEGORY, float(self.rate))}

    @property
    def sentence(self) -> str:
        units = "Rows" if self.household is None else "Households"
        alike = f" alike in {column_list(self.similar)}" if self.similar else ""
        return (
            f"{units}{alike} exchange {column_list((self.area,))} with others of another area, as near as there "
            f"is one: those with a combination that fewer than {self.k} rows of their area have, and at least a share "
            f"of {float(self.rate):g} of all. Which ones are swapped is not told; some may find no partner."
        )


@dataclass(frozen=True)
class RecordSwap(Mask):
    """Targeted record swapping: whole households change places with similar ones of another area.

    A household stands out if one of its rows has a combination of the columns `risk` that fewer than k rows of its
    area have.  Those are swapped first; others at random, until `share` of all households is.  A partner has
    as many rows and the same values of `similar`, and lives in another area; where the area has levels, as near as
    there is one.

    Guarantee: none to people.  Tables without the area are unchanged, and so are tables of the area by what households
    are alike in, as long as they count households or rows.

    Assumes: nothing.

    Source: Dalenius & Reiss 1982; Shlomo, Tudor & Groom 2010.

    >>> RecordSwap("region", similar=("size",), share=Fraction(1, 20)).settings()
    {'record-swap': 'region', 'share': Fraction(1, 20)}
    """

    name: ClassVar[str] = "record-swap"
    handles_households: ClassVar[bool] = True

    area: str
    household: str | None = None
    risk: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()
    k: int = 3
    share: Fraction = Fraction(1, 20)

    def step(self, schema: Schema) -> SwapRecords:
        for name in (self.area, *self.risk, *self.similar):
            if schema[name] in schema.unreleased:
                raise InvalidParameter(f"{name!r} is an identifier: swapping looks at columns that are released.")
        household = self._household_column(schema)
        if household is not None and schema[household] not in schema.unreleased:
            raise InvalidParameter(f"{household!r} identifies households: its role must be household or identifier.")
        return SwapRecords(
            area=self.area, household=household, risk=self.risk, similar=self.similar, k=self.k, rate=self.share
        )

    def _household_column(self, schema: Schema) -> str | None:
        """Return the column that identifies households: the named one, or the one with this role."""
        return self.household or schema.household

    def examine(self, rows: MaskInput) -> None:
        """Refuse households that live in several areas."""
        frame = rows.frame
        household, area = self._households(rows), frame.groups([self.area])
        if len(frame) and len(np.unique(household * (int(area.max()) + 1) + area)) > int(household.max()) + 1:
            raise Infeasible(f"some household has rows in several areas of {self.area!r}: clean this column first.")

    def masked(self, rows: MaskInput) -> RowFrame:
        """Return the rows in which partners have exchanged their areas."""
        frame, household = rows.frame, self._households(rows)
        number = int(household.max(initial=-1)) + 1
        first = np.full(number, len(frame), np.int64)
        np.minimum.at(first, household, np.arange(len(frame)))
        partner = self._partners(rows, household, first)
        source = np.arange(number)
        source[partner != _NOBODY] = partner[partner != _NOBODY]
        return frame.replaced(**{self.area: frame.values(self.area).take(first[source][household])})

    def _partners(self, rows: MaskInput, household: Places, first: Places) -> Places:
        """Return for each household the one that it changes places with, or −1."""
        frame = rows.frame
        area, profile = frame.groups([self.area])[first], self._profiles(frame, household)
        order = shuffled(rows.coins, len(first))
        risky = self._risky(frame, household)[order]
        queue = np.concatenate([order[risky], order[~risky]])
        target = max(int(risky.sum()), math.ceil(self.share * len(first)))
        partner = np.full(len(first), _NOBODY, np.int64)
        for region in self._regions(rows, first):
            key = profile * (int(region.max(initial=0)) + 1) + region
            _pair(queue, target, area, key, partner)
        return partner

    def _regions(self, rows: MaskInput, first: Places) -> list[Places]:
        """Return for each level above the released one, from near to far, the class in which each household lives."""
        height, released = rows.schema[self.area].hierarchy.height, self.levels.get(self.area, 0)
        classes = []
        for level in range(released + 1, height + 1):
            labels = rows.frame.lifted(self.area, level).take(first)
            classes.append(labels.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64))
        return classes

    def _risky(self, frame: RowFrame, household: Places) -> np.ndarray:
        """Return which households have a row whose combination is rare in its area."""
        risky = np.zeros(int(household.max(initial=-1)) + 1, np.bool_)
        if self.risk:
            classes = frame.groups([self.area, *self.risk])
            risky[household[np.bincount(classes)[classes] < self.k]] = True
        return risky

    def _profiles(self, frame: RowFrame, household: Places) -> Places:
        """Return for each household its profile: equal for as many rows that are alike in the named columns."""
        alike = frame.groups(self.similar)
        order = np.lexsort((alike, household))
        starts = np.flatnonzero(np.diff(household[order], prepend=-1))
        profiles: dict[tuple[int, ...], int] = {}
        members = np.split(alike[order], starts[1:])
        return np.array([profiles.setdefault(tuple(rows.tolist()), len(profiles)) for rows in members], np.int64)

    def _households(self, rows: MaskInput) -> Places:
        name = self._household_column(rows.schema)
        return np.arange(len(rows.frame)) if name is None else rows.frame.households(name)[1]

    def broken(self, rows: MaskInput, after: RowFrame) -> str | None:
        old, new = (Counter(frame.values(self.area).to_pylist()) for frame in (rows.frame, after))
        return None if old == new else "how many rows each area has"

    def settings(self) -> dict[str, Any]:
        return {"record-swap": self.area, "share": self.share}


def _pair(queue: Places, target: int, area: Places, key: Places, partner: Places) -> None:
    """Pair households of one key and different areas, in the order of the queue, until `target` are swapped."""
    free: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for household in queue[::-1].tolist():
        if partner[household] == _NOBODY:
            free[int(key[household])][int(area[household])].append(household)
    swapped = int(np.count_nonzero(partner != _NOBODY))
    for household in queue.tolist():
        if swapped >= target:
            return
        if partner[household] != _NOBODY:
            continue
        by_area, own = free[int(key[household])], int(area[household])
        others = [other for other, waiting in by_area.items() if other != own and _is_waiting(waiting, partner)]
        if not others:
            continue
        match = by_area[max(others, key=lambda other: len(by_area[other]))].pop()
        partner[household], partner[match] = match, household
        swapped += 2


def _is_waiting(waiting: list[int], partner: Places) -> bool:
    """Remove paired households from the end of a list; return whether one is left."""
    while waiting and partner[waiting[-1]] != _NOBODY:
        waiting.pop()
    return bool(waiting)


CHECK = MaskCheck(SwapRecords)
PICTURE = MaskPicture()
METHOD = RecordSwap
