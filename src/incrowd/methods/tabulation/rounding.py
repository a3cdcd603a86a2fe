"""Controlled rounding: every cell becomes a neighboring multiple of a base, and all totals still add up.

Source: Cox 1987 (always possible in two dimensions); Salazar-González 2005 for the program.
"""

from __future__ import annotations

import numpy as np

from incrowd.errors import Infeasible
from incrowd.methods.tabulation.frame import TableFrame, Whole

_NODES = 20_000
"""So many branches of the search are tried before a rounding is given up."""


def round_cells(frame: TableFrame, leaves: Whole, base: int) -> Whole:
    """Return all cells, rounded so that totals add up, as near to the truth in the finest cells as possible.

    A multiple of the base stays what it is; of any other number one of the two neighbors is taken.

    >>> from incrowd.methods.tabulation.axis import TableAxis
    >>> sex = TableFrame((TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)),))
    >>> round_cells(sex, np.array([6, 11]), 5).tolist()
    [15, 5, 10]
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    cells = frame.totals(leaves).ravel()
    down, rest = np.divmod(leaves.ravel(), base)
    least, most = cells // base - frame.matrix @ down, -(-cells // base) - frame.matrix @ down
    upper = [index for index in range(frame.size) if index not in set(frame.leaves.tolist())]
    found = milp(
        (base - 2 * rest).astype(np.float64),
        constraints=LinearConstraint(frame.matrix[upper], least[upper], most[upper]),
        bounds=Bounds(0, (rest > 0).astype(np.float64)),
        integrality=np.ones(len(rest)),
        options={"node_limit": _NODES},
    )
    if found.x is not None:
        rounded = base * (down + np.rint(found.x).astype(np.int64))
        result: Whole = frame.totals(rounded.reshape(leaves.shape))
        if np.all(np.abs(result.ravel() - cells) < base):
            return result
    raise Infeasible(
        f"this table cannot be rounded to multiples of {base} so that every cell is a neighbor of the truth and all "
        "totals add up, or no such rounding was found: with three columns, or two nested ones, there may be none. "
        "Choose another base, fewer columns, or suppression."
    )
