"""`incrowd access rotate`: replace a token."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.cli.access.holder import Days, Id, Why, end_of, print_issued
from incrowd.cli.ledger.address import DEFAULT, Address, Who, person
from incrowd.cli.options import Json, takes


@dataclass(frozen=True)
class RotateOptions:
    """What `incrowd access rotate` can be told."""

    id: Id
    why: Why
    days: Days = "90"
    who: Who = None
    ledger: Address = DEFAULT
    as_json: Json = False


@takes(RotateOptions)
def rotate(options: RotateOptions) -> None:
    """Replace a token by a new one with the same id; the old one stops working at once."""
    from incrowd.governance.access.book import Access
    from incrowd.governance.access.grant import Decision

    access = Access.open(options.ledger)
    by = Decision(person(options.who), options.why)
    print_issued(access.rotate(options.id, end_of(options.days, access), by), options.as_json)
