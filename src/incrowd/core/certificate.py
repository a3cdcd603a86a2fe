"""Certificate: what travels with a release, so that anyone can recompute its claims; and what its words mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from functools import cached_property
from html import escape
from typing import Any, Generic, TypeVar
from uuid import UUID

from incrowd.core.claims.claim import Claim, claim_of
from incrowd.core.codec import canonical, decode, digest, encode, named, text_digest
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import LossRule
from incrowd.core.rounding import short
from incrowd.core.steps.step import Step, step_of, walk
from incrowd.core.terms import Assumption, Condition, Exposure, KeyedText, Term, Theorem
from incrowd.core.words import short_up
from incrowd.errors import InvalidParameter, UnsupportedVersion

VERSION = 3
_LISTED = 3  # claims that a notebook shows, the strongest first
NONCE_BYTES = 4  # random bytes of a release's id, so that equal releases have different ids; the rest is a digest
LIMITS = (
    (
        "The guarantee holds for all releases charged to this dataset together, as the accounting says; releases about "
        "the same people that were made elsewhere, or charged to another dataset, are not included."
    ),
    "The certificate states what the mechanism guarantees; it is evidence for an assessment, not the assessment.",
)
"""The limits of every certificate; readers print them."""
COMPOSITION = "sums of epsilon and delta over all releases charged to this dataset"
"""How losses add up in every ledger; readers print it."""

Out = TypeVar("Out")
Readable = TypeVar("Readable", Step, Claim)


@dataclass(frozen=True)
class Vocabulary:
    """The steps and the claims that a method can have, and the version of their meaning."""

    steps: tuple[type[Step], ...]
    claims: tuple[type[Claim], ...]
    version: int = 1


@dataclass(frozen=True)
class Named:
    """The method that made a release, and the version of its steps and claims."""

    name: str
    version: int = 1


@dataclass(frozen=True)
class Dataset:
    """What a certificate says about the input without revealing it; `commitment` is a hash under a fresh key.

    `population` is the declared public number of people that the data could be about.
    """

    name: str
    commitment: str | None = None
    version: str | None = None
    period: str | None = None
    separate: str | None = None
    same_people_as: str | None = named("same people as", None)
    together_with: tuple[str, ...] | None = named("together with", None)
    population: int | None = None


@dataclass(frozen=True)
class Amounts:
    """An ε and a δ as decimal text, rounded up; `Infinity` where nothing is bounded."""

    epsilon: str
    delta: str


@dataclass(frozen=True)
class PeriodAccount:
    """What the ledger says of periods: how many were charged, this one included, and what this one has spent.

    `spent` is what was charged for this period and for all periods.  `releases` is set where a series of that many
    releases was charged at once: `Accounting.spent` is then what all of them cost together.
    """

    label: str
    published: int
    spent: Amounts
    releases: int | None = None


@dataclass(frozen=True)
class Accounting:
    """What was spent, in total and here, and what remains, as the ledger states it; `rule` gave the bound."""

    spent: Amounts
    total: Amounts
    releases: int
    rule: tuple[LossRule, ...]
    left: Amounts | None = None
    unbounded: str | None = None
    period: PeriodAccount | None = None


@dataclass(frozen=True)
class LedgerPlace:
    """The entry of the charge in its ledger; a truncated ledger is detected by comparing it with this entry."""

    chain: str
    sequence: int
    hash: str


@dataclass(frozen=True)
class ColumnFact:
    """A column as the policy declares it."""

    name: str
    role: str
    type: str


@dataclass(frozen=True)
class Columns:
    """The columns of the input, and the names of those that were released."""

    columns: tuple[ColumnFact, ...]
    released: tuple[str, ...]


@dataclass(frozen=True)
class File:
    """A published file, by its name, its SHA-256 and its size."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Signature:
    """Who signed, and the signature over everything else."""

    algorithm: str
    public_key: str
    value: str


