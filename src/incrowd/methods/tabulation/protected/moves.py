"""Moves: whole changes of finest cells that leave all that is published as it is, and prove that a cell stays open.

For each sensitive cell boxes are taken that cost least given what is suppressed already; where one box has not enough
room, several share the amount; where none has, a program moves what is cheapest.  As long as some coalition knows a
cell of every move, one more is sought that changes nothing it knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from incrowd.errors import Infeasible
from incrowd.methods.tabulation.protected.boxes import (
    NEVER,
    BoxSearch,
    CellBox,
    Costs,
    Places,
    ProtectionDemand,
    paths_down,
)
from incrowd.methods.tabulation.protected.coalitions import Coalition, Owners
from incrowd.methods.tabulation.protected.frame import TableFrame, Whole
from incrowd.methods.tabulation.protected.program import amounts, cheapest_move, little
from incrowd.methods.tabulation.protected.task import SuppressionTask

_BLOCKS = (5, 9, 2**20)
_ENDLESS = 2**60


@dataclass(frozen=True, eq=False)
class Move:
    """Finest cells by their numbers, their steps, by which a cell changes by an amount, and all that changes."""

    cell: int
    amount: int
    atoms: Places
    steps: Whole
    changed: Places
    change: Whole


class NoMove(Infeasible):
    """Nothing that may be suppressed lets a cell change, for somebody who knows some cells beside."""

    def __init__(self, message: str, cell: int, known_cells: Places) -> None:
        super().__init__(message)
        self.cell = cell
        self.known_cells = known_cells


class MoveSearch:
    """Moves of least price; prices change meanwhile, as cells are suppressed."""

    def __init__(self, task: SuppressionTask) -> None:
        self.task = task
        high = np.where(task.high < 0, _ENDLESS, task.high - task.truth)
        self.prices = task.weights + _exposure(task)
        self.boxes = BoxSearch.of(task.frame, task.truth - task.low, high, self.prices)
        self._places = _padded_places(task.frame)
        grid = np.unravel_index(np.arange(task.frame.size), task.frame.shape)
        self._slots = np.ravel_multi_index(grid, self.boxes.costs.shape)
        self._flat = self.boxes.costs.reshape(-1)

    def price(self, cells: Places, costs: Costs | float) -> None:
        """Let cells cost so much from now on."""
        self._flat[self._slots[cells]] = costs

    def _costs(self, cells: Places) -> Costs:
        return self._flat[self._slots[cells]]

    def meet(self, demand: ProtectionDemand, *, programs: bool) -> list[Move]:
        """Return moves of a cell up and down, until every coalition is wrong about one of each; none without boxes."""
        moves = self._both(demand)
        for amount in amounts(demand):
            same = [move for move in moves if move.amount == amount]
            while (coalition := self._breach(demand, amount, same)) is not None:
                far = self.task.need(demand, amount, coalition)
                more = self._one(demand.cell, far if amount > 0 else -far, same, coalition, programs=programs)
                if more is None:
                    return []
                same.append(more)
                moves.append(more)
        return moves

    def _breach(self, demand: ProtectionDemand, amount: int, moves: list[Move]) -> Coalition | None:
        owners = Owners.none(self.task.frame.size) if demand.readers_only else self.task.owners
        proofs = [(abs(move.amount), self._touched(move)) for move in moves]
        return owners.breach(demand.cell, proofs, lambda coalition: self.task.need(demand, amount, coalition))

    def _touched(self, move: Move) -> Places:
        """Return the cells of which somebody who knows one with all that is in it rules the move out."""
        if self.task.owners.frame is None:
            return move.changed
        cells = np.unique(self._places[move.atoms])
        return cells[cells < self.task.frame.size]

    def _one(self, cell: int, amount: int, moves: list[Move], coalition: Coalition, *, programs: bool) -> Move | None:
        """Return one more move, which changes nothing that a coalition knows; better still nothing exposed so far."""
        owners = self.task.owners
        known_cells = owners.known_to(coalition)
        if moves:
            touched = np.unique(np.concatenate([self._touched(move) for move in moves]))
            names = {*owners.first[touched].tolist(), *owners.second[touched].tolist()}
            own = {int(owners.first[cell]), int(owners.second[cell])}
            wider = np.setdiff1d(owners.known_to(names - own), [cell])
            move = self._shared(cell, amount, np.union1d(wider, known_cells))
            if move is not None:
                return move
        move = self._shared(cell, amount, known_cells)
        return self._program(cell, amount, known_cells) if move is None and programs else move

    def _both(self, demand: ProtectionDemand) -> list[Move]:
        """Return a move up and one down around one box, if there is one."""
        box = self.boxes.best(demand.cell, demand.down, demand.up)
        if box is None:
            return []
        moves = [self._around([(box, amount)], demand.cell, amount) for amount in amounts(demand)]
        return moves if all(self._possible(move) for move in moves) else []

    def _shared(self, cell: int, amount: int, known_cells: Places) -> Move | None:
        """Return a move of an amount around several boxes, each as large as it can be; None if they do not suffice."""
        shape, parts, rest = self.task.frame.leaf_shape, list[tuple[CellBox, int]](), abs(amount)
        sign = 1 if amount > 0 else -1
        marked = [(known_cells, self._costs(known_cells))]
        room, head = self.boxes.room, self.boxes.head
        self.price(known_cells, NEVER)
        part = rest
        while rest and part:
            box = self.boxes.best(cell, part if sign < 0 else 0, part if sign > 0 else 0)
            if box is None:
                part //= 2
                continue
            parts.append((box, sign * part))
            for atom, step in box.moves(shape, sign * part).items():
                place = np.unravel_index(atom, shape)
                room[place] += step
                head[place] -= step
            corners = box.moves(shape, 1)
            atoms, by = np.array(list(corners), np.intp), np.array(list(corners.values()), np.int64)
            touched = np.setdiff1d(self._effects(atoms, by)[0], known_cells)
            marked.append((touched, self._costs(touched)))
            self.price(touched, 0.0)
            rest -= part
            part = min(part, rest)
        for box, amount_ in parts:
            for atom, step in box.moves(shape, amount_).items():
                place = np.unravel_index(atom, shape)
                room[place] -= step
                head[place] += step
        for cells, costs in reversed(marked):
            self.price(cells, costs)
        if rest:
            return None
        move = self._around(parts, cell, amount)
        return move if self._possible(move) else None

    def _around(self, boxes: Iterable[tuple[CellBox, int]], cell: int, amount: int) -> Move:
        steps: dict[int, int] = {}
        for box, part in boxes:
            for atom, step in box.moves(self.task.frame.leaf_shape, part).items():
                steps[atom] = steps.get(atom, 0) + step
        return self._move(cell, amount, {atom: step for atom, step in steps.items() if step})

    def _move(self, cell: int, amount: int, steps: dict[int, int]) -> Move:
        atoms, by = np.array(list(steps), np.intp), np.array(list(steps.values()), np.int64)
        return Move(cell, amount, atoms, by, *self._effects(atoms, by))

    def _effects(self, atoms: Places, by: Whole) -> tuple[Places, Whole]:
        """Return the cells that change, and by how much."""
        where = self._places[atoms]
        cells, inverse = np.unique(where, return_inverse=True)
        change = np.zeros(len(cells), np.int64)
        np.add.at(change, inverse.ravel(), np.broadcast_to(by[:, None], where.shape).ravel())
        some = (change != 0) & (cells < self.task.frame.size)
        return cells[some], change[some]

    def _possible(self, move: Move) -> bool:
        """Whether a move keeps every sum that is known to be above zero so; bounds of finest cells it keeps."""
        if self.task.floors is None:
            return True
        low = self.task.floors[move.changed]
        return bool(np.all(~low | (self.task.cells[move.changed] + move.change >= 1)))

    def _program(self, cell: int, amount: int, known_cells: Places) -> Move:
        """Return a move that a program finds in a small block of lines, else in a larger one, else anywhere."""
        prices = self._costs(np.arange(self.task.frame.size))
        for lines in _BLOCKS:
            atoms = self._block(cell, lines)
            steps = cheapest_move(self.task, (cell, amount), (prices, known_cells), atoms)
            if steps is not None:
                return self._move(cell, amount, {atom: int(steps[atom]) for atom in np.flatnonzero(steps).tolist()})
            if len(atoms) == len(self.task.truth):
                break
        raise NoMove(hopeless(self.task, cell, known_cells), cell, known_cells)

    def _block(self, cell: int, lines: int) -> Places:
        """Return the finest cells over so many lines of each axis: those of the cell, then those with most room."""
        shape, room = self.task.frame.leaf_shape, self.boxes.room
        nodes = np.unravel_index(cell, self.task.frame.shape)
        spans = [slice(*axis.ranges[int(node)]) for axis, node in zip(self.task.frame.axes, nodes, strict=True)]
        inside = room[tuple(spans)] + (self.task.truth.reshape(shape)[tuple(spans)] > 0)
        sides = []
        for number, span in enumerate(spans):
            others = tuple(axis for axis in range(len(shape)) if axis != number)
            own = span.start + np.argsort(-inside.sum(others), kind="stable")[: max(1, lines // 3)]
            near = room[tuple(slice(None) if axis == number else spans[axis] for axis in range(len(shape)))]
            score = near.sum(others) * (1.0 + room.sum()) + room.sum(others)
            score[own] = np.inf
            sides.append(np.sort(np.argsort(-score, kind="stable")[:lines]))
        return np.ravel_multi_index(np.ix_(*sides), shape).ravel()


def _exposure(task: SuppressionTask) -> Costs:
    """Return what is added to the cost of a cell that some coalition knows: other moves have to stand beside it."""
    return np.where(task.owners.exposed, 25 * little(task), 0.0)


def _padded_places(frame: TableFrame) -> Places:
    """Return for each finest cell all cells that it is part of; the number of cells fills up."""
    tables = [paths_down(axis) for axis in frame.axes]
    where = np.zeros((1, 1), np.intp)
    missing = np.zeros((1, 1), np.bool_)
    for axis, table in zip(frame.axes, tables, strict=True):
        out = table == len(axis)
        where = (where[:, None, :, None] * len(axis) + table[None, :, None, :]).reshape(len(where) * len(table), -1)
        missing = (missing[:, None, :, None] | out[None, :, None, :]).reshape(len(where), -1)
    return np.where(missing, frame.size, where)


def hopeless(task: SuppressionTask, cell: int, known_cells: Places) -> str:
    """Return why a cell cannot be protected, and what can be done."""
    who = (
        "contributors who know their own cells can infer it, whatever else is suppressed. Choose a smaller coalition,"
        if len(known_cells)
        else "nothing that could be suppressed beside it protects it: where zeros are published, readers know every "
        "suppressed count to be at least 1. Choose zeros: suppressible,"
    )
    way = "higher levels, weaker rules or protect: rounding, or do not publish this table."
    return f"{task.frame.place(cell)} is sensitive, and {who} {way}"
