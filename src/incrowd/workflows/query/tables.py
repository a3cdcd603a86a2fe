"""Opening a desk: the tables of policies become a catalog and a warehouse, and the ledger learns of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

from sqlglot import exp

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.fingerprints import SourceFingerprint
from incrowd.core.schema import Schema
from incrowd.core.table import Engine, Opened, Progress, SourceOptions
from incrowd.core.unit import ExtraRowsRule
from incrowd.engines.columns import require
from incrowd.engines.fingerprints import keyed_digest, marks_of
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.local.validate import refuse_crowded
from incrowd.engines.settings import Settings, Spark, engine_of, settings_for
from incrowd.engines.sql.duckdb import warehouse
from incrowd.engines.sql.engine import Limits, QueryTables, StoredTable, crowded_people
from incrowd.errors import (
    ClusterUnavailable,
    InvalidParameter,
    JobFailed,
    QuestionFailed,
    SourceInvalid,
    SourceMisspelled,
    SourceUnavailable,
    SourceUnreadable,
)
from incrowd.queries.language.row_query import Context
from incrowd.queries.language.tables import ready_rows, table_rows
from incrowd.queries.question import Catalog, Relation
from incrowd.workflows.policy.ledger import open_book
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sources import DatasetBinding, FingerprintFile, MarkedSource
from incrowd.workflows.query.gated import require_gateable

_JOINED = 2
"""Public tables are joined by so many columns at most."""


@dataclass(frozen=True)
class Opening:
    """What a desk works with: the catalog, the rows, and the one ledger of all its policies."""

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
) -> Iterator[Opening]:
    """Open the tables of all policies; `data` overrides the source of the first policy's main table.

    Private rows are marked, so that another name brings them no fresh budget, and not looked at otherwise.  They are
    asked where the policies say, or on the engine of the settings.  Nothing is bound before a question is charged.
    """
    _one_ledger(policies)
    with place_of(policies, data, settings, progress) as place:
        stored, relations = dict[str, StoredTable](), list[Relation]()
        for number, policy in enumerate(policies):
            for relation, each in _tables(policy, data if number == 0 else None, place):
                relations.append(replace(relation, ready=place.ready))
                ready = ready_rows(relation) if place.ready else None
                stored[relation.name] = replace(each, progress=progress, ready=ready)
        catalog = Catalog(tuple(relations))
        ledger = open_book(policies[0])
        bonds = dict[str, DatasetBinding]()
        for policy in policies:
            own = [stored[each.name] for each in relations if each.dataset == policy.name]
            bonds[policy.name] = _bond(ledger, policy, own, place)
        with place.asked(stored, limits) as rows:
            _refuse_crowded(relations, rows)
            public = {each.name: _measured(each, catalog, rows) for each in relations if not each.private}
            catalog = Catalog(tuple(public.get(each.name, each) for each in relations))
            yield Opening(tuple(policies), catalog, rows, ledger, bonds)


def relations_of(policy: Policy) -> Iterator[Relation]:
    """Yield the tables of a policy as questions see them, the main table first; no row is read."""
    today = policy.section.queries.today if policy.section.queries is not None else None
    yield Relation(main_table(policy), policy.schema, policy.name, today=today)
    for other in policy.tables:
        yield Relation(other.name, other.schema, None if other.public else policy.name, today=today)


def main_table(policy: Policy) -> str:
    """Return what the main table of a policy is called in SQL.

    >>> from incrowd.workflows.policy.policy import load_policy
    >>> main_table(load_policy({"incrowd": 1, "dataset": {"name": "births-2025"}, "columns": {"a": {}}, "queries": {}}))
    'births_2025'
    """
    told = policy.section.queries.table if policy.section.queries is not None else None
    return told or re.sub(r"\W", "_", policy.name)


_UNITS = 100_000
"""How many units a dataset has if its policy does not tell."""


def declared_units(policy: Policy) -> int:
    """Return how many units of privacy a policy declares, by its rows or by its population.

    Of R rows and at most m of each unit, the work is at most that of R / m units with m rows: work grows with the rows
    of a unit at least in proportion.
    """
    told, most = policy.section.dataset, policy.schema.unit.max_rows
    known = [told.population, None if told.rows is None else math.ceil(told.rows / most)]
    return max(1, min((each for each in known if each is not None), default=_UNITS))


@contextmanager
def available() -> Iterator[None]:
    """Turn whatever keeps rows from being read, before a charge, into SourceUnavailable; its words are the cause's."""
    try:
        yield
    except (SourceUnreadable, SourceInvalid, QuestionFailed, ClusterUnavailable, JobFailed) as problem:
        raise SourceUnavailable(str(problem)) from None


