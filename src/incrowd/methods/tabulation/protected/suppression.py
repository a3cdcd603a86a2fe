"""Suppression: which cells are left out beside the sensitive ones, so that none of those can be inferred too closely.

Up to a size the pattern of least weight is computed, beyond it is searched for by boxes; where no box has enough room,
or tables that were released before tie cells together, a program moves what is cheapest.  However it was found, a
pattern is used only with a proof: for each sensitive cell two whole tables that agree with everything published, and
in which no suppressed cell is zero where it truly is not: readers know that zeros are published.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_diag, csr_array, diags_array, hstack, vstack

from incrowd.errors import Infeasible
from incrowd.methods.tabulation.protected.attacker import Ends, Inconsistent, TableAttacker, spread
from incrowd.methods.tabulation.protected.boxes import NEVER, BoxSearch, CellBox, Costs, ProtectionDemand
from incrowd.methods.tabulation.protected.frame import Flags, TableFrame, Whole

if TYPE_CHECKING:
    from scipy.sparse import csc_array


_ROUNDS = 5


@dataclass(frozen=True, eq=False)
class SuppressionTask:
    """A table to protect: its cells, then sums that were published before, of unknowns with their true values.

    The unknowns are the finest cells, or finer ones where tables that were released before need them.  `low` and `high`
    are what everybody knows of each (−1: no upper bound).  A cell of weight `NEVER` is published whatever happens.
    `floors` are sums that everybody knows to be 1 at least, where bounds of the unknowns do not say so already.
    """

    frame: TableFrame
    sums: csr_array
    truth: Whole
    weights: Costs
    low: Whole
    high: Whole
    floors: csr_array | None = None

    @cached_property
    def cells(self) -> Whole:
        """The true value of every sum."""
        values: Whole = self.sums @ self.truth
        return values

    @property
    def alone(self) -> bool:
        """Whether the unknowns are the finest cells of this table, and nothing was published before."""
        return bool(self.sums.shape == (self.frame.size, len(self.frame.leaves)))

    @property
    def network(self) -> bool:
        """Whether whole demands have whole moves around simple cycles."""
        return self.alone and self.frame.network

    def attacker(self, pattern: Flags) -> TableAttacker:
        """Return who knows everything but the pattern."""
        published = np.flatnonzero(~pattern)
        return TableAttacker(self.sums[published], self.cells[published], self.low, self.high, self.floors)


@dataclass(frozen=True, eq=False)
class Pattern:
    """Which sums are suppressed, and the least and largest value of each among the tables that prove it."""

    suppressed: Flags
    least: Whole
    largest: Whole


def suppress(task: SuppressionTask, demands: list[ProtectionDemand], width: int) -> Pattern:
    """Return a pattern under which every demand is met and every suppressed cell is open at least so wide.

    >>> from incrowd.methods.tabulation.protected.frame import TableAxis
    >>> side = (("*", "a", "b", "c"), (-1, 0, 0, 0))
    >>> frame = TableFrame((TableAxis("row", *side), TableAxis("column", *side)))
    >>> task = task_of(frame, np.array([[20, 50, 10], [8, 19, 22], [17, 32, 12]]))
    >>> suppress(task, [ProtectionDemand(9, 4, 4)], 5).suppressed.reshape(4, 4).astype(int).tolist()
    [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 1]]
    """
    if any(task.weights[demand.cell] >= NEVER for demand in demands):
        raise Infeasible(
            "the total of the whole table is sensitive itself, or so is a cell that was published before: no pattern "
            "protects it. Choose weaker rules, or do not publish this table."
        )
    required = sorted(demands, key=lambda demand: -demand.up)
    exact = small_enough(task.sums.shape[0], demands, network=task.network)
    for _ in range(_ROUNDS):
        pattern = _least(task, required) if exact else None
        pattern = _searched(task, required) if pattern is None else pattern
        narrow = np.flatnonzero(pattern.suppressed & (pattern.largest - pattern.least < width))
        if not len(narrow):
            return pattern
        demanded = {demand.cell for demand in required}
        required = [*required, *(ProtectionDemand(cell, 0, width) for cell in narrow.tolist() if cell not in demanded)]
        exact = False
    raise Infeasible(
        f"no pattern was found that leaves {task.frame.place(int(narrow[0]))} open widely enough. Choose higher levels "
        "or weaker rules."
    )


def task_of(frame: TableFrame, leaves: Whole, weights: Costs | None = None) -> SuppressionTask:
    """Return the task of a table by itself: cells weigh their values, and zeros and the total are published.

    So everybody knows that a suppressed cell is 1 at least.
    """
    cells = frame.totals(leaves).ravel()
    costs = cells.astype(np.float64) if weights is None else weights
    fixed = cells == 0
    fixed[0] = True
    size = len(frame.leaves)
    return SuppressionTask(
        frame,
        frame.matrix,
        leaves.ravel(),
        np.where(fixed, NEVER, costs),
        np.minimum(leaves.ravel(), 1),
        np.full(size, -1, np.int64),
    )


def _least(task: SuppressionTask, demands: list[ProtectionDemand]) -> Pattern | None:
    """Return the pattern of least weight, if the solver's stands the audit."""
    room = task.truth - task.low
    suppressed = least_pattern(task.sums, room, task.weights, demands, network=task.network)
    if suppressed is None or np.any(task.high >= 0):
        return None
    chosen = np.flatnonzero(suppressed)
    lower, upper = np.zeros(len(suppressed), np.int64), np.zeros(len(suppressed), np.int64)
    for demand in demands:
        lower[demand.cell], upper[demand.cell] = demand.down, demand.up
    true, widest = task.cells[chosen], max([demand.up + demand.down for demand in demands], default=0)

    def enough(low: Ends, high: Ends) -> Flags:
        met = (low <= true - lower[chosen]) & (high >= true + upper[chosen])
        return np.asarray(met & (high - low >= widest))

    try:
        low, high = spread(task.attacker(suppressed), task.sums[chosen], enough, (task.truth,))
    except Inconsistent:
        return None
    if np.any(low > true - lower[chosen]) or np.any(high < true + upper[chosen]):
        return None
    least, largest = task.cells.copy(), task.cells.copy()
    least[chosen], largest[chosen] = low, high
    return Pattern(suppressed, least, largest)


