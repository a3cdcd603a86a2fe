"""Tables: those of some policies are opened for queries, bound to their ledger, and described as declared."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import pyarrow as pa
from sqlglot import exp

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.domain import Categories, Dates, Domain, Numbers, Type
from incrowd.core.fingerprints import SourceFingerprint
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Engine, Opened, Progress, SourceOptions
from incrowd.core.unit import ExtraRowsRule
from incrowd.engines.columns import require
from incrowd.engines.fingerprints import keyed_digest, marks_of
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.local.validate import refuse_crowded
from incrowd.engines.readers.sources import Source
from incrowd.engines.settings import Settings, Spark, engine_of, settings_for
from incrowd.engines.sql.duckdb import warehouse
from incrowd.engines.sql.engine import Limits, QueryTables, StoredTable, crowded_people
from incrowd.errors import (
    ClusterUnavailable,
    InvalidParameter,
    JobFailed,
    QueryFailed,
    Refused,
    SourceInvalid,
    SourceMisspelled,
    SourceUnavailable,
    SourceUnreadable,
)
from incrowd.queries.language.row_query import Context
from incrowd.queries.language.tables import ready_rows, rows_by_period, table_rows
from incrowd.queries.query import Catalog, Relation
from incrowd.workflows.consent.snapshot import ConsentSnapshot, admit
from incrowd.workflows.policy.ledger import open_book
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sources import DatasetBinding, FingerprintFile, MarkedSource

_JOINED = 2
"""The most columns by which a public table is joined."""
_UTC = (None, "UTC", "Etc/UTC", "Z", "GMT", "+00:00")
"""The zones whose days are those of UTC; moments without a zone are taken as written."""
_LISTED = 200
"""The most categories of a column that its description lists."""


@dataclass(frozen=True)
class OpenTables:
    """The tables of some policies, their rows, and their one ledger."""

    policies: tuple[Policy, ...]
    catalog: Catalog
    warehouse: QueryTables
    ledger: Ledger
    bonds: Mapping[str, DatasetBinding]


@contextmanager
def open_tables(
    policies: Sequence[Policy],
    data: object = None,
    limits: Limits | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Iterator[OpenTables]:
    """Open the tables of all policies; `data` overrides the source of the first policy's main table.

    Private rows get fingerprints, so that another name brings them no fresh budget, and are not read otherwise.
    Queries run where the policies say, or on the engine of the settings.  Nothing is bound before a query is charged.
    """
    _one_ledger(policies)
    with place_of(policies, data, settings, progress) as place:
        stored, relations = dict[str, StoredTable](), list[Relation]()
        for number, policy in enumerate(policies):
            for relation, table in _tables(policy, data if number == 0 else None, place):
                ready, by_period = (ready_rows(relation), rows_by_period(relation)) if place.ready else (None, None)
                relations.append(replace(relation, ready=place.ready, by_period=by_period is not None))
                stored[relation.name] = replace(table, progress=progress, ready=ready, by_period=by_period)
        catalog = Catalog(tuple(relations))
        ledger = open_book(policies[0])
        bonds = dict[str, DatasetBinding]()
        for policy in policies:
            own = [stored[relation.name] for relation in relations if relation.dataset == policy.name]
            bonds[policy.name] = _bond(ledger, policy, own, place)
        with place.warehouse(stored, limits) as rows:
            _refuse_crowded(relations, rows)
            measured = [_measured(relation, catalog, rows) for relation in relations]
            catalog = Catalog(tuple(measured))
            yield OpenTables(tuple(policies), catalog, rows, ledger, bonds)


def relations_of(policy: Policy) -> Iterator[Relation]:
    """Yield the tables of a policy as queries see them, the main table first; no row is read."""
    today = policy.section.queries.today if policy.section.queries is not None else None
    yield Relation(main_table(policy), policy.schema, policy.name, today=today, calendar=policy.calendar)
    for other in policy.tables:
        yield Relation(other.name, other.schema, None if other.public else policy.name, today=today)


def main_table(policy: Policy) -> str:
    """Return the name of the main table of a policy in SQL.

    >>> from incrowd.workflows.policy.policy import load_policy
    >>> main_table(load_policy({"incrowd": 1, "dataset": {"name": "births-2025"}, "columns": {"a": {}}, "queries": {}}))
    'births_2025'
    """
    declared = policy.section.queries.table if policy.section.queries is not None else None
    return declared or re.sub(r"\W", "_", policy.name)


_UNITS = 100_000
"""How many units a dataset has if its policy does not say."""


def declared_units(policy: Policy) -> int:
    """Return how many units of privacy a policy declares, by its rows or by its population.

    With R rows and at most m of each unit, the work is at most that of R / m units with m rows each, because work grows
    at least in proportion to the rows of a unit.
    """
    dataset, most = policy.section.dataset, policy.schema.unit.max_rows
    by_rows = None if dataset.rows is None else math.ceil(dataset.rows / most)
    return max(1, min((number for number in (dataset.population, by_rows) if number is not None), default=_UNITS))


@contextmanager
def available() -> Iterator[None]:
    """Turn an error that keeps rows from being read before a charge into SourceUnavailable, with the same text."""
    try:
        yield
    except (SourceUnreadable, SourceInvalid, QueryFailed, ClusterUnavailable, JobFailed) as problem:
        raise SourceUnavailable(str(problem)) from None


def _one_ledger(policies: Sequence[Policy]) -> None:
    if not policies:
        raise InvalidParameter("a query service needs at least one policy.")
    if len({policy.ledger_address for policy in policies}) > 1:
        raise InvalidParameter(
            "these policies keep their budgets in different ledgers, and a query about several datasets is charged "
            "in one. Give them the same ledger: address."
        )
    for policy in policies:
        if policy.section.queries is None:
            raise InvalidParameter(f"the policy of {policy.name} does not allow queries: write queries: into it.")
        if policy.budget is None:
            raise InvalidParameter(
                f"the policy of {policy.name} has no budget, so its first query could use up everything: write "
                "budget: {epsilon: …, delta: …} into it."
            )
        if policy.schema.drafted:
            raise InvalidParameter(
                f"the domains of {', '.join(policy.schema.drafted)} were drafted from the rows, and an answer would "
                "rest on them: write public: with their source in the policy, or declare them."
            )


def _tables(policy: Policy, data: object, place: Location) -> Iterator[tuple[Relation, StoredTable]]:
    source = data if data is not None else policy.source
    if source is None:
        raise InvalidParameter("no data: name a file, or write source: in the policy.")
    main = place.open(source, policy.options)
    require(main.names, policy.schema.names)
    _refuse_zones(main, policy.schema)
    relations = relations_of(policy)
    yield next(relations), StoredTable(main, policy.schema)
    for relation, other in zip(relations, policy.tables, strict=True):
        rows = place.open(other.source, other.options)
        require(rows.names, other.schema.names)
        _refuse_zones(rows, other.schema)
        yield relation, StoredTable(rows, other.schema)


def _refuse_zones(rows: Opened, schema: Schema) -> None:
    """Refuse dates that are stored as moments in a zone other than UTC, before a query about them is charged.

    The day of such a moment is that of the zone which this file names, and another file of the same rows may name
    another one: an answer would depend on that.  A database and a cluster read moments in UTC.
    """
    days = [column.name for column in schema.columns if column.type is Type.DATE]
    stored = LOCAL.types(rows, days) if days and isinstance(rows, Source) else {}
    for name, kind in stored.items():
        if pa.types.is_timestamp(kind) and kind.tz not in _UTC:
            raise SourceInvalid(
                f"column {name} holds moments, and on which day one lies depends on the zone {kind.tz} of this file; "
                "another file of the same rows may name another. Nothing was charged. Store days, or moments in UTC."
            )


def _bond(ledger: Ledger, policy: Policy, tables: Sequence[StoredTable], place: Location) -> DatasetBinding:
    key, marked = FingerprintFile.of(policy).key(), list[MarkedSource]()
    for table in tables:
        if place.fingerprint is None:
            fingerprint = SourceFingerprint(keyed_digest(place.digest(table.source), key))
        else:
            fingerprint = place.fingerprint(table.source, table.schema, key)
        marked.append(MarkedSource(table.source.address, fingerprint))
    return DatasetBinding.of(policy, ledger, tuple(marked))


def _refuse_crowded(relations: Sequence[Relation], rows: QueryTables) -> None:
    """Raise if a table holds people with more rows than its policy lets a source have."""
    for relation in relations:
        unit = relation.unit
        if relation.private and unit.more is ExtraRowsRule.REFUSE and unit.column is not None:
            people = rows.collect(crowded_people(relation.name, unit.column, unit.max_rows))["people"][0].as_py()
            refuse_crowded(unit, int(people))


def _measured(relation: Relation, catalog: Catalog, rows: QueryTables) -> Relation:
    """Return a public table with the most rows that share the values of one or two columns; a private one as it is.

    Values are compared as queries see them: within their declared domain.
    """
    if relation.private:
        return relation
    domain = table_rows(relation, Context(catalog, None)).query
    names, most = relation.schema.names, dict[frozenset[str], int]()
    for size in range(1, _JOINED + 1):
        for chosen in combinations(names, size):
            most[frozenset(chosen)] = _most(domain, chosen, rows)
    return replace(relation, most=most)


def _most(domain: exp.Query, chosen: tuple[str, ...], rows: QueryTables) -> int:
    columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in chosen]
    grouped = (
        exp.select(exp.alias_(exp.Count(this=exp.Star()), "n"))
        .from_(domain.subquery("domain"))
        .where(*(column.copy().is_(exp.null()).not_() for column in columns))
        .group_by(*columns)
    )
    query = exp.select(exp.alias_(exp.func("MAX", exp.column("n")), "most")).from_(grouped.subquery("counted"))
    most = rows.collect(query)["most"][0].as_py()
    return max(1, int(most or 0))


def _fingerprint(
    engine: Engine, rows: Opened, schema: Schema, key: bytes, progress: Progress | None = None
) -> SourceFingerprint:
    """Return the fingerprint of rows, and report how many have been read.

    To queries, values that cannot be read are missing.  Numbers and dates of a text file in another format than
    declared would all be missing, without notice: they are refused, as by a release.
    """
    fingerprint = None
    if rows.settings.get("format") in {"csv", "excel"}:
        try:
            fingerprint = engine.marks(rows, schema, key, progress)
        except SourceMisspelled:
            raise
        except SourceInvalid:  # such values are missing to queries, or refused below
            fingerprint = None
    if fingerprint is None:
        fingerprint = marks_of(engine, rows if progress is None else engine.watched(rows, progress), schema, key)
    if progress is not None:
        progress(0, None)  # queries come next, whose duration is not known
    return fingerprint


@dataclass(frozen=True)
class Location:
    """Where queries run: how rows are opened, identified and queried there.

    Rows that stay in their database are identified by their digest alone, and are not kept `ready`.
    """

    open: Callable[[Any, SourceOptions], Opened]
    digest: Callable[[Any], bytes]
    fingerprint: Callable[[Any, Schema, bytes], SourceFingerprint] | None
    warehouse: Callable[[Mapping[str, StoredTable], Limits | None], AbstractContextManager[QueryTables]]
    ready: bool = True


@contextmanager
def place_of(
    policies: Sequence[Policy],
    data: object = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Iterator[Location]:
    """Open the location that the policies name, or the engine that a caller names instead.

    A frame of Spark is queried in its own session.
    """
    named = [policy.engine for policy in policies] if settings is None else [settings]
    engines = [settings_for(data, engine) for engine in named]
    pushed = {policy.section.queries is not None and policy.section.queries.pushdown for policy in policies}
    if any(engine != engines[0] for engine in engines) or len(pushed) > 1:
        raise InvalidParameter(
            "queries over several policies are computed in one place, and these name different ones: give them the "
            "same engine: and pushdown:."
        )
    require_gateable(policies)
    if isinstance(engines[0], Spark) and True in pushed:
        raise InvalidParameter("with pushdown the database computes, not Spark: name one of both.")
    if isinstance(engines[0], Spark):
        with _on_spark(engines[0], data) as place:
            yield place
    elif True in pushed:
        from incrowd.engines.sql.postgres import ServerRows, open_server_rows, postgres_warehouse

        yield Location(open_server_rows, ServerRows.digest, None, postgres_warehouse, ready=False)
    else:
        yield Location(LOCAL.open, LOCAL.digest, partial(_fingerprint, LOCAL, progress=progress), warehouse)


@contextmanager
def _on_spark(settings: Spark, data: object) -> Iterator[Location]:
    from incrowd.engines.spark.engine import SparkEngine
    from incrowd.engines.sql.spark import spark_warehouse

    with engine_of(settings, data) as engine:
        if isinstance(engine, SparkEngine):
            yield Location(
                engine.open, engine.digest, partial(_fingerprint, engine), partial(spark_warehouse, engine.session)
            )


def admission_to(policies: Sequence[Policy], data: object = None) -> ConsentSnapshot | None:
    """Return who consents now to an answer about some datasets; None where none of them names a purpose."""
    gated = [policy for policy in policies if policy.gate is not None]
    if not gated:
        return None
    if len(policies) > 1:
        raise Refused(
            "a query about several datasets is not answered where one of them asks for consent: ask about one."
        )
    return admit(gated[0], data)


def gated_rows(rows: QueryTables, catalog: Catalog, dataset: str, admission: ConsentSnapshot | None) -> QueryTables:
    """Return the tables of a dataset with the rows of people who consent alone."""
    if admission is None:
        return rows
    own = [relation for relation in catalog.relations if relation.dataset == dataset]
    return rows.admitting({relation.name: admission.by(relation.schema[_person(relation)]) for relation in own})


def require_gateable(policies: Sequence[Policy]) -> None:
    """Refuse a check of all people where consent is asked for: it would read people who did not consent."""
    for policy in policies:
        if policy.gate is None:
            continue
        units = [policy.schema.unit, *(other.schema.unit for other in policy.tables if not other.public)]
        if any(unit.more is ExtraRowsRule.REFUSE for unit in units):
            raise InvalidParameter(
                "more: refuse would read people who did not consent when tables are opened: write more: drop, or leave "
                "it out."
            )


def _person(relation: Relation) -> str:
    if relation.unit.column is None:
        raise InvalidParameter(f"table {relation.name!r} has no person ID column: give it a unit.")
    return relation.unit.column


def describe_catalog(catalog: Catalog) -> dict[str, Any]:
    """Return the tables with their columns and domains, as declared; identifiers are not among them."""
    return {"tables": [_table(relation) for relation in catalog.relations]}


def _table(relation: Relation) -> dict[str, Any]:
    columns = [_column(column) for column in relation.schema.columns if not Role.IDENTIFIER.covers(column.role)]
    table: dict[str, Any] = {"name": relation.name, "public": not relation.private, "columns": columns}
    if relation.private:
        unit = relation.unit
        table |= {"dataset": relation.dataset, "unit": str(unit), "person": unit.column}
    return table


def _column(column: Column) -> dict[str, Any]:
    return {"name": column.name, "type": str(column.type), **_domain(column.domain)}


def _domain(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Categories):
        return {"values": list(domain.values[:_LISTED]), "more": max(0, len(domain.values) - _LISTED)}
    if isinstance(domain, Numbers | Dates):
        bounds = (getattr(domain, "low", None), getattr(domain, "high", None))
        return {"bounds": [None if bound is None else str(bound) for bound in bounds]}
    return {}
