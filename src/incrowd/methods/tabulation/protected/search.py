"""Search: a pattern of suppressed cells by moving amounts, each move a proof against readers or some coalition.

For each sensitive cell boxes are taken that cost least given what is suppressed already; where one box has not enough
room, several share the amount; where none has, a program moves what is cheapest.  As long as some coalition knows a
cell of every move, one more is sought that changes nothing it knows.  Then cells are taken up again until nothing
becomes cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import Infeasible
from incrowd.methods.tabulation.protected.boxes import NEVER, BoxSearch, CellBox, Places, ProtectionDemand
from incrowd.methods.tabulation.protected.coalitions import Coalition, Owners
from incrowd.methods.tabulation.protected.frame import TableFrame, Whole
from incrowd.methods.tabulation.protected.task import SuppressionTask

_PASSES = 3
_BLOCKS = (5, 9, 2**20)
_ENDLESS = 2**60
_NEAR, _NODES, _WHOLE = 0.5, 500, 1500
"""How much more than the least a move in whole numbers may cost: the least one takes too long."""


@dataclass(frozen=True, eq=False)
class Move:
    """Finest cells by their numbers and how far they change, by which a cell changes by an amount; all that changes."""

    cell: int
    amount: int
    atoms: Places
    steps: Whole
    changed: Places


class NoMove(Infeasible):
    """Nothing that may be suppressed lets a cell change, for somebody who knows some cells beside."""

    def __init__(self, message: str, cell: int, known_cells: Places) -> None:
        super().__init__(message)
        self.cell = cell
        self.known_cells = known_cells


class PatternSearch:
    """Moves for demands, and how many of them use each cell."""

    def __init__(self, task: SuppressionTask) -> None:
        self.task = task
        high = np.where(task.high < 0, _ENDLESS, task.high - task.truth)
        self.uses = np.zeros(task.frame.size, np.int64)
        self.prices = task.weights + _exposure(task)
        self.boxes = BoxSearch.of(task.frame, task.truth - task.low, high, self.prices)
        self._places = _padded_places(task.frame)

    def run(self, demands: Sequence[ProtectionDemand]) -> list[Move]:
        """Return moves that meet every demand."""
        for demand in demands:
            self._use([demand.cell], 1)
        groups: list[list[Move]] = [[] for _ in demands]
        for last in (False, True):  # programs come last, when most of what they can use is suppressed
            for place, demand in enumerate(demands):
                if not groups[place]:
                    groups[place] = self._place(demand, last=last)
        for _ in range(_PASSES - 1):
            improved = False
            for place, demand in enumerate(demands):
                improved |= self._again(groups, place, demand)
            if not improved:
                break
        return [move for group in groups for move in group]

    def _place(self, demand: ProtectionDemand, *, last: bool) -> list[Move]:
        group = self._moves(demand, programs=last)
        for move in group:
            self._use(move.changed, 1)
        return group

    def _again(self, groups: list[list[Move]], place: int, demand: ProtectionDemand) -> bool:
        """Seek moves for a demand once more, and keep them if they cost less; return whether they do."""
        before = groups[place]
        for move in before:
            self._use(move.changed, -1)
        cost = self._cost(before)
        after = self._moves(demand, programs=False) if cost > 0 else before
        better = bool(after) and self._cost(after) < cost
        groups[place] = after if better else before
        for move in groups[place]:
            self._use(move.changed, 1)
        return better

    def _cost(self, group: list[Move]) -> float:
        cells = np.unique(np.concatenate([move.changed for move in group])) if group else np.zeros(0, np.intp)
        return float(self.task.weights[cells[self.uses[cells] == 0]].sum())

    def _use(self, cells: Sequence[int] | Places, by: int) -> None:
        where = np.asarray(cells, np.intp)
        self.uses[where] += by
        self._set(
            where, np.where(self.uses[where] > 0, self.prices[where] - self.task.weights[where], self.prices[where])
        )

    def _set(self, cells: Places, costs: NDArray[np.float64] | float) -> None:
        self.boxes.costs[np.unravel_index(cells, self.task.frame.shape)] = costs

    def _costs(self, cells: Places) -> NDArray[np.float64]:
        return np.asarray(self.boxes.costs[np.unravel_index(cells, self.task.frame.shape)])

    def _moves(self, demand: ProtectionDemand, *, programs: bool) -> list[Move]:
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
        proofs = [(abs(move.amount), move.changed) for move in moves]
        return owners.breach(demand.cell, proofs, lambda coalition: self.task.need(demand, amount, coalition))

    def _one(self, cell: int, amount: int, moves: list[Move], coalition: Coalition, *, programs: bool) -> Move | None:
        """Return one more move, which changes nothing that a coalition knows; better still nothing exposed so far."""
        owners = self.task.owners
        known_cells = owners.known_to(coalition)
        if moves:
            changed = np.unique(np.concatenate([move.changed for move in moves]))
            names = {*owners.first[changed].tolist(), *owners.second[changed].tolist()}
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
        self._set(known_cells, NEVER)
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
            touched = np.setdiff1d(self._effects(box.moves(shape, 1))[0], known_cells)
            marked.append((touched, self._costs(touched)))
            self._set(touched, 0.0)
            rest -= part
            part = min(part, rest)
        for box, amount_ in parts:
            for atom, step in box.moves(shape, amount_).items():
                place = np.unravel_index(atom, shape)
                room[place] -= step
                head[place] += step
        for cells, costs in reversed(marked):
            self._set(cells, costs)
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
        changed = self._effects(steps)[0]
        return Move(cell, amount, np.array(list(steps), np.intp), np.array(list(steps.values()), np.int64), changed)

    def _effects(self, steps: dict[int, int]) -> tuple[Places, Whole]:
        """Return the cells that change, and by how much."""
        atoms, by = np.array(list(steps), np.intp), np.array(list(steps.values()), np.int64)
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
        cells, change = self._effects(dict(zip(move.atoms.tolist(), move.steps.tolist(), strict=True)))
        low = self.task.floors[cells]
        return bool(np.all(~low | (self.task.cells[cells] + change >= 1)))

    def _program(self, cell: int, amount: int, known_cells: Places) -> Move:
        """Return a move that a program finds in a small block of lines, else in a larger one, else anywhere."""
        prices = np.where(self.uses > 0, self.prices - self.task.weights, self.prices)
        for lines in _BLOCKS:
            atoms = self._block(cell, lines)
            steps = cheapest_move(self.task, (cell, amount), (prices, known_cells), atoms)
            if steps is not None:
                return self._move(cell, amount, {atom: int(steps[atom]) for atom in np.flatnonzero(steps).tolist()})
            if len(atoms) == len(self.task.truth):
                break
        raise NoMove(_hopeless(self.task, cell, known_cells), cell, known_cells)

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


def _exposure(task: SuppressionTask) -> NDArray[np.float64]:
    """Return what is added to the cost of a cell that some coalition knows: other moves have to stand beside it."""
    return np.where(task.owners.exposed, 25 * _little(task), 0.0)


def _little(task: SuppressionTask) -> float:
    """Return a hundredth of what a cell costs."""
    costs = task.weights[(task.weights > 0) & (task.weights < NEVER)]
    return float(np.median(costs)) / 100 if len(costs) else 0.0


def _padded_places(frame: TableFrame) -> Places:
    """Return for each finest cell all cells that it is part of; the number of cells fills up."""
    from incrowd.methods.tabulation.protected.boxes import paths_down

    tables = [paths_down(axis) for axis in frame.axes]
    where = np.zeros((1, 1), np.intp)
    missing = np.zeros((1, 1), np.bool_)
    for axis, table in zip(frame.axes, tables, strict=True):
        out = table == len(axis)
        where = (where[:, None, :, None] * len(axis) + table[None, :, None, :]).reshape(len(where) * len(table), -1)
        missing = (missing[:, None, :, None] | out[None, :, None, :]).reshape(len(where), -1)
    return np.where(missing, frame.size, where)


def amounts(demand: ProtectionDemand) -> list[int]:
    """Return how far a cell must go up, and how far down as a negative number; nothing for zero."""
    return [amount for amount in (demand.up, -demand.down) if amount]


def cheapest_move(
    task: SuppressionTask, aim: tuple[int, int], costs: tuple[NDArray[np.float64], Places], atoms: Places
) -> Whole | None:
    """Return whole changes of some finest cells by which a cell goes up or down, at the least price of other cells.

    `costs` are the prices of all cells, and those that stay as they are.  Cells that are suppressed already cost a
    little, too: a move that changes few of them proves more.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_array, csr_array, eye_array, hstack, vstack

    (cell, amount), (prices, known_cells) = aim, costs
    still = np.zeros(task.frame.size, np.bool_)
    still[known_cells] = True
    still |= prices >= NEVER
    sums = task.frame.matrix[:, atoms].astype(np.float64)
    touched = np.diff(sums.indptr) > 0
    pinned, costly = np.flatnonzero(still & touched), np.flatnonzero((task.weights > 0) & ~still & touched)
    part, size = sums[costly], len(costly)
    rows = block_array(
        [
            [part, -eye_array(size)],
            [-part, -eye_array(size)],
            [sums[np.append(pinned, cell)], csr_array((len(pinned) + 1, size))],
        ],
        format="csr",
    )
    fixed = np.append(np.zeros(len(pinned)), amount)
    least, largest = np.append(np.full(2 * size, -np.inf), fixed), np.append(np.zeros(2 * size), fixed)
    if task.floors is not None:
        low = np.flatnonzero(task.floors & touched)
        rows = vstack([rows, hstack([sums[low], csr_array((len(low), size))])], "csr")
        least = np.append(least, 1 - task.cells[low])
        largest = np.append(largest, np.full(len(low), np.inf))
    truth, most = task.truth[atoms], float(task.truth.sum() + abs(amount))
    high = np.where(task.high[atoms] < 0, most, task.high[atoms] - truth)
    for integral in (0, 1) if len(atoms) <= _WHOLE else (0,):
        solution = milp(
            np.concatenate([np.zeros(len(atoms)), prices[costly] + _little(task)]),
            constraints=LinearConstraint(rows, least, largest),
            bounds=Bounds(
                np.concatenate([task.low[atoms] - truth, np.zeros(size)]), np.append(high, np.full(size, np.inf))
            ),
            integrality=np.append(np.full(len(atoms), integral), np.zeros(size)),
            options={"mip_rel_gap": _NEAR, "node_limit": _NODES} if integral else {},
        )
        if solution.x is None:
            return None
        move = np.zeros(len(task.truth), np.int64)
        move[atoms] = np.rint(solution.x[: len(atoms)]).astype(np.int64)
        if task.agrees(move, still) and (task.frame.matrix[[cell]] @ move)[0] == amount:
            return move
    return None


def _hopeless(task: SuppressionTask, cell: int, known_cells: Places) -> str:
    who = (
        "contributors who know their own cells can infer it, whatever else is suppressed. Choose a smaller coalition,"
        if len(known_cells)
        else "nothing that could be suppressed beside it protects it: where zeros are published, readers know every "
        "suppressed count to be at least 1. Choose zeros: suppressible,"
    )
    way = "higher levels, weaker rules or protect: rounding, or do not publish this table."
    return f"{task.frame.place(cell)} is sensitive, and {who} {way}"
