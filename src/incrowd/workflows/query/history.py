"""History: the queries that an analyst asked and paid for, the latest first, from the ledger and the stored answers.

A charge without a stored answer has one description, whatever became of it.  A query that is being answered and one
that failed look the same, so that nobody learns here, before its time, how it went.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.certificate import Certificate
from incrowd.store.chain_entry import ChainEntry
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.query.answers import EVERYONE, Answers, StoredAnswer
from incrowd.workflows.query.budgets import Budgets
from incrowd.workflows.query.request import BatchAnswer

ANSWERED = "answered"
NOT_KEPT = "no answer is stored: it is being answered, or nothing was released, or it was written to files"
_LOOKS = 10
"""Entries that are read for each one on a page: others' entries may not be readable."""
_PAYMENTS = ("charge", "repeat")


@dataclass(frozen=True)
class HistoryRange:
    """Which entries to return: at most `limit` before the one numbered `before`; with `others`, those of others too."""

    limit: int = 50
    before: int | None = None
    others: bool = False


@dataclass(frozen=True)
class ChargedQuery:
    """A query or a batch that was paid for: when, how much, and the stored answer.

    `number` is the ledger's entry that paid, `spent` what the payer had spent of each dataset right after it, and
    `left` what was left of the first dataset then.  Texts and columns are those of the certificate.
    """

    number: int
    id: str
    at: str
    cost: Mapping[str, Mapping[str, str]]
    spent: Mapping[str, Mapping[str, str]]
    own: bool
    repeated: bool
    stored: StoredAnswer | None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        certificate = None if self.stored is None else self.stored.certificate
        left = None if certificate is None or self.repeated else certificate.accounting.left
        return {
            "number": self.number,
            "id": self.id,
            "at": self.at,
            "questions": [] if self.stored is None else list(self.stored.questions),
            "columns": [] if certificate is None else list(certificate.schema.released),
            "cost": self.cost,
            "spent": self.spent,
            "left": None if left is None else {"epsilon": left.epsilon, "delta": left.delta},
            "own": self.own,
            "repeated": self.repeated,
            "state": NOT_KEPT if self.stored is None else ANSWERED,
        }


@dataclass(frozen=True)
class HistoryPage:
    """Past queries, the latest first; `next` is where the next page begins, None at the end."""

    entries: tuple[ChargedQuery, ...]
    next: int | None
    budgets: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        entries = [entry.to_json() for entry in self.entries]
        return {"history": entries, "next": self.next, "datasets": dict(self.budgets)}


class PaymentIndex:
    """Which entries of a ledger are payments, and whose; each entry is read once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = Lock()  # guards all below: each entry is read once, and in order
        self._read_until = 0
        self._numbers: dict[str | None, list[int]] = {}
        self._repeats: set[tuple[str | None, str]] = set()  # who paid for which release that another had paid for

    def of(self, analyst: str | None) -> list[int]:
        """Return the numbers of an analyst's payments (None: those for everyone), the earliest first."""
        with self._lock:
            self._read_new()
            return list(self._numbers.get(analyst, ()))

    def all(self) -> list[int]:
        """Return the numbers of all payments, the earliest first."""
        with self._lock:
            self._read_new()
            return sorted(number for numbers in self._numbers.values() for number in numbers)

    def paid_again(self, analyst: str | None, release: str) -> bool:
        """Return whether an analyst paid for a release that another had paid for before."""
        with self._lock:
            self._read_new()
            return (analyst, release) in self._repeats

    def entry(self, number: int) -> ChainEntry:
        """Return the entry with this number."""
        return self._ledger.chain.read(lambda reader: reader.links(number - 1, 1)[0])

    def read(self) -> None:
        """Read new entries; the first time that is the whole ledger, at about 50 µs an entry."""
        with self._lock:
            self._read_new()

    def _read_new(self) -> None:
        for entry in self._ledger.entries(self._read_until):
            self._read_until = entry.sequence
            if entry.kind in _PAYMENTS:
                self._numbers.setdefault(entry.body["analyst"], []).append(entry.sequence)
            if entry.kind == "repeat":
                self._repeats.add((entry.body["analyst"], entry.body["release"]))


