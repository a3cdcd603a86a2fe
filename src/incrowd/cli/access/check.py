"""`incrowd access check`: find out whether the books of access and audit still are what was written."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from incrowd.cli.ledger.address import DEFAULT, Address
from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table

_FAILED = 1


@dataclass(frozen=True)
class AccessCheckOptions:
    """What `incrowd access check` can be told."""

    ledger: Address = DEFAULT
    as_json: Json = False


@takes(AccessCheckOptions)
def check(options: AccessCheckOptions) -> None:
    """Recompute the book of access and the audit log; exit 1 and name the first entry that is wrong.

    The log is there as soon as a server ran; one that was lost since is an error.
    """
    from incrowd.governance.access.book import Access
    from incrowd.governance.books import find_log

    access = Access.open(options.ledger)
    reports = {"access": access.check()}
    log = find_log(access, options.ledger) if reports["access"].ok else None  # a damaged book tells nothing
    if log is not None:
        reports["audit"] = log.check()
    if options.as_json:
        shown = {
            name: {"ok": each.ok, "entries": each.entries, "finding": each.finding} for name, each in reports.items()
        }
        print_json(shown)
    else:
        rows = [(name, str(each.entries), each.finding or "in order") for name, each in reports.items()]
        print_table("Books", rows, header=("book", "entries in order", "finding"))
    if not all(each.ok for each in reports.values()):
        raise typer.Exit(_FAILED)
