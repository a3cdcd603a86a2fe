"""Coalitions: contributors who know a cell exactly because nobody else contributed to it, alone or two together.

A move of amounts between cells proves nothing to somebody who knows one of the cells that it changes, or in which it
moves amounts about.  A sensitive cell is open to every coalition if no coalition knows a cell of each of its moves,
which is read off lists of names.

Source: Hundepool et al. 2012, section 4.3.2, on singletons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.tabulation.protected.frame import TableFrame, Whole
from incrowd.methods.tabulation.protected.rules import Contributions

Coalition = frozenset[int]
NOBODY = -1
MOST = 2
"""The most contributors that share what they know."""


@dataclass(frozen=True, eq=False)
class Owners:
    """Who contributed to each cell with one or two contributors, and how many of them share what they know.

    `first` and `second` are names, or `NOBODY`; of cells with more contributors than share, both are.  Where `frame` is
    set, there are cells finer than those of any table: who knows a cell knows those in it, too, from the own rows.
    """

    first: Whole
    second: Whole
    size: int
    frame: TableFrame | None = None

    @classmethod
    def none(cls, cells: int) -> Owners:
        """Return owners of whom nobody knows a cell."""
        nobody = np.full(cells, NOBODY, np.int64)
        return cls(nobody, nobody, 0)

    @classmethod
    def of(cls, frame: TableFrame, contributions: Contributions, size: int) -> Owners:
        """Return who contributed to the cells of a table, of whom so many share what they know.

        >>> from incrowd.methods.tabulation.protected.frame import TableAxis
        >>> sex = TableFrame((TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)),))
        >>> some = Contributions(np.array([0, 1]), np.array([7, 8]), np.array([5, 3]), np.array([1, 4]))
        >>> owners = Owners.of(sex, some, 1)
        >>> owners.first.tolist(), Owners.of(sex, some, 2).second.tolist()
        ([-1, 7, 8], [8, -1, -1])
        """
        if not size:
            return cls.none(frame.size)
        cells, names = contributions.named(MOST + 1).everywhere(frame)[:2]
        base = int(names.max(initial=0)) + 1
        pairs = np.stack(np.divmod(np.unique(cells * base + names), base))
        where, start, number = np.unique(pairs[0], return_index=True, return_counts=True)
        first, second = np.full(frame.size, NOBODY, np.int64), np.full(frame.size, NOBODY, np.int64)
        for many in range(1, size + 1):
            chosen = number == many
            first[where[chosen]] = pairs[1, start[chosen]]
            if many == MOST:
                second[where[chosen]] = pairs[1, start[chosen] + 1]
        return cls(first, second, size)

    @property
    def exposed(self) -> NDArray[np.bool_]:
        """Which cells some coalition knows."""
        return np.asarray(self.first != NOBODY)

    def only(self, cells: NDArray[np.intp], frame: TableFrame | None = None) -> Owners:
        """Return the same, of these cells alone, and of what is in them where a frame has finer ones."""
        first, second = np.full_like(self.first, NOBODY), np.full_like(self.second, NOBODY)
        first[cells], second[cells] = self.first[cells], self.second[cells]
        return Owners(first, second, self.size, frame)

    def known_to(self, coalition: Iterable[int]) -> NDArray[np.intp]:
        """Return the cells that a coalition knows."""
        members = {NOBODY, *coalition}
        names, cells = self._by_name
        spans = [slice(*np.searchsorted(names, [name, name + 1])) for name in members - {NOBODY}]
        near = np.unique(np.concatenate([np.zeros(0, np.intp), *(cells[span] for span in spans)]))
        mine = near[[first in members and second in members for first, second in self._names(near)]]
        return mine if self.frame is None else self.frame.within(mine)

    def knows(self, coalition: Coalition, cells: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of these cells a coalition knows."""
        if self.frame is not None:
            return np.isin(cells, self.known_to(coalition))
        return np.array(
            [first in coalition and (second in coalition or second == NOBODY) for first, second in self._names(cells)],
            np.bool_,
        )

    def _names(self, cells: NDArray[np.intp]) -> Iterable[tuple[int, int]]:
        return zip(self.first[cells].tolist(), self.second[cells].tolist(), strict=True)

    @cached_property
    def _by_name(self) -> tuple[Whole, NDArray[np.intp]]:
        """The names of all who know cells alone or with another, in order, and beside each a cell."""
        sides = [(part[part != NOBODY], np.flatnonzero(part != NOBODY)) for part in (self.first, self.second)]
        names, cells = (np.concatenate(parts) for parts in zip(*sides, strict=True))
        order = np.argsort(names, kind="stable")
        return names[order], cells[order]

    def breach(
        self, cell: int, moves: Sequence[tuple[int, NDArray[np.intp]]], need: Callable[[Coalition], int]
    ) -> Coalition | None:
        """Return a coalition for which no move is left, of those that go as far as it needs; None if there is none.

        Moves have the distance that a cell goes and the cells that they touch.  A move is lost to a coalition that
        knows one of these; who knows the cell itself needs none.
        """
        knowers = [(far, self._knowers(touched)) for far, touched in moves]
        own = frozenset(name for name in (int(self.first[cell]), int(self.second[cell])) if name != NOBODY)
        stack: list[Coalition] = [frozenset()]
        while stack:
            coalition = stack.pop()
            least = need(coalition)
            if least <= 0 or (own and own <= coalition):
                continue
            left = [parts for far, parts in knowers if far >= least and not any(part <= coalition for part in parts)]
            if not left:
                return coalition
            fewest = min(left, key=len)
            stack += {coalition | part for part in fewest if len(coalition | part) <= self.size}
        return None

    def _knowers(self, touched: NDArray[np.intp]) -> set[Coalition]:
        """Return the smallest coalitions that know one of these cells."""
        some = touched[self.first[touched] != NOBODY]
        return {frozenset(name for name in pair if name != NOBODY) for pair in self._names(some)}
