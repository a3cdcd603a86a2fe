"""`incrowd ledger show`: budgets, charges without a release, and every entry."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.options import Address, Json, takes
from incrowd.cli.output import finite, print_json, print_table, print_text
from incrowd.store.chain_entry import RENEWED
from incrowd.workflows.policy.ledger_place import ledger_place

if TYPE_CHECKING:
    from incrowd.accounting.budget import Amount
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.accounting.ledger.status import AnalystShare, BudgetStatus, ChargeWithoutRelease, Entry, Overview
    from incrowd.workflows.release.recover import HiddenRelease

_PAGE = 1000
_BARS = 24


@dataclass(frozen=True)
class ShowOptions:
    """The options of `incrowd ledger show`."""

    ledger: Address = None
    entries: Annotated[bool, typer.Option("--entries", help="List every entry, too.")] = False
    as_json: Json = False


@takes(ShowOptions)
def show(options: ShowOptions) -> None:
    """Show budgets, spent and remaining amounts, and charges without a release."""
    from incrowd.accounting.ledger.ledger import Ledger

    ledger = Ledger.open(ledger_place(options.ledger))
    overview, lost, hidden = ledger.show(), ledger.unfinished(), _hidden(ledger)
    place = ledger.moved_to()
    if options.as_json:
        plain = overview.to_json() | ({} if place is None else {"moved_to": place})
        plain |= {"nothing_came": [*(charge.to_json() for charge in lost), *(release.to_json() for release in hidden)]}
        return _print_entries_json(plain, ledger) if options.entries else print_json(plain)
    if place is not None:
        print_text(f"This ledger was moved to {place}. What remains of its budgets is there.")
    _print(overview)
    _print_periods(overview, ledger)
    if options.entries:
        _print_entries(ledger)
    if lost:
        charges = [(charge, charge.charge) for charge in lost]
        lines = [(str(at.sequence), _time(at.at), _about(at), _paid(charge), charge.state) for charge, at in charges]
        print_table("Charges without a release", lines, header=("entry", "at", "about", "spent", "state"))
    for release in hidden:
        print_text(release.sentence)
    return None


def _hidden(ledger: Ledger) -> tuple[HiddenRelease, ...]:
    """Return the finished releases that did not appear, where the ledger is a file beside what is internal of them."""
    folder = Path(ledger.chain.database.address).parent / "internal"
    if not folder.is_dir():
        return ()
    from incrowd.workflows.release.recover import hidden_below

    return hidden_below(folder, ledger)


def _print_entries(ledger: Ledger) -> None:
    """Print every entry, in tables of so many rows that each of them fits into memory, however long the ledger is."""
    entries = ledger.entries()
    while page := list(islice(entries, _PAGE)):
        lines = [(str(entry.sequence), _time(entry.at), entry.kind, _about(entry)) for entry in page]
        title = f"Entries {page[0].sequence} to {page[-1].sequence}"
        print_table(title, lines, header=("entry", "at", "kind", "about"))


def _print_entries_json(plain: dict[str, Any], ledger: Ledger) -> None:
    """Print one JSON object with every entry; the entries are printed while they are read."""
    head = json.dumps(finite(plain), ensure_ascii=False, allow_nan=False)
    sys.stdout.write(f'{head[:-1]}, "entries": [')
    for row in ledger.chain.rows():
        secret = row.sequence == 1 or row.kind == RENEWED
        body = json.dumps(_public(json.loads(row.body)), ensure_ascii=False) if secret else row.body
        facts = {"sequence": row.sequence, "at": row.at, "kind": row.kind, "hash": row.hash}
        comma = ", " if row.sequence > 1 else ""
        sys.stdout.write(f'{comma}{json.dumps(facts)[:-1]}, "body": {body}}}')
    print("]}")


def _public(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of an entry without the secret of the ledger."""
    return {name: value for name, value in body.items() if name != "secret"}


def _paid(lost: ChargeWithoutRelease) -> str:
    from incrowd.accounting.budget import Amount
    from incrowd.core.words import short_up

    parts = []
    for cost in lost.charge.charged:
        if cost.rho is not None:
            parts.append(f"ρ {short_up(cost.rho, 6)} of {cost.account}")
        else:
            parts.append(_up(Amount(cost.epsilon, cost.delta)) if cost.epsilon.is_finite() else "no ε")
    return "; ".join(parts)


