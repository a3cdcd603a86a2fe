"""Glossary: what the kinds, fields and keys of a certificate mean; its digest in a certificate binds that meaning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from incrowd.core.claims.claim import Claim
from incrowd.core.codec import digest
from incrowd.core.guarantee import Guarantee
from incrowd.core.steps.step import Step, walk
from incrowd.core.terms import Assumption, Condition, Exposure, Term, Theorem

DOMAIN = "incrowd glossary 3"


def meaning_digest(guarantee: Guarantee, claims: Iterable[Claim], steps: Iterable[Step]) -> str:
    """Return the digest of what the words of a certificate mean here: of those that it uses, and of no others."""
    stated, happened = tuple(claims), tuple(walk(steps))
    terms: set[Term] = {*guarantee.because, *guarantee.assumes}
    for claim in stated:
        terms |= {*claim.theorem, *claim.not_protected, *(condition.term for condition in claim.preconditions)}
    return digest(DOMAIN, glossary(terms, map(type, stated), map(type, happened)))


def glossary(terms: Iterable[Term], claims: Iterable[type[Claim]], steps: Iterable[type[Step]]) -> dict[str, Any]:
    """Return the meaning of each term by its key, and the fields of each kind of claim and step."""
    words = sorted({(_KINDS[type(term)], term.key, term.meaning) for term in terms})
    return {
        **{kind: {key: meaning for named, key, meaning in words if named == kind} for kind in _KINDS.values()},
        "claims": {kind: list(names) for kind, names in sorted({(cls.kind, _fields(cls)) for cls in claims})},
        "steps": [[kind, *names] for kind, names in sorted({(cls.kind, _fields(cls)) for cls in steps})],
    }


def _fields(cls: type[Claim | Step]) -> tuple[str, ...]:
    return tuple(sorted(str(each.metadata.get("name", each.name)) for each in fields(cls)))  # type: ignore[arg-type]


_KINDS = {Theorem: "theorems", Condition: "conditions", Assumption: "assumptions", Exposure: "exposures"}
