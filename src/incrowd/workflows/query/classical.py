"""Classical answers, for teaching and comparison: no epsilon, given where no budget guarantees one."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa
from sqlglot import exp

from incrowd.core.coins import Coins
from incrowd.core.plan import Plan
from incrowd.core.schema import Role
from incrowd.core.steps.step import fold
from incrowd.engines.fingerprints import content_digest, keyed_digest
from incrowd.engines.readers.sources import Source, open_source
from incrowd.engines.sql.duckdb import warehouse
from incrowd.engines.sql.engine import QueryTables, StoredTable
from incrowd.errors import QueryRefused, Refused
from incrowd.queries.classical_answers import MOST_AUDITED, AnswerClassically, Audited, Auditor, Protection
from incrowd.queries.query import AggregateKind, Catalog, Relation
from incrowd.queries.query_sets import MOST_ROWS, PLACE, PlainQuery, QuerySet, number_rows, plain_query
from incrowd.store.chain import Chain
from incrowd.store.database import sibling_address
from incrowd.store.transaction import Writer
from incrowd.workflows.query.service import QueryService
from incrowd.workflows.release.perform import ChargeTarget, performing

_NAME = "classical"
_UNCERTIFIED = "an answer without a certificate"


@dataclass(frozen=True)
class ClassicalAnswer:
    """An answer without a certificate: it guarantees nothing, and `broken_by` says why."""

    question: str
    dataset: str
    protection: str
    source: str
    broken_by: str
    value: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return dict(vars(self))


def ask_classical(service: QueryService, sql: str, protection: Protection) -> ClassicalAnswer:
    """Answer a query in a classical way: charge it as a release without an epsilon, read the rows, protect.

    Preconditions: the dataset's budget has an epsilon of 0 and its owner's reason for releases without one, and nothing
    differentially private was ever released from it.  All else is refused: one exact answer beside noisy ones would
    break their guarantee.
    """
    plain = plain_query(sql, service.planner.catalog)
    relation = replace(service.planner.catalog[plain.table], ready=False)
    dataset = str(relation.dataset)
    _check_apart(service, dataset)
    if any(policy.gate is not None for policy in service.planner.policies if policy.name == dataset):
        raise Refused("classical answers are for teaching and know no consent: take a policy without a purpose.")
    if isinstance(protection, Audited):
        _check_auditable(plain, relation)
    book = next(policy.ledger_address for policy in service.planner.policies if policy.name == dataset)
    asking = _Classical(plain, relation, protection, service.budgets.ledger.secret, book)
    service.planner.tables.load([_all_rows(relation)])
    ledger = service.budgets.ledger
    target = ChargeTarget(dataset, secrets.token_hex(8), bonds=(service.budgets.bonds[dataset],))
    with performing(asking.plan, service.planner.tables, ledger, target) as executed:
        ledger.conclude(executed.entry, _UNCERTIFIED)
    answer = cast("ClassicalAnswer | Refused", executed.output)
    if isinstance(answer, Refused):
        raise answer
    return answer


@dataclass(frozen=True)
class _Classical:
    """A query, how it is answered, and the secret by which copies and audits stay the same."""

    question: PlainQuery
    relation: Relation
    protection: Protection
    secret: bytes
    book: str

    @property
    def plan(self) -> Plan:
        """The plan; it guarantees nothing but a form."""
        steps = (AnswerClassically.of(self.question.text, self.protection),)
        return Plan("classical", steps, fold(steps, self.relation.unit), {}, self.draw)

    def draw(self, rows: QueryTables, coins: Coins) -> ClassicalAnswer | Refused:
        """Read the rows and answer; a refusal depends on rows, so it is an answer and is charged."""
        try:
            return self._answer(rows)
        except Refused as refusal:
            return refusal

    def _answer(self, rows: QueryTables) -> ClassicalAnswer:
        protection = self.protection
        source = _rows(rows, self.relation, MOST_AUDITED if isinstance(protection, Audited) else MOST_ROWS)
        fingerprint = keyed_digest(content_digest(source), hashlib.sha256(b"classical " + self.secret).digest())
        query_set = _query_set(self.question, self.relation, source)
        dataset = str(self.relation.dataset)
        if isinstance(protection, Audited) and query_set.kind is AggregateKind.SUM:
            _audit(self.book, dataset, query_set, fingerprint)
        value = protection.answer(replace(query_set, secret=fingerprint.encode() + self.secret))
        about = (protection.name, str(protection.source), str(protection.broken_by))
        return ClassicalAnswer(self.question.text, dataset, *about, None if value is None else float(value))


def _check_apart(service: QueryService, dataset: str) -> None:
    status = service.budgets.status(dataset)
    budget, totals = status.terms.budget, status.totals
    if budget is None or budget.unbounded is None or budget.limit.epsilon > 0 or totals.charges > totals.unbounded:
        raise Refused(
            f"classical answers are never given beside private ones, and dataset {dataset} has a budget for these: "
            'only a dataset whose policy says budget: {unbounded: "reason"}, with no epsilon, and of which nothing '
            "private was released, gets them. Take a table of made-up people."
        )


def _check_auditable(plain: PlainQuery, relation: Relation) -> None:
    sensitive = {column.name.casefold() for column in relation.schema.columns if column.role is Role.SENSITIVE}
    if plain.conditions & sensitive:
        raise QueryRefused(
            "which rows an audited query is about must not depend on a sensitive column, or the choice would tell "
            "of its values: use other columns after WHERE."
        )
    if plain.kind is not AggregateKind.ROWS and (plain.kind is not AggregateKind.SUM or plain.column not in sensitive):
        raise QueryRefused(
            "audited answers are COUNT(*), and SUM(x) of a column with role: sensitive: ask for one of these."
        )


def _rows(rows: QueryTables, relation: Relation, most: int) -> Source:
    """Return the rows in the order of their values: equal rows are the same in every query."""
    table = rows.collect(_all_rows(relation).limit(most + 1))
    if table.num_rows > most:
        raise Refused(f"tables with more than {most:,} rows get no such answers, which are for teaching: take fewer.")
    ordered = table.sort_by([(name, "ascending") for name in table.column_names]) if table.num_rows else table
    return open_source(ordered.append_column(PLACE, pa.array(range(ordered.num_rows), pa.int64())))


def _all_rows(relation: Relation) -> exp.Select:
    names = [exp.column(exp.to_identifier(name, quoted=True)) for name in relation.schema.names]
    return exp.select(*names).from_(exp.Table(this=exp.to_identifier(relation.name, quoted=True)))


def _query_set(plain: PlainQuery, relation: Relation, rows: Source) -> QuerySet:
    size = sum(batch.num_rows for batch in rows.batches([PLACE]))
    query = plain.bind(Catalog((relation,)), size)
    stored = StoredTable(rows, number_rows(relation, size).schema)
    with warehouse({relation.name: stored}) as small:
        return plain.over(query, small.collect(query.rows), size)


def _audit(book: str, dataset: str, query_set: QuerySet, fingerprint: str) -> None:
    """Refuse a sum that would determine the value of a row, or record its set, in one transaction."""
    chain = Chain.create(sibling_address(book, _NAME), _NAME)
    key = ("sums", dataset, str(query_set.column))
    new = f"{sum(1 << place for place in query_set.values):x}"

    def decide(writer: Writer) -> str:
        before = writer.value(key) or {"rows": fingerprint, "sets": []}
        if before["rows"] != fingerprint:
            return "the rows changed since sums of this column were answered, and these cannot be audited together."
        auditor = Auditor.replay(_places(sums) for sums in before["sets"])
        if auditor.determined(query_set.values):
            return "with the sums answered so far, this one would determine a person's value: ask about another set."
        if auditor.after(query_set.values) != auditor:
            sets = [*before["sets"], new]
            body = {"dataset": dataset, "column": query_set.column}
            writer.append("sum", body, {key: {"rows": fingerprint, "sets": sets}})
        return ""

    refusal = chain.transact(decide)
    if refusal:
        raise QueryRefused(refusal)


def _places(written: str) -> list[int]:
    return [place for place, bit in enumerate(reversed(f"{int(written, 16):b}")) if bit == "1"]
