"""SpentTally: what all datasets of a ledger have spent together, carried by every entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.charging import INFINITE
from incrowd.accounting.ledger.status import Totals
from incrowd.store.chain_entry import ChainEntry, Key, Sums

_FEW = 32
"""The totals of so many datasets are added up again at every charge; of more, `incrowd ledger check` does it."""


class SpentTally:
    """The ε and δ of all finite charges, and how many charges, charges without an ε and datasets there are.

    The values tell what each dataset spent; entries tell what happened.  Both ways lead to the same totals, so a
    dataset whose total was lost or moved back is found at the next charge.

    >>> SpentTally().total({("spent", "births"): Totals(Amount.up(1, 0), charges=2).to_json()})
    {'epsilon': '1', 'delta': '0', 'charges': 2, 'datasets': 1, 'unbounded': 0}
    """

    under: Key = ("spent",)

    def total(self, values: Mapping[Key, Any]) -> Sums:
        """Return what the datasets have spent together."""
        found = [Totals.from_json(value) for value in values.values()]
        amount = Amount()
        for each in found:
            amount = amount.plus(each.spent)
        return _plain(amount, sum(each.charges for each in found), len(found), sum(each.unbounded for each in found))

    def after(self, totals: Sums, link: ChainEntry) -> Sums:
        """Return what was spent after one more entry."""
        paid = [link.body] if link.kind == "carve" else link.body["parts"] if link.kind == "charge" else []
        finite = [part for part in paid if part["epsilon"] != INFINITE]
        amount = Amount.from_json(totals)
        for part in finite:
            amount = amount.plus(Amount.from_json(part))
        new = sum(key.startswith('["spent",') for key in link.sets) if link.kind == "register" else 0
        unbounded = totals["unbounded"] + len(paid) - len(finite)
        return _plain(amount, totals["charges"] + len(paid), totals["datasets"] + new, unbounded)

    def few(self, totals: Sums) -> bool:
        """Whether there are so few datasets that their totals can be added up at every charge."""
        return bool(totals["datasets"] <= _FEW)


def _plain(amount: Amount, charges: int, datasets: int, unbounded: int) -> Sums:
    return {**amount.to_json(), "charges": charges, "datasets": datasets, "unbounded": unbounded}
