"""`incrowd access revoke`: end a token, or everything of somebody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from incrowd.cli.access.holder import Why
from incrowd.cli.ledger.address import DEFAULT, Address, Who, person
from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class RevokeOptions:
    """What `incrowd access revoke` can be told."""

    why: Why
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The token's id.")] = None
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="End all tokens, sessions and the password of somebody."),
    ] = None
    who: Who = None
    ledger: Address = DEFAULT
    as_json: Json = False


@takes(RevokeOptions)
def revoke(options: RevokeOptions) -> None:
    """End a token for good, or with --name everything that somebody has; it stops working at once."""
    from incrowd.governance.access.book import Access
    from incrowd.governance.access.grant import Decision

    if (options.id is None) == (options.name is None):
        raise InvalidParameter("give the id of one token, or --name for everything of somebody.")
    by = Decision(person(options.who), options.why)
    access = Access.open(options.ledger)
    ended = (access.revoke(options.id, by),) if options.id is not None else access.dismiss(str(options.name), by)
    if options.as_json:
        print_json({"revoked": [each.id for each in ended]})
    else:
        print_table(
            "Revoked", [(each.id, each.holder.name) for each in ended] or [("the password of", str(options.name))]
        )
