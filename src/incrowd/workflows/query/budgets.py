"""Budgets: what a query costs, the most that one may cost, and what remains of each dataset's privacy budget."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.request import Accountant
from incrowd.accounting.ledger.status import BudgetStatus, Entry
from incrowd.core.guarantee import Guarantee
from incrowd.errors import InvalidParameter, Refused
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sources import DatasetBinding
from incrowd.workflows.query.request import QueryRequest

_MOST_EPSILON = Fraction(1)
"""What a query of an analyst may cost if its policy does not say."""


@dataclass(frozen=True, eq=False)
class Budgets:
    """The privacy budgets of some datasets, as one ledger keeps them."""

    policies: tuple[Policy, ...]
    ledger: Ledger
    bonds: Mapping[str, DatasetBinding]

    def within(self, datasets: Collection[str]) -> Budgets:
        """Return the budgets of these datasets alone."""
        return replace(self, policies=tuple(policy for policy in self.policies if policy.name in datasets))

    def status(self, dataset: str) -> BudgetStatus:
        """Return the budget of a dataset and its charges; before the first charge, as its policy declares it."""
        return self.ledger.standing(self.bonds[dataset].declaration)

    def remaining(self, datasets: Iterable[str], cost: Amount | None = None) -> dict[str, Amount | None]:
        """Return what remains of each dataset after a cost; None where it does not suffice or no budget is set."""
        return {dataset: _after(self.status(dataset).left, cost or Amount()) for dataset in datasets}

    def remaining_after(self, charge: Entry, datasets: Iterable[str]) -> dict[str, Amount | None]:
        """Return what remained of each dataset right after a charge."""
        left = {status.dataset: status.left for status in charge.standings}
        return {dataset: left[self.bonds[dataset].root] for dataset in datasets}

    def report(self, analyst: str | None) -> dict[str, Any]:
        """Return the budget of each dataset, for an analyst with their own spending and allowance."""
        return {policy.name: self._report(policy.name, analyst) for policy in self.policies}

    def _report(self, dataset: str, analyst: str | None) -> dict[str, Any]:
        status = self.status(dataset)
        report: dict[str, Any] = {"unit": str(status.terms.unit), "left": status.left and status.left.to_json()}
        if analyst is not None:
            share = self.ledger.share(self.bonds[dataset].declaration, analyst)
            report |= {"spent": share.spending.to_json(), "allowance": share.allowance and share.allowance.to_json()}
        return report

    def require_allowance(self, analyst: str, policies: Sequence[Policy]) -> None:
        """Refuse an analyst without an allowance, except where a policy opens its budget to all analysts."""
        for policy in policies:
            if policy.section.queries is not None and policy.section.queries.open:
                continue
            if self.ledger.analyst(self.bonds[policy.name].declaration, analyst)[1] is None:
                raise Refused(
                    f"{analyst} has no allowance for {policy.name}. Ask its owner for one (incrowd ledger grant "
                    "… --analyst), or to open the budget to all analysts (queries: {open: true} in the policy)."
                )

    def preview(
        self, guarantees: Mapping[str, Guarantee], analyst: str | None, periods: tuple[str, ...] | None = None
    ) -> None:
        """Refuse what the ledger would refuse to charge; nothing is charged."""
        declared = [self.bonds[name].declaration for name in guarantees]
        self.ledger.preview(guarantees, analyst, declared, reads=periods)


def _after(left: Amount | None, cost: Amount) -> Amount | None:
    return left.minus(cost) if left is not None and cost.within(left) else None


def cost_of(guarantee: Guarantee) -> Amount:
    """Return what a guarantee costs."""
    spend = Accountant().spend(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    return Amount.up(Fraction(spend.epsilon), Fraction(spend.delta))


def highest_cost(guarantees: Iterable[Guarantee]) -> Amount:
    """Return the most that one answer costs any of its datasets."""
    return reduce(Amount.worst, map(cost_of, guarantees))


def cost_to_first(charge: Entry) -> Amount:
    """Return what a charge took from its first dataset."""
    charged = charge.charged[0]
    return Amount(charged.epsilon, charged.delta)


def check_account(request: QueryRequest) -> None:
    """Refuse an account that is charged otherwise than in ρ, ρ without an account, and an account of an analyst.

    An account was charged as a whole when it was made: neither an allowance nor a highest cost would limit an analyst.
    """
    terms = request.terms
    if request.account is not None and (terms.rho is None or terms.delta):
        raise InvalidParameter("an account pays in rho alone: give rho, and neither epsilon, an error nor a delta.")
    if request.account is None and terms.rho is not None and not terms.delta:
        raise InvalidParameter("rho alone is paid from an account: name one, or give a delta as well.")
    if request.account is not None and request.analyst is not None:
        raise Refused("an account is drawn on for everyone: an analyst pays with epsilon, out of an allowance.")


def check_highest_cost(policies: Sequence[Policy], guarantees: Mapping[str, Guarantee], analyst: str | None) -> None:
    """Refuse what costs more than a query, or a batch, may: by its policy or, for an analyst, by default."""
    for policy in policies:
        declared = policy.section.queries.most_epsilon if policy.section.queries is not None else None
        most = declared if declared is not None else None if analyst is None else _MOST_EPSILON
        if most is not None and policy.name in guarantees:
            cost = cost_of(guarantees[policy.name])
            if Fraction(cost.epsilon) > most:
                raise Refused(
                    f"this costs epsilon {float(cost.epsilon):.6g}, and what is asked at once about {policy.name} "
                    f"may cost {float(most):g}. Pay less for it, or allow a larger error."
                )
