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
from incrowd.errors import QuestionRefused, Refused
from incrowd.queries.classical_answers import MOST_AUDITED, AnswerClassically, Audited, Auditor, Protection
from incrowd.queries.query_sets import MOST_ROWS, PLACE, PlainQuery, QuerySet, number_rows, plain_question
from incrowd.queries.question import AggregateKind, Catalog, Relation
from incrowd.store.chain import Chain
from incrowd.store.database import sibling_address
from incrowd.store.transaction import Writer
from incrowd.workflows.query.service import QueryService
from incrowd.workflows.release.perform import ChargeTarget, performing

_NAME = "classical"
_UNCERTIFIED = "an answer without a certificate"


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


def ask_classical(desk: QueryService, sql: str, protection: Protection) -> ClassicalAnswer:
    """Answer a question in a classical way: charge it as a release without an epsilon, read the rows, protect.

    Preconditions: the dataset's budget has an epsilon of 0 and its owner's reason for releases without one, and nothing
    differentially private was ever released from it.  All else is refused: one exact answer beside noisy ones undoes
    what they guarantee.
    """
    plain = plain_question(sql, desk.catalog)
    relation = replace(desk.catalog[plain.table], ready=False)
    dataset = str(relation.dataset)
    _check_apart(desk, dataset)
    if any(policy.gate is not None for policy in desk.policies if policy.name == dataset):
        raise Refused("classical answers are for teaching and know no consent: take a policy without a purpose.")
    if isinstance(protection, Audited):
        _check_auditable(plain, relation)
    book = next(policy.ledger_address for policy in desk.policies if policy.name == dataset)
    asked = _Classical(plain, relation, protection, desk.ledger.secret, book)
    desk.warehouse.load([_all_rows(relation)])
    target = ChargeTarget(dataset, secrets.token_hex(8), bonds=(desk.bonds[dataset],))
    with performing(asked.plan, desk.warehouse, desk.ledger, target) as executed:
        desk.ledger.conclude(executed.entry, _UNCERTIFIED)
    answer = cast("ClassicalAnswer | Refused", executed.output)
    if isinstance(answer, Refused):
        raise answer
    return answer


@dataclass(frozen=True)
class _Classical:
    """A question, the way in which it is answered, and what keeps copies and audits the same for good."""

    question: PlainQuery
    relation: Relation
    protection: Protection
    secret: bytes
    book: str

    @property
    def plan(self) -> Plan:
        """What will be done; it guarantees nothing but a form."""
        steps = (AnswerClassically.of(self.question.text, self.protection),)
        return Plan("classical", steps, fold(steps, self.relation.unit), {}, self.draw)

    def draw(self, rows: QueryTables, coins: Coins) -> ClassicalAnswer | Refused:
        """Read the rows and answer; a refusal is an answer, too: it hangs on rows, and is paid."""
        try:
            return self._answer(rows)
        except Refused as refusal:
            return refusal

    def _answer(self, rows: QueryTables) -> ClassicalAnswer:
        protection = self.protection
        found = _rows(rows, self.relation, MOST_AUDITED if isinstance(protection, Audited) else MOST_ROWS)
        mark = keyed_digest(content_digest(found), hashlib.sha256(b"classical " + self.secret).digest())
        asked = _query_set(self.question, self.relation, found)
        dataset = str(self.relation.dataset)
        if isinstance(protection, Audited) and asked.kind is AggregateKind.SUM:
            _audit(self.book, dataset, asked, mark)
        value = protection.answer(replace(asked, secret=mark.encode() + self.secret))
        told = (protection.name, str(protection.source), str(protection.broken_by))
        return ClassicalAnswer(self.question.text, dataset, *told, None if value is None else float(value))


def _check_apart(desk: QueryService, dataset: str) -> None:
    standing = desk.standing(dataset)
    budget, totals = standing.terms.budget, standing.totals
    if budget is None or budget.unbounded is None or budget.limit.epsilon > 0 or totals.charges > totals.unbounded:
        raise Refused(
            f"classical answers are never given beside private ones, and dataset {dataset} has a budget for these: "
            'only a dataset whose policy says budget: {unbounded: "reason"}, with no epsilon, and of which nothing '
            "private was released, gets them. Take a table of made-up people."
        )


def _check_auditable(plain: PlainQuery, relation: Relation) -> None:
    sensitive = {each.name.casefold() for each in relation.schema.columns if each.role is Role.SENSITIVE}
    if plain.conditions & sensitive:
        raise QuestionRefused(
            "which rows an audited question is about must not depend on a sensitive column, or the choice would tell "
            "of its values: use other columns after WHERE."
        )
    if plain.kind is not AggregateKind.ROWS and (plain.kind is not AggregateKind.SUM or plain.column not in sensitive):
        raise QuestionRefused(
            "audited answers are COUNT(*), and SUM(x) of a column with role: sensitive: ask for one of these."
        )


def _rows(rows: QueryTables, relation: Relation, most: int) -> Source:
    """Return the rows in an order of their own: rows that look the same are the same in every question."""
    found = rows.collect(_all_rows(relation).limit(most + 1))
    if found.num_rows > most:
        raise Refused(f"tables with more than {most:,} rows get no such answers, which are for teaching: take fewer.")
    ordered = found.sort_by([(name, "ascending") for name in found.column_names]) if found.num_rows else found
    return open_source(ordered.append_column(PLACE, pa.array(range(ordered.num_rows), pa.int64())))


def _all_rows(relation: Relation) -> exp.Select:
    names = [exp.column(exp.to_identifier(each.name, quoted=True)) for each in relation.schema.columns]
    return exp.select(*names).from_(exp.Table(this=exp.to_identifier(relation.name, quoted=True)))


def _query_set(plain: PlainQuery, relation: Relation, rows: Source) -> QuerySet:
    size = sum(batch.num_rows for batch in rows.batches([PLACE]))
    question = plain.bind(Catalog((relation,)), size)
    stored = StoredTable(rows, number_rows(relation, size).schema)
    with warehouse({relation.name: stored}) as small:
        return plain.over(question, small.collect(question.rows), size)


def _audit(book: str, dataset: str, asked: QuerySet, mark: str) -> None:
    """Refuse a sum by which some row's value would be determined, or write its set down, in one transaction."""
    chain = Chain.create(sibling_address(book, _NAME), _NAME)
    key = ("sums", dataset, str(asked.column))
    new = f"{sum(1 << place for place in asked.values):x}"

    def decide(writer: Writer) -> str:
        before = writer.value(key) or {"rows": mark, "sets": []}
        if before["rows"] != mark:
            return "the rows changed since sums of this column were answered, and these cannot be audited together."
        auditor = Auditor.replay(_places(each) for each in before["sets"])
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
