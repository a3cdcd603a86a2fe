"""Facts: what the output shows about risk, what it holds, its files, and how to check all of it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from incrowd.core.certificate import Certificate
from incrowd.workflows.report.markup import Html, joined, section, table, tag
from incrowd.workflows.report.odds import Odds

_ATTACKERS = {
    "prosecutor": "knows that the person is in the published file and looks for the row; the worst row counts",
    "journalist": "does not know whether the person is in it and wants to show that anyone can be found",
    "marketer": "wants to match as many rows as possible; the average counts",
}
_TESTS = {
    "singling out": "Can one person's row be told from all others?",
    "linkability": "Can rows about one person be linked across tables?",
    "inference": "Can a person's value be deduced?",
}
_NO_BOUND = "not bounded: this release has no epsilon"
_SIZES = {
    "rows": "Rows published",
    "classes": "Different combinations",
    "smallest class": "Rows of the rarest one",
    "missing cells": "Empty cells in the quasi-identifiers",
    "items shown": "Different items shown",
    "largest set": "Items of the largest set",
    "smallest support": "Rows of the rarest combination of few items",
    "unique rows": "Rows that are like no other",
    "bins": "Bins published",
    "bins above zero": "Bins with a count above zero",
    "smallest count above zero": "Smallest count above zero",
    "exact counts": "Counts marked as exact",
    "ranks": "Bins chosen",
}


def evidence_section(certificate: Certificate, histogram: Html | None) -> Html:
    """Return what the output itself shows, for three attackers and the three tests of the EU's Opinion 05/2014."""
    evidence = certificate.evidence
    bounded = Odds.of(certificate.accounting["spent"]).bounded
    sizes = [[name, f"{evidence[key]:,}"] for key, name in _SIZES.items() if isinstance(evidence.get(key), int)]
    thresholds = evidence.get("thresholds") or {}
    attackers = [
        [
            joined([tag("b", name.capitalize()), f" {knows}"]),
            evidence[name],
            *(_below(evidence[name], limit) for limit in thresholds),
        ]
        for name, knows in _ATTACKERS.items()
        if name in evidence
    ]
    head = [
        "Attacker",
        "Chance",
        *(joined(["≤ ", limit, tag("br"), tag("small", s)]) for limit, s in thresholds.items()),
    ]
    tests = [
        [name.capitalize(), question, _NO_BOUND if name == "inference" and not bounded else evidence[name]]
        for name, question in _TESTS.items()
        if name in evidence
    ]
    return section(
        "evidence",
        "What the output itself shows",
        tag("p", "Counted in the published file and in nothing else: evidence for an assessment, not the assessment."),
        table("Size of the output", ["", "Number"], sizes) if sizes else "",
        histogram or "",
        table("Chance that a match by all published columns is right", head, attackers) if attackers else "",
        table(
            "The three tests of Opinion 05/2014 of the EU's Article 29 Working Party",
            ["Test", "Question", "Evidence"],
            tests,
        )
        if tests
        else "",
    )


def content_section(certificate: Certificate) -> Html:
    """Return the columns, released or not, and the files with their hashes."""
    released = set(certificate.schema.get("released", ()))
    columns = [
        [
            c.get("name"),
            c.get("role", ""),
            c.get("type", ""),
            "released" if c.get("name") in released else "not released",
        ]
        for c in certificate.schema.get("columns", ())
    ]
    files = [
        [each.get("name"), f"{each.get('bytes', 0):,}", tag("code", each.get("sha256"))] for each in certificate.outputs
    ]
    return section(
        "content",
        "What was released",
        table("Columns", ["Column", "Role", "Type", "In the output"], columns) if columns else "",
        table("Files", ["File", "Bytes", "SHA-256"], files)
        if files
        else tag("p", "The release stayed in memory: there are no files."),
    )


def verify_section(certificate: Certificate) -> Html:
    """Return how anyone can check the certificate, and what no check can know."""
    name = str(certificate.outputs[0].get("name")) if len(certificate.outputs) == 1 else ""
    unsigned = (
        "Who made it: the certificate is not signed."
        if certificate.signature is None
        else ("Whose key signed it: learn the signer's key elsewhere and give it with --public-key.")
    )
    return section(
        "verify",
        "How to check this",
        tag("p", "Every claim can be derived again from its parameters, by a second and slower route:"),
        tag("pre", tag("code", f"incrowd verify certificate.json {name}".rstrip())),
        tag("p", "What no check of a certificate can know:"),
        tag(
            "ul",
            tag("li", unsigned),
            tag("li", "That the sample was secret, and that the settings were chosen without looking at the rows."),
            tag("li", "That no other release about these people was made elsewhere."),
        ),
        _identity(certificate),
    )


def _identity(certificate: Certificate) -> Html:
    dataset = certificate.dataset
    facts: list[tuple[str, object]] = [
        ("Certificate", tag("code", certificate.id)),
        ("Created", certificate.created),
        ("Made by", certificate.tool),
        ("Hash of the certificate", tag("code", certificate.digest())),
        ("Hash of the policy", tag("code", certificate.policy_hash)),
        ("Commitment to the input", tag("code", dataset.get("commitment", "none"))),
        ("Signature", _signature(certificate.signature)),
    ]
    facts += [(name.capitalize(), value) for name, value in dataset.items() if name not in _SHOWN]
    described = [part for name, value in facts for part in (tag("dt", name), tag("dd", value))]
    return joined([tag("h3", "Identity"), tag("dl", *described)])


_SHOWN = frozenset({"name", "unit", "commitment", "period"})


def _signature(signature: Mapping[str, Any] | None) -> Html:
    if signature is None:
        return tag("span", "none")
    return tag("span", f"{signature.get('algorithm')}, public key ", tag("code", signature.get("public_key")))


def _below(value: Any, limit: str) -> str:
    try:
        return "✓ below" if Decimal(str(value)) <= Decimal(limit) else "✗ above"
    except InvalidOperation:
        return "?"
