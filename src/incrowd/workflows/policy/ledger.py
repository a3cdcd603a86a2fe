"""The ledger of a policy: created by the first release, never replaced silently; it also records data access."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from incrowd.accounting.ledger.datasets import Declaration, known_dataset, standing_of
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import BudgetStatus
from incrowd.core.loss import Pure
from incrowd.core.steps.choices import LOOKED, LevelsByLook
from incrowd.errors import InvalidParameter, LedgerMissing, LedgerUnavailable, OutputUnavailable, Refused
from incrowd.store.chain_entry import Key, text_of
from incrowd.workflows.policy.ledger_place import STATE, VARIABLE, LedgerOwner, public_address, state_folder
from incrowd.workflows.policy.policy import Policy

FAILED = "attack above its threshold"
"""The look that says that an attack was not shown to stay below a threshold."""
_MARK = "ledgers.json"
_UNNAMED = "unnamed"
"""The key under which a folder remembers the ledger that the environment named for policies that name none."""
_FILE = "sqlite:///"


_EXCHANGED = (
    "this is not the ledger that this policy's earlier releases were charged to: restore that one, or give the policy "
    "another ledger: address if this is intended."
)
_READ_ONLY = "Name a folder that can be written with --state or INCROWD_STATE."


def open_book(policy: LedgerOwner) -> Ledger:
    """Open the policy's ledger, or make it if none was ever made there; a lost or exchanged one is refused."""
    return ensure_book(policy, find_book(policy))


def ensure_book(policy: LedgerOwner, ledger: Ledger | None) -> Ledger:
    """Return the ledger that `find_book` returned; make it where that is None.

    In the folder for state, `ledgers.json` remembers which ledger stands at which address.  Whoever removes that file
    with the ledger is found out only against a certificate (`incrowd ledger check --against`).  Where the state lies
    elsewhere and the policy's own folder can be written, one line there says so: a later run without --state must not
    begin another budget.
    """
    ledger = ledger or _created(policy)
    mark, remembered = _mark(policy), _remembered(_mark(policy))
    entries = {_place(policy): ledger.id} | _chosen_elsewhere(policy)
    if remembered.get(_place(policy)) not in (None, ledger.id):  # another process made one since
        raise LedgerUnavailable(_EXCHANGED)
    if any(name not in remembered for name in entries):
        _remember(mark, entries | remembered)
    beside = _mark_beside(policy)
    if beside != mark and _writable(beside.parent) and (elsewhere := _chosen_elsewhere(policy)):
        _remember(beside, elsewhere | _remembered(beside))
    return ledger


def _created(policy: LedgerOwner) -> Ledger:
    try:
        return Ledger.create(policy.ledger_address)
    except LedgerUnavailable as error:
        folder = state_folder(policy.folder)
        if policy.names_ledger or _writable(folder):
            raise
        raise LedgerUnavailable(f"{error} {_READ_ONLY}") from None


def require_state(policy: LedgerOwner) -> None:
    """Refuse, before anything is charged, a folder for state that cannot be written, and name the way out."""
    folder = state_folder(policy.folder)
    if not _writable(folder):
        raise OutputUnavailable(f"{folder} cannot be written. {_READ_ONLY}")


def _writable(folder: Path) -> bool:
    """Whether a folder can be written, or made."""
    nearest = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    return os.access(nearest, os.W_OK)


def find_book(policy: LedgerOwner) -> Ledger | None:
    """Open the policy's ledger, or return None if none was ever made there.

    A lost or exchanged one is refused, and so is one that cannot be read: it never counts as absent.
    """
    _require_same_place(policy)
    expected = _remembered(_mark(policy)).get(_place(policy))
    try:
        ledger = Ledger.open(policy.ledger_address)
    except LedgerMissing as error:
        if expected is None:
            return None
        raise LedgerMissing(
            f"{error} Earlier releases were charged to it, so no new one is created: restore it from a copy."
        ) from None
    if expected not in (None, ledger.id):
        raise LedgerUnavailable(_EXCHANGED)
    return ledger


def _chosen_elsewhere(policy: LedgerOwner) -> dict[str, str]:
    """Return what is remembered where the environment, and not the policy, says where the ledger is."""
    place = policy.ledger_address
    return {} if policy.names_ledger or place == policy.own_ledger else {_UNNAMED: public_address(place)}


def _require_same_place(policy: LedgerOwner) -> None:
    """Refuse a second ledger for policies that name none: each of both would grant the whole budget."""
    if policy.names_ledger:
        return
    place, default = public_address(policy.ledger_address), policy.own_ledger
    made = default.startswith(_FILE) and Path(default.removeprefix(_FILE)).exists()
    marks = (_remembered(mark).get(_UNNAMED) for mark in (_mark(policy), _mark_beside(policy)))
    before = next(filter(None, marks), None) or (public_address(default) if made else place)
    if before != place and not _leads_to(before, place):
        raise InvalidParameter(
            f"policies of this folder without ledger: were charged to {before} before; now it would be {place}. "
            f"Nothing was charged. Give --ledger ({VARIABLE}) or --state ({STATE}) as before, or add ledger: to the "
            "policy if this is intended."
        )


