"""Certificate: what travels with a release, so that anyone can derive its claims again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import UUID

from incrowd.core.canonical import canonical, digest
from incrowd.core.guarantee import Guarantee
from incrowd.errors import InvalidParameter, UnsupportedVersion

VERSION = 1
_DOMAIN = f"incrowd certificate {VERSION}"
_OBJECTS = ("dataset", "accounting", "ledger", "schema", "evidence")

Out = TypeVar("Out")

NONCE_BYTES = 4


class Status(StrEnum):
    """How far a precondition is known to hold."""

    PROVED = "proved"
    CHECKED = "checked"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Precondition:
    """Something that must be true for a claim, and how we know."""

    text: str
    status: Status


@dataclass(frozen=True)
class Claim:
    """One typed statement about a release, with its theorem and its limits."""

    kind: str
    parameters: Mapping[str, Any]
    unit: str
    theorem: str
    preconditions: tuple[Precondition, ...] = ()
    not_protected: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Claim:
        """Read one claim."""
        _only_fields(cls, plain)
        conditions = tuple(Precondition(item["text"], Status(item["status"])) for item in plain["preconditions"])
        return cls(
            str(plain["kind"]),
            dict(plain["parameters"]),
            str(plain["unit"]),
            str(plain["theorem"]),
            conditions,
            tuple(map(str, plain["not_protected"])),
        )


Told = tuple[tuple[Claim, ...], tuple[Mapping[str, Any], ...]]
"""The claims and the steps of a release."""


def release_id(nonce: bytes, policy_hash: str, guarantee: Guarantee, told: Told) -> str:
    """Return the name of a release, which binds what its certificate tells about it: four random bytes and a hash.

    The ledger writes the name down with the charge, so claims and steps cannot be changed afterwards without showing.

    >>> from incrowd.core.loss import Crowd
    >>> from incrowd.core.unit import Unit
    >>> promise = Guarantee(Crowd(5), Unit(), "Example 1")
    >>> release_id(bytes(4), "ab", promise, ((), ({"step": "suppress", "k": 5},)))
    '00000000-...'
    """
    claims, chain = told
    content = {
        "nonce": nonce.hex(),
        "policy": policy_hash,
        "guarantee": guarantee.to_json(),
        "claims": [_as_lists(asdict(claim) | {"parameters": dict(claim.parameters)}) for claim in claims],
        "chain": _as_lists(chain),
    }
    return str(UUID(hex=nonce.hex() + digest(f"incrowd release {VERSION}", content)[: 32 - 2 * len(nonce)]))


@dataclass(frozen=True)
class Certificate:
    """The public certificate: only what the promise covers, so that publishing it reveals nothing more.

    `chain` lists the mechanism's steps in order, `accounting` what was spent and is left, `ledger` the anchor
    (ledger id, sequence number, entry hash) against which a cut-off ledger is found, `outputs` the files' hashes.
    """

    id: str
    created: str
    tool: str
    policy_hash: str
    dataset: Mapping[str, Any]
    guarantee: Guarantee
    claims: tuple[Claim, ...]
    chain: tuple[Mapping[str, Any], ...]
    accounting: Mapping[str, Any]
    ledger: Mapping[str, Any]
    outputs: tuple[Mapping[str, Any], ...] = ()
    schema: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    approvals: tuple[Mapping[str, Any], ...] = ()
    signature: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, with its version."""
        plain: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        plain["guarantee"] = self.guarantee.to_json()
        plain["claims"] = [asdict(claim) | {"parameters": dict(claim.parameters)} for claim in self.claims]
        return {"certificate": VERSION} | {name: _as_lists(value) for name, value in plain.items()}

    def to_text(self) -> str:
        """Return the canonical text that is written to disk and hashed."""
        return canonical(self.to_json())

    def names_itself(self) -> bool:
        """Whether the id is the one that these claims and steps, this guarantee and this policy have."""
        try:
            nonce = UUID(self.id).bytes[:NONCE_BYTES]
            return self.id == release_id(nonce, self.policy_hash, self.guarantee, (self.claims, self.chain))
        except ValueError:  # no name of a release, or a number too long to be written
            return False

    def signed_part(self) -> str:
        """Return the canonical text that a signature covers: everything but the signature."""
        return canonical(self.to_json() | {"signature": None})

    def digest(self) -> str:
        """Return the SHA-256 of everything but the signature, under a domain of its own."""
        return digest(_DOMAIN, self.to_json() | {"signature": None})

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Certificate:
        """Read what `to_json` wrote; another version or an unknown field is refused."""
        if plain.get("certificate") != VERSION:
            raise UnsupportedVersion(
                f"this certificate has version {plain.get('certificate')!r}; version {VERSION} is known here."
            )
        values = {name: value for name, value in plain.items() if name != "certificate"}
        _only_fields(cls, values)
        try:
            values["guarantee"] = Guarantee.from_json(values["guarantee"])
            values["claims"] = tuple(map(Claim.from_json, values["claims"]))
            for name in ("chain", "outputs", "limits", "approvals"):
                values[name] = tuple(values[name])
            _only_objects(values)
            return cls(**values)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidParameter("this certificate lacks a field or holds one that cannot be read.") from error


@dataclass(frozen=True)
class Release(Generic[Out]):
    """What leaves: a result and its certificate, never one without the other."""

    result: Out
    certificate: Certificate


def _only_fields(cls: type, plain: Mapping[str, Any]) -> None:
    names = {item.name for item in fields(cls)}
    if set(plain) != names:
        wrong = ", ".join(sorted(set(plain) ^ names))
        raise InvalidParameter(f"a {cls.__name__.lower()} has missing or unknown fields: {wrong}.")


def _only_objects(values: Mapping[str, Any]) -> None:
    told = (*values["chain"], *values["outputs"], *(values[name] for name in _OBJECTS))
    if not isinstance(values["id"], str) or not all(isinstance(each, Mapping) for each in told):
        raise TypeError("an id is text; steps, files and the parts of a certificate are objects")


def _as_lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _as_lists(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_lists(item) for item in value]
    return str(value) if isinstance(value, StrEnum) else value
