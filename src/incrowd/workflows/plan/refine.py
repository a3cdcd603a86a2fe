"""Refine: a comparison of routes after a private look, which measures what crowds would leave out of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.rounding import Number, exact
from incrowd.workflows.plan.compare import (
    PublicTable,
    Route,
    RouteComparison,
    compare,
    public_table,
    safe_route,
    sampling_error,
)
from incrowd.workflows.plan.preview.method import compared_look
from incrowd.workflows.plan.preview.preview import PreviewResult, require_narrow, require_room
from incrowd.workflows.release.prepare import load_for
from incrowd.workflows.release.tables import release_in_memory

if TYPE_CHECKING:
    from incrowd.core.table import Progress
    from incrowd.workflows.plan.preview.output import KeptEstimate
    from incrowd.workflows.policy.policy import Policy


@dataclass(frozen=True)
class RefinedComparison:
    """Routes of which one was measured, and the private look that measured it."""

    comparison: RouteComparison
    looked: PreviewResult

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return self.comparison.to_json() | {"look": self.looked.to_json()}


def refine(
    data: object,
    policy: str | Path | Mapping[str, Any] | Policy,
    epsilon: Number,
    progress: Progress | None = None,
) -> RefinedComparison:
    """Pay ε for a private look, and compare routes with what it showed.

    The look is charged like any other, and refused before where the budget would not hold it and the release.
    """
    read = load_for(policy, data)
    routes, planned = compare(read), compared_look(read, exact(epsilon, "epsilon"))
    require_room(read, planned.plan.guarantee)
    require_narrow(read, planned)
    looked = PreviewResult(*release_in_memory(data, read, planned.plan, progress), read)
    measured = refined_route(public_table(read), looked.result.estimates)
    return RefinedComparison(
        replace(routes, routes=tuple(measured if route.method == "safe" else route for route in routes.routes)), looked
    )


def refined_route(table: PublicTable, estimates: tuple[KeptEstimate, ...]) -> Route:
    """Return the route of a secret sample at the levels of the comparison, at the best rate that was measured.

    The share of rows that are left out is of the declared number of rows.
    """
    there = [estimate for estimate in estimates if dict(estimate.levels) == table.levels]

    def error(estimate: KeptEstimate, rows: float) -> float:
        lost = 1 - rows / float(estimate.rate * table.rows)
        return min(1.0, max(0.0, lost) + sampling_error(table, estimate.rate))

    best = min(there, key=lambda estimate: error(estimate, estimate.expected))
    route = safe_route(table, best.rate, 0.0)
    return replace(route, error=error(best, best.expected), low=error(best, best.high), high=error(best, best.low))
