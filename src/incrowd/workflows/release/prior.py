"""Prior: the last model that was published of an earlier period of a series, which the next one may start from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.steps.around import StartFromModel
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.differences import published_release


@dataclass(frozen=True, eq=False)
class EarlierModel:
    """A published model, and the step that says so."""

    model: Any
    step: StartFromModel


def earlier_model(policy: Policy, ledger: Ledger | None) -> EarlierModel | None:
    """Return the newest published model of this series, if it is in place as it was published and fits the policy.

    What is in place depends on nobody's rows: every release of the series was charged, and its outcome is public.
    """
    start = getattr(policy.step, "start_from", None)
    if policy.calendar is None or policy.period is None or ledger is None or start is None:
        return None
    section = policy.section.period
    runs = {} if section is None else ledger.runs(policy.name, section.series)
    order = {label: place for place, label in enumerate(policy.calendar.labels)}
    before = [label for label in runs if order.get(label, len(order)) < order[policy.period]]
    for label in sorted(before, key=lambda own: order[own], reverse=True):
        for run in reversed(runs[label]):
            published = published_release(policy, ledger, run["release"])
            if published.certificate is None or published.folder is None:
                continue
            try:
                from incrowd.methods.synthesis.marginals.synthetic_model import SyntheticModel

                model = SyntheticModel.load(published.folder)
            except InvalidParameter:
                continue
            cliques = start(model, policy.schema)
            if cliques:
                step = StartFromModel(label, run["release"], published.certificate.digest(), cliques)
                return EarlierModel(model, step)
    return None
