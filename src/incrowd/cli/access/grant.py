"""`incrowd access grant`: give somebody a token."""

from __future__ import annotations

from dataclasses import dataclass, field

from incrowd.cli.access.holder import Datasets, Days, Name, RoleName, Why, end_of, holder_of, print_issued
from incrowd.cli.ledger.address import DEFAULT, Address, Who, person
from incrowd.cli.options import Json, takes


@dataclass(frozen=True)
class AccessGrantOptions:
    """What `incrowd access grant` can be told."""

    name: Name
    why: Why
    role: RoleName = "analyst"
    dataset: Datasets = field(default_factory=list)
    days: Days = "90"
    who: Who = None
    ledger: Address = DEFAULT
    as_json: Json = False


@takes(AccessGrantOptions)
def grant(options: AccessGrantOptions) -> None:
    """Give somebody a token of 256 random bits; it is shown once, and only its hash is kept.

    The book of access is made beside the ledger if it is not there.
    """
    from incrowd.governance.access.book import Access
    from incrowd.governance.access.grant import Decision

    holder = holder_of(options.name, options.role, options.dataset)
    by = Decision(person(options.who), options.why)
    access = Access.create(options.ledger)
    print_issued(access.grant(holder, end_of(options.days, access), by), options.as_json)
