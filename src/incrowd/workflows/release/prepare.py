"""Prepare: everything that is checked before a charge, where the rows live."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.table import Engine, Opened, Progress, Table
from incrowd.engines.choose import settings_for
from incrowd.engines.columns import require
from incrowd.engines.local.fingerprint import keyed_digest
from incrowd.engines.missing_ids import missing_ids
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.ledger import open_book
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.policy.sources import Bond, MarkedSource, SourceBook


@dataclass(frozen=True)
class Prepared:
    """A table that can be read, a ledger and what will bind both, and a commitment to the rows under its own key.

    `notes` are for the data holder alone: they may depend on the rows.
    """

    source: Opened
    table: Table
    ledger: Ledger
    bond: Bond
    key: bytes
    commitment: str
    notes: tuple[str, ...] = ()


def load_for(policy: str | Path | Mapping[str, Any] | Policy, data: object) -> Policy:
    """Return a policy that was read, with the engine that the data asks for."""
    read = policy if isinstance(policy, Policy) else load_policy(policy)
    return replace(read, engine=settings_for(data, read.engine))


def prepare(data: object, policy: Policy, engine: Engine, progress: Progress | None = None) -> Prepared:
    """Open and check everything that can be checked before a charge: one ragged line costs nothing."""
    source = open_data(data, policy, engine)
    marks = engine.marks(source, policy.schema, SourceBook.of(policy).key(), progress)
    ledger = open_book(policy)
    key, content = secrets.token_bytes(32), engine.digest(source)
    bond = Bond.of(policy, ledger, (MarkedSource.of(source, marks, content, ledger),))
    notes = (*source.notes, *missing_ids(engine, source, policy.schema))
    rows = source if progress is None else engine.watched(source, progress)
    table = Table(policy.schema, rows, engine)
    return Prepared(source, table, ledger, bond, key, keyed_digest(content, key), notes)


def open_data(data: object, policy: Policy, engine: Engine) -> Opened:
    """Open the data named by the caller, or else by the policy; every declared column must be there."""
    given = data if data is not None else policy.source
    if given is None:
        raise InvalidParameter("no data: name a file, or write source: in the policy.")
    source = engine.open(given, policy.options)
    require(source.names, policy.schema.names)
    return source
