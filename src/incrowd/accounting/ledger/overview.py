"""Overview: how all datasets, analysts and accounts of a ledger stand at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from incrowd.accounting.budget import Allowance, Amount, plain, read, remaining
from incrowd.accounting.ledger.standing import Standing, Terms, Totals
from incrowd.store.link import Anchor, Key
from incrowd.store.transaction import Reader


@dataclass(frozen=True)
class Share:
    """What one analyst spent of one dataset, and his allowance if he has one."""

    dataset: str
    analyst: str
    spent: Amount
    allowance: Allowance | None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that `--json` shows."""
        allowance = self.allowance and self.allowance.to_json()
        return {"dataset": self.dataset, "analyst": self.analyst, "spent": self.spent.to_json(), "allowance": allowance}


@dataclass(frozen=True)
class Account:
    """A zero-concentrated account carved out of a dataset's budget."""

    dataset: str
    account: str
    rho: Decimal
    spent: Decimal

    @property
    def left(self) -> Decimal:
        """The ρ that is still left."""
        return remaining(self.rho, self.spent)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that `--json` shows."""
        amounts = {"rho": plain(self.rho), "spent": plain(self.spent), "left": plain(self.left)}
        return {"dataset": self.dataset, "account": self.account, **amounts}


@dataclass(frozen=True)
class Overview:
    """One moment of a ledger; `shared` names datasets that use another's budget, `looks` counts looks at the rows."""

    head: Anchor
    datasets: tuple[Standing, ...]
    shared: Mapping[str, str]
    shares: tuple[Share, ...]
    accounts: tuple[Account, ...]
    looks: Mapping[str, Mapping[str, int]]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that `--json` shows."""
        return {
            "head": self.head.to_json(),
            "datasets": [standing.to_json() for standing in self.datasets],
            "shared": dict(self.shared),
            "analysts": [share.to_json() for share in self.shares],
            "accounts": [account.to_json() for account in self.accounts],
            "looks": {dataset: dict(counts) for dataset, counts in self.looks.items()},
        }


def overview(reader: Reader) -> Overview:
    """Read how everything stands in one state of the ledger."""
    datasets, totals = reader.values(("dataset",)), reader.values(("spent",))
    roots = [key[1] for key, value in datasets.items() if value["root"] == key[1]]
    return Overview(
        reader.head,
        tuple(
            Standing(root, Terms.from_json(datasets["dataset", root]), Totals.from_json(totals["spent", root]))
            for root in roots
        ),
        {key[1]: value["root"] for key, value in datasets.items() if value["root"] != key[1]},
        _shares(reader.values(("analyst",)), reader.values(("allowance",))),
        tuple(
            Account(root, account, read(value["rho"]), read(value["spent"]))
            for (_, root, account), value in reader.values(("account",)).items()
        ),
        {key[1]: value for key, value in reader.values(("looks",)).items()},
    )


def _shares(spent: Mapping[Key, Any], allowances: Mapping[Key, Any]) -> tuple[Share, ...]:
    people = sorted({key[1:] for key in [*spent, *allowances]})
    return tuple(
        Share(
            root,
            analyst,
            Amount.from_json(spent["analyst", root, analyst]) if ("analyst", root, analyst) in spent else Amount(),
            Allowance.from_json(found) if (found := allowances.get(("allowance", root, analyst))) else None,
        )
        for root, analyst in people
    )