def _leads_to(before: str, place: str) -> bool:
    """Whether the ledger at one address was moved to another, in one step or several."""
    passed = {before}
    while before != place:
        try:
            following = Ledger.open(before).moved_to()
        except (LedgerUnavailable, InvalidParameter):  # what cannot be read says nothing
            return False
        if following is None or following in passed:
            return False
        passed.add(following)
        before = following
    return True


def declaration_of(policy: Policy) -> Declaration:
    """Return what a policy says about its dataset to the ledger."""
    dataset = policy.section.dataset
    sharing = dataset.same_people_as, dataset.separate
    return Declaration(policy.name, policy.schema.unit, policy.budget, *sharing, policy.calendar)


def _mark(policy: LedgerOwner) -> Path:
    return state_folder(policy.folder) / _MARK


def _mark_beside(policy: LedgerOwner) -> Path:
    return policy.folder / ".incrowd" / _MARK


def _place(policy: LedgerOwner) -> str:
    return hashlib.sha256(policy.ledger_address.encode()).hexdigest()


def _remembered(mark: Path) -> dict[str, str]:
    try:
        content = json.loads(mark.read_text(encoding="utf-8"))
        return {str(place): str(name) for place, name in content.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError):
        raise LedgerUnavailable(
            f"{mark} cannot be read; it says which ledger belongs to this policy. Restore it from a copy."
        ) from None


def _remember(mark: Path, remembered: dict[str, str]) -> None:
    written = mark.with_name(f".{_MARK}.{os.getpid()}")
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(json.dumps(remembered, indent=1), encoding="utf-8")
        written.replace(mark)
    except OSError as error:
        hint = "" if _writable(mark.parent) else f" {_READ_ONLY}"
        raise LedgerUnavailable(f"{mark} cannot be written: {error.strerror or 'no reason given'}.{hint}") from None


def standing_at(ledger: Ledger, dataset: str, sequence: int, label: str | None = None) -> BudgetStatus:
    """Return how a dataset stood right after an entry, as the entries up to that one tell."""
    sets: dict[str, Any] = {}
    for link in ledger.chain.links():
        sets.update(link.sets)
        if link.sequence == sequence:
            break

    def value(key: Key) -> Any:
        return sets.get(text_of(key))

    return standing_of(value, known_dataset(value, dataset), label)


def require_look(policy: Policy, ledger: Ledger | None) -> None:
    """Refuse, before anything is charged, levels by a private look that this ledger does not hold."""
    for step in policy.plan.steps:
        if isinstance(step, LevelsByLook) and (problem := look_problem(step, policy.name, ledger)) is not None:
            raise Refused(
                f"the policy says that a private preview chose its levels, but {problem}. Run another preview, or "
                "choose levels without reading the rows and leave out chosen:."
            )


def look_problem(look: LevelsByLook, dataset: str, ledger: Ledger | None) -> str | None:
    """Return why a ledger does not hold the private look that is named, about the people of a dataset; or None."""
    entry = None if ledger is None else next(ledger.entries(look.entry - 1), None)
    if ledger is None or entry is None or entry.anchor.to_json() != _named(look):
        return f"entry {look.entry} of this ledger is not the one named in the policy"
    paid = next((charge for charge in entry.charged if same_people(ledger, charge.dataset, dataset)), None)
    if paid is None or (paid.guarantee.loss, paid.guarantee.because) != (Pure(look.epsilon), (LOOKED,)):
        return f"entry {look.entry} of the ledger is not the charge of such a preview of this dataset"
    if None in (ledger.conclusions(entry.body["release"]) or (None,)):
        return f"entry {look.entry} of the ledger was charged for a preview that did not finish"
    return None


def _named(look: LevelsByLook) -> dict[str, Any]:
    return {"chain": look.ledger, "sequence": look.entry, "hash": look.hash}


def same_people(ledger: Ledger, one: str, other: str) -> bool:
    """Whether two datasets share a budget; a dataset that no charge made known yet shares none."""
    both_known = ledger.knows(one) and ledger.knows(other)
    return both_known and ledger.standing(one).dataset == ledger.standing(other).dataset


def record_look(policy: Policy | None, verb: str) -> bool:
    """Write into the policy's ledger that `verb` looks at its dataset; return whether there is a ledger to write into.

    Choosing among levels, domains or runs after a look is something that no guarantee covers, so the ledger counts
    looks. A ledger that the policy names is made if it is not there yet.  The default one is made by the first release,
    and not by a look: whoever only wants a yes or no finds no new files.
    """
    if policy is None:
        return False
    _require_same_place(policy)
    address = policy.ledger_address
    named = policy.names_ledger or address != policy.own_ledger
    if not named and address.startswith(_FILE) and not Path(address.removeprefix(_FILE)).exists():
        return False
    ledger = Ledger.create(address) if named else Ledger.open(address)
    ledger.look(policy.name, verb)
    return True


def record_failure(policy: Policy | None) -> None:
    """Write down, where there is a ledger, that an attack on a release of the policy's dataset failed a threshold."""
    record_look(policy, FAILED)


def failed_before(policy: Policy, ledger: Ledger | None) -> bool:
    """Whether the ledger holds a failed threshold for the people of a policy: then a release is another run."""
    if ledger is None:
        return False
    names = {policy.name, policy.section.dataset.same_people_as or policy.name}
    roots = names | {ledger.standing(name).dataset for name in names if ledger.knows(name)}
    looks = ledger.show().looks
    return any(looks.get(root, {}).get(FAILED) for root in roots)
