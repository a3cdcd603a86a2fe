"""The certificate of an answer: what was asked, what is promised, what it cost; no more than the answer shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from incrowd import __version__
from incrowd.accounting.ledger.entry import Entry
from incrowd.core.certificate import Certificate
from incrowd.methods.outcomes.answer import AnswerTable
from incrowd.queries.answer import Answer
from incrowd.queries.batch import Batch
from incrowd.queries.measurement import Measurement
from incrowd.workflows.certify import LIMITS, accounting_of
from incrowd.workflows.policy import Policy


@dataclass(frozen=True)
class Paid:
    """What was asked and charged: the policies of the datasets it reads, how it is measured, where it is written."""

    policies: Sequence[Policy]
    measured: Measurement | Batch
    entry: Entry
    id: str


def answer_certificate(paid: Paid, answers: Sequence[Answer]) -> Certificate:
    """Return the public certificate of an answer, or of several that were paid for as one."""
    measured, entry, tables = paid.measured, paid.entry, [answer.to_arrow() for answer in answers]
    evidence = AnswerTable(tables[0]).evidence(measured.unit, private=True)
    return Certificate(
        id=paid.id,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tool=f"incrowd {__version__}",
        policy_hash=paid.policies[0].hash,
        dataset=_dataset(paid.policies),
        guarantee=measured.guarantee(),
        claims=measured.claims(),
        chain=measured.chain(),
        accounting=accounting_of(entry.charged[0], entry.standings[0]),
        ledger=entry.anchor.to_json(),
        schema={"columns": [], "released": [name for table in tables for name in table.column_names]},
        evidence=evidence | {"groups": sum(table.num_rows for table in tables)},
        limits=LIMITS,
    )


def _dataset(policies: Sequence[Policy]) -> dict[str, Any]:
    first = policies[0]
    told: dict[str, Any] = {"name": first.name, "unit": str(first.schema.unit)}
    section = first.section.dataset
    known = {"version": section.version, "period": section.period, "separate": section.separate}
    known |= {"same people as": section.same_people_as}
    told |= {name: value for name, value in known.items() if value}
    others = [policy.name for policy in policies[1:]]
    return told | ({"together with": others} if others else {})
