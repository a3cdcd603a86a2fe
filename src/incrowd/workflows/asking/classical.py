"""Classical answers, for teaching and comparison: they have no epsilon, and are given where no budget promises one."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from incrowd.core.guarantee import Guarantee
from incrowd.core.schema import Role
from incrowd.engines.local.fingerprint import content_digest, keyed
from incrowd.engines.readers.sources import Source, open_source
from incrowd.engines.sql.duckdb import warehouse
from incrowd.engines.sql.engine import Stored
from incrowd.errors import QuestionRefused, Refused
from incrowd.governance.addresses import beside
from incrowd.queries.catalog import Catalog, Relation
from incrowd.queries.classical.audit import MOST_AUDITED, Auditor
from incrowd.queries.classical.protections import Audited, Protection, loss_of
from incrowd.queries.classical.sets import MOST_ROWS, PLACE, PlainQuestion, QuerySet, numbered, plain_question
from incrowd.queries.question import Kind
from incrowd.store.chain import Chain
from incrowd.store.transaction import Writer
from incrowd.workflows.desk import Desk

_NAME = "classical"


@dataclass(frozen=True)
class ClassicalAnswer:
    """An answer without a certificate: there is nothing to certify, and `broken_by` says why."""

    question: str
    dataset: str
    protection: str
    source: str
    broken_by: str
    value: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return dict(vars(self))


def ask_classical(desk: Desk, sql: str, protection: Protection) -> ClassicalAnswer:
    """Answer a question in a classical way: charge it as a release without an epsilon, read the rows, protect.

    Preconditions: the dataset's budget has an epsilon of 0 and its owner's reason for releases without one, and nothing
    differentially private was ever released from it.  All else is refused: one exact answer beside noisy ones undoes
    what they promise.
    """
    plain = plain_question(sql, desk.catalog)
    relation = desk.catalog[plain.table]
    dataset = str(relation.dataset)
    _check_apart(desk, dataset)
    if isinstance(protection, Audited):
        _check_auditable(plain, relation)
    because = f"{protection.source}; broken by {protection.broken_by}"
    desk.ledger.charge(Guarantee(loss_of(protection), relation.unit, because), dataset, secrets.token_hex(8))
    rows = _rows(desk, relation, MOST_AUDITED if isinstance(protection, Audited) else MOST_ROWS)
    mark = keyed(content_digest(rows), hashlib.sha256(b"classical " + desk.ledger.secret).digest())
    asked = _query_set(plain, relation, rows)
    if isinstance(protection, Audited) and asked.kind is Kind.SUM:
        _audit(desk, dataset, asked, mark)
    value = protection.answer(asked, mark.encode() + desk.ledger.secret)
    told = (protection.name, protection.source, protection.broken_by)
    return ClassicalAnswer(plain.text, dataset, *told, None if value is None else float(value))


def _check_apart(desk: Desk, dataset: str) -> None:
    standing = desk.ledger.standing(dataset)
    budget, totals = standing.terms.budget, standing.totals
    if budget is None or budget.unbounded is None or budget.limit.epsilon > 0 or totals.charges > totals.unbounded:
        raise Refused(
            f"classical answers are never given beside private ones, and dataset {dataset} has a budget for these: "
            'only a dataset whose policy says budget: {unbounded: "reason"}, with no epsilon, and of which nothing '
            "private was released, gets them. Take a table of made-up people."
        )


def _check_auditable(plain: PlainQuestion, relation: Relation) -> None:
    sensitive = {each.name.casefold() for each in relation.schema.columns if each.role is Role.SENSITIVE}
    if plain.conditions & sensitive:
        raise QuestionRefused(
            "which rows an audited question is about must not depend on a sensitive column, or the choice would tell "
            "of its values: use other columns after WHERE."
        )
    if plain.kind is not Kind.ROWS and (plain.kind is not Kind.SUM or plain.column not in sensitive):
        raise QuestionRefused(
            "audited answers are COUNT(*), and SUM(x) of a column with role: sensitive: ask for one of these."
        )


def _rows(desk: Desk, relation: Relation, most: int) -> Source:
    """Return the rows in an order of their own: rows that look the same are the same in every question."""
    names = [exp.column(exp.to_identifier(each.name, quoted=True)) for each in relation.schema.columns]
    table = exp.to_identifier(relation.name, quoted=True)
    found = desk.warehouse.collect(exp.select(*names).from_(exp.Table(this=table)).limit(most + 1))
    if found.num_rows > most:
        raise Refused(f"tables with more than {most:,} rows get no such answers, which are for teaching: take fewer.")
    ordered = found.sort_by([(name, "ascending") for name in found.column_names]) if found.num_rows else found
    return open_source(ordered.append_column(PLACE, pa.array(range(ordered.num_rows), pa.int64())))


def _query_set(plain: PlainQuestion, relation: Relation, rows: Source) -> QuerySet:
    size = sum(batch.num_rows for batch in rows.batches([PLACE]))
    question = plain.bound(Catalog((relation,)), size)
    stored = Stored(rows, numbered(relation, size).schema)
    with warehouse({relation.name: stored}) as small:
        return plain.over(question, small.collect(question.rows), size)


def _audit(desk: Desk, dataset: str, asked: QuerySet, mark: str) -> None:
    """Refuse a sum by which some row's value would be determined, or write its set down, in one transaction."""
    policy = next(policy for policy in desk.policies if policy.name == dataset)
    chain = Chain.create(beside(policy.ledger_address, _NAME), _NAME)
    key = ("sums", dataset, str(asked.column))
    new = f"{sum(1 << place for place in asked.values):x}"

    def decide(writer: Writer) -> str:
        before = writer.value(key) or {"rows": mark, "sets": []}
        if before["rows"] != mark:
            return "the rows changed since sums of this column were answered, and these cannot be audited together."
        auditor = Auditor.replayed(_places(each) for each in before["sets"])
        if auditor.determined(asked.values):
            return "with the sums answered so far, this one would determine somebody's value: ask about another set."
        if auditor.after(asked.values) != auditor:
            sets = [*before["sets"], new]
            writer.append("sum", {"dataset": dataset, "column": asked.column}, {key: {"rows": mark, "sets": sets}})
        return ""

    refusal = chain.transact(decide)
    if refusal:
        raise QuestionRefused(refusal)


def _places(written: str) -> list[int]:
    return [place for place, bit in enumerate(reversed(f"{int(written, 16):b}")) if bit == "1"]
