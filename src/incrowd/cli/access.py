"""`incrowd access`: the access list of a server."""

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


Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the user; analysts have the same name in the ledger.")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `incrowd access list` shows it.")]
RoleName = Annotated[str, typer.Option("--role", metavar="ROLE", help="owner, curator, analyst or auditor.")]
Datasets = Annotated[
    list[str],
    typer.Option("--dataset", metavar="NAME", help="A dataset the user may query; can be repeated; default: all."),
]
Why = Annotated[str, typer.Option(metavar="TEXT", help="The reason, kept in the access list.")]
Days = Annotated[str, typer.Option("--days", metavar="COUNT", help="Days until the token expires, at most 366.")]
_FAILED = 1
access = typer.Typer(help="Manage who may query a server: roles, tokens and passwords.", no_args_is_help=True)


def holder_of(name: str, role: str, datasets: list[str]) -> User:
    """Return a user with a role.

    >>> holder_of("ann", "analyst", []).datasets is None
    True
    """
    from incrowd.governance.grant import AccessRole, User

    if role not in list(AccessRole):
        raise InvalidParameter(f"a role is one of {', '.join(AccessRole)}.")
    return User(name, AccessRole(role), tuple(datasets) or None)


def end_of(days: str, access: AccessList) -> datetime:
    """Return when a token of this many days expires."""
    return access.now() + timedelta(days=min(whole(days, "days"), 10_000))


def print_issued(issued: NewToken, as_json: bool) -> None:
    """Show a new token. It cannot be shown again."""
    if as_json:
        print_json({"token": issued.token, "grant": issued.grant.public()})
        return
    note = "Pass the token on safely: it is shown only once. The access list keeps its hash."
    print_table("New token", [("token", issued.token), *row_of(issued.grant)], note)


def row_of(grant: Grant) -> list[tuple[str, str]]:
    """Return a grant as labeled lines."""
    plain = grant.public()
    datasets = "all" if plain["datasets"] is None else ", ".join(plain["datasets"])
    return [
        ("id", plain["id"]),
        ("user", plain["holder"]),
        ("role", plain["role"]),
        ("datasets", datasets),
        ("until", plain["until"]),
    ]


@dataclass(frozen=True)
class AccessGrantOptions:
    """The options of `incrowd access grant`."""

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
    """Give a user a token of 256 random bits. It is shown only once; the access list keeps its hash.

    The access list is created beside the ledger if it is missing.
    """
    from incrowd.governance.access_list import AccessList
    from incrowd.governance.grant import AccessDecision

    holder = holder_of(options.name, options.role, options.dataset)
    by = AccessDecision(person(options.who), options.why)
    access = AccessList.create(ledger_place(options.ledger))
    print_issued(access.grant(holder, end_of(options.days, access), by), options.as_json)


