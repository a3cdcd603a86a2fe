"""Release of linked tables: the road of every release, with a source for each table in place of one."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from warnings import warn

from incrowd.core.certificate import Certificate
from incrowd.core.linked import LinkedSchema, LinkedTables
from incrowd.core.table import Engine, Opened, Progress, Rows, Table
from incrowd.engines.fingerprints import keyed_digest
from incrowd.engines.local.views import DividedRows, HeldOut
from incrowd.engines.people import missing_ids
from incrowd.engines.settings import engine_of
from incrowd.engines.statistics_files import check_names
from incrowd.engines.writers.sinks import Folders
from incrowd.errors import InvalidParameter, RowsLeftOut
from incrowd.verifier.files import STATISTICS
from incrowd.workflows.consent.preconditions import require_lineage
from incrowd.workflows.consent.snapshot import admit, taking_part_linked
from incrowd.workflows.plan.forecast import warnings_of
from incrowd.workflows.policy.internal import internal_folder
from incrowd.workflows.policy.ledger import ensure_book, find_book, require_look, require_state
from incrowd.workflows.policy.linked_tables import linked_schema, open_tables
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sources import DatasetBinding, FingerprintFile, MarkedSource
from incrowd.workflows.release.deliver import (
    IN_MEMORY,
    Destination,
    InFolder,
    PublishedRelease,
    check_form,
    write_internal,
)
from incrowd.workflows.release.differences import earlier_releases
from incrowd.workflows.release.libraries import load_out_of_core
from incrowd.workflows.release.linked_keys import key_notes
from incrowd.workflows.release.outsiders import keep_held_out
from incrowd.workflows.release.prepare import (
    Background,
    PolicyOrder,
    fingerprint_of,
    held_out_group,
    require_here,
    require_read,
)
from incrowd.workflows.release.recover import require_none_hidden
from incrowd.workflows.release.run import OpenedRows, PendingRelease, run
from incrowd.workflows.release.tables import ReleaseTerms, before_charge, held_out_steps, selected


@dataclass(frozen=True, eq=False)
class PreparedTables(OpenedRows):
    """Linked tables that can be released, with the key of their commitment and where each of them is."""

    key: bytes
    sources: tuple[str | None, ...]
    notes: tuple[str, ...] = ()
    held_out: HeldOut | None = None


def release_linked(
    data: object, policy: Policy, destination: Destination, progress: Progress | None, terms: ReleaseTerms
) -> PublishedRelease:
    """Release linked tables into a folder: a file a table, report and certificate appear together, or not at all."""
    require_state(policy)
    order = _order(data, policy, terms)
    hidden = require_none_hidden(policy, order.background.ledger, destination.place)
    schema, accompany = linked_schema(policy), partial(_accompany, order, destination.place)
    delivery: InFolder[PreparedTables] = InFolder(destination, internal_folder(policy, order.id), accompany)
    if destination.table is not None:
        raise InvalidParameter("linked tables do not go into one table of a database: leave --table out.")
    for name in schema.table_names:
        destination.check(delivery.folders, schema.columns_of(name))
        if destination.form in STATISTICS:
            check_names(destination.form, [column.name for column in schema.columns_of(name).columns])
    check_form(destination.form, order.plan.method)
    published = run(order, partial(_checked, order, data, progress, terms), delivery)
    return replace(published, notes=(*published.notes, *warnings_of(policy, order.facts.claims), *hidden))


def linked_in_memory(data: object, policy: Policy, terms: ReleaseTerms) -> tuple[Any, Certificate]:
    """Release linked tables in memory: the tables by name and their certificate."""
    order = _order(data, policy, terms)
    return run(order, partial(_warned, order, data), IN_MEMORY)


@contextmanager
def _warned(order: PolicyOrder, data: object) -> Iterator[PreparedTables]:
    """Say before the charge what there is to say of the rows, as there is no terminal here."""
    with prepared_tables(order, data, None) as prepared:
        for note in prepared.notes:
            warn(note, RowsLeftOut, stacklevel=2)
        yield prepared


def _order(data: object, policy: Policy, terms: ReleaseTerms) -> PolicyOrder:
    ledger = find_book(policy)
    background = Background(ledger, admit(policy, data), earlier_releases(policy, ledger, anyway=True))
    steps = (*held_out_steps(terms), *selected(policy, background, terms))
    order = PolicyOrder.of(policy.plan.led_by(*steps), policy, background)
    if not terms.anyway:
        require_lineage(policy, ledger, background.consent)
    return replace(order, target=replace(order.target, key=terms.key))


@contextmanager
def prepared_tables(
    order: PolicyOrder, data: object, progress: Progress | None, hold_out: Fraction | None = None
) -> Iterator[PreparedTables]:
    """Start the engine, and open and check all tables there; on a cluster their codes and keys are joined here."""
    frame = next(iter(data.values()), None) if isinstance(data, Mapping) else data
    with engine_of(order.policy.engine, frame) as engine:
        yield prepare_tables(order, data, engine, progress, hold_out)


@contextmanager
def _checked(
    order: PolicyOrder, data: object, progress: Progress | None, terms: ReleaseTerms
) -> Iterator[PreparedTables]:
    with prepared_tables(order, data, progress, terms.hold_out) as prepared:
        before_charge(order, prepared, terms, prepared.notes)
        yield prepared


def prepare_tables(
    order: PolicyOrder, data: object, engine: Engine, progress: Progress | None, hold_out: Fraction | None = None
) -> PreparedTables:
    """Open, check and fingerprint every source before anything is charged; of who did not consent keys alone are read.

    Who is held out has no row among the people, so rows below have no parent and take no part either.
    """
    policy, schema = order.policy, linked_schema(order.policy)
    require_here(policy, hold_out)
    require_read(policy, order.background.consent)
    load_out_of_core()
    sources = open_tables(policy, data, engine)
    rows = [*taking_part_linked(engine, sources, policy, order.background.consent)]
    key = FingerprintFile.of(policy).key()
    schemas = [schema.columns_of(name) for name in schema.table_names]
    marks = [
        MarkedSource(source.address, fingerprint_of(engine, some, own, key, progress))
        for source, some, own in zip(sources, rows, schemas, strict=True)
    ]
    ledger = ensure_book(policy, order.background.ledger)
    require_look(policy, ledger)
    content = hashlib.sha256(b"".join(map(engine.digest, sources))).digest()
    bond = DatasetBinding.of(policy, ledger, tuple(marks))
    secret = secrets.token_bytes(32)
    notes = _notes(schema, sources, rows, engine)
    held_out = held_out_group(policy, hold_out)
    if held_out is not None:
        rows[0] = DividedRows(rows[0], held_out)
    tables = LinkedTables(schema, tuple(Table(own, item, engine) for own, item in zip(schemas, rows, strict=True)))
    commitment, addresses = keyed_digest(content, secret), tuple(source.address for source in sources)
    return PreparedTables(tables, ledger, (bond,), commitment, secret, addresses, notes, held_out)


def _notes(schema: LinkedSchema, sources: Sequence[Opened], rows: Sequence[Rows], engine: Engine) -> tuple[str, ...]:
    """Return what the data holder should know of the rows, by table: how they were read, and keys that lead nowhere."""
    own = (
        f"{name}: {note}"
        for name, source in zip(schema.table_names, sources, strict=True)
        for note in (*source.notes, *missing_ids(engine, source, schema.columns_of(name)))
    )
    return (*own, *key_notes(schema, rows, engine))


def rehearse_tables(data: object, policy: Policy, engine: Engine) -> tuple[str, ...]:
    """Open and check what a release opens and checks before its charge, and return its notes; nothing is written."""
    schema = linked_schema(policy)
    sources = open_tables(policy, data, engine)
    key = FingerprintFile.of(policy).known_key() or secrets.token_bytes(32)
    rows = taking_part_linked(engine, sources, policy, admit(policy, data))
    marks = [
        MarkedSource(source.address, fingerprint_of(engine, some, schema.columns_of(name), key, None))
        for source, some, name in zip(sources, rows, schema.table_names, strict=True)
    ]
    ledger = find_book(policy)
    if ledger is not None:
        DatasetBinding.of(policy, ledger, tuple(marks))
    return _notes(schema, sources, rows, engine)


def _accompany(
    order: PolicyOrder, folder: Path, made: PendingRelease[PreparedTables], _certificate: Certificate, stage: Folders
) -> tuple[str, ...]:
    """Write what only the data holder may know."""
    internal = write_internal(stage, order, folder, made.opened.key, {"source": list(made.opened.sources)})
    if made.opened.held_out is not None:
        keep_held_out(made.opened.held_out, internal)
    return made.opened.notes
