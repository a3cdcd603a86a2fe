"""Search: a pattern of suppressed cells from moves, each a proof against readers or some coalition.

Every demand gets moves at the least price given what is suppressed already.  Then demands are taken up again, and
suppressed cells are opened again one by one where all moves through them find another way that costs less together;
at last every suppressed cell is made as wide open as asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from incrowd.methods.tabulation.protected.boxes import NEVER, Places, ProtectionDemand
from incrowd.methods.tabulation.protected.moves import Move, MoveSearch
from incrowd.methods.tabulation.protected.task import SuppressionTask

_PASSES, _MANY = 2, 2000
"""How often all is taken up again, and with how many demands only once."""
_SCATTER = 0x9E3779B1
"""Demands are met in a scattered order, which leaves less out than one line after the other."""
_CROWDED = 11
"""A cell that more demands than this use is not opened again: they do not all find another way."""

Group = list[Move]


class PatternSearch:
    """Demands with the moves that meet each, and how many of them use each cell."""

    def __init__(self, task: SuppressionTask) -> None:
        self.task = task
        self.search = MoveSearch(task)
        self.uses = np.zeros(task.frame.size, np.int64)
        self.demands: list[ProtectionDemand] = []
        self.groups: list[Group] = []

    @property
    def moves(self) -> list[Move]:
        """All moves."""
        return [move for group in self.groups for move in group]

    def run(self, demands: Sequence[ProtectionDemand], width: int = 0) -> list[Move]:
        """Return moves that meet every demand, and open every cell that they change so wide."""
        self._meet(sorted(demands, key=lambda demand: (-demand.up, demand.cell * _SCATTER % 2**32)))
        for _ in range(_PASSES if len(demands) <= _MANY else 1):
            cheaper = sum(map(self._again, range(len(self.groups))))
            if not self._reopen() and not cheaper:
                break
        while narrow := self._narrow(width):
            self._meet([ProtectionDemand(cell, 0, width, readers_only=True) for cell in narrow])
        return self.moves

    def _meet(self, demands: Sequence[ProtectionDemand]) -> None:
        start = len(self.groups)
        self.demands += demands
        self.groups += [[] for _ in demands]
        self._use(np.array([demand.cell for demand in demands], np.intp), 1)
        for last in (False, True):  # programs come last, when most of what they can use is suppressed
            for place, demand in enumerate(demands, start):
                if not self.groups[place]:
                    self._put(place, self.search.meet(demand, programs=last))

    def _narrow(self, width: int) -> list[int]:
        """Return suppressed cells that no two tables so far have so far apart, and that were not asked for yet."""
        low, high = np.zeros((2, self.task.frame.size), np.int64)
        for move in self.moves:
            np.minimum.at(low, move.changed, move.change)
            np.maximum.at(high, move.changed, move.change)
        narrow = (self.uses > 0) & (self.task.weights > 0) & (high - low < width)
        narrow[[demand.cell for demand in self.demands if demand.up >= width]] = False
        return np.flatnonzero(narrow).tolist()

    def _put(self, place: int, group: Group) -> None:
        """Let a demand be met by moves, and by none of those before."""
        for move in self.groups[place]:
            self._use(move.changed, -1)
        self.groups[place] = group
        for move in group:
            self._use(move.changed, 1)

    def _use(self, cells: Places, by: int) -> None:
        np.add.at(self.uses, cells, by)
        prices = self.search.prices[cells]
        self.search.price(cells, np.where(self.uses[cells] > 0, prices - self.task.weights[cells], prices))

    def _weight(self, cells: Places) -> float:
        return float(self.task.weights[cells[self.uses[cells] > 0]].sum())

    def _again(self, place: int) -> bool:
        """Seek moves for a demand once more, and keep them if they cost less; return whether they do."""
        before = self.groups[place]
        self._put(place, [])
        cells = _changed(before)
        cells = cells[self.uses[cells] == 0]
        cost = float(self.task.weights[cells].sum())
        after = self.search.meet(self.demands[place], programs=False) if cost > 0 else []
        if after:
            new = _changed(after)
            if float(self.task.weights[new[self.uses[new] == 0]].sum()) < cost:
                self._put(place, after)
                return True
        self._put(place, before)
        return False

    def _reopen(self) -> bool:
        """Open suppressed cells again, the dearest first, where other moves for all that use them cost less."""
        opened = False
        demanded = np.zeros(len(self.uses), np.bool_)
        demanded[[demand.cell for demand in self.demands]] = True
        users: dict[int, set[int]] = {}
        for place, group in enumerate(self.groups):
            for cell in _changed(group).tolist():
                users.setdefault(cell, set()).add(place)
        beside = [cell for cell in users if not demanded[cell] and self.task.weights[cell] > 0]
        for cell in sorted(beside, key=lambda cell: (-self.task.weights[cell], cell)):
            places = sorted(users[cell])
            if not self.uses[cell] or len(places) > _CROWDED:
                continue
            before = [self.groups[place] for place in places]
            if self._without(cell, places):
                opened = True
                for place, group in zip(places, before, strict=True):
                    for gone in _changed(group).tolist():
                        users[gone].discard(place)
                    for come in _changed(self.groups[place]).tolist():
                        users.setdefault(come, set()).add(place)
        return opened

    def _without(self, cell: int, places: list[int]) -> bool:
        """Find other moves for demands that use a cell, and keep them if they cost less; return whether they do."""
        before = [self.groups[place] for place in places]
        touched = _changed(move for group in before for move in group)
        weight = self._weight(touched)
        for place in places:
            self._put(place, [])
        left, only = self._weight(touched), np.array([cell], np.intp)
        self.search.price(only, NEVER)
        spent = left
        for place in places:
            group = self.search.meet(self.demands[place], programs=False)
            new = _changed(group)
            spent += float(self.task.weights[new[self.uses[new] == 0]].sum())
            if not group or spent >= weight:
                break
            self._put(place, group)
        else:
            self._use(only, 0)
            return True
        for place, group in zip(places, before, strict=True):
            self._put(place, group)
        self._use(only, 0)
        return False


def _changed(moves: Iterable[Move]) -> Places:
    """Return the cells that some of these moves change."""
    parts = [move.changed for move in moves]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.intp)
