"""Usage: who asked what, at which cost, what remains, and why queries were refused; for the owner of a ledger.

All of it comes from the ledger, the stored answers, the access list and the audit log.  It holds no duration and no
number of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from incrowd.accounting.budget import Amount, plain
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import AnalystShare, Entry, Overview
from incrowd.governance.access_list import AccessList
from incrowd.governance.audit import Audit, find_audit_log
from incrowd.workflows.query.answers import Answers

_MOST_EVENTS = 10_000
"""How many of the latest requests are counted."""
_PAGE = 1000
_MINUTE = 16
_QUERIES = ("query", "batch")
EVERYONE = "everyone"
_PAYMENTS = ("charge", "repeat")


@dataclass(frozen=True)
class RemainingBudget:
    """What a dataset has spent, and what remains; None where no budget is set."""

    dataset: str
    epsilon_spent: str
    epsilon_left: str | None
    delta_left: str | None


@dataclass(frozen=True)
class UserUsage:
    """A user: their role, ids of tokens that still work, outcomes of requests, and what they spent of allowances."""

    name: str
    role: str
    tokens: tuple[str, ...]
    answered: int
    refused: int
    failed: int
    spent: tuple[str, ...]


@dataclass(frozen=True)
class PaidQuery:
    """A query that was charged: when, to the minute, by whom, its cost and its text if the answer is stored."""

    at: str
    analyst: str
    epsilon: str
    repeated: bool
    queries: tuple[str, ...]


@dataclass(frozen=True)
class Usage:
    """One moment of a server: budgets, users, the latest charged queries, and how often each reason refused one."""

    datasets: tuple[RemainingBudget, ...]
    users: tuple[UserUsage, ...]
    queries: tuple[PaidQuery, ...]
    reasons: tuple[tuple[str, int], ...]
    requests: int

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return asdict(self) | {"reasons": [{"reason": kind, "times": times} for kind, times in self.reasons]}


def usage_of(address: str, limit: int = 50) -> Usage:
    """Return the usage of the server whose ledger is at an address; nothing is charged, and no row is read."""
    ledger, access = Ledger.open(address), AccessList.open(address)
    audit, overview = find_audit_log(access, address), ledger.show()
    events = [] if audit is None else [event for event in _latest(audit) if event["action"] in _QUERIES]
    reasons = Counter(str(event["about"]["kind"]) for event in events if event["about"].get("kind"))
    return Usage(
        tuple(_remaining(overview)),
        tuple(_users(access, overview, events)),
        tuple(_paid(ledger, Answers.beside(address), limit)),
        tuple(reasons.most_common()),
        len(events),
    )


def _latest(audit: Audit) -> Iterator[dict[str, Any]]:
    after = max(0, audit.chain.head().sequence - _MOST_EVENTS)
    while page := audit.read(after, _PAGE):
        yield from page
        after = page[-1]["sequence"]


def _remaining(overview: Overview) -> Iterator[RemainingBudget]:
    for status in overview.datasets:
        left = status.left
        rest = (None, None) if left is None else (plain(left.epsilon), plain(left.delta))
        yield RemainingBudget(status.dataset, plain(status.totals.spent.epsilon), *rest)


def _users(access: AccessList, overview: Overview, events: list[dict[str, Any]]) -> Iterator[UserUsage]:
    now = access.now()
    outcomes = Counter((event["holder"], event["outcome"]) for event in events)
    working = [grant for grant in access.grants() if not grant.revoked and now < grant.until and not grant.session]
    roles = {grant.holder.name: str(grant.holder.role) for grant in working}
    names = {*roles, *(share.analyst for share in overview.shares), *(name for name, _ in outcomes if name)}
    for name in sorted(names):
        tokens = tuple(grant.id for grant in working if grant.holder.name == name)
        spent = tuple(
            f"{share.dataset}: epsilon {plain(share.spent.epsilon)}"
            + ("" if share.allowance is None else f" of {plain(share.allowance.limit.epsilon)}")
            + _of_month(share)
            for share in overview.shares
            if share.analyst == name
        )
        answered, refused, failed = (outcomes[name, outcome] for outcome in ("answered", "refused", "failed"))
        yield UserUsage(name, roles.get(name, "no token"), tokens, answered, refused, failed, spent)


def _of_month(share: AnalystShare) -> str:
    if share.allowance is None or share.allowance.month is None:
        return ""
    spending = share.spending
    spent = f"{plain(spending.epsilon)} in {spending.month}" if spending.month else "nothing yet"
    return f", at most {plain(share.allowance.month)} a month ({spent})"


def _paid(ledger: Ledger, answers: Answers, limit: int) -> Iterator[PaidQuery]:
    """Yield the latest charges of queries, the latest first."""
    entries = [entry for entry in ledger.entries() if entry.kind in _PAYMENTS][-limit * 2 :]
    for entry in entries[::-1][:limit]:
        stored = answers.named(str(entry.body["release"]))
        analyst = entry.body["analyst"] or EVERYONE
        questions = () if stored is None else stored.questions
        yield PaidQuery(entry.at[:_MINUTE], analyst, plain(_cost(entry).epsilon), entry.kind == "repeat", questions)


def _cost(entry: Entry) -> Amount:
    """Return the most that a charge, or a repeated answer, costs any of its payers."""
    costs = [Amount(Decimal(part["epsilon"]), Decimal(part["delta"])) for part in entry.body["parts"]]
    return max(costs, key=lambda cost: cost.epsilon, default=Amount())
