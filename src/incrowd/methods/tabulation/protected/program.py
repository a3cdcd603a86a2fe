"""Programs: the cheapest move of one cell, and the pattern of least weight under which every demand is met.

Source: Fischetti & Salazar 2001.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_array, block_diag, csr_array, diags_array, eye_array, hstack, vstack

from incrowd.methods.tabulation.protected.boxes import NEVER, Costs, Places, ProtectionDemand
from incrowd.methods.tabulation.protected.frame import Flags, Whole
from incrowd.methods.tabulation.protected.task import SuppressionTask

_MOST, _MOST_WHOLE = 3000, 120
"""Up to so many unknowns the least pattern is computed; fewer where moves must be asked to be whole."""
_NEAR, _MOVE_NODES, _WHOLE = 0.5, 500, 1500
"""How much more than the least a move in whole numbers may cost, and the size up to which one is asked for."""
_NODES = 2000
"""So many branches of the search are tried before the best pattern so far is taken."""


def amounts(demand: ProtectionDemand) -> list[int]:
    """Return how far a cell must go up, and how far down as a negative number; nothing for zero."""
    return [amount for amount in (demand.up, -demand.down) if amount]


@dataclass(frozen=True, eq=False)
class LeastPattern:
    """Which cells are suppressed, and a weight that no pattern for these demands can be below."""

    suppressed: Flags
    bound: float


def small_enough(task: SuppressionTask, demands: list[ProtectionDemand]) -> bool:
    """Whether the least pattern of such a table is computed."""
    if task.floors is not None or np.any(task.high >= 0):
        return False
    return 2 * len(demands) * task.frame.size <= (_MOST if task.frame.network else _MOST_WHOLE)


def least_pattern(task: SuppressionTask, demands: list[ProtectionDemand]) -> LeastPattern | None:
    """Return a pattern of least weight under which every demand is met; None if there is none, or none was found.

    Each demand has a move of the finest cells up and one down; a move changes nothing that is published or known,
    and takes away no more than the room of a finest cell: its value above the least that everybody knows of it.  In a
    network an amount moves along cycles that pass a cell once, so no cell moves further than the demand; elsewhere it
    moves no further than all room there is.
    """
    pattern = np.zeros(task.frame.size, np.bool_)
    pattern[[demand.cell for demand in demands]] = True
    moves = [(demand, amount) for demand in demands for amount in amounts(demand)]
    if not moves:
        return LeastPattern(pattern, float(task.weights[pattern].sum()))
    room, network = task.truth - task.low, task.frame.network
    chosen = np.flatnonzero((task.weights < NEVER) & (task.weights > 0) & ~pattern)
    pinned = np.flatnonzero((task.weights >= NEVER) & ~pattern)
    most = [float(abs(amount) if network else room.sum() + abs(amount)) for _, amount in moves]
    parts = [_rows(task, (chosen, pinned), move, far) for move, far in zip(moves, most, strict=True)]
    rows = hstack([vstack([part[0] for part in parts]), block_diag([part[1] for part in parts])], "csr")
    low, high = (np.concatenate([part[end] for part in parts]) for end in (2, 3))
    unknowns = len(room) * len(moves)
    solution = milp(
        np.append(task.weights[chosen], np.zeros(unknowns)),
        constraints=LinearConstraint(rows, low, high),
        bounds=Bounds(
            np.concatenate([np.zeros(len(chosen)), *(-np.minimum(room, far) for far in most)]),
            np.concatenate([np.ones(len(chosen)), *(np.full(len(room), far) for far in most)]),
        ),
        integrality=np.append(np.ones(len(chosen)), np.full(unknowns, int(not network))),
        options={"node_limit": _NODES},
    )
    if solution.x is None:
        return None
    required = float(task.weights[pattern].sum())
    pattern[chosen[solution.x[: len(chosen)] > 0.5]] = True
    return LeastPattern(pattern, required + float(solution.mip_dual_bound))


def _rows(
    task: SuppressionTask, cells: tuple[Places, Places], move: tuple[ProtectionDemand, int], most: float
) -> tuple[csr_array, csr_array, Costs, Costs]:
    """Return what one move must keep: rows over the choice of cells, rows over the move itself, and their bounds.

    A cell that is not chosen does not move; one that is moves up by `most` and down by its room; what is always
    published, or known beside, stays; and the demanded cell moves as demanded.
    """
    (chosen, pinned), (demand, amount) = cells, move
    matrix = task.frame.matrix
    part = matrix[chosen].astype(np.float64)
    down = np.minimum(most, np.asarray(part @ (task.truth - task.low), np.float64))
    still = np.union1d(pinned, np.array(demand.known_cells, np.intp))
    fixed = np.append(np.zeros(len(still)), float(amount))
    size, endless = len(chosen), np.full(len(chosen), np.inf)
    choice = vstack([diags_array(np.full(size, -most)), diags_array(down), csr_array((len(fixed), size))])
    moved = vstack([part, part, matrix[np.append(still, demand.cell)].astype(np.float64)])
    nothing: NDArray[np.float64] = np.zeros(size)
    return choice, moved, np.concatenate([-endless, nothing, fixed]), np.concatenate([nothing, endless, fixed])


def little(task: SuppressionTask) -> float:
    """Return a hundredth of what a cell costs."""
    costs = task.weights[(task.weights > 0) & (task.weights < NEVER)]
    return float(np.median(costs)) / 100 if len(costs) else 0.0


def cheapest_move(
    task: SuppressionTask, aim: tuple[int, int], costs: tuple[NDArray[np.float64], Places], atoms: Places
) -> Whole | None:
    """Return whole changes of some finest cells by which a cell goes up or down, at the least price of other cells.

    `costs` are the prices of all cells, and those that stay as they are.  Cells that are suppressed already cost a
    little, too: a move that changes few of them proves more.
    """
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
            np.concatenate([np.zeros(len(atoms)), prices[costly] + little(task)]),
            constraints=LinearConstraint(rows, least, largest),
            bounds=Bounds(
                np.concatenate([task.low[atoms] - truth, np.zeros(size)]), np.append(high, np.full(size, np.inf))
            ),
            integrality=np.append(np.full(len(atoms), integral), np.zeros(size)),
            options={"mip_rel_gap": _NEAR, "node_limit": _MOVE_NODES} if integral else {},
        )
        if solution.x is None:
            return None
        move = np.zeros(len(task.truth), np.int64)
        move[atoms] = np.rint(solution.x[: len(atoms)]).astype(np.int64)
        if task.agrees(move, still) and (task.frame.matrix[[cell]] @ move)[0] == amount:
            return move
    return None
