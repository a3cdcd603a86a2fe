"""Stored answers, beside the ledger: the same query again gets the same answer, and no row is read for it."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, Generic, TypeVar

from incrowd.core.certificate import Certificate
from incrowd.core.codec import digest, public_text
from incrowd.errors import LedgerUnavailable
from incrowd.queries.answer import Answer
from incrowd.queries.check import queries_of
from incrowd.queries.steps.query import Combine, Understand
from incrowd.queries.steps.workload import each_query
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import ChainEntry
from incrowd.store.database import sibling_address
from incrowd.store.transaction import Writer
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.query.request import AnswerTexts

T = TypeVar("T")

_NAME = "answers"
_KIND, _NAMING = "answer", "release"
"""An entry with an answer is long; the next writer checks the short one after it instead, which names its release."""
_REMEMBERED, _SHORT = 256, 200_000
"""How many answers are remembered, and how long one of them is at most, in characters."""
_INFINITE = ("NaN", "Infinity")
"""Numbers that JSON does not have; an answer that holds these letters otherwise is written anew, to the same text."""
EVERYONE = "*"
"""The asker of an answer that is for everyone; no analyst can have this name."""


@dataclass(frozen=True)
class StoredAnswer:
    """An answer as it was given, with its certificate and the number of its charge."""

    answer: str
    """As JSON text, because numbers with a point have no unique form in an entry; the answers to a batch are a list."""
    certificate: Certificate
    charge: int
    asker: str = ""
    """The analyst who asked, or `EVERYONE`; empty where it was stored without one."""

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The answer, or those to a batch."""
        read = json.loads(self.answer)
        return tuple(map(Answer.from_json, read if isinstance(read, list) else [read]))

    def paid_for(self, analyst: str | None) -> bool:
        """Return whether it costs an analyst nothing more: it is for everyone, or their own."""
        return analyst is None or self.asker in ("", EVERYONE, analyst)

    @property
    def datasets(self) -> set[str]:
        """The datasets that the answer is about."""
        dataset = self.certificate.dataset
        return {dataset.name, *(dataset.together_with or ())}

    @property
    def listed(self) -> dict[str, Any]:
        """The answer in a list of releases."""
        dataset = self.certificate.dataset
        listed = {"id": self.certificate.id, "created": self.certificate.created, "dataset": dataset.name}
        return listed | ({"together with": list(dataset.together_with)} if dataset.together_with else {})

    @property
    def several(self) -> bool:
        """Whether it answers a batch."""
        return self.answer.startswith("[")

    @property
    def questions(self) -> tuple[str, ...]:
        """The text of each query in its normal form, from the certificate."""
        combined = tuple(step.question for step in self.certificate.steps if isinstance(step, Combine))
        parts = each_query(queries_of(self.certificate.steps))
        return combined or tuple(step.question for steps in parts for step in steps if isinstance(step, Understand))

    @cached_property
    def texts(self) -> AnswerTexts:
        """Answer and certificate as they are sent."""
        finite = not any(word in self.answer for word in _INFINITE)
        answer = self.answer if finite else public_text(json.loads(self.answer))
        return AnswerTexts(answer, public_text(self.plain_certificate))

    @cached_property
    def plain_certificate(self) -> dict[str, Any]:
        """The certificate in its plain form."""
        return self.certificate.to_json()

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> StoredAnswer:
        """Read what was stored."""
        return cls(str(body["answer"]), certificate_of(body["certificate"]), int(body["charge"]), body.get("asker", ""))


class LruCache(Generic[T]):
    """Values by their keys, the longest unused forgotten first; a value must depend on its key alone.

    >>> cache = LruCache[int](2)
    >>> [cache.get_or_make(key, lambda: len(key)) for key in ("a", "bb", "a", "ccc")], cache.get("bb"), cache.get("a")
    ([1, 2, 1, 3], None, 1)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()  # a value is found and moved to the end in one step; values are made without it
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, or make and remember it; a failure is not remembered."""
        value = self.get(key)
        return self.put(key, make()) if value is None else value

    def get(self, key: Hashable) -> T | None:
        """Return the value of a key if it is remembered."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: T) -> T:
        """Remember a value and return it."""
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()


class Answers:
    """The stored answers: append-only, each entry bound to all before it; safe for many threads."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._recent = LruCache[StoredAnswer](_REMEMBERED)
        self._lock = Lock()  # guards the list below: each entry is read once, and in order
        self._listed: list[tuple[str, dict[str, Any]]] = []
        self._listed_until = 0

    @classmethod
    def beside(cls, ledger: str) -> Answers:
        """Open the store that belongs to the ledger at an address, or make it."""
        return cls(Chain.create(sibling_address(ledger, _NAME), _NAME, newest=1))

    def find(self, query_id: str) -> StoredAnswer | None:
        """Return the answer to a query, if it is stored."""
        stored = self.remembered(query_id)
        if stored is not None:
            return stored
        body = self.chain.read(lambda reader: reader.value(("question", query_id)))
        return None if body is None else self._remember(query_id, StoredAnswer.of(body))

    def remembered(self, query_id: str) -> StoredAnswer | None:
        """Return an answer that this process stored or found lately; a stored answer never changes."""
        return self._recent.get(query_id)

    def _remember(self, query_id: str, stored: StoredAnswer) -> StoredAnswer:
        return self._recent.put(query_id, stored) if len(stored.answer) <= _SHORT else stored

    def named(self, release: str) -> StoredAnswer | None:
        """Return an answer by the id of its certificate."""
        query_id = self.chain.read(lambda reader: reader.value(("release", release)))
        return None if query_id is None else self.find(str(query_id))

    def store(self, query_id: str, new: StoredAnswer) -> StoredAnswer:
        """Store an answer, unless the same query was answered in the meantime: then return the earlier answer."""
        body = {"answer": new.answer, "certificate": new.plain_certificate, "charge": new.charge}
        body |= {"asker": new.asker} if new.asker else {}

        def write(writer: Writer) -> StoredAnswer:
            earlier = writer.value(("question", query_id))
            if earlier is not None:
                return StoredAnswer.of(earlier)
            writer.append(_KIND, {"question": query_id}, {("question", query_id): body})
            writer.append(_NAMING, {"question": query_id}, {("release", new.certificate.id): query_id})
            return new

        return self._remember(query_id, self.chain.transact(write))

    def listed(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the asker of each answer and its line in a list of releases, the earliest first."""
        with self._lock:
            for link in self.chain.links(self._listed_until):
                self._listed.extend((stored.asker, stored.listed) for stored in _stored(link))
                self._listed_until = link.sequence
            return list(self._listed)

    def all(self) -> Iterator[StoredAnswer]:
        """Yield all answers, the earliest first."""
        for link in self.chain.links():
            yield from _stored(link)


def query_digest(content: Mapping[str, Any]) -> str:
    """Return the id of a query: a digest of everything that equal queries share.

    >>> query_digest({"text": "SELECT COUNT(*) FROM t", "epsilon": "1"}) == query_digest({"text": "x"})
    False
    """
    return digest("incrowd question 1", content)


def _stored(link: ChainEntry) -> Iterator[StoredAnswer]:
    if link.kind != _KIND:
        return
    bodies = [value for key, value in link.sets.items() if key.startswith('["question"')]
    if len(bodies) != 1:
        raise LedgerUnavailable("the store of answers holds an entry that cannot be read; restore it from a copy.")
    yield StoredAnswer.of(bodies[0])
