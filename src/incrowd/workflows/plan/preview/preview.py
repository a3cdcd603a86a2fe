"""Private preview: spend ε, estimate what each choice would keep, and choose one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.accounting.accountant import charge_of
from incrowd.accounting.budget import Amount, plain
from incrowd.core.certificate import Release
from incrowd.core.rounding import Number, exact
from incrowd.core.steps.choices import LevelsByLook
from incrowd.core.words import short_down, short_up
from incrowd.errors import Refused
from incrowd.workflows.plan.compare import (
    PublicTable,
    Route,
    RouteComparison,
    compare,
    public_table,
    safe_route,
    sampling_error,
)
from incrowd.workflows.plan.forecast import declared_rows, payer_of
from incrowd.workflows.plan.preview.chosen_policy import chosen_section
from incrowd.workflows.plan.preview.method import PrivatePreview, compared_look, look_of
from incrowd.workflows.plan.preview.output import KeptChoices
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.prepare import load_for
from incrowd.workflows.release.tables import release_in_memory

if TYPE_CHECKING:
    from incrowd.core.guarantee import Guarantee
    from incrowd.core.table import Progress
    from incrowd.workflows.plan.preview.output import KeptEstimate


@dataclass(frozen=True)
class PreviewResult(Release[KeptChoices]):
    """What a private look showed, with its certificate, under a policy."""

    policy: Policy

    @property
    def chosen(self) -> LevelsByLook:
        """What a policy says of levels that were chosen by this look."""
        place, epsilon = self.certificate.ledger, self.certificate.claims[0].parameters["epsilon"]
        return LevelsByLook(Fraction(str(epsilon)), place.chain, place.sequence, place.hash)

    @property
    def sentence(self) -> str:
        """What came of it, for people."""
        if self.result.useless:
            return (
                "useless: the intervals are too wide. The table is too small for an epsilon of "
                f"{self.chosen.epsilon}, or no choice keeps enough rows."
            )
        best = self.result.best
        return (
            f"best: about {best.expected:,.0f} rows ({best.low:,.0f} to {best.high:,.0f}) with "
            f"{100 * best.detail:.0f} % of their detail, at k = {best.k} and rate {best.rate}"
        )

    @property
    def section(self) -> dict[str, Any]:
        """The `release:` section of the best choice, for a policy that is a mapping."""
        release = self.policy.section.release
        if not isinstance(release, Mapping):
            raise TypeError("a look weighs one method, not a list")
        return chosen_section(release, self.result.best, self.chosen)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form printed by `--json`."""
        return {
            "choices": [estimate.to_json() for estimate in self.result.estimates],
            "best": self.result.place,
            "useless": self.result.useless,
            "sentence": self.sentence,
            "chosen": {"epsilon": str(self.chosen.epsilon), "entry": self.chosen.entry},
            "certificate": self.certificate.to_json(),
        }


def look(
    data: object, policy: str | Path | Mapping[str, Any] | Policy, epsilon: Number, progress: Progress | None = None
) -> PreviewResult:
    """Pay ε and show, with intervals, what a policy's choices of levels, k and rate would keep of the rows.

    It is refused, before anything is charged, where the budget would not hold look and release, or where public numbers
    tell that every interval would be too wide.
    """
    read = load_for(policy, data)
    planned = look_of(read, exact(epsilon, "epsilon"))
    require_room(read, planned.plan.guarantee)
    require_narrow(read, planned)
    return PreviewResult(*release_in_memory(data, read, planned.plan, progress), read)


def require_narrow(policy: Policy, planned: PrivatePreview) -> None:
    """Refuse a look that cannot tell anything: its noise is more than half of all that any choice could keep."""
    rows = declared_rows(policy)
    if rows is None:
        return
    wide = [planned.reach(place) / float(rows * choice.rate) for place, choice in enumerate(planned.choices)]
    if min(wide) > 0.5:
        enough = float(planned.epsilon) * min(wide) / 0.25
        raise Refused(
            f"useless: at an epsilon of {float(planned.epsilon):g} and {rows:,} declared rows, every interval would "
            f"be wider than its estimate. Nothing was charged. Spend an epsilon of about {enough:.2g}, or choose "
            "levels without a preview."
        )


def require_room(policy: Policy, guarantee: Guarantee) -> None:
    """Refuse a look after which the budget would not hold the release that it is for."""
    release, section = policy.plan.guarantee, policy.section.release
    epsilon = section.get("epsilon") if isinstance(section, Mapping) else None
    cost = charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    spend = charge_of(release.loss, release.delta, release.unit.adjacency)
    dearest = max(spend.epsilon, Decimal(0) if epsilon is None else _decimal(exact(epsilon, "epsilon")))
    need = Amount.up(Fraction(cost.epsilon) + Fraction(dearest), Fraction(cost.delta) + Fraction(spend.delta))
    left = _left(policy)
    if left is None:
        raise Refused(
            "no budget is declared: the cost of the preview would become the whole budget, and nothing would remain "
            f"for the release. Nothing was charged. Add to the policy: budget: "
            f"{{epsilon: {plain(need.epsilon)}, delta: {plain(need.delta)}}}."
        )
    if not need.within(left):
        raise Refused(
            f"preview and release together cost up to epsilon {short_up(need.epsilon, 6)} and delta "
            f"{short_up(need.delta, 6)}, and epsilon {short_down(left.epsilon, 6)} and delta "
            f"{short_down(left.delta, 6)} remain. Nothing was charged. "
            "Lower the epsilon of the release or of the preview, or raise the budget."
        )


def _left(policy: Policy) -> Amount | None:
    """Return what is left of the budget that would pay; None where there is none."""
    payer = payer_of(policy)
    if payer is not None:
        ledger, dataset = payer
        return ledger.standing(dataset).left
    return None if policy.budget is None else policy.budget.limit


def _decimal(number: Fraction) -> Decimal:
    return Amount.up(number, 0).epsilon


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
