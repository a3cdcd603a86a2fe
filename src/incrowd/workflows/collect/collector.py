"""Collector: takes one report for each token, on disk before it says so; or shuffles them in memory, by batches."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from threading import Lock
from typing import Any

from incrowd.errors import AccessDenied, InvalidParameter, LedgerCorrupted
from incrowd.methods.local.changes import round_estimates
from incrowd.methods.local.estimates import QuestionEstimates
from incrowd.methods.local.survey.definition import LocalSurvey, report_text
from incrowd.methods.local.tallies import RoundTallies, joined_rounds, tallies_by_round
from incrowd.noise.system import SystemCoins, permutation
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import ChainEntry, Key
from incrowd.store.database import sibling_address
from incrowd.store.report_store import ReportStore
from incrowd.store.transaction import Reader, Writer
from incrowd.store.verify import Values, verify
from incrowd.workflows.local.opening import OpenSurvey

_NAME = "reports"
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_KIND = "reports"
_TOTAL: Key = ("reports",)
MOST = 10_000
"""Maximum number of reports in one request."""
_CHANGED = "some reports are not those that their entry names: restore them from a copy."
_HALF = 32
_TURN = 4  # digits of a token that name its round
_TOKEN = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Tokens:
    """Makes and recognizes tokens of one survey under a secret.

    >>> tokens = Tokens(b"secret", "survey")
    >>> tokens.number(tokens.issue()) == tokens.number("00" * 32)
    Traceback (most recent call last):
    incrowd.errors.AccessDenied: this token is not one of this survey: ask the person who invited you for one.
    """

    secret: bytes
    survey: str

    def issue(self, turn: int | None = None) -> str:
        """Return a new token: a random number, and a proof that this collector made it; it may name a round.

        >>> tokens = Tokens(b"secret", "survey")
        >>> Tokens.turn_of(tokens.number(tokens.issue(12)))
        12
        """
        number = secrets.token_hex(_HALF // 2)
        if turn is not None:
            number = f"{turn:0{_TURN}x}" + number[_TURN:]
        return number + self._proof(number)

    @staticmethod
    def turn_of(token: str) -> int:
        """Return the round that a token names, where the survey has rounds."""
        return int(token[:_TURN], 16)

    def number(self, token: object) -> str:
        """Return the number of a token, or refuse one that was not made here."""
        if isinstance(token, str) and _TOKEN.fullmatch(token):
            number, proof = token[:_HALF], token[_HALF:]
            if hmac.compare_digest(proof, self._proof(number)):
                return number
        raise AccessDenied("this token is not one of this survey: ask the person who invited you for one.")

    def _proof(self, number: str) -> str:
        text = f"incrowd token 1\n{self.survey}\n{number}"
        return hmac.new(self.secret, text.encode(), sha256).hexdigest()[:_HALF]


def turns_for(survey: LocalSurvey, people: int, turn: int | None) -> list[int | None]:
    """Return the rounds of new tokens: drawn at random where each person answers in one, else the round that is named.

    Nobody has answered yet, so a round is drawn without looking at answers.
    """
    rounds = survey.rounds
    if rounds is None or not rounds.memoized:
        if turn is not None:
            raise InvalidParameter("the round of each person is drawn at random, or there are none: leave --round out.")
        return [None] * people if rounds is None else (SystemCoins().below(rounds.count, people) + 1).tolist()
    if turn is None or not 1 <= turn <= rounds.count:
        raise InvalidParameter(f"people answer in every round: name one with --round, 1 to {rounds.count:,}.")
    return [turn] * people


class Receipt(StrEnum):
    """What became of a report: counted is on disk; received waits in memory, or did, for its batch."""

    COUNTED = "counted"
    AGAIN = "already counted"
    RECEIVED = "received"
    RECEIVED_AGAIN = "already received"
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


@dataclass
class TallyCache:
    """The tallies of reports that were read and checked, up to an entry of the chain, and the estimates from them."""

    sequence: int = 0
    tallies: RoundTallies = field(default_factory=dict)
    estimates: tuple[QuestionEstimates, ...] = ()
    turn: Lock = field(default_factory=Lock)


@dataclass(frozen=True, eq=False)
class Collector:
    """The reports of one survey, in a chain beside the ledger; safe for many threads of one process.

    A local survey's reports are on disk when they are acknowledged.  Those of a shuffled one wait in memory, where a
    crash loses them, until a batch is full: only then are they written, permuted, and estimates change.
    """

    opened: OpenSurvey
    chain: Chain
    waiting: list[str] = field(default_factory=list, repr=False)
    cache: TallyCache = field(default_factory=TallyCache, repr=False)
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

    def receive(self, items: Sequence[Any], tokens: Tokens | None = None) -> list[Receipt]:
        """Take reports, each with a token; if one has a wrong shape or an unknown token, none of them is taken.

        The same report under the same token is acknowledged again; another one is refused.
        """
        arrived = self._checked(items, tokens or self.tokens)
        with self.turn:
            if self.survey.batches is None:
                return self.chain.transact(lambda writer: _stored(writer, arrived))
            receipts, texts = self.chain.transact(lambda writer: _used(writer, arrived))
            self.waiting.extend(texts)
            while len(self.waiting) >= self.survey.batches.batch:
                self._close(self.survey.batches.batch)
            return receipts

    def _checked(self, items: Sequence[Any], tokens: Tokens) -> list[Sent]:
        if not 1 <= len(items) <= MOST:
            raise InvalidParameter(f"a request brings 1 to {MOST:,} reports.")
        if not all(isinstance(item, Mapping) and set(item) == {"token", "report"} for item in items):
            raise InvalidParameter("each report comes with its token, as {token, report}: nothing was taken.")
        numbers = [tokens.number(item["token"]) for item in items]
        reports = [item["report"] for item in items]
        self.survey.read(reports)
        if self.survey.rounds is not None and any(
            report["round"] != tokens.turn_of(number) for number, report in zip(numbers, reports, strict=True)
        ):
            raise AccessDenied("this token is for another round of the survey: send the report of its own round.")
        return [Sent(number, report_text(report)) for number, report in zip(numbers, reports, strict=True)]

    def _close(self, size: int) -> None:
        """Write the first reports that wait as one entry, in an order drawn at random."""
        batch = self.waiting[:size]
        places = permutation(SystemCoins(), size).tolist()
        self.chain.transact(lambda writer: _append(writer, [batch[place] for place in places]))
        del self.waiting[:size]

    def reports(self) -> list[Any]:
        """Return all reports on disk; each batch is compared with the digest in its entry."""

        def read(reader: Reader) -> list[Any]:
            return [line for _, content in _book(reader).batches() for line in content.splitlines()]

        self.check()
        return [json.loads(line) for line in self.chain.read(read)]

    def estimates(self) -> tuple[QuestionEstimates, ...]:
        """Return the estimates from the reports on disk; only entries written since the last call are read and checked.

        The first call checks the whole chain.
        """
        with self.cache.turn:
            if not self.cache.sequence:
                self.check()
            links = [link for link in self.chain.links(self.cache.sequence) if link.kind == _KIND]
            if links:
                self._count(links)
            return self.cache.estimates

    def _count(self, links: Sequence[ChainEntry]) -> None:
        """Add the reports of new entries to the tallies, and estimate again."""
        stored = self.chain.read(lambda reader: dict(_book(reader).batches(self.cache.sequence)))
        contents = [stored.get(link.sequence) for link in links]
        lines = []
        for link, content in zip(links, contents, strict=True):
            if content is None or _digest(content) != link.body["digest"]:
                raise LedgerCorrupted(_CHANGED)
            lines += content.splitlines()
        new = tallies_by_round(self.survey, [json.loads(line) for line in lines])
        self.cache.tallies = joined_rounds(self.cache.tallies, new)
        self.cache.sequence = links[-1].sequence
        self.cache.estimates = round_estimates(self.survey, self.cache.tallies)

    def shuffled(self) -> list[Any]:
        """Return all reports on disk in a random order: whole batches of a shuffled survey, and no tokens or times."""
        reports = self.reports()
        return [reports[place] for place in permutation(SystemCoins(), len(reports)).tolist()]

    @property
    def count(self) -> int:
        """How many reports are on disk."""
        return int(self.chain.read(lambda reader: reader.value(_TOTAL)) or 0)

    def check(self) -> None:
        """Raise unless the chain is whole, and every batch of reports is the one that its entry names."""
        report = verify(self.chain, _derive)
        if not report.ok:
            raise LedgerCorrupted(f"the reports do not hold: {report.finding or 'the chain is broken'}.")
        named = {link.sequence: link.body["digest"] for link in self.chain.links() if link.kind == _KIND}
        stored = self.chain.read(lambda reader: dict(_book(reader).batches()))
        if {sequence: _digest(content) for sequence, content in stored.items()} != named:
            raise LedgerCorrupted(_CHANGED)


def _stored(writer: Writer, arrived: Sequence[Sent]) -> list[Receipt]:
    receipts, book, new = [], _book(writer.reader), []
    for sent in arrived:
        mark = book.mark(sent.token)
        if mark is None:
            book.use(sent.token, sent.mark)
            new.append(sent.text)
        repeated = Receipt.AGAIN if mark == sent.mark else Receipt.REFUSED
        receipts.append(Receipt.COUNTED if mark is None else repeated)
    if new:
        _append(writer, new)
    return receipts


def _used(writer: Writer, arrived: Sequence[Sent]) -> tuple[list[Receipt], list[str]]:
    """Write down tokens alone, and return the reports that are new; a used token is not compared with anything."""
    book, new = _book(writer.reader), []
    for sent in sorted(arrived, key=lambda sent: sent.token):
        if book.mark(sent.token) is None:
            book.use(sent.token, None)
            new.append(sent)
    fresh = {id(sent) for sent in new}
    receipts = [Receipt.RECEIVED if id(sent) in fresh else Receipt.RECEIVED_AGAIN for sent in arrived]
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
