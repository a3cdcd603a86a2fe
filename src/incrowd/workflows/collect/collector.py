"""Collector: takes one report for each token, on disk before it says so; or shuffles them in memory, by batches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from threading import Lock
from typing import Any

from incrowd.errors import InvalidParameter, LedgerCorrupted
from incrowd.methods.local.estimates.answers import QuestionEstimates, estimates_of
from incrowd.methods.local.survey.definition import LocalSurvey, report_text
from incrowd.noise.system import SystemCoins, permutation
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import ChainEntry, Key
from incrowd.store.database import sibling_address
from incrowd.store.report_store import ReportStore
from incrowd.store.transaction import Reader, Writer
from incrowd.store.verify import Values, verify
from incrowd.workflows.collect.tokens import Tokens
from incrowd.workflows.local.opening import OpenSurvey

_NAME = "reports"
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_KIND = "reports"
_TOTAL: Key = ("reports",)
MOST = 10_000
"""So many reports may come in one request."""


class Receipt(StrEnum):
    """What became of a report."""

    COUNTED = "counted"
    AGAIN = "already counted"
    REFUSED = "refused: this token was used for another report"


@dataclass(frozen=True)
class Sent:
    """A report that arrived: the number of its token, and its one text."""

    token: str
    text: str

    @property
    def mark(self) -> str:
        """The digest of the report."""
        return sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Collector:
    """The reports of one survey, in a chain beside the ledger; safe for many threads of one process.

    A local survey's reports are on disk when they are acknowledged.  Those of a shuffled one wait in memory, where a
    crash loses them, until a batch is full: only then are they written, permuted, and estimates change.
    """

    opened: OpenSurvey
    chain: Chain
    waiting: list[str] = field(default_factory=list, repr=False)
    turn: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def beside(cls, opened: OpenSurvey) -> Collector:
        """Open the collector of a survey, or make it."""
        survey = opened.file.survey.id[:16]
        address = sibling_address(opened.file.ledger_address, f"{_NAME}-{survey}")
        chain = Chain.create(address, f"{_NAME}_{survey.translate(_LETTERS)}")  # a database holds several surveys
        by_key = "WITHOUT ROWID" if address.startswith("sqlite") else ""
        chain.transact(lambda writer: _book(writer.reader).create(by_key))
        return cls(opened, chain)

    @property
    def survey(self) -> LocalSurvey:
        """What is asked."""
        return self.opened.file.survey

    @property
    def tokens(self) -> Tokens:
        """Who may send a report."""
        first = next(self.chain.links(), None)
        if first is None or "secret" not in first.body:
            raise LedgerCorrupted("the first entry of the reports is not one that this version makes.")
        return Tokens(bytes.fromhex(first.body["secret"]), self.survey.id)

    def receive(self, given: Sequence[Any], tokens: Tokens | None = None) -> list[Receipt]:
        """Take reports, each with a token; if one has a wrong shape or a strange token, none of them is taken.

        The same report under the same token is acknowledged again; another one is refused.
        """
        arrived = self._checked(given, tokens or self.tokens)
        with self.turn:
            if self.survey.batches is None:
                return self.chain.transact(lambda writer: _stored(writer, arrived))
            receipts, texts = self.chain.transact(lambda writer: _used(writer, arrived))
            self.waiting.extend(texts)
            while len(self.waiting) >= self.survey.batches.batch:
                self._close(self.survey.batches.batch)
            return receipts

    def _checked(self, given: Sequence[Any], tokens: Tokens) -> list[Sent]:
        if not 1 <= len(given) <= MOST:
            raise InvalidParameter(f"a request brings 1 to {MOST:,} reports.")
        if not all(isinstance(each, Mapping) and set(each) == {"token", "report"} for each in given):
            raise InvalidParameter("each report comes with its token, as {token, report}: nothing was taken.")
        numbers = [tokens.number(each["token"]) for each in given]
        reports = [each["report"] for each in given]
        self.survey.read(reports)
        return [Sent(number, report_text(report)) for number, report in zip(numbers, reports, strict=True)]

    def _close(self, size: int) -> None:
        """Write the first reports that wait as one entry, in an order drawn at random."""
        batch = self.waiting[:size]
        places = permutation(SystemCoins(), size).tolist()
        self.chain.transact(lambda writer: _append(writer, [batch[place] for place in places]))
        del self.waiting[:size]

    def reports(self) -> list[Any]:
        """Return all reports on disk, each batch held against the digest in its entry."""

        def read(reader: Reader) -> list[Any]:
            return [each for _, content in _book(reader).batches() for each in content.splitlines()]

        self.check()
        return [json.loads(line) for line in self.chain.read(read)]

    def estimates(self) -> tuple[QuestionEstimates, ...]:
        """Return what the reports on disk say."""
        return estimates_of(self.survey, self.reports())

    @property
    def count(self) -> int:
        """How many reports are on disk."""
        return int(self.chain.read(lambda reader: reader.value(_TOTAL)) or 0)

    def check(self) -> None:
        """Raise unless the chain is whole, and every batch of reports is the one that its entry names."""
        found = verify(self.chain, _derive)
        if not found.ok:
            raise LedgerCorrupted(f"the reports do not hold: {found.finding or 'the chain is broken'}.")
        named = {link.sequence: link.body["digest"] for link in self.chain.links() if link.kind == _KIND}
        kept = self.chain.read(lambda reader: dict(_book(reader).batches()))
        if {sequence: _digest(content) for sequence, content in kept.items()} != named:
            raise LedgerCorrupted("some reports are not those that their entry names: restore them from a copy.")


def _stored(writer: Writer, arrived: Sequence[Sent]) -> list[Receipt]:
    receipts, book, new = [], _book(writer.reader), []
    for sent in arrived:
        mark = book.mark(sent.token)
        if mark is None:
            book.use(sent.token, sent.mark)
            new.append(sent.text)
        known = Receipt.AGAIN if mark == sent.mark else Receipt.REFUSED
        receipts.append(Receipt.COUNTED if mark is None else known)
    if new:
        _append(writer, new)
    return receipts


def _used(writer: Writer, arrived: Sequence[Sent]) -> tuple[list[Receipt], list[str]]:
    """Write down tokens alone, and return the reports that are new; a used token is not compared with anything."""
    book, new = _book(writer.reader), []
    for sent in sorted(arrived, key=lambda each: each.token):
        if book.mark(sent.token) is None:
            book.use(sent.token, None)
            new.append(sent)
    fresh = {id(sent) for sent in new}
    receipts = [Receipt.COUNTED if id(sent) in fresh else Receipt.AGAIN for sent in arrived]
    return receipts, [sent.text for sent in new]


def _append(writer: Writer, texts: Sequence[str]) -> None:
    content = "\n".join(texts)
    body = {"count": len(texts), "digest": _digest(content)}
    link = writer.append(_KIND, body, {_TOTAL: (writer.value(_TOTAL) or 0) + len(texts)})
    _book(writer.reader).keep(link.sequence, content)


def _book(reader: Reader) -> ReportStore:
    return ReportStore(reader.connection, reader.tables.name)


def _derive(link: ChainEntry, values: Values) -> dict[Key, Any]:
    return {_TOTAL: (values(_TOTAL) or 0) + link.body["count"]}


def _digest(content: str) -> str:
    return sha256(content.encode()).hexdigest()
