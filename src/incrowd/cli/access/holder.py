"""Whom a command of access is about: options that several share, and how a grant is shown."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.governance.access.book import Access, Issued
    from incrowd.governance.access.grant import Grant, Holder

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose; the ledger knows analysts by the same name.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `incrowd access list` shows it.")]
RoleName = Annotated[str, typer.Option("--role", metavar="ROLE", help="owner, curator, analyst or auditor.")]
Datasets = Annotated[
    list[str],
    typer.Option("--dataset", metavar="NAME", help="A dataset to ask about; can be repeated; all if left out."),
]
Why = Annotated[str, typer.Option(metavar="TEXT", help="The reason, kept in the book of access.")]
Days = Annotated[str, typer.Option("--days", metavar="COUNT", help="For how many days it works, at most 366.")]


def holder_of(name: str, role: str, datasets: list[str]) -> Holder:
    """Return who is meant.

    >>> holder_of("ann", "analyst", []).datasets is None
    True
    """
    from incrowd.governance.access.grant import AccessRole, Holder

    if role not in list(AccessRole):
        raise InvalidParameter(f"a role is one of {', '.join(AccessRole)}.")
    return Holder(name, AccessRole(role), tuple(datasets) or None)


def end_of(days: str, access: Access) -> datetime:
    """Return the last moment of a token that works for so many days from now."""
    from incrowd.cli.bounds.parameters import whole

    return access.now() + timedelta(days=min(whole(days, "days"), 10_000))


def print_issued(issued: Issued, as_json: bool) -> None:
    """Show a new token, this once."""
    from incrowd.cli.output import print_json, print_table

    if as_json:
        print_json({"token": issued.token, "grant": issued.grant.shown()})
        return
    note = "Hand the token over safely: it is shown this once, and only its hash is kept."
    print_table("A new token", [("token", issued.token), *row_of(issued.grant)], note)


def row_of(grant: Grant) -> list[tuple[str, str]]:
    """Return what there is to tell of a grant, line by line."""
    plain = grant.shown()
    datasets = "all" if plain["datasets"] is None else ", ".join(plain["datasets"])
    return [
        ("id", plain["id"]),
        ("of", plain["holder"]),
        ("role", plain["role"]),
        ("datasets", datasets),
        ("until", plain["until"]),
    ]