def _searched(task: SuppressionTask, demands: list[ProtectionDemand]) -> Pattern:
    """Return a pattern that boxes and cheapest moves protect, with the proof of each demand checked."""
    suppressed = np.zeros(task.sums.shape[0], np.bool_)
    suppressed[[demand.cell for demand in demands]] = True
    moves: list[tuple[int, int, dict[int, int]]] = []
    boxes: dict[int, CellBox] = {}
    if task.alone and not np.any(task.high >= 0):
        shape = task.frame.leaf_shape
        room = task.truth - task.low
        search = BoxSearch(task.frame, room.reshape(shape), task.weights.reshape(task.frame.shape))
        boxes = search.run(demands)
        suppressed |= search.uses > 0
        moves += [
            (demands[place].cell, amount, box.moves(shape, amount))
            for place, box in boxes.items()
            for amount in _amounts(demands[place])
        ]
    for place, demand in enumerate(demands):
        for amount in _amounts(demand) if place not in boxes else ():
            move = _cheapest_move(task, demand.cell, amount, suppressed)
            suppressed |= (task.sums @ move) != 0
            moves.append((demand.cell, amount, {atom: int(move[atom]) for atom in np.flatnonzero(move).tolist()}))
    return _proved(task, suppressed, moves)


def _amounts(demand: ProtectionDemand) -> list[int]:
    return [amount for amount in (demand.up, -demand.down) if amount]


