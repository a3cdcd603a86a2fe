"""Certificates for tests: built from a policy as a release builds them, with amounts that the test chooses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from incrowd.core.certificate import Accounting, Amounts, Certificate, File, LedgerPlace, meaning_digest
from incrowd.core.claims.privacy import Private
from incrowd.core.counts import Counts
from incrowd.core.loss import LossRule
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.shared.microdata import Microdata
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.registry import method_version
from incrowd.workflows.release.certify import columns_of, dataset_of
from tests.tables import Batches

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "discharges-2025", "period": "2025"},
    "columns": {
        "patient": {"role": "identifier", "type": "text"},
        "age": {"role": "quasi", "type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10, 20]}},
        "sex": {"role": "quasi", "type": "text", "categories": ["F", "M"]},
        "diagnosis": {"role": "sensitive", "type": "text", "hierarchy": {"prefix": [1]}},
    },
    "release": {
        "method": "safe",
        "levels": {"age": 2, "diagnosis": 1},
        "rate": "0.1",
        "epsilon": 1,
        "delta": "1e-8",
    },
}
PERSON = {"dataset": {"name": "discharges-2025", "unit": {"column": "patient"}}}
ROWS_OF_PEOPLE = {"dataset": {"name": "visits", "unit": {"column": "patient", "max_rows": 3}}}
UNSAMPLED = {"release": {"method": "safe", "levels": {"age": 2, "diagnosis": 1}, "rate": 1, "k": 5}}


def policy(**changes: Any) -> Policy:
    """Return the policy with some of its sections replaced."""
    return load_policy(POLICY | changes)


def drafted() -> Policy:
    """Return a policy with a hierarchy that was drafted from rows."""
    columns = dict(POLICY["columns"])
    columns["diagnosis"] = {
        "role": "sensitive",
        "type": "text",
        "hierarchy": {"prefix": [1], "derived": "rows"},
    }
    return policy(columns=columns)


def original(rows: int = 4000) -> pa.Table:
    """Return invented people, the same at every call."""
    codes = ("J18", "J44", "K35", "K80", "O80", "I21", "Q99")
    return pa.table(
        {
            "patient": [f"P{place}" for place in range(rows)],
            "age": [str((place * 7919) % 97) for place in range(rows)],
            "sex": ["F" if (place * 31) % 100 < 53 else "M" for place in range(rows)],
            "diagnosis": [codes[(place * place + place // 7) % 7] if place % 997 else "X59" for place in range(rows)],
        }
    )


def counted(of: Policy, rows: int = 4000) -> Counts:
    """Return the counts of all rows, recoded to the policy's levels."""
    return LocalEngine().count(Batches(original(rows)), of.method.cells(of.schema))  # type: ignore[attr-defined]


def shown(of: Policy, at_least: int = 1) -> Microdata:
    """Return the rows of classes of at least so many, as a release in memory holds them."""
    return Microdata(counted(of).at_least(at_least))


def certificate(of: Policy | None = None, counts: Counts | None = None, **changes: Any) -> Certificate:
    """Return a certificate such as a first release under the policy gets."""
    of = of or policy()
    plan = of.plan
    found = counts if counts is not None else counted(of).at_least(plan.smallest_class or 1)
    epsilon = str(plan.claims[0].epsilon) if isinstance(plan.claims[0], Private) else "Infinity"
    certified = Certificate(
        id="5e0c1f5a-0000-4000-8000-000000000001",
        created="2025-11-15T12:00:00+00:00",
        tool="incrowd 0.1.0",
        method=method_version(plan.method),
        policy_hash=of.hash,
        dataset=dataset_of(of, "c0" * 32),
        guarantee=plan.guarantee,
        claims=plan.claims,
        steps=plan.steps,
        glossary=meaning_digest(plan.guarantee, plan.claims, plan.steps),
        accounting=accounting(epsilon, plan.guarantee.delta),
        ledger=LedgerPlace("ab" * 16, 3, "cd" * 32),
        schema=columns_of(of.schema, [column.name for column in of.schema.released]),
        evidence=Microdata(found).evidence(of.schema.unit, private=epsilon != "Infinity"),
        outputs=(File("data.parquet", "ef" * 32, 123456),),
    )
    return replace(certified, **changes)


def accounting(epsilon: str, delta: Fraction, **changes: Any) -> Accounting:
    """Return the accounting of a first release under a budget of ε = 3 and δ = 1e-7."""
    spent = Amounts(epsilon, f"{float(delta):.12f}".rstrip("0") if delta else "0")
    unbounded = epsilon == "Infinity"
    first = Accounting(
        spent=spent,
        total=spent,
        releases=1,
        rule=(LossRule.NONE if unbounded else LossRule.SUPPRESSION,),
        left=Amounts("3", "0.0000001") if unbounded else Amounts("2.01", "0.00000009"),
        unbounded="the same table was published in 2019" if unbounded else None,
    )
    return replace(first, **changes)
