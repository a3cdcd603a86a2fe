"""History: what somebody asked and paid for, the latest first, as the ledger and the kept answers tell it.

Of what was charged and has no kept answer, one thing is told whatever became of it: a question that is being answered
and one that failed look the same, so that nobody learns here, before its time, how it went.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.store.chain_entry import ChainEntry
from incrowd.workflows.query.answers import EVERYONE, Answers, StoredAnswer

ANSWERED = "answered"
NOT_KEPT = "no answer is kept: it is being answered, or nothing came of it, or it was written to files"
_LOOKS = 10
"""For each entry that is wanted, so many are looked at: those that are not the reader's own may be nobody's to read."""
_PAYMENTS = ("charge", "repeat")


@dataclass(frozen=True)
class HistoryRange:
    """Which entries are wanted: so many before the one numbered `before`; with `others`, what others asked, too."""

    limit: int = 50
    before: int | None = None
    others: bool = False


@dataclass(frozen=True)
class ChargedQuery:
    """A question, or several paid for as one: when, for how much, and what is kept of the answer.

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
    kept: StoredAnswer | None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        certificate = None if self.kept is None else self.kept.certificate
        left = None if certificate is None or self.repeated else certificate.accounting.left
        return {
            "number": self.number,
            "id": self.id,
            "at": self.at,
            "questions": [] if self.kept is None else list(self.kept.questions),
            "columns": [] if certificate is None else list(certificate.schema.released),
            "cost": self.cost,
            "spent": self.spent,
            "left": None if left is None else {"epsilon": left.epsilon, "delta": left.delta},
            "own": self.own,
            "repeated": self.repeated,
            "state": NOT_KEPT if self.kept is None else ANSWERED,
        }


@dataclass(frozen=True)
class HistoryPage:
    """Past questions, the latest first; `next` is where the next page begins, None at the end."""

    entries: tuple[ChargedQuery, ...]
    next: int | None
    budget: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        told = [each.to_json() for each in self.entries]
        return {"history": told, "next": self.next, "datasets": dict(self.budget)}


class PaymentIndex:
    """Which entries of a ledger are payments, and whose; each entry is read once."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._lock = Lock()  # guards all below: each entry is read once, and in order
        self._read_until = 0
        self._numbers: dict[str | None, list[int]] = {}
        self._repeats: set[tuple[str | None, str]] = set()  # who paid for which release that another had paid for

    def of(self, analyst: str | None) -> list[int]:
        """Return the numbers of what an analyst paid (None: what was paid for everyone), the earliest first."""
        with self._lock:
            self._read_new()
            return list(self._numbers.get(analyst, ()))

    def all(self) -> list[int]:
        """Return the numbers of all payments, the earliest first."""
        with self._lock:
            self._read_new()
            return sorted(number for numbers in self._numbers.values() for number in numbers)

    def paid_again(self, analyst: str | None, release: str) -> bool:
        """Whether somebody paid for a release that another had paid for before."""
        with self._lock:
            self._read_new()
            return (analyst, release) in self._repeats

    def links(self, numbers: Collection[int]) -> list[ChainEntry]:
        """Return the entries with these numbers."""
        return self.ledger.chain.read(lambda reader: [reader.links(number - 1, 1)[0] for number in numbers])

    def read(self) -> None:
        """Read what is new; the first time that is the whole ledger, at about 50 µs an entry."""
        with self._lock:
            self._read_new()

    def _read_new(self) -> None:
        for entry in self.ledger.entries(self._read_until):
            self._read_until = entry.sequence
            if entry.kind in _PAYMENTS:
                self._numbers.setdefault(entry.body["analyst"], []).append(entry.sequence)
            if entry.kind == "repeat":
                self._repeats.add((entry.body["analyst"], entry.body["release"]))


@dataclass(frozen=True)
class AnswerHistory:
    """Payments and kept answers, and which of them are whose; `datasets` are those that may be seen at all."""

    payments: PaymentIndex
    answers: Answers
    datasets: Collection[str]

    def page(
        self, analyst: str | None, page: HistoryRange, readable: Callable[[StoredAnswer], bool]
    ) -> tuple[tuple[ChargedQuery, ...], int | None]:
        """Return a page of what an analyst asked, and of what others asked if it is readable; and where the next is."""
        numbers = self.payments.all() if page.others else self.payments.of(analyst)
        earlier = [each for each in reversed(numbers) if page.before is None or each < page.before]
        looked = earlier[: page.limit * _LOOKS if page.others else page.limit]
        found: list[ChargedQuery] = []
        last = None
        for number in looked:
            found += self._past(number, analyst, readable)
            last = number
            if len(found) == page.limit:
                break
        return tuple(found), last if last is not None and last != earlier[-1] else None

    def given(self, id_: str, analyst: str | None) -> StoredAnswer | None:
        """Return a kept answer, if it was given to everyone, or to this analyst, who paid for it."""
        kept = self.answers.named(id_)
        if kept is None or not datasets_of(kept) <= set(self.datasets):
            return None
        paid = kept.asker in (EVERYONE, analyst) or self.payments.paid_again(analyst, id_)
        return kept if paid else None

    def _past(
        self, number: int, analyst: str | None, readable: Callable[[StoredAnswer], bool]
    ) -> Iterator[ChargedQuery]:
        (link,) = self.payments.links([number])
        release, payer = link.body["release"], link.body["analyst"]
        own = payer == analyst
        if not {part["dataset"] for part in link.body["parts"]} <= set(self.datasets):
            return
        kept = self.answers.named(release)
        if not own and (kept is None or link.kind == "repeat" or not readable(kept)):
            return
        cost = {part["dataset"]: _cost(part) for part in link.body["parts"]}
        yield ChargedQuery(
            number, release, link.at, cost, _spent(link) if own else {}, own, link.kind == "repeat", kept
        )


def datasets_of(kept: StoredAnswer) -> set[str]:
    """Return the datasets that a kept answer tells about."""
    dataset = kept.certificate.dataset
    return {dataset.name, *(dataset.together_with or ())}


def _cost(part: Mapping[str, Any]) -> dict[str, str]:
    if part.get("account") is not None:
        return {"account": part["account"], "rho": part["rho"]}
    return {"epsilon": part["epsilon"], "delta": part["delta"]}


def _spent(link: ChainEntry) -> dict[str, Any]:
    """Return what the payer had spent of each dataset right after an entry, as the entry sets it."""
    sets = {tuple(json.loads(key)): value for key, value in link.sets.items()}
    own = {key[1]: value for key, value in sets.items() if key[0] == "analyst" and key[2] == link.body["analyst"]}
    return {root: {name: value[name] for name in ("epsilon", "delta")} for root, value in own.items()}
