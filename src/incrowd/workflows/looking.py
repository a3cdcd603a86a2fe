"""Looking: who looks at the rows before or after a release leaves a trace in the ledger."""

from __future__ import annotations

from pathlib import Path

from incrowd.accounting.ledger import Ledger
from incrowd.workflows.policy import Policy

_FILE = "sqlite:///"


def record_look(policy: Policy | None, verb: str) -> bool:
    """Write into the policy's ledger that `verb` looked at its dataset; return whether there is a ledger.

    Choosing among levels, domains or runs after a look is something no promise covers, so the ledger counts looks.  A
    ledger is made by the first release, not by a look: before that, there is nothing to write into.  One that is there
    but cannot be written is an error.
    """
    if policy is None:
        return False
    address = policy.ledger_address
    if address.startswith(_FILE) and not Path(address.removeprefix(_FILE)).exists():
        return False
    Ledger.open(address).look(policy.name, verb)
    return True
