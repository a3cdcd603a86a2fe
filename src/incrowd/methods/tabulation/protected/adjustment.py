"""Targeted adjustment: small counts move out of the range of the rule, and others move a little, so that totals add up.

Every cell changes by a stated distance at most.  So every cell may be anything from that far below its published number
to that far above: one finest cell, with all totals over it, can be moved alone, and no published number contradicts.

Source: Cox & Dandekar 2004, controlled tabular adjustment; Castro 2006 for its program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from incrowd.core.claims.claim import Claim, assumed, checked
from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.core.terms import Theorem
from incrowd.core.unit import Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.tabulation.protected.claims import (
    CONTRIBUTORS,
    KNOWS_ONLY,
    MINIMALITY,
    NOT_PRIVATE,
    OTHER_OUTPUTS,
    OTHER_TABLES,
    TABLE_ADDED_UP,
)
from incrowd.methods.tabulation.protected.frame import TableFrame, Whole
from incrowd.methods.tabulation.protected.perturbation import NearTable
from incrowd.methods.tabulation.protected.publication import document_names

_SECONDS, _GAP = 45.0, 0.02
"""So long an adjustment is sought, or until it is so near to the best one; then the best so far is taken."""
ONE_CELL_MOVED = Theorem(
    "one-cell-moved",
    "by proof: a finest cell and all totals over it can change together by as much as any cell may, and nothing "
    "published contradicts",
)


def adjust_cells(frame: TableFrame, leaves: Whole, minimum: int, shift: int, seconds: float = _SECONDS) -> NearTable:
    """Return all cells, none from 1 to below the minimum, each at most a distance from the truth; totals add up.

    They are as near to the truth together as could be found.

    >>> from incrowd.methods.tabulation.protected.frame import TableAxis
    >>> sex = TableFrame((TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)),))
    >>> adjust_cells(sex, np.array([2, 9]), 3, 3).cells.tolist()[1]
    3
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_array, csr_array, diags_array, eye_array

    cells, size = frame.totals(leaves).ravel(), len(frame.leaves)
    matrix = frame.matrix.astype(np.float64)
    small = np.flatnonzero(cells < minimum + shift)  # may end below the minimum, unless a choice says on which side
    near, choice = eye_array(frame.size), len(small)
    rows = block_array(
        [
            [matrix, -near, None],
            [-matrix, -near, None],
            [matrix[small], None, -diags_array((cells[small] + shift).astype(np.float64))],
            [matrix[small], None, -float(minimum) * eye_array(choice)],
            [csr_array((1, size)), csr_array((1, frame.size)), csr_array((1, choice))],
        ],
        format="csr",
    )
    endless = np.full(2 * frame.size, -np.inf)
    low = np.concatenate([endless, np.full(choice, -np.inf), -cells[small], [0.0]])
    high = np.concatenate([np.zeros(2 * frame.size), -cells[small], np.full(choice, np.inf), [0.0]])
    truth = leaves.ravel()
    solution = milp(
        np.concatenate([np.zeros(size), np.ones(frame.size), np.zeros(choice)]),
        constraints=LinearConstraint(rows, low, high),
        bounds=Bounds(
            np.concatenate([-np.minimum(truth, shift), np.zeros(frame.size + choice)]),
            np.concatenate([np.full(size, shift), np.full(frame.size, shift), np.ones(choice)]),
        ),
        integrality=np.concatenate([np.ones(size), np.zeros(frame.size), np.ones(choice)]),
        options={"time_limit": seconds, "mip_rel_gap": _GAP},
    )
    if solution.x is not None:
        result: Whole = frame.totals(leaves + np.rint(solution.x[:size]).astype(np.int64).reshape(leaves.shape))
        change = np.abs(result.ravel() - cells)
        if change.max() <= shift and result.min() >= 0 and not np.any((result > 0) & (result < minimum)):
            return NearTable(result, int(change.sum()), float(solution.mip_dual_bound))
    raise Infeasible(
        f"this table cannot be adjusted by at most {shift} a cell so that no count is from 1 to {minimum - 1} and all "
        "totals add up, or no such table was found. Choose a larger shift, higher levels, or suppression."
    )


@dataclass(frozen=True, kw_only=True)
class AdjustedCells(Claim):
    """Small counts are moved, others a little, and totals add up."""

    kind = "targeted adjustment"
    rank: ClassVar[int] = 40

    minimum: int
    shift: int

    @property
    def sentence(self) -> str:
        return (
            f"No published count is from 1 to {self.minimum - 1}, every one is at most {self.shift} away from the "
            "true one, and all totals are the sums of what they are totals of. Someone who knows only this table and "
            f"that cannot infer a count more closely than from {self.shift} below its published number, but not below "
            f"zero, to {self.shift} above."
        )


@dataclass(frozen=True)
class AdjustCells(Step):
    """Counts below a minimum are moved to zero or up to it, and others with them, so that all totals add up."""

    kind: ClassVar[str] = "adjust cells"
    title: ClassVar[str] = "Move small counts, keeping totals"

    minimum: int
    shift: int

    def __post_init__(self) -> None:
        if not 2 <= self.minimum <= self.shift:
            raise InvalidParameter("counts move by a shift that is at least the minimum, which is at least 2.")

    @property
    def documents(self) -> tuple[str, ...]:
        """The files that are published beside the table."""
        return document_names(1)

    @property
    def sentence(self) -> str:
        return (
            f"Counts from 1 to {self.minimum - 1} become zero, or {self.minimum} or more. Others change by at most "
            f"{self.shift}, so that all totals add up, as little as could be found. This looks at all rows."
        )

    def near(self, frame: TableFrame, leaves: Whole) -> NearTable:
        """Return the adjusted cells."""
        return adjust_cells(frame, leaves, self.minimum, self.shift)

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        terms = (("minimum", str(self.minimum)), ("shift", str(self.shift)))
        return StepGuarantee(Syntactic("targeted adjustment", terms), (NOT_PRIVATE,), frozenset({KNOWS_ONLY}))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        claim = AdjustedCells(
            minimum=self.minimum,
            shift=self.shift,
            unit=basis.unit,
            theorem=(ONE_CELL_MOVED,),
            preconditions=(*checked(TABLE_ADDED_UP), *assumed([KNOWS_ONLY])),
            not_protected=(CONTRIBUTORS, OTHER_TABLES, OTHER_OUTPUTS, MINIMALITY),
        )
        return (claim,)
