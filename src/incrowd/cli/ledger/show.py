"""`incrowd ledger show`: how everything stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.ledger.address import DEFAULT, Address
from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table

if TYPE_CHECKING:
    from incrowd.accounting.budget import Amount
    from incrowd.accounting.ledger.standing import AnalystShare, Entry, Overview, Standing


@dataclass(frozen=True)
class ShowOptions:
    """What `incrowd ledger show` can be told."""

    ledger: Address = DEFAULT
    entries: Annotated[bool, typer.Option("--entries", help="List every entry, too.")] = False
    as_json: Json = False


@takes(ShowOptions)
def show(options: ShowOptions) -> None:
    """Show budgets, what is spent and what is left."""
    from incrowd.accounting.ledger.ledger import Ledger

    ledger = Ledger.open(options.ledger)
    overview = ledger.show()
    entries = tuple(ledger.entries()) if options.entries else ()
    if options.as_json:
        listed = {"entries": [_entry_json(entry) for entry in entries]} if options.entries else {}
        return print_json(overview.to_json() | listed)
    _print(overview, entries)
    return None


def print_standing(standing: Standing, as_json: bool) -> None:
    """Print how one dataset stands."""
    if as_json:
        print_json(standing.to_json())
    else:
        names = ("dataset", "protects", "budget", "spent", "left", "state")
        print_table("Budget", list(zip(names, _standing(standing), strict=True)))


def _print(overview: Overview, entries: tuple[Entry, ...]) -> None:
    header = ("dataset", "protects", "budget", "spent", "left", "state")
    rows = [_standing(standing) for standing in overview.datasets] or [("none yet", "", "", "", "", "")]
    print_table(f"Ledger {overview.head.chain[:12]}, {overview.head.sequence} entries", rows, header=header)
    if overview.shares:
        shares = [(share.dataset, share.analyst, _up(share.spent), _allowance(share)) for share in overview.shares]
        print_table("Analysts", shares, header=("dataset", "analyst", "spent", "allowance"))
    if overview.accounts:
        accounts = [(one.dataset, one.account, f"{one.rho:f}", f"{one.left:f}") for one in overview.accounts]
        print_table("Zero-concentrated accounts", accounts, header=("dataset", "account", "rho", "left"))
    if entries:
        lines = [(str(entry.sequence), entry.at, entry.kind, _about(entry)) for entry in entries]
        print_table("Entries", lines, header=("entry", "at", "kind", "about"))


def _standing(standing: Standing) -> tuple[str, ...]:
    budget, left = standing.terms.budget, standing.left
    state = standing.terms.closed or ("has releases without an ε" if standing.totals.unbounded else "open")
    return (
        standing.dataset,
        str(standing.terms.unit),
        _down(budget.limit) if budget else "set by the first release",
        "infinite" if standing.totals.unbounded else _up(standing.totals.spent),
        _down(left) if left else "",
        state,
    )


def _allowance(share: AnalystShare) -> str:
    if share.allowance is None:
        return "none: the dataset's budget holds"
    return _down(share.allowance.limit) + (f", until {share.allowance.until}" if share.allowance.until else "")


def _up(amount: Amount) -> str:
    from incrowd.accounting.budget import shown_up

    return f"ε {shown_up(amount.epsilon)}, δ {shown_up(amount.delta)}"


def _down(amount: Amount) -> str:
    from incrowd.accounting.budget import shown_down

    return f"ε {shown_down(amount.epsilon)}, δ {shown_down(amount.delta)}"


def _about(entry: Entry) -> str:
    asked = entry.body.get("request", entry.body)
    named = asked.get("dataset") or ", ".join(part["dataset"] for part in asked.get("parts", ()))
    release = f": {asked['release']}" if "release" in asked else ""
    return f"{named}{release}" + (f" ({entry.body['error']})" if entry.kind == "refused" else "")


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "sequence": entry.sequence,
        "at": entry.at,
        "kind": entry.kind,
        "hash": entry.anchor.hash,
        "body": {name: value for name, value in entry.body.items() if name != "secret"},
    }
