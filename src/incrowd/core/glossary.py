"""Glossary: what the kinds, fields and keys of a certificate mean; its digest in a certificate binds that meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from incrowd.core.claims.claim import Claim
from incrowd.core.codec import digest
from incrowd.core.guarantee import Guarantee
from incrowd.core.steps.step import Step, walk
from incrowd.core.terms import Assumption, Condition, Exposure, KeyedText, Term, Theorem

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
