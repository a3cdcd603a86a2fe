"""The one place where the golden tests touch methods and questions: what is told before any row, and what comes out.

A change of these interfaces is a change of this file and of no golden file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import pyarrow as pa

from incrowd.accounting.accountant import charge_of
from incrowd.core.guarantee import Guarantee
from incrowd.core.rounding import exact
from incrowd.core.steps.samples import DrawnHere
from incrowd.core.steps.step import Step
from incrowd.core.table import Rows, Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.sql.engine import Asked, SampledTable
from incrowd.methods.anonymity.syntactic.steps import Cut
from incrowd.methods.histograms.private.steps import HideUnknown
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.queries.batch import Batch, batch
from incrowd.queries.catalog import Catalog
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.question import Terms
from incrowd.queries.steps.noise import ConcentratedPick, PrivatePick, SharedGaussianNoise
from incrowd.queries.steps.question import BoundContribution, Understand
from incrowd.workflows.plan.forecast import plan
from incrowd.workflows.policy.policy import Policy
from tests.contract.agreed import AgreedCoins

SEED = 29
ADDED: dict[type[Step], tuple[str, ...]] = {
    DrawnHere: ("column",),
    HideUnknown: ("epsilon",),
    Cut: ("ordered",),
    SharedGaussianNoise: ("epsilon", "delta"),
    ConcentratedPick: ("rho",),
    PrivatePick: ("score",),
    Understand: ("terms",),
    BoundContribution: ("max_rows", "max_groups"),
}
"""The fields that version 2 added to steps of version 1."""


def told(policy: Policy) -> dict[str, Any]:
    """Return all that is said before any row is read, as certificates and plans of version 1 say it."""
    made, found = policy.plan, plan(policy)
    price = {"epsilon": found.epsilon, "delta": found.delta, "rule": found.rule, "refusal": found.refusal}
    return plain(
        {
            "guarantee": found.promise.to_json(),
            "claims": [claim.to_json() for claim in made.claims],
            "chain": [as_written(step) for step in made.steps],
            "settings": dict(made.settings),
            "smallest class": made.smallest_class,
            "price": price,
            "warnings": found.warnings,
        }
    )


def as_written(step: Step) -> dict[str, Any]:
    """Return a step as version 1 wrote it: without the fields that version 2 added."""
    told = step.to_json()
    added = {name for kind, names in ADDED.items() if isinstance(step, kind) for name in names}
    return {name: part for name, part in told.items() if name not in added}


def alternatives(policy: Policy) -> dict[str, Any]:
    """Return what a secret sample in front would promise, and what a more biased sample would."""
    found = plan(policy)
    return plain(
        {"nearest": [asdict(each) for each in found.nearest], "biased": [asdict(each) for each in found.biased]}
    )


def outcome(policy: Policy, rows: Rows, *, private: bool) -> dict[str, Any]:
    """Return what a release shows of itself on fixed coins, and the digests of its tables."""
    released = policy.plan.release(Table(policy.schema, rows, LocalEngine()), AgreedCoins(SEED))
    return plain(
        {
            "tables": [_table(part) for part in released.parts],
            "evidence": released.evidence(policy.schema.unit, private=private),
        }
    )


def asked(sql: str, terms: Mapping[str, str], catalog: Catalog) -> dict[str, Any]:
    """Return all that is said about a question before any row is read; `dataset` tells to whom each promise is made."""
    question = understand(sql, catalog)
    units = {str(each.dataset): each.unit for each in catalog.relations if each.dataset in question.datasets}
    made = measurement(question, units[question.datasets[0]], terms_of(terms))
    return plain(
        {
            "datasets": {name: _promise(each) for name, each in made.plan.over(units).items()},
            "claims": [claim.to_json() for claim in made.plan.claims],
            "chain": [as_written(step) for step in made.steps],
            "expected": [each.to_json() for each in made.expected],
        }
    )


def asked_together(sqls: Sequence[str], terms: Mapping[str, str], catalog: Catalog) -> dict[str, Any]:
    """Return all that is said about questions that are paid for as one."""
    made = _batch(sqls, terms, catalog)
    return plain(
        {
            "datasets": {made.measurements[0].question.datasets[0]: _promise(made.plan.promise)},
            "claims": [claim.to_json() for claim in made.plan.claims],
            "chain": [
                {**as_written(step), "of": number}
                for number, each in enumerate(made.measurements, start=1)
                for step in each.steps
            ],
            "expected": [each.to_json() for part in made.measurements for each in part.expected],
        }
    )


def answers(sqls: Sequence[str], terms: Mapping[str, str], catalog: Catalog, rows: Asked) -> list[Any]:
    """Return the answers to a question, or to several that are paid for as one, on fixed coins."""
    coins = AgreedCoins(SEED)
    if len(sqls) == 1:
        question = understand(sqls[0], catalog)
        alone = measurement(question, catalog[question.tables[0]].unit, terms_of(terms))
        return [_answer(alone, rows, coins)]
    return [_answer(each, rows, coins) for each in _batch(sqls, terms, catalog).measurements]


def charge(promise: Guarantee) -> dict[str, str]:
    """Return what a promise costs."""
    spend = charge_of(promise.loss, promise.delta, promise.unit.adjacency)
    return {"epsilon": str(spend.epsilon), "delta": str(spend.delta), "rule": spend.rule}


def terms_of(plain_terms: Mapping[str, str]) -> Terms:
    """Return what is paid, from texts."""
    return Terms(**{name: exact(value) for name, value in plain_terms.items()})


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return a value as JSON would hold it; exact numbers are texts."""
    found: dict[str, Any] = json.loads(json.dumps(value, default=str))
    return found


def digest(table: pa.Table) -> str:
    """Return a digest of names, types and rows in their order, however they are cut into pieces."""
    types = [str(kind.value_type if pa.types.is_dictionary(kind) else kind) for kind in table.schema.types]
    content = [table.column_names, types, [list(row.values()) for row in table.to_pylist()]]
    return hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()


def _table(part: Outcome) -> dict[str, Any]:
    table = part.to_arrow()
    return {"rows": table.num_rows, "sha256": digest(table)}


def _promise(promise: Guarantee) -> dict[str, Any]:
    return {"guarantee": promise.to_json(), "price": charge(promise)}


def _batch(sqls: Sequence[str], terms: Mapping[str, str], catalog: Catalog) -> Batch:
    questions = [understand(sql, catalog) for sql in sqls]
    return batch(questions, catalog[questions[0].tables[0]].unit, terms_of(terms))


def _answer(measured: Measurement, rows: Asked, coins: AgreedCoins) -> dict[str, Any]:
    rate: Fraction | None = measured.terms.rate
    drawn = None if rate is None else SampledTable(measured.question.tables[0], coins.sample(rate))
    found = measured.answer(tuple(rows.collect(query, drawn) for query in measured.statistics), coins)
    told = plain(found.to_json())
    told.pop("note", None)  # version 2 says beside an answer that its numbers are of a capped table
    return told