@dataclass(frozen=True)
class AdmitOptions:
    """The options of `incrowd access admit`."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="The user or group, as the proxy names them.")]
    why: Why
    role: RoleName = "analyst"
    dataset: Datasets = field(default_factory=list)
    group: Annotated[bool, typer.Option("--group", help="NAME is a group: its users get this role.")] = False
    days: Days = "90"
    who: Who = None
    ledger: Address = None
    as_json: Json = False


@takes(AdmitOptions)
def admit(options: AdmitOptions) -> None:
    """Give a role to a user whom a proxy signs on, or to all users of a group. No token is made.

    A user's own entry goes before those of groups, and a group that the proxy names first before others.
    """
    from incrowd.governance.access_list import AccessList
    from incrowd.governance.grant import AccessDecision

    holder = holder_of(options.name, options.role, options.dataset)
    by = AccessDecision(person(options.who), options.why)
    access = AccessList.create(ledger_place(options.ledger))
    admitted = access.admit(holder, end_of(options.days, access), by, group=options.group)
    if options.as_json:
        return print_json({"grant": admitted.public()})
    return print_table(f"Admitted by single sign-on: {admitted.kind}", row_of(admitted))


@dataclass(frozen=True)
class PasswordOptions:
    """The options of `incrowd access password`."""

    name: Name
    why: Why
    role: RoleName = "analyst"
    dataset: Datasets = field(default_factory=list)
    who: Who = None
    ledger: Address = None
    as_json: Json = False


@takes(PasswordOptions)
def password(options: PasswordOptions) -> None:
    """Set the password with which a user logs in by browser. It is prompted for, or read from standard input.

    It replaces the user's earlier password, role and datasets, and ends the user's sessions.
    """
    from incrowd.governance.access_list import AccessList
    from incrowd.governance.grant import AccessDecision

    holder = holder_of(options.name, options.role, options.dataset)
    by = AccessDecision(person(options.who), options.why)
    AccessList.create(ledger_place(options.ledger)).set_password(holder, _read(), by)
    if options.as_json:
        print_json(holder.to_json())
    else:
        print_table("Password set", [("user", holder.name), ("role", str(holder.role))])


def _read() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    import getpass

    first, second = getpass.getpass("Password: "), getpass.getpass("Repeat password: ")
    if first != second:
        raise InvalidParameter("the two passwords differ. Nothing was changed.")
    return first


@dataclass(frozen=True)
class RotateOptions:
    """The options of `incrowd access rotate`."""

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
    """The options of `incrowd access revoke`."""

    why: Why
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The token's id.")] = None
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="End all tokens, sessions and the password of this user."),
    ] = None
    who: Who = None
    ledger: Address = None
    as_json: Json = False


@takes(RevokeOptions)
def revoke(options: RevokeOptions) -> None:
    """Revoke a token, or with --name all access of a user, at once and permanently."""
    from incrowd.governance.access_list import AccessList
    from incrowd.governance.grant import AccessDecision

    if (options.id is None) == (options.name is None):
        raise InvalidParameter("give the id of one token, or --name for all access of a user.")
    by = AccessDecision(person(options.who), options.why)
    access = AccessList.open(ledger_place(options.ledger))
    ended = (access.revoke(options.id, by),) if options.id is not None else access.dismiss(str(options.name), by)
    if options.as_json:
        print_json({"revoked": [grant.id for grant in ended]})
    else:
        print_table(
            "Revoked", [(grant.id, grant.holder.name) for grant in ended] or [("the password of", str(options.name))]
        )


@dataclass(frozen=True)
class ListOptions:
    """The options of `incrowd access list`."""

    ended: Annotated[bool, typer.Option("--ended", help="List revoked and expired tokens, too.")] = False
    ledger: Address = None
    as_json: Json = False


@takes(ListOptions)
def listing(options: ListOptions) -> None:
    """List tokens and sessions by user, role, datasets and end. Tokens themselves are never shown."""
    from incrowd.governance.access_list import AccessList

    access = AccessList.open(ledger_place(options.ledger))
    now = access.now()
    grants = [grant for grant in access.grants() if options.ended or _state(grant, now) == "works"]
    if options.as_json:
        return print_json({"tokens": [grant.public() | {"state": _state(grant, now)} for grant in grants]})
    header = ("id", "user", "role", "datasets", "until", "kind", "state")
    rows = [(*(value for _, value in row_of(grant)), grant.kind, _state(grant, now)) for grant in grants]
    print_table("Access list", rows or [("none", *[""] * 6)], header=header)
    return None


def _state(grant: Grant, now: datetime) -> str:
    if grant.revoked:
        return "revoked"
    return "works" if grant.works(grant.fingerprint, now) else "ended"


@dataclass(frozen=True)
class AccessCheckOptions:
    """The options of `incrowd access check`."""

    ledger: Address = None
    as_json: Json = False


@takes(AccessCheckOptions)
def check(options: AccessCheckOptions) -> None:
    """Recompute access list and audit log. Exit 1 and name the first wrong entry.

    A server creates the audit log when it first runs. A log that is missing after that is an error.
    """
    from incrowd.governance.access_list import AccessList
    from incrowd.governance.audit import find_audit_log

    access = AccessList.open(ledger_place(options.ledger))
    reports = {"access": access.check()}
    log = (
        find_audit_log(access, ledger_place(options.ledger)) if reports["access"].ok else None
    )  # a damaged list says nothing about the log
    if log is not None:
        reports["audit"] = log.check()
    if options.as_json:
        plain = {
            name: {"ok": report.ok, "entries": report.entries, "finding": report.finding}
            for name, report in reports.items()
        }
        print_json(plain)
    else:
        rows = [(name, str(report.entries), report.finding or "in order") for name, report in reports.items()]
        print_table("Check", rows, header=("file", "entries in order", "finding"))
    if not all(report.ok for report in reports.values()):
        raise typer.Exit(_FAILED)


access.command("grant")(grant)
access.command("admit")(admit)
access.command("password")(password)
access.command("rotate")(rotate)
access.command("revoke")(revoke)
access.command("list")(listing)
access.command("check")(check)
