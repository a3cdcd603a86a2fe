"""Prepare: everything that is checked before a charge, where the rows live."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.fingerprints import SourceFingerprint
from incrowd.core.table import Engine, Opened, Progress, Rows, Table
from incrowd.engines.choose import settings_for
from incrowd.engines.columns import require
from incrowd.engines.local.consenting import Consenting
from incrowd.engines.local.fingerprint import keyed_digest
from incrowd.engines.local.held_out import DividedRows, HeldOut
from incrowd.engines.missing_ids import missing_ids
from incrowd.engines.settings import Local
from incrowd.errors import InvalidParameter, Refused, SourceInvalid
from incrowd.workflows.consent.place import person_column
from incrowd.workflows.consent.snapshot import ConsentSnapshot, admit
from incrowd.workflows.policy.ledger import find_book, open_book, require_look
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.policy.sources import DatasetBinding, FingerprintFile, MarkedSource
from incrowd.workflows.release.libraries import load_out_of_core


@dataclass(frozen=True)
class Prepared:
    """A table that can be read, a ledger and what will bind both, and a commitment to the rows under its own key.

    `notes` are for the data holder alone: they may depend on the rows.
    """

    source: Opened
    table: Table
    ledger: Ledger
    bond: DatasetBinding
    key: bytes
    commitment: str
    notes: tuple[str, ...] = ()
    held: HeldOut | None = None


def load_for(policy: str | Path | Mapping[str, Any] | Policy, data: object) -> Policy:
    """Return a policy that was read, with the engine that the data asks for."""
    read = policy if isinstance(policy, Policy) else load_policy(policy)
    return replace(read, engine=settings_for(data, read.engine))


@dataclass(frozen=True, eq=False)
class TakingPart:
    """Whose rows take part: those of people who consented, where a purpose is named, without a share held out."""

    admission: ConsentSnapshot | None = None
    hold_out: Fraction | None = None


EVERYBODY = TakingPart()


def prepare(
    data: object, policy: Policy, engine: Engine, progress: Progress | None = None, whose: TakingPart = EVERYBODY
) -> Prepared:
    """Open and check everything that can be checked before a charge: one ragged line costs nothing.

    Rows of people who did not consent are looked at for whose they are, and for nothing else.  Rows that are held out
    are checked and charged like all others, and take part in nothing else.
    """
    hold_out = whose.hold_out
    if hold_out is not None and not isinstance(policy.engine, Local):
        raise InvalidParameter("people are held out where rows are read here: leave --hold-out out, or --engine local.")
    source = open_data(data, policy, engine)
    if policy.schema.unit.column is not None or not getattr(source, "small", False):
        load_out_of_core()
    admitted = _admitted(engine, source, policy, whose.admission)
    keyed = admitted or engine.keyed(source, policy.plan.cells)
    marks = _marks(engine, keyed, policy, FingerprintFile.of(policy).key(), progress)
    ledger = open_book(policy)
    require_look(policy, ledger)
    key, content = secrets.token_bytes(32), engine.digest(source)
    bond = DatasetBinding.of(policy, ledger, (MarkedSource(source.address, marks),))
    notes = (*source.notes, *missing_ids(engine, source, policy.schema))
    held = _held_out(policy, hold_out)
    rows: Rows = keyed if progress is None else engine.watched(keyed, progress)
    if held is not None:
        taking = admitted or source
        rows = DividedRows(taking if progress is None else engine.watched(taking, progress), held)
    table = Table(policy.schema, rows, engine)
    if policy.plan.examine is not None:
        policy.plan.examine(table)
    return Prepared(source, table, ledger, bond, key, keyed_digest(content, key), notes, held)


def _admitted(engine: Engine, source: Opened, policy: Policy, admission: ConsentSnapshot | None) -> Rows | None:
    """Return the rows of those who consented; a purpose without an admission is refused."""
    if policy.gate is None:
        return None
    if admission is None or not admission.gate.settled:
        raise Refused("this policy names a purpose, and who consented to it was not read: nothing is released.")
    return engine.admitted(source, admission.by(person_column(policy)))


def _marks(engine: Engine, rows: Rows, policy: Policy, key: bytes, progress: Progress | None) -> SourceFingerprint:
    try:
        return engine.marks(rows, policy.schema, key, progress)
    except SourceInvalid as error:
        if isinstance(rows, Consenting):
            raise type(error)(f"{error} Rows are counted among those of people who consented.") from None
        raise


def _held_out(policy: Policy, share: Fraction | None) -> HeldOut | None:
    """Toss the coins that hold people out, as a fresh key."""
    person = policy.schema.unit.column
    column = None if person is None else policy.schema[person]
    return None if share is None else HeldOut(share, secrets.token_bytes(32), column)


def rehearse(data: object, policy: Policy, engine: Engine, progress: Progress | None = None) -> Opened:
    """Open and check what a release opens and checks before its charge; nothing is written or bound.

    Refuse what a release would refuse: rows that cannot be read as declared, or are known as another dataset's.
    """
    source = open_data(data, policy, engine)
    rows = _admitted(engine, source, policy, admit(policy, data)) or source
    key = FingerprintFile.of(policy).known_key() or secrets.token_bytes(32)
    marks = _marks(engine, rows, policy, key, progress)
    ledger = find_book(policy)
    if ledger is not None:
        DatasetBinding.of(policy, ledger, (MarkedSource(source.address, marks),))
    if policy.plan.examine is not None:
        policy.plan.examine(Table(policy.schema, rows, engine))
    return source


def open_data(data: object, policy: Policy, engine: Engine) -> Opened:
    """Open the data named by the caller, or else by the policy; every declared column must be there."""
    if policy.graph is not None:
        raise InvalidParameter("this policy is of a graph: use incrowd graph release, assess or attack with it.")
    given = data if data is not None else policy.source
    if given is None:
        raise InvalidParameter("no data: name a file, or write source: in the policy.")
    source = engine.open(given, policy.options)
    require(source.names, policy.schema.names)
    return source
