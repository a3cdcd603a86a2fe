"""Looking: who looks at the rows, before a release or after, leaves a trace in the ledger."""

from __future__ import annotations

from pathlib import Path

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.workflows.policy.policy import Policy

_FILE = "sqlite:///"


def record_look(policy: Policy | None, verb: str) -> bool:
    """Write into the policy's ledger that `verb` looks at its dataset; return whether there is a ledger to write into.

    Choosing among levels, domains or runs after a look is something that no promise covers, so the ledger counts looks.
    A ledger that the policy names is made if it is not there yet.  The default one is made by the first release, and
    not by a look: whoever only wants a yes or no finds no new files.
    """
    if policy is None:
        return False
    address, named = policy.ledger_address, "ledger" in policy.section.model_fields_set
    if not named and address.startswith(_FILE) and not Path(address.removeprefix(_FILE)).exists():
        return False
    ledger = Ledger.create(address) if named else Ledger.open(address)
    ledger.look(policy.name, verb)
    return True
