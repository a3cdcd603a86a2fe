"""Access: the append-only book of who may do what, shared by all workers of a server."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from incrowd.errors import AccessDenied, InvalidParameter, LedgerUnavailable, UnsupportedVersion
from incrowd.governance.grant import (
    AccessDecision,
    Grant,
    User,
    checked_until,
    fingerprint,
    hashed,
    matches,
    new_token,
    written,
)
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import ChainEntry, Key
from incrowd.store.database import sibling_address
from incrowd.store.transaction import Reader, Writer
from incrowd.store.verify import ChainReport, verify

_NAME = "access"
Sets = dict[Key, Any]
Values = Callable[[Key], Any]


@dataclass(frozen=True)
class NewToken:
    """A token that was just made: shown once, and nowhere kept."""

    token: str
    grant: Grant


@dataclass(frozen=True)
class AccessList:
    """The book of access beside a ledger; it keeps no transaction open.

    Whose a token is, is remembered until anything is written to the book: what was revoked does not work any more.

    >>> from datetime import timedelta
    >>> from tempfile import TemporaryDirectory
    >>> from incrowd.governance.grant import AccessRole
    >>> officer = AccessDecision("data protection officer", "doctoral project")
    >>> with TemporaryDirectory() as folder:
    ...     access = AccessList.create(f"sqlite:///{folder}/ledger.sqlite")
    ...     issued = access.grant(User("ann", AccessRole.ANALYST), access.now() + timedelta(days=90), officer)
    ...     before = access.grant_of(issued.token).holder.name
    ...     _ = access.revoke(issued.grant.id, officer)
    ...     access.grant_of(issued.token)
    Traceback (most recent call last):
    incrowd.errors.AccessDenied: this token is unknown, revoked or past its end: ask the owner of the data for another.
    """

    chain: Chain

    @classmethod
    def create(cls, ledger: str) -> AccessList:
        """Make the book beside the ledger at an address unless it is there already, and open it."""
        return cls(Chain.create(sibling_address(ledger, _NAME), _NAME))

    @classmethod
    def open(cls, ledger: str) -> AccessList:
        """Open the book beside the ledger at an address."""
        return cls(Chain.open(sibling_address(ledger, _NAME), _NAME))

    def now(self) -> datetime:
        """Return the time by the book: never earlier than its newest entry, so no token comes back to life."""
        return self.chain.now()

    def grant(self, holder: User, until: datetime, by: AccessDecision, session: bool = False) -> NewToken:
        """Give a new token to somebody, until a moment at most 366 days ahead."""
        until, token = checked_until(until, self.now()), new_token()
        new = Grant(secrets.token_hex(8), holder, until, fingerprint(token) or "", session)
        self.chain.transact(lambda writer: _write(writer, "granted", {"grant": new.to_json(), **vars(by)}))
        return NewToken(token, new)

    def rotate(self, number: str, until: datetime, by: AccessDecision) -> NewToken:
        """Replace a token by a new one with the same id; the old one stops working at once."""
        until, token = checked_until(until, self.now()), new_token()
        body = {"id": number, "fingerprint": fingerprint(token), "until": written(until), **vars(by)}
        return NewToken(token, self.chain.transact(lambda writer: _rotated(writer, body)))

    def revoke(self, number: str, by: AccessDecision) -> Grant:
        """End a token for good."""
        return self.chain.transact(lambda writer: _changed(writer, "revoked", {"id": number, **vars(by)}))

    def dismiss(self, name: str, by: AccessDecision) -> tuple[Grant, ...]:
        """End all tokens, sessions and the password of somebody."""
        return self.chain.transact(lambda writer: _dismissed(writer, name, by))

    def set_password(self, holder: User, password: str, by: AccessDecision) -> None:
        """Let somebody log in by name and password; it replaces an earlier one, its role, datasets and sessions."""
        body = {**holder.to_json(), "hash": hashed(password), **vars(by)}
        self.chain.transact(lambda writer: _password(writer, body))

    def login(self, name: str, password: str, until: datetime) -> NewToken:
        """Open a session for somebody who knows his password; an unknown name takes as long as a wrong password."""
        stored = self.chain.read(lambda reader: reader.value(("password", name)))
        if not matches(stored and stored["hash"], password) or stored is None:
            raise AccessDenied("the name or the password is wrong.")
        return self.grant(User.from_json(stored), until, AccessDecision(name, "session"), session=True)

    def grant_of(self, token: str) -> Grant:
        """Return the grant of a token that works now, or deny."""
        mark = fingerprint(token)
        read = (
            None if mark is None else self.chain.remember(("grant", mark), lambda reader: _stored_grant(reader, mark))
        )
        grant = None if mark is None else self._working(mark, read)
        if grant is None:
            raise AccessDenied("this token is unknown, revoked or past its end: ask the owner of the data for another.")
        return grant

    def at_hand(self, token: str) -> Grant | None:
        """Return the grant of a token that works now, if that can be told without waiting; None tells nothing."""
        mark = fingerprint(token)
        return None if mark is None else self._working(mark, self.chain.at_hand(("grant", mark)))

    def _working(self, mark: str, stored: tuple[Grant, str] | None) -> Grant | None:
        """Return a grant if it works now, by the clock or by the newest entry of the book."""
        if stored is None:
            return None
        grant, newest = stored
        return grant if grant.works(mark, datetime.fromisoformat(self.chain.time_after(newest))) else None

    def grants(self) -> tuple[Grant, ...]:
        """Return every token and session that was ever given out."""
        return self.chain.read(_all)

    def remember(self, book: str, name: str) -> None:
        """Remember the random name of another book beside the ledger, or refuse one that took its place."""
        self.chain.transact(lambda writer: _remembered(writer, book, name))

    def remembered(self, book: str) -> str | None:
        """Return the random name of another book, if it was ever made."""
        number: str | None = self.chain.read(lambda reader: reader.value(("book", book)))
        return number

    def check(self) -> ChainReport:
        """Recompute the book from its first entry."""
        return verify(self.chain, derive)


def _write(writer: Writer, kind: str, body: dict[str, Any]) -> None:
    writer.append(kind, body, consequence(kind, body, writer.value))


def _changed(writer: Writer, kind: str, body: dict[str, Any]) -> Grant:
    _write(writer, kind, body)
    return existing_grant(body["id"], writer.value)


def _rotated(writer: Writer, body: dict[str, Any]) -> Grant:
    old = existing_grant(body["id"], writer.value)
    if old.revoked or old.session:
        raise InvalidParameter("only a token that was not revoked can be rotated: grant a new one.")
    return _changed(writer, "rotated", body)


def _password(writer: Writer, body: dict[str, Any]) -> None:
    """Write a password down; sessions that an earlier one opened, maybe with other rights, end."""
    ended = [grant.id for grant in _working(writer, body["holder"]) if grant.session]
    _write(writer, "password", {**body, "ids": ended})


def _working(writer: Writer, name: str) -> list[Grant]:
    return [grant for grant in _all(writer.reader) if grant.holder.name == name and not grant.revoked]


def _dismissed(writer: Writer, name: str, by: AccessDecision) -> tuple[Grant, ...]:
    ended = _working(writer, name)
    if not ended and writer.value(("password", name)) is None:
        raise InvalidParameter("nobody of this name has a token or a password; `incrowd access list` shows all.")
    _write(writer, "dismissed", {"holder": name, "ids": [grant.id for grant in ended], **vars(by)})
    return tuple(existing_grant(grant.id, writer.value) for grant in ended)


def _remembered(writer: Writer, book: str, name: str) -> None:
    known_name = writer.value(("book", book))
    if known_name is None:
        _write(writer, "remembered", {"book": book, "name": name})
    elif known_name != name:
        raise LedgerUnavailable(
            f"another {book} log stands where the one of this book of access was: put the old one back."
        )


def _stored_grant(reader: Reader, mark: str) -> tuple[Grant, str] | None:
    """Return the grant of a token by its fingerprint, and when the newest entry was written."""
    number = reader.value(("token", mark))
    return None if number is None else (existing_grant(number, reader.value), reader.newest[-1].at)


def _all(reader: Reader) -> tuple[Grant, ...]:
    return tuple(map(Grant.from_json, reader.values(("grant",)).values()))


def derive(link: ChainEntry, values: Values) -> Sets:
    """Return what an entry must set; the check of the book compares it with what it sets."""
    return consequence(link.kind, link.body, values)


def consequence(kind: str, body: Mapping[str, Any], values: Values) -> Sets:
    """Return the keys that an entry sets.

    A grant is found by its id, and its id by the fingerprint of its token.  A fingerprint once given out keeps pointing
    to its grant; whether it still works is the grant's to say.
    """
    match kind:
        case "granted":
            new = Grant.from_json(body["grant"])
            return _pointing(new)
        case "rotated":
            until = datetime.fromisoformat(body["until"])
            return _pointing(replace(existing_grant(body["id"], values), fingerprint=body["fingerprint"], until=until))
        case "revoked":
            return _ended([body["id"]], values)
        case "password":
            return _ended(body.get("ids", ()), values) | {("password", body["holder"]): {**body}}
        case "dismissed":
            return _ended(body["ids"], values) | {("password", body["holder"]): None}
        case "remembered":
            return {("book", body["book"]): body["name"]}
    raise UnsupportedVersion("the book of access holds an entry that this version does not know; use a newer one.")


def existing_grant(number: str, values: Values) -> Grant:
    """Return a grant by its id."""
    stored = values(("grant", number))
    if stored is None:
        raise InvalidParameter("there is no token with this id; `incrowd access list` shows all.")
    return Grant.from_json(stored)


def _ended(numbers: Iterable[str], values: Values) -> Sets:
    return {("grant", number): replace(existing_grant(number, values), revoked=True).to_json() for number in numbers}


def _pointing(new: Grant) -> Sets:
    return {("grant", new.id): new.to_json(), ("token", new.fingerprint): new.id}
