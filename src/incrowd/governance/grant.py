"""Grant: a user's role, permissions, datasets and expiry; with the tokens and passwords that prove who a user is.

Tokens have 256 random bits and only a hash is stored; passwords are checked slowly, by Argon2.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from incrowd.errors import InvalidParameter, PackageMissing

if TYPE_CHECKING:
    from argon2 import PasswordHasher


_BYTES = 32  # of a token: beyond guessing
_FORM = re.compile(r"ic_[A-Za-z0-9_-]{43}")
_STORED, _FORGERY, _SIGNED_ON = b"incrowd token 1\n", b"incrowd session 1\n", b"incrowd single sign-on 1\n"
# short ones can be guessed from a stolen hash; a limit bounds the time of hashing
_SHORTEST_PASSWORD, _LONGEST_PASSWORD = 12, 1024


def new_token() -> str:
    """Return a fresh token from the operating system's generator.

    >>> len(new_token()), new_token() == new_token()
    (46, False)
    """
    return f"ic_{secrets.token_urlsafe(_BYTES)}"


def fingerprint(token: str) -> str | None:
    """Return the SHA-256 under which a token is stored, or None for a text that no token can be.

    A token has 256 random bits, so nobody can compute it from its hash, and no slow hash is needed.

    >>> fingerprint("guess") is None, len(fingerprint(new_token()) or "")
    (True, 64)
    """
    return sha256(_STORED + token.encode()).hexdigest() if _FORM.fullmatch(token) else None


def signed_on(name: str) -> str:
    """Return the fingerprint under which a user is stored whom a proxy signs on; no token has it.

    >>> signed_on("ann") == signed_on("group ann")
    False
    """
    return sha256(_SIGNED_ON + name.encode()).hexdigest()


def csrf_token(token: str) -> str:
    """Return the CSRF token that a page must send with its session cookie; it cannot be computed without the cookie.

    >>> token = new_token()
    >>> csrf_token(token) == csrf_token(token) != fingerprint(token)
    True
    """
    return sha256(_FORGERY + token.encode()).hexdigest()


def is_csrf_token(sent: str | None, token: str) -> bool:
    """Whether a page sent the CSRF token of its session, compared in constant time.

    >>> is_csrf_token(None, "ic_…"), is_csrf_token(csrf_token("ic_…"), "ic_…")
    (False, True)
    """
    return sent is not None and hmac.compare_digest(sent.encode(), csrf_token(token).encode())


def hashed(password: str) -> str:
    """Return what is stored of a password.

    >>> hashed("short")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: a password has 12 to 1024 characters.
    >>> matches(hashed("a long enough one"), "a long enough one")
    True
    """
    if not _SHORTEST_PASSWORD <= len(password) <= _LONGEST_PASSWORD:
        raise InvalidParameter(f"a password has {_SHORTEST_PASSWORD} to {_LONGEST_PASSWORD} characters.")
    return _hasher().hash(password)


def matches(stored: str | None, password: str) -> bool:
    """Whether a password is the stored one; without one (None) as much work is done, so the time reveals nothing.

    >>> matches(None, "a long enough one")
    False
    """
    hasher = _hasher()
    from argon2.exceptions import Argon2Error, InvalidHashError

    if stored is None:
        hasher.hash(password[:_LONGEST_PASSWORD])
        return False
    try:
        return hasher.verify(stored, password[:_LONGEST_PASSWORD])
    except (Argon2Error, InvalidHashError):  # a wrong password, or no hash: fail closed
        return False


def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ImportError:
        raise PackageMissing("passwords need the package argon2-cffi: pip install 'incrowd[web]'.") from None
    return PasswordHasher()


_LONGEST_VALIDITY = timedelta(days=366)  # a year, leap years included: tokens that nobody remembers expire
_NAME = re.compile(r"[^\W_](?:[\w.@ -]{0,62}[\w.])?")


class AccessRole(StrEnum):
    """The four kinds of users of a protected dataset."""

    OWNER = "owner"
    CURATOR = "curator"
    ANALYST = "analyst"
    AUDITOR = "auditor"


class Permission(StrEnum):
    """One thing that a user may do."""

    READ = "read"  # declarations of tables, cost estimates, remaining budget, certificates
    ASK = "ask"  # spend budget on answers
    PUBLISH = "publish"  # answers for everyone: no analyst's allowance is charged
    AUDIT = "audit"  # read the audit log
    ADMIT = "admit"  # create, rotate and revoke tokens


_RIGHTS = {
    AccessRole.OWNER: frozenset({Permission.READ, Permission.ASK, Permission.PUBLISH, Permission.ADMIT}),
    AccessRole.CURATOR: frozenset({Permission.READ, Permission.ASK, Permission.PUBLISH}),
    AccessRole.ANALYST: frozenset({Permission.READ, Permission.ASK}),
    AccessRole.AUDITOR: frozenset({Permission.READ, Permission.AUDIT}),
}


def rights(role: AccessRole) -> frozenset[Permission]:
    """Return the permissions of a role; nobody may both admit users and read the audit log.

    >>> sorted(rights(AccessRole.ANALYST))
    [<Permission.ASK: 'ask'>, <Permission.READ: 'read'>]
    >>> Permission.AUDIT in rights(AccessRole.OWNER), Permission.ASK in rights(AccessRole.AUDITOR)
    (False, False)
    """
    return _RIGHTS[role]


@dataclass(frozen=True)
class User:
    """A user with a role, for some datasets or for all (None); the ledger uses the same names for analysts.

    >>> User("ann", AccessRole.ANALYST, ("births",)).may_use(["births", "deaths"])
    False
    """

    name: str
    role: AccessRole
    datasets: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidParameter(
                "the name of a user has 1 to 64 letters, digits, spaces and . @ - _, and begins with a letter or digit."
            )
        if self.datasets is not None and not all(self.datasets):
            raise InvalidParameter("a dataset's name is empty: name the datasets, or none of them for all.")

    def may(self, right: Permission) -> bool:
        """Whether the role has a permission."""
        return right in rights(self.role)

    def may_use(self, datasets: Iterable[str]) -> bool:
        """Whether the user may query all these datasets."""
        return self.datasets is None or set(datasets) <= set(self.datasets)

    def covers(self, other: User) -> bool:
        """Whether this user has all datasets of the other."""
        return self.datasets is None or (other.datasets is not None and self.may_use(other.datasets))

    def may_admit(self, other: User) -> bool:
        """Whether this user may create and revoke tokens of the other: within the same datasets, and not an auditor's.

        A user who admits others does not choose who reads the log of it.

        >>> User("olga", AccessRole.OWNER).may_admit(User("eve", AccessRole.AUDITOR))
        False
        """
        return self.may(Permission.ADMIT) and self.covers(other) and not other.may(Permission.AUDIT)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that the access list stores."""
        datasets = None if self.datasets is None else list(self.datasets)
        return {"holder": self.name, "role": str(self.role), "datasets": datasets}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> User:
        """Read what `to_json` wrote."""
        datasets = plain["datasets"]
        return cls(plain["holder"], AccessRole(plain["role"]), None if datasets is None else tuple(datasets))


