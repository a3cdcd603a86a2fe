"""Ledger stores: the ledger and all stores beside it, moved to another place or given new secrets together."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import InvalidParameter, LedgerCorrupted, LedgerMissing, LedgerUnavailable, Refused
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import Anchor
from incrowd.store.database import sibling_address
from incrowd.store.move import move
from incrowd.workflows.policy.ledger_place import public_address
from incrowd.workflows.policy.sources import FILE as FINGERPRINTS

BESIDE = ("audit", "access", "answers", "classical")
"""The chains beside a ledger: they go first, so that no server goes on with half of them."""
_FILE = "sqlite:///"


@dataclass(frozen=True)
class MovedLedger:
    """A ledger at its new place: its end, how many entries it has, and what went along."""

    place: str
    head: Anchor
    stores: tuple[str, ...]
    fingerprints: bool

    def to_json(self) -> dict[str, Any]:
        """Return the plain form for `--json`."""
        stores, fingerprints = list(self.stores), self.fingerprints
        return {"ledger": self.place, "head": self.head.to_json(), "stores": stores, "fingerprints": fingerprints}


def move_ledger(source: str, target: str, who: str, why: str, *, unfinished: bool = False) -> MovedLedger:
    """Move the ledger at an address to another one, or finish a move that was cut short.

    A damaged ledger is refused, and so is one with a charge that was not concluded, unless `unfinished` says that no
    process is at work on it: such a charge ends without a release.  One that was moved before and is not at its new
    place is copied once more only with `unfinished`: whatever was charged there since would be forgotten.
    """
    if not why.strip():
        raise InvalidParameter("give a reason with --why, for readers of the ledger.")
    ledger, place = Ledger.open(source), public_address(target)
    report = ledger.check()
    if not report.ok:
        raise LedgerCorrupted(f"{report.finding} Nothing was moved: restore the ledger from a backup.")
    running = [lost for lost in ledger.unfinished() if not lost.concluded]
    if running and not unfinished and ledger.moved_to() is None:
        raise Refused(
            f"{len(running)} charges are not concluded: a release is being made, or its process was killed. Nothing "
            "was moved. Wait for it, or give --unfinished if no process is at work: these charges stay without a "
            "release."
        )
    if ledger.moved_to() is not None and not unfinished and _is_missing(target):
        raise Refused(
            f"this ledger was moved before, and there is none at {place}. Nothing was moved. If it took charges there, "
            "restore it from a backup of that place: a copy from here would forget them. If the move was cut "
            "short before anything was copied, finish it with --unfinished."
        )
    fingerprints = _copied_fingerprints(source, target)
    by = {"who": who, "why": why}
    stores = tuple(name for name in BESIDE if _store_moved(source, target, name, by))
    moved = Ledger(move(ledger.chain, target, place, by))
    report = moved.check()
    if not report.ok:
        raise LedgerCorrupted(f"{report.finding} The ledger was not copied as it is: restore it at {place}.")
    return MovedLedger(place, report.head, stores, fingerprints)


def _is_missing(address: str) -> bool:
    try:
        Ledger.open(address)
    except LedgerMissing:
        return True
    return False


def renew_ledger(address: str, who: str, why: str) -> tuple[str, ...]:
    """Give the ledger at an address, and each store beside it, a new secret; return what has got one."""
    if not why.strip():
        raise InvalidParameter("give a reason with --why, for readers of the ledger.")
    by = {"who": who, "why": why}
    chains = {"ledger": Ledger.open(address).chain}
    for name in BESIDE:
        with suppress(LedgerMissing):
            chains[name] = Chain.open(sibling_address(address, name), name)
    for chain in chains.values():
        chain.renew(by)
    return tuple(chains)


def _store_moved(source: str, target: str, name: str, by: dict[str, str]) -> bool:
    """Move a store beside the ledger; return whether there is one."""
    address = sibling_address(target, name)
    try:
        chain = Chain.open(sibling_address(source, name), name)
    except LedgerMissing:
        return False
    move(chain, address, public_address(address), by)
    return True


def _copied_fingerprints(source: str, target: str) -> bool:
    """Copy the fingerprints of rows beside a ledger in a file to one in another folder; return whether that was done.

    For a ledger in a database they are in the folder for state, where they stay.
    """
    if not (source.startswith(_FILE) and target.startswith(_FILE)):
        return False
    before, after = (
        Path(address.removeprefix(_FILE)).absolute().with_name(FINGERPRINTS) for address in (source, target)
    )
    if before == after or not before.exists():
        return False
    try:
        after.parent.mkdir(parents=True, exist_ok=True)
        if after.exists() and after.read_bytes() != before.read_bytes():
            raise InvalidParameter(
                f"{after.parent} holds the fingerprints of another ledger. Nothing was moved: choose another folder."
            )
        with os.fdopen(os.open(after, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            with before.open("rb") as original:
                shutil.copyfileobj(original, file)
            os.fsync(file.fileno())
    except OSError as error:
        raise LedgerUnavailable(f"{after} cannot be written: {error.strerror or 'no reason given'}.") from None
    return True
