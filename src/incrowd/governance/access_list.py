"""AccessList: who may do what, as an append-only chain that all workers of a server share."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from incrowd.errors import AccessDenied, InvalidParameter, LedgerUnavailable, UnsupportedVersion
from incrowd.governance.grant import (
    AccessDecision,
    Grant,
    User,
    checked_until,
    fingerprint,
    group_name,
    hashed,
    matches,
    new_token,
    signed_on,
    written,
)
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import ChainEntry, Key
from incrowd.store.database import sibling_address
from incrowd.store.transaction import Reader, Writer
from incrowd.store.verify import ChainReport, verify

_NAME = "access"
_MOST_GROUPS = 100  # of a user that are looked up
Sets = dict[Key, Any]
Values = Callable[[Key], Any]


@dataclass(frozen=True)
class NewToken:
    """A token that was just made: shown once, and not stored."""

    token: str
    grant: Grant


@dataclass(frozen=True)
class AccessList:
    """The access list beside a ledger; it keeps no transaction open.

    The grant of a token is cached until the list changes, so a revoked token stops working at once.

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
    incrowd.errors.AccessDenied: this token is unknown, revoked or expired: ask the data holder for another.
    """

    chain: Chain

    @classmethod
    def create(cls, ledger: str) -> AccessList:
        """Create the access list beside the ledger at an address if there is none, and open it."""
        return cls(Chain.create(sibling_address(ledger, _NAME), _NAME))

    @classmethod
    def open(cls, ledger: str) -> AccessList:
        """Open the access list beside the ledger at an address."""
        return cls(Chain.open(sibling_address(ledger, _NAME), _NAME))

    def now(self) -> datetime:
        """Return the time, never earlier than the newest entry, so that no expired token works again."""
        return self.chain.now()

    def grant(self, holder: User, until: datetime, by: AccessDecision, session: bool = False) -> NewToken:
        """Give a new token to a user, until a moment at most 366 days ahead."""
        until, token = checked_until(until, self.now()), new_token()
        new = Grant(secrets.token_hex(8), holder, until, fingerprint(token) or "", session)
        self.chain.transact(lambda writer: _write(writer, "granted", {"grant": new.to_json(), **vars(by)}))
        return NewToken(token, new)

    def admit(self, holder: User, until: datetime, by: AccessDecision, *, group: bool = False) -> Grant:
        """Let a proxy sign a user on, or all users of a group; it replaces an earlier entry of that name."""
        mark = signed_on(group_name(holder.name) if group else holder.name)
        new = Grant(secrets.token_hex(8), holder, checked_until(until, self.now()), mark)
        self.chain.transact(lambda writer: _admitted(writer, new, by))
        return new

    def signed_on(self, name: str, groups: Iterable[str] = ()) -> Grant:
        """Return the grant of a user whom a proxy signed on: their own, or that of the first group that has one.

        An own entry that was revoked or has expired keeps the user out, whatever groups they are in.
        """
        marks = [signed_on(name), *(signed_on(group_name(group)) for group in groups)]
        for mark in marks[:_MOST_GROUPS]:
            stored = self.chain.remember(("grant", mark), partial(_stored_grant, mark=mark))
            grant = self._working(mark, stored)
            if grant is not None:
                return replace(grant, holder=replace(grant.holder, name=name))
            if stored is not None and mark == marks[0]:
                break
        raise AccessDenied("this user has no role here: ask the data holder (incrowd access admit).")

    def rotate(self, number: str, until: datetime, by: AccessDecision) -> NewToken:
        """Replace a token by a new one with the same id; the old one stops working at once."""
        until, token = checked_until(until, self.now()), new_token()
        body = {"id": number, "fingerprint": fingerprint(token), "until": written(until), **vars(by)}
        return NewToken(token, self.chain.transact(lambda writer: _rotated(writer, body)))

    def revoke(self, number: str, by: AccessDecision) -> Grant:
        """Revoke a token for good."""
        return self.chain.transact(lambda writer: _changed(writer, "revoked", {"id": number, **vars(by)}))

    def dismiss(self, name: str, by: AccessDecision) -> tuple[Grant, ...]:
        """Revoke all tokens, sessions and the password of a user."""
        return self.chain.transact(lambda writer: _dismissed(writer, name, by))

    def set_password(self, holder: User, password: str, by: AccessDecision) -> None:
        """Set the password of a user; it replaces an earlier one, its role, datasets and sessions."""
        body = {**holder.to_json(), "hash": hashed(password), **vars(by)}
        self.chain.transact(lambda writer: _password(writer, body))

    def login(self, name: str, password: str, until: datetime) -> NewToken:
        """Open a session by name and password; an unknown name takes as long as a wrong password."""
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
            raise AccessDenied("this token is unknown, revoked or expired: ask the data holder for another.")
        return grant

    def at_hand(self, token: str) -> Grant | None:
        """Return the grant of a token that works now, if it is cached; None says nothing about the token."""
        mark = fingerprint(token)
        return None if mark is None else self._working(mark, self.chain.at_hand(("grant", mark)))

    def _working(self, mark: str, stored: tuple[Grant, str] | None) -> Grant | None:
        """Return a grant if it works now, by the clock or by the newest entry."""
        if stored is None:
            return None
        grant, newest = stored
        return grant if grant.works(mark, datetime.fromisoformat(self.chain.time_after(newest))) else None

    def grants(self) -> tuple[Grant, ...]:
        """Return every token and session that was ever issued."""
        return self.chain.read(_all)

    def remember(self, book: str, name: str) -> None:
        """Store the random id of another chain beside the ledger, or refuse one that replaced it."""
        self.chain.transact(lambda writer: _remembered(writer, book, name))

    def remembered(self, book: str) -> str | None:
        """Return the random id of another chain, if it was ever created."""
        name: str | None = self.chain.read(lambda reader: reader.value(("book", book)))
        return name

    def check(self) -> ChainReport:
        """Recompute the access list from its first entry."""
        return verify(self.chain, derive)


def _write(writer: Writer, kind: str, body: dict[str, Any]) -> None:
    writer.append(kind, body, consequence(kind, body, writer.value))


def _admitted(writer: Writer, new: Grant, by: AccessDecision) -> None:
    before = writer.value(("token", new.fingerprint))
    if before is not None and not existing_grant(before, writer.value).revoked:
        _write(writer, "revoked", {"id": before, **vars(by)})
    _write(writer, "granted", {"grant": new.to_json(), **vars(by)})


def _changed(writer: Writer, kind: str, body: dict[str, Any]) -> Grant:
    _write(writer, kind, body)
    return existing_grant(body["id"], writer.value)


def _rotated(writer: Writer, body: dict[str, Any]) -> Grant:
    old = existing_grant(body["id"], writer.value)
    if old.revoked or old.kind != "token":
        raise InvalidParameter("only a token that was not revoked can be rotated: grant a new one.")
    return _changed(writer, "rotated", body)


def _password(writer: Writer, body: dict[str, Any]) -> None:
    """Store a password; sessions opened with an earlier one, maybe with other permissions, end."""
    ended = [grant.id for grant in _working(writer, body["holder"]) if grant.session]
    _write(writer, "password", {**body, "ids": ended})


def _working(writer: Writer, name: str) -> list[Grant]:
    return [grant for grant in _all(writer.reader) if grant.holder.name == name and not grant.revoked]


def _dismissed(writer: Writer, name: str, by: AccessDecision) -> tuple[Grant, ...]:
    ended = _working(writer, name)
    if not ended and writer.value(("password", name)) is None:
        raise InvalidParameter("no user of this name has a token or a password; `incrowd access list` shows all.")
    _write(writer, "dismissed", {"holder": name, "ids": [grant.id for grant in ended], **vars(by)})
    return tuple(existing_grant(grant.id, writer.value) for grant in ended)


def _remembered(writer: Writer, book: str, name: str) -> None:
    known_name = writer.value(("book", book))
    if known_name is None:
        _write(writer, "remembered", {"book": book, "name": name})
    elif known_name != name:
        raise LedgerUnavailable(f"this is not the {book} log that belongs to this access list: restore that one.")


def _stored_grant(reader: Reader, mark: str) -> tuple[Grant, str] | None:
    """Return the grant of a token by its fingerprint, and when the newest entry was written."""
    number = reader.value(("token", mark))
    return None if number is None else (existing_grant(number, reader.value), reader.newest[-1].at)


def _all(reader: Reader) -> tuple[Grant, ...]:
    return tuple(map(Grant.from_json, reader.values(("grant",)).values()))


def derive(link: ChainEntry, values: Values) -> Sets:
    """Return what an entry must set; the check compares it with what it sets."""
    return consequence(link.kind, link.body, values)


def consequence(kind: str, body: Mapping[str, Any], values: Values) -> Sets:
    """Return the keys that an entry sets.

    A grant is stored under its id, and its id under the fingerprint of its token.  An old fingerprint still leads to
    its grant; the grant says whether the token works.
    """
    match kind:
        case "granted":
            return _pointing(Grant.from_json(body["grant"]))
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
    raise UnsupportedVersion("the access list has an entry that this version does not know; use a newer version.")


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