@dataclass(frozen=True)
class Grant:
    """An issued token: its user, its expiry, and whether it was revoked."""

    id: str
    holder: User
    until: datetime
    fingerprint: str
    session: bool = False
    revoked: bool = False

    @property
    def kind(self) -> str:
        """What proves the user: a token, the session of a browser, or a proxy that signs the user or a group on."""
        if self.fingerprint in (signed_on(self.holder.name), signed_on(group_name(self.holder.name))):
            return "user" if self.fingerprint == signed_on(self.holder.name) else "group"
        return "session" if self.session else "token"

    def works(self, fingerprint: str, now: datetime) -> bool:
        """Whether a token with this fingerprint works now; one that was rotated does not."""
        return not self.revoked and hmac.compare_digest(self.fingerprint, fingerprint) and now < self.until

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that the access list stores."""
        rest = {"fingerprint": self.fingerprint, "session": self.session, "revoked": self.revoked}
        return {"id": self.id, **self.holder.to_json(), "until": written(self.until), **rest}

    def public(self) -> dict[str, Any]:
        """Return what may be shown: all but the fingerprint."""
        return {name: value for name, value in self.to_json().items() if name != "fingerprint"}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Grant:
        """Read what `to_json` wrote."""
        until, rest = datetime.fromisoformat(plain["until"]), (plain["session"], plain["revoked"])
        return cls(plain["id"], User.from_json(plain), until, plain["fingerprint"], *rest)


@dataclass(frozen=True)
class AccessDecision:
    """Who decided something, and why; stored in the access list.

    >>> AccessDecision("data protection officer", " ")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: write who decides and why, for readers of the access list.
    """

    who: str
    why: str

    def __post_init__(self) -> None:
        if not self.who.strip() or not self.why.strip():
            raise InvalidParameter("write who decides and why, for readers of the access list.")


def group_name(group: str) -> str:
    """Return the name under which a group is stored; users have none like it.

    >>> group_name("statistics")
    'group:statistics'
    """
    return f"group:{group}"


def written(moment: datetime) -> str:
    """Return a moment as the access list writes it, in universal time.

    >>> written(datetime(2030, 1, 2, 3, tzinfo=UTC))
    '2030-01-02T03:00:00Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def checked_until(until: datetime, now: datetime) -> datetime:
    """Return the expiry of a token, to the second, or refuse one that is past or too far ahead.

    >>> checked_until(datetime(2033, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC))
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: a token works for at most 366 days and must expire later than now.
    """
    if not now < until <= now + _LONGEST_VALIDITY:
        raise InvalidParameter(
            f"a token works for at most {_LONGEST_VALIDITY.days} days and must expire later than now."
        )
    return until.astimezone(UTC).replace(microsecond=0)
