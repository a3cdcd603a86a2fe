"""Parent: the release that a coarser table was made from, as the coarser one's certificate holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from incrowd.core.certificate import Certificate, Claim
from incrowd.errors import InvalidParameter

COARSEN = "coarsen"
_ABOUT_COLUMNS = ("k-anonymity", "pseudonymization")
_CARRIED = ("differential privacy", "zero-knowledge", "crowd-blending", *_ABOUT_COLUMNS)


def step_of(certificate: Certificate) -> Mapping[str, Any] | None:
    """Return the step that made a table coarser, if it was the last one."""
    last = certificate.chain[-1] if certificate.chain else {}
    return last if last.get("step") == COARSEN else None


def parent_of(certificate: Certificate) -> Certificate:
    """Return the certificate of the release that a coarser table was made from, or raise InvalidParameter."""
    held = (step_of(certificate) or {}).get("of")
    if not isinstance(held, Mapping):
        raise InvalidParameter("this certificate holds none of a release that its table was made from.")
    return Certificate.from_json(held)


def charged(certificate: Certificate) -> Certificate:
    """Return the certificate whose release the ledger charged: post-processing costs nothing."""
    while step_of(certificate) is not None:
        certificate = parent_of(certificate)
    return certificate


def carried(claims: tuple[Claim, ...], columns: list[str]) -> tuple[Claim, ...]:
    """Return the claims that a coarser table inherits: promises of privacy, and those about the columns it has left.

    What is promised about a mechanism holds for everything computed from its output; and a class of a coarser table is
    a union of classes, so it is no smaller.  A claim about accuracy would not survive.

    >>> claim = Claim("k-anonymity", {"k": 5, "columns": ["sex", "zip"]}, "one row", "counted")
    >>> carried((claim, Claim("Lipschitz error", {}, "one row", "")), ["zip"])[0].parameters
    {'k': 5, 'columns': ['zip']}
    """
    found = []
    for claim in claims:
        if not any(words in claim.kind for words in _CARRIED):
            continue
        if claim.kind in _ABOUT_COLUMNS:
            left = [name for name in claim.parameters["columns"] if name in columns]
            if left:
                found.append(replace(claim, parameters={**claim.parameters, "columns": left}))
        else:
            found.append(claim)
    return tuple(found)
