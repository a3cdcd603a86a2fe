"""Optimum: the least that can be suppressed, by one program over all patterns and all moves at once.

Source: Fischetti & Salazar 2001, the model with two attacker's tables for each sensitive cell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_diag, csr_array, diags_array, hstack, vstack

from incrowd.methods.tabulation.boxes import NEVER, Costs, ProtectionDemand
from incrowd.methods.tabulation.frame import Whole

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
    moves = [(each.cell, amount) for each in demands for amount in (each.up, -each.down) if amount]
    if not moves:
        return pattern
    chosen = np.flatnonzero((weights < NEVER) & ~pattern)
    pinned = np.flatnonzero((weights >= NEVER) & ~pattern)
    most = [float(abs(amount) if network else room.sum() + abs(amount)) for _, amount in moves]
    parts = [_rows(matrix, room, (chosen, pinned), move, far) for move, far in zip(moves, most, strict=True)]
    rows = hstack([vstack([part[0] for part in parts]), block_diag([part[1] for part in parts])], "csr")
    low, high = (np.concatenate([part[end] for part in parts]) for end in (2, 3))
    unknowns = len(room) * len(moves)
    found = milp(
        np.append(weights[chosen], np.zeros(unknowns)),
        constraints=LinearConstraint(rows, low, high),
        bounds=Bounds(
            np.concatenate([np.zeros(len(chosen)), *(-np.minimum(room, far) for far in most)]),
            np.concatenate([np.ones(len(chosen)), *(np.full(len(room), far) for far in most)]),
        ),
        integrality=np.append(np.ones(len(chosen)), np.full(unknowns, int(not network))),
    )
    if found.x is None:
        return None
    pattern[chosen[found.x[: len(chosen)] > 0.5]] = True
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