def _one_ledger(policies: Sequence[Policy]) -> None:
    if not policies:
        raise InvalidParameter("a desk needs at least one policy.")
    if len({policy.ledger_address for policy in policies}) > 1:
        raise InvalidParameter(
            "these policies keep their budgets in different ledgers, and a question about several datasets is charged "
            "in one. Give them the same ledger: address."
        )
    for policy in policies:
        if policy.section.queries is None:
            raise InvalidParameter(
                f"the policy of {policy.name} does not let questions be asked: write queries: into it."
            )
        if policy.budget is None:
            raise InvalidParameter(
                f"the policy of {policy.name} has no budget, so its first question could use up everything: write "
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
    relations = relations_of(policy)
    yield next(relations), StoredTable(main, policy.schema)
    for relation, other in zip(relations, policy.tables, strict=True):
        rows = place.open(other.source, other.options)
        require(rows.names, other.schema.names)
        yield relation, StoredTable(rows, other.schema)


def _bond(ledger: Ledger, policy: Policy, tables: Sequence[StoredTable], place: Location) -> DatasetBinding:
    key, marked = FingerprintFile.of(policy).key(), list[MarkedSource]()
    for each in tables:
        if place.marks is None:
            marks = SourceFingerprint(keyed_digest(place.digest(each.source), key))
        else:
            marks = place.marks(each.source, each.schema, key)
        marked.append(MarkedSource(each.source.address, marks))
    return DatasetBinding.of(policy, ledger, tuple(marked))


def _refuse_crowded(relations: Sequence[Relation], rows: QueryTables) -> None:
    """Raise if a table holds people with more rows than its policy lets a source have."""
    for relation in relations:
        unit = relation.unit
        if relation.private and unit.more is ExtraRowsRule.REFUSE and unit.column is not None:
            found = rows.collect(crowded_people(relation.name, unit.column, unit.max_rows))["people"][0].as_py()
            refuse_crowded(unit, int(found))


def _measured(relation: Relation, catalog: Catalog, rows: QueryTables) -> Relation:
    """Return a public table with how many of its rows share the values of one or two columns, at most.

    Values are compared as questions see them: after each was brought into its declared domain.
    """
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
    found = rows.collect(query)["most"][0].as_py()
    return max(1, int(found or 0))


def _marks(
    engine: Engine, rows: Opened, schema: Schema, key: bytes, progress: Progress | None = None
) -> SourceFingerprint:
    """Return the marks of rows, and tell how many have been read; to questions, what cannot be read is missing.

    Numbers and dates of a text file that are spelled in another way than declared would be missing too, all of them and
    without a word: they are refused, as a release does.
    """
    found = None
    if rows.settings.get("format") in {"csv", "excel"}:
        try:
            found = engine.marks(rows, schema, key, progress)
        except SourceMisspelled:
            raise
        except SourceInvalid:  # what it complains of is missing to questions, or refused by the desk itself
            found = None
    if found is None:
        found = marks_of(engine, rows if progress is None else engine.watched(rows, progress), schema, key)
    if progress is not None:
        progress(0, None)  # what comes next are questions: nobody knows how long they take
    return found


@dataclass(frozen=True)
class Location:
    """How rows are opened, how they are told from others, and what is asked about them.

    Rows that stay in their database leave no marks but their digest, and are not held `ready`.
    """

    open: Callable[[Any, SourceOptions], Opened]
    digest: Callable[[Any], bytes]
    marks: Callable[[Any, Schema, bytes], SourceFingerprint] | None
    asked: Callable[[Mapping[str, StoredTable], Limits | None], AbstractContextManager[QueryTables]]
    ready: bool = True


@contextmanager
def place_of(
    policies: Sequence[Policy],
    data: object = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Iterator[Location]:
    """Open the place that the policies name, or the engine that a caller names instead.

    A frame of Spark is asked in its own session.
    """
    told = [policy.engine for policy in policies] if settings is None else [settings]
    told = [settings_for(data, each) for each in told]
    pushed = {policy.section.queries is not None and policy.section.queries.pushdown for policy in policies}
    if any(each != told[0] for each in told) or len(pushed) > 1:
        raise InvalidParameter(
            "questions over several policies are computed in one place, and these name different ones: give them the "
            "same engine: and pushdown:."
        )
    require_gateable(policies)
    if isinstance(told[0], Spark) and True in pushed:
        raise InvalidParameter("with pushdown the database computes, not Spark: name one of both.")
    if isinstance(told[0], Spark):
        with _on_spark(told[0], data) as place:
            yield place
    elif True in pushed:
        from incrowd.engines.sql.postgres import ServerRows, open_server_rows, postgres_warehouse

        yield Location(open_server_rows, ServerRows.digest, None, postgres_warehouse, ready=False)
    else:
        yield Location(LOCAL.open, LOCAL.digest, partial(_marks, LOCAL, progress=progress), warehouse)


@contextmanager
def _on_spark(settings: Spark, data: object) -> Iterator[Location]:
    from incrowd.engines.spark.engine import SparkEngine
    from incrowd.engines.sql.spark import spark_warehouse

    with engine_of(settings, data) as engine:
        if isinstance(engine, SparkEngine):
            yield Location(
                engine.open, engine.digest, partial(_marks, engine), partial(spark_warehouse, engine.session)
            )