def print_standing(standing: BudgetStatus, as_json: bool) -> None:
    """Print the budget status of a dataset."""
    if as_json:
        print_json(standing.to_json())
    else:
        names = ("dataset", "protects", "budget", "spent", "remaining", "state")
        print_table("Budget", list(zip(names, _standing(standing), strict=True)))


def _print(overview: Overview) -> None:
    header = ("dataset", "protects", "budget", "spent", "remaining", "state")
    rows = [_standing(standing) for standing in overview.datasets] or [("none yet", "", "", "", "", "")]
    print_table(f"Ledger {overview.head.chain[:12]}, {overview.head.sequence} entries", rows, header=header)
    if overview.shares:
        shares = [(share.dataset, share.analyst, _up(share.spent), _allowance_text(share)) for share in overview.shares]
        print_table("Analysts", shares, header=("dataset", "analyst", "spent", "allowance"))
    if overview.accounts:
        accounts = [(one.dataset, one.account, f"{one.rho:f}", f"{one.left:f}") for one in overview.accounts]
        print_table("Zero-concentrated accounts", accounts, header=("dataset", "account", "rho", "remaining"))


def _print_periods(overview: Overview, ledger: Ledger) -> None:
    """Print a line a year for each dataset with periods: how many were charged, and what they spent."""
    for standing in overview.datasets:
        if standing.periods is None:
            continue
        years: dict[str, list[Amount]] = {}
        for label, amount in sorted(ledger.spent_by_period(standing.dataset).items()):
            years.setdefault(label[:4] if label[:4].isdigit() else label, []).append(amount)
        most = max((float(amount.epsilon) for year in years.values() for amount in year), default=0.0)
        without = {label[:4] if label[:4].isdigit() else label for label in ledger.unbounded_periods(standing.dataset)}
        rows = [
            (year, str(len(spent)), _bar_text(spent, most), "no bound" if year in without else _up(_sum(spent)))
            for year, spent in years.items()
        ]
        every = standing.periods
        rows.append(("every period", "", "", "no bound" if every.unbounded else _up(every.every)))
        print_table(f"Periods of {standing.dataset}", rows, header=("year", "periods", "each", "spent together"))


def _sum(amounts: list[Amount]) -> Amount:
    total = amounts[0]
    for amount in amounts[1:]:
        total = total.plus(amount)
    return total


def _bar_text(spent: list[Amount], most: float) -> str:
    """Return a small bar for each period, as high as its ε; of many, the first."""
    bars = "▁▂▃▄▅▆▇█"
    shares = [float(amount.epsilon) / most if most else 0.0 for amount in spent[:_BARS]]
    return "".join(bars[round(share * (len(bars) - 1))] for share in shares) + ("…" if len(spent) > _BARS else "")


def _standing(standing: BudgetStatus) -> tuple[str, ...]:
    budget, left = standing.terms.budget, standing.left
    state = standing.terms.closed or ("has releases without ε" if standing.totals.unbounded else "open")
    return (
        standing.dataset,
        str(standing.terms.unit),
        _down(budget.limit) if budget else "set by the first release",
        "no bound" if standing.totals.unbounded else _up(standing.totals.spent),
        _down(left) if left else "",
        state,
    )


def _allowance_text(share: AnalystShare) -> str:
    if share.allowance is None:
        return "none: the dataset's budget applies"
    from incrowd.core.words import short_down

    month = "" if share.allowance.month is None else f", ε {short_down(share.allowance.month, 6)} a month"
    return _down(share.allowance.limit) + month + (f", until {share.allowance.until}" if share.allowance.until else "")


def _up(amount: Amount) -> str:
    from incrowd.core.words import short_up

    return f"ε {short_up(amount.epsilon, 6)}, δ {short_up(amount.delta, 6)}"


def _down(amount: Amount) -> str:
    from incrowd.core.words import short_down

    return f"ε {short_down(amount.epsilon, 6)}, δ {short_down(amount.delta, 6)}"


def _time(at: str) -> str:
    """Return a time to the second; `--json` has all of it.

    >>> _time("2026-11-17T06:07:52.211072Z")
    '2026-11-17 06:07:52'
    """
    return at.replace("T", " ")[:19]


def _about(entry: Entry) -> str:
    request = entry.body.get("request", entry.body)
    named = request.get("dataset") or ", ".join(part["dataset"] for part in request.get("parts", ()))
    refused = f" ({entry.body['error']})" if entry.kind == "refused" else ""
    return ": ".join(filter(None, (named, request.get("release")))) + refused
