"""The ledger of a policy: made by the first release, never made again in silence; it also counts looks at rows."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from incrowd.accounting.ledger.datasets import Declaration, known_dataset, standing_of
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.standing import Standing
from incrowd.errors import LedgerCorrupted, LedgerUnavailable
from incrowd.store.link import Key, text_of
from incrowd.workflows.policy.policy import Policy

_MARK = "ledgers.json"
_FILE = "sqlite:///"


def open_book(policy: Policy) -> Ledger:
    """Open the policy's ledger, or make it if none was ever made there; a lost or exchanged one is refused.

    Beside the policy, `.incrowd/ledgers.json` remembers which ledger stands at which address.  Whoever removes that
    file with the ledger is found out only against a certificate (`incrowd ledger check --against`).
    """
    ledger = find_book(policy) or Ledger.create(policy.ledger_address)
    mark, place = _mark(policy), _place(policy)
    if place not in (known := _known(mark)):
        _remember(mark, {**known, place: ledger.id})
    return ledger


def find_book(policy: Policy) -> Ledger | None:
    """Open the policy's ledger, or return None if none was ever made there; a lost or exchanged one is refused."""
    expected = _known(_mark(policy)).get(_place(policy))
    try:
        ledger = Ledger.open(policy.ledger_address)
    except LedgerCorrupted:
        raise
    except LedgerUnavailable as error:
        if expected is None:
            return None
        raise LedgerUnavailable(
            f"{error} Releases were charged to it before, so a new one is not made: restore it from a copy."
        ) from None
    if expected not in (None, ledger.id):
        raise LedgerUnavailable(
            "another ledger stands where this policy's releases were charged before: put the old one back, or give the "
            "policy another ledger: address if this is meant."
        )
    return ledger


def declaration_of(policy: Policy) -> Declaration:
    """Return what a policy says about its dataset to the ledger."""
    told = policy.section.dataset
    return Declaration(policy.name, policy.schema.unit, policy.budget, told.same_people_as, told.separate)


def _mark(policy: Policy) -> Path:
    return policy.folder / ".incrowd" / _MARK


def _place(policy: Policy) -> str:
    return hashlib.sha256(policy.ledger_address.encode()).hexdigest()


def _known(mark: Path) -> dict[str, str]:
    try:
        content = json.loads(mark.read_text(encoding="utf-8"))
        return {str(place): str(name) for place, name in content.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError):
        raise LedgerUnavailable(
            f"{mark} cannot be read; it tells which ledger belongs to this policy. Restore it from a copy."
        ) from None


def _remember(mark: Path, known: dict[str, str]) -> None:
    written = mark.with_name(f".{_MARK}.{os.getpid()}")
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(json.dumps(known, indent=1), encoding="utf-8")
        written.replace(mark)
    except OSError as error:
        raise LedgerUnavailable(f"{mark} cannot be written: {error.strerror or 'no reason given'}.") from None


def standing_at(ledger: Ledger, dataset: str, sequence: int) -> Standing:
    """Return how a dataset stood right after an entry, as the entries up to that one tell."""
    told: dict[str, Any] = {}
    for link in ledger.chain.links():
        told.update(link.sets)
        if link.sequence == sequence:
            break

    def value(key: Key) -> Any:
        return told.get(text_of(key))

    return standing_of(value, known_dataset(value, dataset))


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
