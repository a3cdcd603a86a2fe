"""Prepare: everything that is checked before a charge, without rows and where the rows live."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.periods import PeriodCharge
from incrowd.accounting.ledger.request import SeriesTerms
from incrowd.core.certificate import Columns
from incrowd.core.domain import Type
from incrowd.core.fingerprints import SourceFingerprint
from incrowd.core.linked import LinkedSchema
from incrowd.core.plan import Output, Plan
from incrowd.core.rounding import exact
from incrowd.core.schema import Column, Schema
from incrowd.core.steps.around import period_of
from incrowd.core.table import Engine, Opened, Progress, Rows, Table
from incrowd.engines.columns import require
from incrowd.engines.fingerprints import keyed_digest
from incrowd.engines.local.views import Consenting, DividedRows, HeldOut, PeriodFilter, UnreadMoments
from incrowd.engines.people import missing_ids
from incrowd.engines.settings import Local, engine_of, settings_for
from incrowd.errors import InvalidParameter, Refused, SourceInvalid
from incrowd.workflows.consent.place import person_column
from incrowd.workflows.consent.preconditions import require_day
from incrowd.workflows.consent.snapshot import ConsentSnapshot, admit
from incrowd.workflows.plan.outside import require_few_outside, require_outside_rules
from incrowd.workflows.policy.ledger import ensure_book, find_book, require_look
from incrowd.workflows.policy.periods import whole_guarantee
from incrowd.workflows.policy.policy import Policy, PolicyLike, load_policy
from incrowd.workflows.policy.sources import DatasetBinding, FingerprintFile, MarkedSource
from incrowd.workflows.release.certify import PlanFacts, columns_of, dataset_of
from incrowd.workflows.release.differences import Earlier
from incrowd.workflows.release.libraries import load_out_of_core
from incrowd.workflows.release.perform import ChargeTarget
from incrowd.workflows.release.prior import EarlierModel
from incrowd.workflows.release.run import OpenedRows, ReleaseOrder

if TYPE_CHECKING:
    from incrowd.methods.histograms.continual.running import CountablePeople


@dataclass(frozen=True, eq=False)
class Background:
    """What the ledger and the consent registry say before a release, each read once.

    `ledger` is None where none was ever made, `consent` where the policy names no purpose.  `earlier` are the releases
    that the new one is compared with, or published beside `anyway`.  `period` is the one that is read and charged,
    where the policy has periods, and `model` that of an earlier period, from which a synthesis starts.
    """

    ledger: Ledger | None = None
    consent: ConsentSnapshot | None = None
    earlier: tuple[Earlier, ...] = ()
    period: PeriodCharge | None = None
    model: EarlierModel | None = None
    anyway: bool = False


@dataclass(frozen=True, eq=False)
class PolicyOrder(ReleaseOrder):
    """A release that a policy describes, behind the consent gate, and its background."""

    policy: Policy
    background: Background

    @classmethod
    def of(cls, plan: Plan, policy: Policy, background: Background) -> PolicyOrder:
        """Refuse a day that the calendar does not name; then fix the gate, the facts and the id of the release."""
        consent = background.consent
        if policy.calendar is not None and background.period is None:
            raise InvalidParameter(
                "this policy has periods, and a release reads one of them: use incrowd series run --period "
                f"{policy.calendar.first}."
            )
        require_day(consent, background.earlier)
        gated = plan.gated(None if consent is None else consent.gate)
        facts = PlanFacts.of(gated, policy.hash)
        target = ChargeTarget(policy.name, facts.new_id(), period=background.period, series=series_terms(policy, plan))
        return cls(gated, facts, target, dataset_of(policy), partial(_columns, policy.schema), policy, background)


def series_terms(policy: Policy, plan: Plan) -> SeriesTerms | None:
    """Return the series that a policy has charged at once, and what all its releases guarantee together; else None."""
    section, step = policy.section.period, period_of(plan.steps)
    if section is None or policy.calendar is None or step is None or step.releases is None or step.composed is None:
        return None
    single = plan.guarantee
    whole = single if policy.method.running else whole_guarantee(single, step.composed, _series_delta(policy))
    spare = step.releases - policy.calendar.size
    return SeriesTerms(section.series, policy.hash, policy.calendar.size, spare, single, whole)


def _series_delta(policy: Policy) -> Fraction:
    """Return the δ that a policy states for all releases together."""
    stated = policy.section.release
    delta = stated.get("delta") if isinstance(stated, dict) else None
    return Fraction(0) if delta is None else exact(str(delta), "delta")


def _columns(schema: Schema, output: Output) -> Columns:
    if isinstance(schema, LinkedSchema):
        names = [column.name for column in schema.released_everywhere]
        return replace(columns_of(schema, ()), released=tuple(names))
    return columns_of(schema, output.schema.names)


@dataclass(frozen=True, eq=False)
class PreparedTable(OpenedRows):
    """A table that can be released, with the key of its commitment.

    `notes` are for the data holder alone: they may depend on the rows.
    """

    source: Opened
    reading: Opened
    """The rows that the release may read: those of its period, or the whole source."""
    engine: Engine
    key: bytes
    notes: tuple[str, ...] = ()
    held_out: HeldOut | None = None
    people: CountablePeople | None = None
    """Who may still take part in this period of a series, and who did, where periods per person are bounded."""


def load_for(policy: PolicyLike, data: object) -> Policy:
    """Return a policy that was read, with the engine that the data asks for."""
    read = load_policy(policy)
    return replace(read, engine=settings_for(data, read.engine))


@contextmanager
def prepared_table(
    order: PolicyOrder, data: object, progress: Progress | None = None, hold_out: Fraction | None = None
) -> Iterator[PreparedTable]:
    """Start the engine, and open and check the rows of an order there."""
    with engine_of(order.policy.engine, data) as engine:
        prepared = prepare(order, data, engine, progress, hold_out)
        table = Table(order.policy.schema, prepared.reading, engine)
        _require_crowds(order, table)
        yield prepared


def _require_crowds(order: PolicyOrder, table: Table) -> None:
    if order.policy.period is not None and order.plan.guarantee.syntactic:
        import incrowd.workflows.release.members  # noqa: F401 - what follows the charge must not fail to load
    if order.background.earlier or order.background.consent is not None:
        from incrowd.workflows.consent.changes import require_crowds

        require_crowds(order.policy, order.background.earlier, table, order.background.consent)


def prepare(
    order: PolicyOrder,
    data: object,
    engine: Engine,
    progress: Progress | None = None,
    hold_out: Fraction | None = None,
) -> PreparedTable:
    """Open and check everything that can be checked before a charge: one ragged line costs nothing.

    Of a person who did not consent only the person ID is read.  Rows that are held out are checked and charged like all
    others, and take part in nothing else.
    """
    policy = order.policy
    require_outside_rules(policy)
    require_here(policy, hold_out)
    source = open_data(data, policy, engine)
    if policy.schema.unit.column is not None or not getattr(source, "small", False):
        load_out_of_core()
    people = _admitted(engine, source, policy, order.background.consent)
    _require_dates(policy, engine, source, people)
    admitted = _in_period(policy, engine, source, people)
    reading = source if policy.calendar is None else _in_period(policy, engine, source, None) or source
    keyed = admitted or engine.keyed(source, policy.plan.cells)
    fingerprint = fingerprint_of(engine, keyed, policy.schema, FingerprintFile.of(policy).key(), progress)
    ledger = ensure_book(policy, order.background.ledger)
    require_look(policy, ledger)
    key, content = secrets.token_bytes(32), engine.digest(source)
    bond = DatasetBinding.of(policy, ledger, (MarkedSource(source.address, fingerprint),))
    notes = (*source.notes, *missing_ids(engine, reading, policy.schema))
    held_out = held_out_group(policy, hold_out)
    counted = people_of_series(policy, ledger)
    allowed = keyed if counted is None else engine.admitted(keyed, counted)
    rows: Rows = allowed if progress is None else engine.watched(allowed, progress)
    if held_out is not None:
        taking = admitted or source
        rows = DividedRows(taking if progress is None else engine.watched(taking, progress), held_out)
    table = Table(policy.schema, rows, engine)
    if policy.plan.examine is not None:
        policy.plan.examine(table)
    opened: Any = _running(policy, ledger, table, order.background.consent) if policy.method.running else table
    if order.background.model is not None:
        opened = _started(table, order.background.model)
    require_few_outside(policy, reading, engine)
    commitment = keyed_digest(content, key)
    return PreparedTable(opened, ledger, (bond,), commitment, source, reading, engine, key, notes, held_out, counted)


def _started(table: Table, earlier: EarlierModel) -> Any:
    from incrowd.methods.synthesis.marginals.prior import PriorRows

    return PriorRows(table, earlier.model)


def people_of_series(policy: Policy, ledger: Ledger) -> CountablePeople | None:
    """Return who may still take part in the period, where a policy bounds the periods of a person; else None."""
    if policy.participations is None:
        return None
    from incrowd.workflows.release.running import admitted_people

    return admitted_people(policy, ledger, policy.participations)


def _running(policy: Policy, ledger: Ledger, table: Table, consent: ConsentSnapshot | None) -> Any:
    from incrowd.workflows.release.running import running_rows

    return running_rows(policy, ledger, table, consent)


def _require_dates(policy: Policy, engine: Engine, source: Opened, people: Rows | None) -> None:
    """Refuse a source with dates that cannot be read: their rows would be in no period, without notice."""
    calendar = policy.calendar
    if calendar is None:
        return
    name, rows = calendar.decides, people or source
    stored = engine.types(source, [name])[name]
    if policy.schema[name].type is Type.DATE and pa.types.is_timestamp(stored) and stored.tz is not None:
        raise SourceInvalid(
            f"column {name} holds moments, and in which period one lies depends on the zone {stored.tz} of this file; "
            "another file of the same rows may name another. Nothing was charged. Declare type: text for it, and zone: "
            "under period:."
        )
    if policy.schema[name].type is Type.DATE and not pa.types.is_date(stored):
        engine.marks(rows, Schema((Column(name, type=Type.DATE),)), bytes(32))
    if policy.schema[name].type is Type.TEXT and not pa.types.is_timestamp(stored):
        unread = engine.learn(rows, [name], partial(UnreadMoments, calendar, name)).unread
        if unread:
            cells = "1 cell is not a moment" if unread == 1 else f"{unread:,} cells are not moments"
            raise SourceInvalid(
                f"column {name}: {cells} in ISO 8601, such as 2025-03-31T23:30:00Z, so the rows would be in no period; "
                "nothing was released and nothing was charged. Correct them, or empty the cells of rows without a date."
            )


def _in_period(policy: Policy, engine: Engine, source: Rows, admitted: Rows | None) -> Any:
    """Return the rows of the period that is read, of admitted people where there is a gate; None for all rows."""
    calendar, label = policy.calendar, policy.period
    if calendar is None:
        return admitted
    if label is None:
        raise InvalidParameter("this policy has periods: choose one, with incrowd series.")
    return engine.in_period(admitted or source, PeriodFilter(calendar, label, policy.schema[calendar.decides]))


def _admitted(engine: Engine, source: Opened, policy: Policy, consent: ConsentSnapshot | None) -> Rows | None:
    """Return the rows of those who consented; a purpose without a reading of the registry is refused."""
    require_read(policy, consent)
    return None if consent is None else engine.admitted(source, consent.by(person_column(policy)))


def require_read(policy: Policy, consent: ConsentSnapshot | None) -> None:
    """Refuse to release under a purpose if the registry was not read."""
    if policy.gate is not None and (consent is None or not consent.gate.settled):
        raise Refused("this policy names a purpose, and its consent registry was not read: nothing is released.")


def fingerprint_of(
    engine: Engine, rows: Rows, schema: Schema, key: bytes, progress: Progress | None
) -> SourceFingerprint:
    """Check all rows that take part, and return how a source of the same people is recognized."""
    try:
        return engine.marks(rows, schema, key, progress)
    except SourceInvalid as error:
        if isinstance(rows, Consenting):
            raise type(error)(f"{error} Rows are counted among those of people who consented.") from None
        raise


def require_here(policy: Policy, hold_out: Fraction | None) -> None:
    """Refuse to hold people out on a cluster."""
    if hold_out is not None and not isinstance(policy.engine, Local):
        raise InvalidParameter("people are held out where rows are read here: leave --hold-out out, or --engine local.")


def held_out_group(policy: Policy, share: Fraction | None) -> HeldOut | None:
    """Draw a fresh key, which with the rows decides who is held out."""
    person = policy.schema.unit.column
    column = None if person is None else policy.schema[person]
    return None if share is None else HeldOut(share, secrets.token_bytes(32), column)


def rehearse(data: object, policy: Policy, engine: Engine, progress: Progress | None = None) -> Opened:
    """Open and check what a release opens and checks before its charge; nothing is written or bound.

    Refuse what a release would refuse: rows that cannot be read as declared, or that belong to another dataset.
    """
    require_outside_rules(policy)
    source = open_data(data, policy, engine)
    people = _admitted(engine, source, policy, admit(policy, data))
    _require_dates(policy, engine, source, people)
    rows = _in_period(policy, engine, source, people) or source
    key = FingerprintFile.of(policy).known_key() or secrets.token_bytes(32)
    fingerprint = fingerprint_of(engine, rows, policy.schema, key, progress)
    ledger = find_book(policy)
    if ledger is not None:
        DatasetBinding.of(policy, ledger, (MarkedSource(source.address, fingerprint),))
    if policy.plan.examine is not None:
        policy.plan.examine(Table(policy.schema, rows, engine))
    require_few_outside(policy, source, engine)
    return source


def open_data(data: object, policy: Policy, engine: Engine) -> Opened:
    """Open the data that the caller names, else the source of the policy; every declared column must be there."""
    if policy.graph is not None:
        raise InvalidParameter("this policy is of a graph: use incrowd graph release, assess or attack with it.")
    if policy.linked:
        raise InvalidParameter(
            "this policy is of linked tables: incrowd plan, release, verify, assess and report work with it."
        )
    place = data if data is not None else policy.source
    if place is None:
        raise InvalidParameter("no data: name a file, or write source: in the policy.")
    source = engine.open(place, policy.options)
    require(source.names, policy.schema.names)
    return source
