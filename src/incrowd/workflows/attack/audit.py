"""Audit: run a policy's method many times with one person and without, and compute the epsilon that this proves.

Nothing is charged, because nothing is released: the outputs are counted here and deleted.  The result is about the data
holder's own rows and is internal.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pyarrow as pa

from incrowd.accounting.accountant import charge_of
from incrowd.attacks.audit import AuditResult, audit
from incrowd.attacks.candidates import CandidateSearch, codes_of
from incrowd.attacks.finding import CONFIDENCE
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import InvalidParameter
from incrowd.noise.system import SystemCoins
from incrowd.workflows.attack.publication import lookup_of, table_of
from incrowd.workflows.policy.ledger import record_look
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.rows import open_here

_COUNT = "count"


def audit_policy(
    policy: Policy, rows: pa.Table, person: int, trials: int = 1000, confidence: float = CONFIDENCE
) -> AuditResult:
    """Audit a method on these rows and on the same rows without one, by how many released rows fit that one.

    The person is the row at a place; the method runs through its plan, with fresh randomness.  People with several rows
    are a unit that this audit does not cover: they are refused.
    """
    if policy.schema.unit.column is not None:
        raise InvalidParameter(
            "this audit removes one row, but the policy has a person ID column: audit with rows as the unit."
        )
    if not 0 <= person < rows.num_rows or trials < 1:
        raise InvalidParameter("an audit needs the place of a row among the rows, and at least one trial.")
    others = pa.concat_tables([rows.slice(0, person), rows.slice(person + 1)])
    one = rows.slice(person, 1)
    worlds = partial(_fitting, policy, rows, one), partial(_fitting, policy, others, one)
    return audit(worlds, trials, float(policy.plan.guarantee.delta), confidence)


def audit_rarest(
    policy: Policy, data: str | None, trials: int, confidence: float = CONFIDENCE
) -> tuple[AuditResult, float | None]:
    """Audit a policy on its data by the rarest row; return what that proves, and the epsilon that the plan claims.

    None where nothing is claimed.  The ledger records the data access.
    """
    source = open_here(data, policy)
    record_look(policy, "attack")
    rows = table_of(source)
    guarantee = policy.plan.guarantee
    claim = float(charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency).epsilon)
    return audit_policy(policy, rows, rarest(policy, rows), trials, confidence), claim if math.isfinite(claim) else None


def rarest(policy: Policy, rows: pa.Table) -> int:
    """Return the place of a rare row: its removal is the easiest to notice."""
    names = [column.name for column in policy.schema.released if column.name in rows.column_names]
    if not names or not rows.num_rows:
        raise InvalidParameter("there are no rows, or none of their columns is released: nothing can be audited.")
    codes = codes_of(PublishedTable(rows), names)
    return int(np.argmin(np.bincount(codes)[codes]))


def _fitting(policy: Policy, rows: pa.Table, one: pa.Table) -> float:
    released = policy.plan.draw(Table(policy.schema, LOCAL.open(rows), LOCAL), SystemCoins()).to_arrow()
    if not released.num_rows:
        return 0.0
    count = _COUNT if _COUNT in released.column_names and _COUNT not in one.column_names else None
    lookups = {column.name: lookup_of(column) for column in policy.schema.columns}
    published = PublishedTable(released, lookups, count)
    columns = tuple(name for name in published.columns if name in one.column_names)
    return float(CandidateSearch.of(published, one, columns, Knowledge(one, columns)).totals()[0])
