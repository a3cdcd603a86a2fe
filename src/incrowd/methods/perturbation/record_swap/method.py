"""Record swap: households that stand out change places with like ones of another area."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.perturbation.frame import Places, RowFrame, shuffled
from incrowd.methods.perturbation.masks import Mask
from incrowd.methods.perturbation.record_swap.steps import SwapRecords

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema

_NOBODY = -1


@dataclass(frozen=True)
class RecordSwap(Mask):
    """Targeted record swapping: whole households change places with like ones of another area.

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
    whole: ClassVar[bool] = True

    area: str
    household: str | None = None
    risk: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()
    k: int = 3
    share: Fraction = Fraction(1, 20)

    def step(self, schema: Schema) -> SwapRecords:
        """Return what happens, from the schema alone."""
        for name in (self.area, *self.risk, *self.similar):
            if schema[name] in schema.unreleased:
                raise InvalidParameter(f"{name!r} is an identifier: swapping looks at columns that are released.")
        household = self._known_by(schema)
        if household is not None and schema[household] not in schema.unreleased:
            raise InvalidParameter(
                f"{household!r} tells households apart, and so who was swapped: its role must be household or "
                "identifier."
            )
        return SwapRecords(
            area=self.area,
            household=household,
            risk=self.risk,
            similar=self.similar,
            k=self.k,
            rate=self.share,
        )

    def _known_by(self, schema: Schema) -> str | None:
        """Return the column that tells households apart: the one that is named, or the one with this role."""
        return self.household or schema.household

    def examine(self, frame: RowFrame, schema: Schema) -> None:
        """Refuse households that live in several areas."""
        household, area = self._households(frame, schema), frame.groups([self.area])
        if len(frame) and len(np.unique(household * (int(area.max()) + 1) + area)) > int(household.max()) + 1:
            raise Infeasible(
                f"some household has rows in several areas: swapping would tear it apart. Clean {self.area!r} first."
            )

    def masked(self, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:
        """Return the frame in which partners have exchanged their areas."""
        household = self._households(frame, schema)
        number = int(household.max(initial=-1)) + 1
        first = np.full(number, len(frame), np.int64)
        np.minimum.at(first, household, np.arange(len(frame)))
        partner = self._partners(frame, schema, (household, first), coins)
        source = np.arange(number)
        source[partner != _NOBODY] = partner[partner != _NOBODY]
        return frame.replaced(**{self.area: frame.values(self.area).take(first[source][household])})

    def _partners(self, frame: RowFrame, schema: Schema, rows: tuple[Places, Places], coins: Coins) -> Places:
        """Return for each household the one that it changes places with, or −1."""
        household, first = rows
        area, profile = frame.groups([self.area])[first], self._profiles(frame, household)
        order = shuffled(coins, len(first))
        risky = self._risky(frame, household)[order]
        asking = np.concatenate([order[risky], order[~risky]])
        wanted = max(int(risky.sum()), math.ceil(self.share * len(first)))
        partner = np.full(len(first), _NOBODY, np.int64)
        for near in self._nearness(frame, schema, first):
            key = profile * (int(near.max(initial=0)) + 1) + near
            _pair(asking, wanted, area, key, partner)
        return partner

    def _nearness(self, frame: RowFrame, schema: Schema, first: Places) -> list[Places]:
        """Return for each level above the released one, from near to far, in which class each household lives."""
        height, here = schema[self.area].hierarchy.height, self.levels.get(self.area, 0)
        classes = []
        for level in range(here + 1, height + 1):
            labels = frame.lifted(self.area, level).take(first)
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
        """Return for each household a number that those share which have as many rows, alike in the named columns."""
        alike = frame.groups(self.similar)
        order = np.lexsort((alike, household))
        starts = np.flatnonzero(np.diff(household[order], prepend=-1))
        profiles: dict[tuple[int, ...], int] = {}
        members = np.split(alike[order], starts[1:])
        return np.array([profiles.setdefault(tuple(each.tolist()), len(profiles)) for each in members], np.int64)

    def _households(self, frame: RowFrame, schema: Schema) -> Places:
        name = self._known_by(schema)
        return np.arange(len(frame)) if name is None else frame.households(name)[1]

    def broken(self, before: RowFrame, after: RowFrame, schema: Schema) -> str | None:  # noqa: ARG002 - the same for every schema
        """Return that areas have more or fewer rows than before, or None."""
        old, new = (Counter(frame.values(self.area).to_pylist()) for frame in (before, after))
        return None if old == new else "how many rows each area has"

    def settings(self) -> dict[str, Any]:
        """Return what people are told of the parameters."""
        return {"record-swap": self.area, "share": self.share}


def _pair(asking: Places, wanted: int, area: Places, key: Places, partner: Places) -> None:
    """Pair households of one key and different areas, in the order in which they ask, until enough are swapped."""
    free: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for household in asking[::-1].tolist():
        if partner[household] == _NOBODY:
            free[int(key[household])][int(area[household])].append(household)
    swapped = int(np.count_nonzero(partner != _NOBODY))
    for household in asking.tolist():
        if swapped >= wanted:
            return
        if partner[household] != _NOBODY:
            continue
        own, here = free[int(key[household])], int(area[household])
        others = [each for each, waiting in own.items() if each != here and _top(waiting, partner) is not None]
        if not others:
            continue
        chosen = own[max(others, key=lambda each: len(own[each]))].pop()
        partner[household], partner[chosen] = chosen, household
        swapped += 2


def _top(waiting: list[int], partner: Places) -> int | None:
    """Return the first household that still waits, and forget those that do not."""
    while waiting and partner[waiting[-1]] != _NOBODY:
        waiting.pop()
    return waiting[-1] if waiting else None