@dataclass(frozen=True, eq=False)
class AnswerHistory:
    """The answers about some datasets, who paid for them, and who may read them."""

    policies: tuple[Policy, ...]
    budgets: Budgets
    answers: Answers
    payments: PaymentIndex

    def within(self, datasets: Collection[str]) -> AnswerHistory:
        """Return the history of these datasets alone."""
        policies = tuple(policy for policy in self.policies if policy.name in datasets)
        return replace(self, policies=policies, budgets=self.budgets.within(datasets))

    def page(self, analyst: str | None, range_: HistoryRange, *, reads_all: bool = False) -> HistoryPage:
        """Return a page of an analyst's queries (None: those for everyone), the latest first.

        With `others` it also holds queries of others, where the policies name the analyst or `reads_all` is set.
        """
        reader = None if reads_all else analyst
        others = range_.others and (reads_all or bool(self._read_by(analyst)))
        numbers = self.payments.all() if others else self.payments.of(analyst)
        earlier = [number for number in reversed(numbers) if range_.before is None or number < range_.before]
        entries = list[ChargedQuery]()
        last = None
        for number in earlier[: range_.limit * _LOOKS if others else range_.limit]:
            last = number
            if (entry := self._entry(number, analyst, reader)) is not None:
                entries.append(entry)
            if len(entries) == range_.limit:
                break
        following = last if last is not None and last != earlier[-1] else None
        return HistoryPage(tuple(entries), following, self.budgets.report(analyst))

    def answer(self, id_: str, analyst: str | None = None) -> BatchAnswer | None:
        """Return a stored answer at no cost to an analyst who was given it before; None to everybody else."""
        stored = self.answers.named(id_)
        if stored is None or not stored.datasets <= self._datasets:
            return None
        if stored.asker not in (EVERYONE, analyst) and not self.payments.paid_again(analyst, id_):
            return None
        left = self.budgets.remaining(stored.datasets)
        answer = BatchAnswer(stored.answers, stored.certificate, Amount(), left, repeated=True)
        return answer if stored.several else answer.alone

    def certificate(self, id_: str, analyst: str | None = None) -> Certificate | None:
        """Return the certificate of an answer; for an analyst, if they may read the query."""
        stored = self.answers.named(id_)
        return stored.certificate if stored is not None and self.readable(stored, analyst) else None

    def releases(self, analyst: str | None = None) -> list[dict[str, Any]]:
        """Return a line for each answer, the earliest first; for an analyst, those that they may read."""
        return [
            line
            for asker, line in self.answers.listed()
            if self._may_read(asker, {line["dataset"], *line.get("together with", ())}, analyst)
        ]

    def readable(self, stored: StoredAnswer, analyst: str | None) -> bool:
        """Return whether an analyst may read a query: it is for everyone, their own, or the policies name them."""
        return self._may_read(stored.asker, stored.datasets, analyst)

    def _may_read(self, asker: str, datasets: set[str], analyst: str | None) -> bool:
        return analyst is None or asker in (EVERYONE, analyst) or datasets <= self._read_by(analyst)

    def _read_by(self, analyst: str | None) -> set[str]:
        """Return the datasets of which an analyst may read the queries of others."""
        sections = {policy.name: policy.section.queries for policy in self.policies}
        return {name for name, queries in sections.items() if queries is not None and analyst in queries.readers}

    @property
    def _datasets(self) -> set[str]:
        return {policy.name for policy in self.policies}

    def _entry(self, number: int, analyst: str | None, reader: str | None) -> ChargedQuery | None:
        """Return the query of a payment, or None if it is about other datasets, or others' and not readable."""
        entry = self.payments.entry(number)
        release, own, repeated = entry.body["release"], entry.body["analyst"] == analyst, entry.kind == "repeat"
        if not {part["dataset"] for part in entry.body["parts"]} <= self._datasets:
            return None
        stored = self.answers.named(release)
        if not own and (stored is None or repeated or not self.readable(stored, reader)):
            return None
        cost = {part["dataset"]: _cost(part) for part in entry.body["parts"]}
        return ChargedQuery(number, release, entry.at, cost, _spent(entry) if own else {}, own, repeated, stored)


def _cost(part: Mapping[str, Any]) -> dict[str, str]:
    if part.get("account") is not None:
        return {"account": part["account"], "rho": part["rho"]}
    return {"epsilon": part["epsilon"], "delta": part["delta"]}


def _spent(entry: ChainEntry) -> dict[str, Any]:
    """Return what the payer had spent of each dataset right after an entry, as the entry sets it."""
    sets = {tuple(json.loads(key)): value for key, value in entry.sets.items()}
    own = {key[1]: value for key, value in sets.items() if key[0] == "analyst" and key[2] == entry.body["analyst"]}
    return {root: {name: value[name] for name in ("epsilon", "delta")} for root, value in own.items()}
