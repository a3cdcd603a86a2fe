"""`incrowd access list`: every token that was given out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.access.holder import row_of
from incrowd.cli.ledger.address import DEFAULT, Address
from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table

if TYPE_CHECKING:
    from datetime import datetime

    from incrowd.governance.access.grant import Grant


@dataclass(frozen=True)
class ListOptions:
    """What `incrowd access list` can be told."""

    ended: Annotated[bool, typer.Option("--ended", help="List those that no longer work, too.")] = False
    ledger: Address = DEFAULT
    as_json: Json = False


@takes(ListOptions)
def listing(options: ListOptions) -> None:
    """List tokens and sessions with holder, role, datasets and end; never the tokens themselves."""
    from incrowd.governance.access.book import Access

    access = Access.open(options.ledger)
    now = access.now()
    found = [each for each in access.grants() if options.ended or _state(each, now) == "works"]
    if options.as_json:
        return print_json({"tokens": [each.shown() | {"state": _state(each, now)} for each in found]})
    header = ("id", "of", "role", "datasets", "until", "kind", "state")
    rows = [
        (*(value for _, value in row_of(each)), "session" if each.session else "token", _state(each, now))
        for each in found
    ]
    print_table("Access", rows or [("none", *[""] * 6)], header=header)
    return None


def _state(grant: Grant, now: datetime) -> str:
    if grant.revoked:
        return "revoked"
    return "works" if grant.works(grant.fingerprint, now) else "ended"