@dataclass(frozen=True, repr=False)
class Certificate:
    """The public certificate: only what the guarantee covers, so that publishing it reveals nothing more.

    It holds kinds, keys, fields and numbers; readers make the sentences.  `glossary` is the digest of what
    these words mean, `outputs` are the files' hashes, the report's included.
    """

    id: str
    created: str
    tool: str
    method: Named
    policy_hash: str
    dataset: Dataset
    guarantee: Guarantee
    claims: tuple[Claim, ...]
    steps: tuple[Step, ...]
    glossary: str
    accounting: Accounting
    ledger: LedgerPlace
    schema: Columns
    evidence: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[File, ...] = ()
    approvals: tuple[Mapping[str, Any], ...] = ()
    signature: Signature | None = None

    def __repr__(self) -> str:
        spent = self.accounting.spent
        epsilon, delta = (short_up(Decimal(amount), 6) for amount in (spent.epsilon, spent.delta))
        cost = "no epsilon" if spent.epsilon == "Infinity" else f"epsilon {epsilon}, delta {delta}"
        return f"<Certificate {self.id}: {self.method.name} of {self.dataset.name}, {cost}>"

    def _repr_html_(self) -> str:
        """Return its claims as a few lines for a notebook; the report says all of it."""
        claims = "".join(f"<li>{escape(claim.kind)}: {escape(claim.sentence)}</li>" for claim in self.claims[:_LISTED])
        more = len(self.claims) - _LISTED
        rest = f"<p>{more} more claims are in the report.</p>" if more > 0 else ""
        return f"<div><b>{escape(repr(self)[1:-1])}</b><ul>{claims}</ul>{rest}</div>"

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, with its version."""
        plain = {name: encode(getattr(self, name)) for name in _NAMES}
        plain |= {"guarantee": self.guarantee.to_json(), "claims": _plain(self.claims), "steps": _plain(self.steps)}
        return {"certificate": VERSION, **plain}

    def to_text(self) -> str:
        """Return the canonical text that is written to disk."""
        return self.signed_part if self.signature is None else canonical(self.to_json())

    def names_itself(self) -> bool:
        """Whether the id is the one that these claims and steps, this guarantee and this policy have."""
        try:
            nonce = UUID(self.id).bytes[:NONCE_BYTES]
        except ValueError:  # not the id of a release
            return False
        return self.id == release_id(nonce, self)

    @cached_property
    def signed_part(self) -> str:
        """The canonical text of everything but the signature, made once: it is written, hashed and signed."""
        return canonical(self.to_json() | {"signature": None})

    def digest(self) -> str:
        """Return the SHA-256 of everything but the signature, under a domain of its own."""
        return text_digest(f"incrowd certificate {VERSION}", self.signed_part)

    def signed(self, signature: Signature) -> Certificate:
        """Return the same certificate with a signature."""
        return replace(self, signature=signature)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any], vocabulary: Callable[[str], Vocabulary]) -> Certificate:
        """Read what `to_json` wrote; another version, an unknown field or a changed word is refused."""
        if plain.get("certificate") != VERSION:
            raise UnsupportedVersion(
                f"this certificate has version {plain.get('certificate')!r}; this incrowd reads version {VERSION} "
                "only. Use the version of incrowd that wrote it."
            )
        if set(plain) != {"certificate", *_NAMES}:
            wrong = ", ".join(sorted(set(plain) ^ {"certificate", *_NAMES}))
            raise InvalidParameter(f"a certificate has missing or unknown fields: {wrong}.")
        method = decode(Named, plain["method"])
        words = vocabulary(method.name)
        if words.version != method.version:
            raise UnsupportedVersion(
                f"this certificate was made by version {method.version} of method {method.name!r}; "
                f"this incrowd reads version {words.version}."
            )
        return cls(
            **{name: decode(kind, plain[name]) for name, kind in _DECODED.items()},
            guarantee=_guarantee(plain["guarantee"]),
            claims=tellable(tuple(claim_of(claim, words.claims) for claim in _objects(plain["claims"]))),
            steps=tellable(tuple(step_of(step, words.steps) for step in _objects(plain["steps"]))),
            evidence=_computable(_object(plain["evidence"]), _names(decode(Columns, plain["schema"]))),
            approvals=_objects(plain["approvals"]),
            signature=None if plain["signature"] is None else decode(Signature, plain["signature"]),
        )


@dataclass(frozen=True)
class Release(Generic[Out]):
    """What leaves: an output and its certificate, never one without the other."""

    result: Out
    certificate: Certificate

    def __repr__(self) -> str:
        return f"<Release {self.result!r} with {self.certificate!r}>"


def release_id(nonce: bytes, stated: Any) -> str:
    """Return the id of a release, which binds the content of its certificate: four random bytes and a hash.

    `stated` is a certificate, or whatever else has a method, a policy's hash, a guarantee, claims and steps.  The
    ledger stores the id with the charge, so a later change of any of them is detected.
    """
    content = {
        "nonce": nonce.hex(),
        "policy": stated.policy_hash,
        "method": encode(stated.method),
        "guarantee": stated.guarantee.to_json(),
        "claims": _plain(stated.claims),
        "steps": _plain(stated.steps),
    }
    try:
        return str(UUID(hex=nonce.hex() + digest(f"incrowd release {VERSION}", content)[: 32 - 2 * len(nonce)]))
    except InvalidParameter:  # something that has no unique text
        return ""


def _plain(parts: Iterable[Step | Claim]) -> list[dict[str, Any]]:
    return [part.to_json() for part in parts]


def tellable(read: tuple[Readable, ...]) -> tuple[Readable, ...]:
    """Return steps or claims if readers can make their sentences, or refuse them."""
    try:
        for item in read:
            _ = item.sentence
    except InvalidParameter:
        raise
    except (ArithmeticError, ValueError):
        raise InvalidParameter("a step or a claim has a number that is too large to show.") from None
    return read


def _object(plain: Any) -> Mapping[str, Any]:
    if not isinstance(plain, dict):
        raise InvalidParameter("steps, claims, evidence and approvals of a certificate are objects.")
    return plain


def _names(schema: Columns) -> set[str]:
    return {column.name for column in schema.columns} | set(schema.released)


def _computable(value: Any, names: set[str]) -> Any:
    """Return evidence as it is, or refuse it for a number that could fill the memory; names of columns are none."""
    if isinstance(value, str) and value not in names:
        return short(value)
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _computable(part, names)
    return value


def _objects(plain: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(plain, list):
        raise InvalidParameter("steps, claims and approvals of a certificate are lists.")
    return tuple(map(_object, plain))


def _guarantee(plain: Any) -> Guarantee:
    try:
        guarantee = Guarantee.from_json(_object(plain))
        same = guarantee.to_json() == plain
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
        same = False
    if not same:
        raise InvalidParameter("the guarantee of this certificate has a field that cannot be read.")
    return guarantee


_NAMES = tuple(item.name for item in fields(Certificate))
_DECODED: dict[str, Any] = {
    "id": str,
    "created": str,
    "tool": str,
    "method": Named,
    "policy_hash": str,
    "glossary": str,
    "dataset": Dataset,
    "accounting": Accounting,
    "ledger": LedgerPlace,
    "schema": Columns,
    "outputs": tuple[File, ...],
}
"""The fields that the codec reads by their type alone."""


DOMAIN = "incrowd glossary 3"


def meaning_digest(guarantee: Guarantee, claims: Iterable[Claim], steps: Iterable[Step]) -> str:
    """Return the digest of what the words of a certificate mean here: of those that it uses, and of no others."""
    stated, happened = tuple(claims), tuple(walk(steps))
    terms: set[Term] = {*guarantee.because, *guarantee.assumes}
    for claim in stated:
        terms |= {*claim.theorem, *claim.not_protected, *(condition.term for condition in claim.preconditions)}
    keys = [key for part in (*stated, *happened) for key in _keys(part)]
    return digest(DOMAIN, glossary(terms, map(type, stated), map(type, happened), keys))


def glossary(
    terms: Iterable[Term], claims: Iterable[type[Claim]], steps: Iterable[type[Step]], keys: Iterable[KeyedText]
) -> dict[str, Any]:
    """Return the meaning of each term and key, and the fields of each kind of claim and step."""
    words = sorted({(_KINDS[type(term)], term.key, term.meaning) for term in terms})
    used = set(keys)
    names = sorted({type(key).__name__ for key in used})
    return {
        **{kind: {key: meaning for named, key, meaning in words if named == kind} for kind in _KINDS.values()},
        "keys": {name: {key.value: key.text for key in sorted(used) if type(key).__name__ == name} for name in names},
        "claims": {kind: list(names) for kind, names in sorted({(cls.kind, _fields(cls)) for cls in claims})},
        "steps": [[kind, *names] for kind, names in sorted({(cls.kind, _fields(cls)) for cls in steps})],
    }


def _keys(value: Any) -> Iterator[KeyedText]:
    """Yield the keys that a value holds, however deep."""
    if isinstance(value, KeyedText):
        yield value
    elif is_dataclass(value):
        for item in fields(value):
            yield from _keys(getattr(value, item.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from _keys(part)


def _fields(cls: type[Claim | Step]) -> tuple[str, ...]:
    return tuple(sorted(str(item.metadata.get("name", item.name)) for item in fields(cls)))  # type: ignore[arg-type]


_KINDS = {Theorem: "theorems", Condition: "conditions", Assumption: "assumptions", Exposure: "exposures"}
