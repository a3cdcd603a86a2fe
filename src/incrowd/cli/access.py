"""`incrowd access`: who may ask a server."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Address, Json, Who, person, takes, whole
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.ledger_place import ledger_place

if TYPE_CHECKING:
    from incrowd.governance.access_list import AccessList, NewToken
    from incrowd.governance.grant import Grant, User


Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose; the ledger knows analysts by the same name.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `incrowd access list` shows it.")]
RoleName = Annotated[str, typer.Option("--role", metavar="ROLE", help="owner, curator, analyst or auditor.")]
Datasets = Annotated[
    list[str],
    typer.Option("--dataset", metavar="NAME", help="A dataset to ask about; can be repeated; all if left out."),
]
Why = Annotated[str, typer.Option(metavar="TEXT", help="The reason, kept in the book of access.")]
Days = Annotated[str, typer.Option("--days", metavar="COUNT", help="For how many days it works, at most 366.")]
_FAILED = 1
access = typer.Typer(help="Who may ask a server: roles, tokens and passwords.", no_args_is_help=True)


def holder_of(name: str, role: str, datasets: list[str]) -> User:
    """Return who is meant.

    >>> holder_of("ann", "analyst", []).datasets is None
    True
    """
    from incrowd.governance.grant import AccessRole, User

    if role not in list(AccessRole):
        raise InvalidParameter(f"a role is one of {', '.join(AccessRole)}.")
    return User(name, AccessRole(role), tuple(datasets) or None)


def end_of(days: str, access: AccessList) -> datetime:
    """Return the last moment of a token that works for so many days from now."""
    return access.now() + timedelta(days=min(whole(days, "days"), 10_000))


def print_issued(issued: NewToken, as_json: bool) -> None:
    """Show a new token, this once."""
    if as_json:
        print_json({"token": issued.token, "grant": issued.grant.public()})
        return
    note = "Hand the token over safely: it is shown this once, and only its hash is kept."
    print_table("A new token", [("token", issued.token), *row_of(issued.grant)], note)


def row_of(grant: Grant) -> list[tuple[str, str]]:
    """Return what there is to tell of a grant, line by line."""
    plain = grant.public()
    datasets = "all" if plain["datasets"] is None else ", ".join(plain["datasets"])
    return [
        ("id", plain["id"]),
        ("of", plain["holder"]),
        ("role", plain["role"]),
        ("datasets", datasets),
        ("until", plain["until"]),
    ]


@dataclass(frozen=True)
class AccessGrantOptions:
    """What `incrowd access grant` can be told."""

    name: Name
    why: Why
    role: RoleName = "analyst"
    dataset: Datasets = field(default_factory=list)
    days: Days = "90"
    who: Who = None
    ledger: Address = None
    as_json: Json = False


@takes(AccessGrantOptions)
def grant(options: AccessGrantOptions) -> None:
    """Give somebody a token of 256 random bits; it is shown once, and only its hash is kept.

    The book of access is made beside the ledger if it is not there.
    """
    from incrowd.governance.access_list import AccessList
    from incrowd.governance.grant import AccessDecision

    holder = holder_of(options.name, options.role, options.dataset)
    by = AccessDecision(person(options.who), options.why)
    access = AccessList.create(ledger_place(options.ledger))
    print_issued(access.grant(holder, end_of(options.days, access), by), options.as_json)


@dataclass(frozen=True)
class PasswordOptions:
    """What `incrowd access password` can be told."""

    name: Name
    why: Why
    role: RoleName = "analyst"
    dataset: Datasets = field(default_factory=list)
    who: Who = None
    ledger: Address = None
    as_json: Json = False


@takes(PasswordOptions)
def password(options: PasswordOptions) -> None:
    """Let somebody log in with a browser; the password is asked for, or read from standard input.

    It replaces an earlier password, role and datasets of the same name, and ends the sessions of that one.
    """
    from incrowd.governance.access_list import AccessList
    from incrowd.governance.grant import AccessDecision

    holder = holder_of(options.name, options.role, options.dataset)
    by = AccessDecision(person(options.who), options.why)
    AccessList.create(ledger_place(options.ledger)).set_password(holder, _read(), by)
    if options.as_json:
        print_json(holder.to_json())
    else:
        print_table("A password was set", [("of", holder.name), ("role", str(holder.role))])


def _read() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    import getpass

    first, second = getpass.getpass("Password: "), getpass.getpass("Once more: ")
    if first != second:
        raise InvalidParameter("the two passwords differ: nothing was changed.")
    return first


@dataclass(frozen=True)
class RotateOptions:
    """What `incrowd access rotate` can be told."""

    id: Id
    why: Why
    days: Days = "90"
    who: Who = None
    ledger: Address = None
    as_json: Json = False


@takes(RotateOptions)
def rotate(options: RotateOptions) -> None:
    """Replace a token by a new one with the same id; the old one stops working at once."""
    from incrowd.governance.access_list import AccessList
    from incrowd.governance.grant import AccessDecision

    access = AccessList.open(ledger_place(options.ledger))
    by = AccessDecision(person(options.who), options.why)
    print_issued(access.rotate(options.id, end_of(options.days, access), by), options.as_json)


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
    ledger: Address = None
    as_json: Json = False


@takes(RevokeOptions)
def revoke(options: RevokeOptions) -> None:
    """End a token for good, or with --name everything that somebody has; it stops working at once."""
    from incrowd.governance.access_list import AccessList
    from incrowd.governance.grant import AccessDecision

    if (options.id is None) == (options.name is None):
        raise InvalidParameter("give the id of one token, or --name for everything of somebody.")
    by = AccessDecision(person(options.who), options.why)
    access = AccessList.open(ledger_place(options.ledger))
    ended = (access.revoke(options.id, by),) if options.id is not None else access.dismiss(str(options.name), by)
    if options.as_json:
        print_json({"revoked": [each.id for each in ended]})
    else:
        print_table(
            "Revoked", [(each.id, each.holder.name) for each in ended] or [("the password of", str(options.name))]
        )


@dataclass(frozen=True)
class ListOptions:
    """What `incrowd access list` can be told."""

    ended: Annotated[bool, typer.Option("--ended", help="List those that no longer work, too.")] = False
    ledger: Address = None
    as_json: Json = False


@takes(ListOptions)
def listing(options: ListOptions) -> None:
    """List tokens and sessions with holder, role, datasets and end; never the tokens themselves."""
    from incrowd.governance.access_list import AccessList

    access = AccessList.open(ledger_place(options.ledger))
    now = access.now()
    found = [each for each in access.grants() if options.ended or _state(each, now) == "works"]
    if options.as_json:
        return print_json({"tokens": [each.public() | {"state": _state(each, now)} for each in found]})
    header = ("id", "of", "role", "datasets", "until", "kind", "state")
    rows = [
        (*(value for _, value in row_of(each)), "session" if each.session else "token", _state(each, now))
        for each in found
    ]
    print_table("AccessList", rows or [("none", *[""] * 6)], header=header)
    return None


def _state(grant: Grant, now: datetime) -> str:
    if grant.revoked:
        return "revoked"
    return "works" if grant.works(grant.fingerprint, now) else "ended"


@dataclass(frozen=True)
class AccessCheckOptions:
    """What `incrowd access check` can be told."""

    ledger: Address = None
    as_json: Json = False


@takes(AccessCheckOptions)
def check(options: AccessCheckOptions) -> None:
    """Recompute the book of access and the audit log; exit 1 and name the first entry that is wrong.

    The log is there as soon as a server ran; one that was lost since is an error.
    """
    from incrowd.governance.access_list import AccessList
    from incrowd.governance.audit import find_audit_log

    access = AccessList.open(ledger_place(options.ledger))
    reports = {"access": access.check()}
    log = (
        find_audit_log(access, ledger_place(options.ledger)) if reports["access"].ok else None
    )  # a damaged book tells nothing
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
    if not all(report.ok for report in reports.values()):
        raise typer.Exit(_FAILED)


access.command("grant")(grant)
access.command("password")(password)
access.command("rotate")(rotate)
access.command("revoke")(revoke)
access.command("list")(listing)
access.command("check")(check)
