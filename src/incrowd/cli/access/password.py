"""`incrowd access password`: let somebody log in with a browser."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from incrowd.cli.access.holder import Datasets, Name, RoleName, Why, holder_of
from incrowd.cli.ledger.address import DEFAULT, Address, Who, person
from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class PasswordOptions:
    """What `incrowd access password` can be told."""

    name: Name
    why: Why
    role: RoleName = "analyst"
    dataset: Datasets = field(default_factory=list)
    who: Who = None
    ledger: Address = DEFAULT
    as_json: Json = False


@takes(PasswordOptions)
def password(options: PasswordOptions) -> None:
    """Let somebody log in with a browser; the password is asked for, or read from standard input.

    It replaces an earlier password, role and datasets of the same name, and ends the sessions of that one.
    """
    from incrowd.governance.access.book import Access
    from incrowd.governance.access.grant import Decision

    holder = holder_of(options.name, options.role, options.dataset)
    by = Decision(person(options.who), options.why)
    Access.create(options.ledger).set_password(holder, _read(), by)
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