def _cheapest_move(task: SuppressionTask, cell: int, amount: int, suppressed: Flags) -> Whole:
    """Return whole changes of the unknowns by which a cell goes up or down, at the least weight of other sums."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_array, csr_array, eye_array, hstack, vstack

    pinned = np.flatnonzero((task.weights >= NEVER) & ~suppressed)
    costly = np.flatnonzero((task.weights < NEVER) & ~suppressed)
    atoms, size = task.sums.shape[1], len(costly)
    part, zeros = task.sums[costly].astype(np.float64), csr_array((len(pinned) + 1, size))
    rows = block_array(
        [
            [part, -eye_array(size)],
            [-part, -eye_array(size)],
            [task.sums[np.append(pinned, cell)].astype(np.float64), zeros],
        ],
        format="csr",
    )
    fixed = np.append(np.zeros(len(pinned)), amount)
    least, largest = np.append(np.full(2 * size, -np.inf), fixed), np.append(np.zeros(2 * size), fixed)
    if task.floors is not None:
        rows = vstack([rows, hstack([task.floors.astype(np.float64), csr_array((task.floors.shape[0], size))])], "csr")
        least = np.append(least, 1 - task.floors @ task.truth)
        largest = np.append(largest, np.full(task.floors.shape[0], np.inf))
    most = float(task.truth.sum() + abs(amount))
    high = np.where(task.high < 0, most, task.high - task.truth)
    for integral in (0, 1):
        solution = milp(
            np.concatenate([np.zeros(atoms), task.weights[costly]]),
            constraints=LinearConstraint(rows, least, largest),
            bounds=Bounds(
                np.concatenate([task.low - task.truth, np.zeros(size)]), np.append(high, np.full(size, np.inf))
            ),
            integrality=np.append(np.full(atoms, integral), np.zeros(size)),
        )
        if solution.x is None:
            break
        move: Whole = np.rint(solution.x[:atoms]).astype(np.int64)
        after, reached = task.truth + move, (task.sums[[cell]] @ move)[0] == amount
        if reached and task.attacker(suppressed | (task.weights < NEVER)).agrees(after):
            return move
    raise Infeasible(
        f"{task.frame.place(cell)} is sensitive, and nothing that could be suppressed beside it protects it: zeros and "
        "the total of everything are published, so that readers know every suppressed cell to be at least 1. Choose "
        "higher levels, weaker rules or protect: rounding, or do not publish this table."
    )


def _proved(task: SuppressionTask, suppressed: Flags, moves: list[tuple[int, int, dict[int, int]]]) -> Pattern:
    """Return the pattern, after every move was found to agree with all that is published, in exact whole numbers."""
    from scipy.sparse import csc_array

    atoms = np.array([atom for _, _, move in moves for atom in move], np.intp)
    steps = np.array([step for _, _, move in moves for step in move.values()], np.int64)
    ends = np.cumsum([0, *(len(move) for _, _, move in moves)])
    table = csc_array((steps, atoms, ends), (task.sums.shape[1], len(moves)))
    moved = task.truth[atoms] + steps
    changed = (task.sums.astype(np.int64) @ table).tocsc()
    changed.eliminate_zeros()
    aims, amounts = (
        np.array([cell for cell, _, _ in moves], np.intp),
        np.array([amount for _, amount, _ in moves], np.int64),
    )
    reached = changed[aims, np.arange(len(moves))] if len(moves) else amounts
    inside = (moved >= task.low[atoms]) & ((task.high[atoms] < 0) | (moved <= task.high[atoms]))
    if not suppressed[changed.indices].all() or not inside.all() or np.any(reached != amounts):
        raise AssertionError("a move changes what is published")
    if task.floors is not None and np.any(_falls(task.floors, table) + task.floors @ task.truth < 1):
        raise AssertionError("a move makes zero of a sum that is known not to be")
    least, largest = task.cells.copy(), task.cells.copy()
    if len(moves):
        least += _falls(task.sums, table)
        largest += np.maximum(0, changed.max(axis=1).toarray().ravel())
    return Pattern(suppressed, least, largest)


def _falls(sums: csr_array, moves: csc_array) -> Whole:
    """Return for each sum how far it falls at most by one of the moves: 0 or less."""
    changed = (sums.astype(np.int64) @ moves).tocsc()
    return np.asarray(np.minimum(0, changed.min(axis=1).toarray().ravel())) if moves.shape[1] else 0 * sums.indptr[1:]


_MOST, _MOST_WHOLE = 3000, 120
"""Up to so many unknowns the least pattern is computed; fewer where moves must be asked to be whole."""


def small_enough(cells: int, demands: list[ProtectionDemand], *, network: bool) -> bool:
    """Whether the least pattern of such a table is computed."""
    return 2 * len(demands) * cells <= (_MOST if network else _MOST_WHOLE)


def least_pattern(
    matrix: csr_array, room: Whole, weights: Costs, demands: list[ProtectionDemand], *, network: bool
) -> NDArray[np.bool_] | None:
    """Return the pattern of least weight under which every demand is met; None if there is none.

    Each demand has a move of the finest cells up and one down; a move changes nothing that is published, and takes away
    no more than the room of a finest cell: its value above the least that everybody knows of it.  In a network an
    amount moves along cycles that pass a cell once, so no cell moves further than the demand; elsewhere it moves no
    further than all room there is.
    """
    pattern = np.zeros(matrix.shape[0], np.bool_)
    pattern[[demand.cell for demand in demands]] = True
    moves = [(demand.cell, amount) for demand in demands for amount in _amounts(demand)]
    if not moves:
        return pattern
    chosen = np.flatnonzero((weights < NEVER) & ~pattern)
    pinned = np.flatnonzero((weights >= NEVER) & ~pattern)
    most = [float(abs(amount) if network else room.sum() + abs(amount)) for _, amount in moves]
    parts = [_rows(matrix, room, (chosen, pinned), move, far) for move, far in zip(moves, most, strict=True)]
    rows = hstack([vstack([part[0] for part in parts]), block_diag([part[1] for part in parts])], "csr")
    low, high = (np.concatenate([part[end] for part in parts]) for end in (2, 3))
    unknowns = len(room) * len(moves)
    solution = milp(
        np.append(weights[chosen], np.zeros(unknowns)),
        constraints=LinearConstraint(rows, low, high),
        bounds=Bounds(
            np.concatenate([np.zeros(len(chosen)), *(-np.minimum(room, far) for far in most)]),
            np.concatenate([np.ones(len(chosen)), *(np.full(len(room), far) for far in most)]),
        ),
        integrality=np.append(np.ones(len(chosen)), np.full(unknowns, int(not network))),
    )
    if solution.x is None:
        return None
    pattern[chosen[solution.x[: len(chosen)] > 0.5]] = True
    return pattern


def _rows(
    matrix: csr_array,
    room: Whole,
    cells: tuple[NDArray[np.intp], NDArray[np.intp]],
    move: tuple[int, int],
    most: float,
) -> tuple[csr_array, csr_array, Costs, Costs]:
    """Return what one move must keep: rows over the choice of cells, rows over the move itself, and their bounds.

    A cell that is not chosen does not move; one that is moves up by `most` and down by its room; what is always
    published stays; and the demanded cell moves as demanded.
    """
    (chosen, pinned), (cell, amount) = cells, move
    part = matrix[chosen].astype(np.float64)
    down = np.minimum(most, np.asarray(part @ room, np.float64))
    fixed = np.append(np.zeros(len(pinned)), float(amount))
    size, endless = len(chosen), np.full(len(chosen), np.inf)
    choice = vstack([diags_array(np.full(size, -most)), diags_array(down), csr_array((len(fixed), size))])
    moved = vstack([part, part, matrix[np.append(pinned, cell)].astype(np.float64)])
    nothing = np.zeros(size)
    return choice, moved, np.concatenate([-endless, nothing, fixed]), np.concatenate([nothing, endless, fixed])
