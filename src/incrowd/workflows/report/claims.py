"""Claims: what is stated, by which theorem, under which conditions, and what is not protected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from incrowd.core.certificate import Certificate, Claim, Status
from incrowd.core.rounding import exact, round_up
from incrowd.core.words import counted, short_up
from incrowd.errors import InvalidParameter
from incrowd.workflows.report.markup import Html, bullets, joined, section, table, tag

_SIGNS = {Status.PROVED: "✓ proved", Status.CHECKED: "✓ checked", Status.ASSUMED: "○ assumed"}
_MEANT = {
    Status.PROVED: "follows from how the program works",
    Status.CHECKED: "was tested on this release",
    Status.ASSUMED: "only people can know; whoever signs takes it on",
}
_WORDS = {
    "pure differential privacy": (
        "Change the data of any one person, and every outcome stays nearly as likely: within the factor e^ε, always."
    ),
    "approximate differential privacy": (
        "Change the data of any one person, and every outcome stays nearly as likely: within the factor e^ε, apart "
        "from a chance of δ."
    ),
    "zero-knowledge with respect to random sampling": (
        "What the release shows about a person could be had nearly as well from a random sample of everyone else."
    ),
    "zero-knowledge with respect to robust sampling": (
        "What the release shows about a person could be had nearly as well from a biased random sample of everyone "
        "else, part of which is known."
    ),
    "zero-knowledge with respect to robust sampling, as published": (
        "The claim before by the formula as it was published, with its constants written out."
    ),
    "approximate differential privacy, as published": (
        "The first claim by the formula as it was published: the δ is larger, and can be checked against the paper."
    ),
    "f-smooth differential privacy": "The first claim by the paper's closed formula, which is coarser still.",
    "crowd-blending": (
        "Everyone blends with k people whose data could stand in for theirs without any difference, or is left out."
    ),
    "crowd-blending, each table alone": (
        "In each table everyone blends with k people or is left out. Of several tables side by side this is not said."
    ),
    "Lipschitz error": (
        "For every function that changes slowly from place to place, its mean over the published points is near its "
        "mean over the rows behind them."
    ),
    "k-anonymity": "Each published combination of values in the named columns occurs at least k times.",
    "k-anonymity of subsets": "Each combination of values in any so many of the named columns occurs at least k times.",
    "k-anonymity with wildcards": (
        "At least k rows match each row, if an empty cell matches anything. Whoever knows what an empty cell was sees "
        "fewer."
    ),
    "k-anonymity of subsets with wildcards": (
        "At least k rows match each row in any so many of the named columns, if an empty cell matches anything."
    ),
    "k^m-anonymity": (
        "Among rows that agree in the named columns, each combination of at most m items that occurs, occurs in k rows "
        "or more."
    ),
    "distinct l-diversity": "Each class of rows that look alike shows at least l values of the sensitive column.",
    "entropy l-diversity": "The sensitive values of each class are at least as mixed as l equally common ones.",
    "t-closeness": "The sensitive column of each class differs from that of the whole table by at most t.",
    "recursive (c,l)-diversity": (
        "In each class the most frequent sensitive value is rarer than c times all but the l − 1 most frequent ones."
    ),
    "β-likeness": "No sensitive value is more than 1 + β times as frequent in a class as among all rows.",
    "enhanced β-likeness": (
        "No sensitive value is more than 1 + β times as frequent in a class as among all rows, and values that are "
        "frequent everywhere are held to less."
    ),
    "δ-disclosure privacy": "Each sensitive value is about as frequent in every class as among all rows.",
    "k-map": "At least k people of the population look like each published row.",
    "δ-presence": "Of the people who look like a published row, the share who are in the table is bounded.",
    "average risk": "Whoever is looked up is found with at most this chance, on average over the published rows.",
    "population uniqueness": "At most this share of the published rows is unique in the population, by an estimate.",
}
_GREEK = {"epsilon": "ε", "delta": "δ"}
_CROWD = {"epsilon": "ε inside the crowd"}
_ORDER = {"k": 0, "rate": 0, "epsilon": 2, "delta": 3}
_IN_UNIT = frozenset({"adjacency", "max_rows"})


def claims_section(certificate: Certificate) -> Html:
    """Return the claims with their theorems, and the conditions of all of them in one table."""
    rows = [
        [joined([tag("b", f"{place}. "), claim.kind]), _stated(claim), tag("span", claim.theorem)]
        for place, claim in enumerate(certificate.claims, 1)
    ]
    said = "The strongest comes first. Losses are rounded up." if rows else "This certificate claims nothing."
    return section(
        "claims",
        "What is claimed, and why",
        tag("p", said),
        table("Claims", ["Claim", "In words and numbers", "Theorem"], rows, class_="untitled stack") if rows else "",
        _conditions(certificate.claims),
    )


def not_protected_section(certificate: Certificate) -> Html:
    """Return what no claim covers, and the limits of the whole."""
    gaps = _places((gap, place) for place, claim in enumerate(certificate.claims, 1) for gap in claim.not_protected)
    numbers = len(certificate.claims)
    return section(
        "not-protected",
        "What is not protected",
        bullets(
            (joined([_sentence(gap), " ", tag("small", _of_claims(places, numbers))]) for gap, places in gaps.items()),
            class_="gaps",
        ),
        tag("h3", "Limits of this certificate"),
        bullets(certificate.limits),
    )


def signing_section(certificate: Certificate) -> Html:
    """Return what a person takes on by signing: the assumptions, as boxes to be ticked by hand."""
    assumed = dict.fromkeys(
        condition.text
        for claim in certificate.claims
        for condition in claim.preconditions
        if condition.status is Status.ASSUMED
    )
    boxes = bullets((_sentence(each) for each in assumed), class_="boxes")
    lines = tag("div", *(tag("p", name, class_="line") for name in ("Name and office", "Date", "Signature")))
    return section(
        "signing",
        "For the person who signs",
        tag("p", "No program can know these. The claims rest on them; tick what you can answer for."),
        boxes if assumed else tag("p", "Nothing is assumed."),
        _approvals(certificate.approvals),
        tag("div", lines, class_="sign"),
    )


def _stated(claim: Claim) -> Html:
    words = _WORDS.get(claim.kind)
    return joined(
        [
            tag("p", words) if words else "",
            tag("p", _parameters(claim), class_="numbers"),
            tag("p", tag("small", f"Protects {claim.unit}.")),
        ]
    )


def _parameters(claim: Claim) -> Html:
    """Return the numbers of a claim; whom it protects is said by its unit."""
    parts, signs = [], _CROWD if claim.kind == "crowd-blending" else _GREEK
    for name, value in sorted(claim.parameters.items(), key=lambda item: _ORDER.get(item[0], 1)):
        if name in signs:
            parts.append(f"{signs[name]} ≤ {_loss(value)}")
        elif name == "columns" and isinstance(value, list):
            parts.append(f"over {counted(len(value), 'column')}")
        elif name not in _IN_UNIT:
            told = ", ".join(map(str, value)) if isinstance(value, list) else value
            parts.append(f"{name.replace('_', ' ')} = {told}")
    return joined((tag("span", part, class_="nowrap") for part in parts), "; ")


def _loss(value: Any) -> str:
    try:
        return short_up(round_up(exact(str(value))))
    except InvalidParameter:
        return str(value)


def _conditions(claims: tuple[Claim, ...]) -> Html:
    """Return each condition once, with how it is known and which claims need it."""
    needed = _places(
        ((condition.text, condition.status), place)
        for place, claim in enumerate(claims, 1)
        for condition in claim.preconditions
    )
    ordered = sorted(needed.items(), key=lambda item: list(Status).index(item[0][1]))
    if not ordered:
        return Html("")
    rows = [
        [
            _sentence(condition),
            tag("span", _SIGNS[status], class_=f"status {status}"),
            tag("span", _of_claims(places, len(claims)), class_="nowrap"),
        ]
        for (condition, status), places in ordered
    ]
    key = joined((f"{_SIGNS[status]}: {_MEANT[status]}. " for status in Status), "")
    return joined(
        [
            tag("h3", "Conditions"),
            table("Conditions of the claims", ["Must be true", "How it is known", "For"], rows, class_="untitled"),
            tag("p", tag("small", key)),
        ]
    )


def _places(items: Iterable[tuple[Any, int]]) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for item, place in items:
        found.setdefault(item, []).append(place)
    return found


def _of_claims(places: list[int], of: int) -> str:
    if len(places) == of:
        return "all claims"
    if len(places) > 2 and places[-1] - places[0] == len(places) - 1:
        return f"claims {places[0]} to {places[-1]}"
    return f"claim{'s' if len(places) > 1 else ''} {', '.join(map(str, places))}"


def _approvals(approvals: tuple[Mapping[str, Any], ...]) -> Html:
    if not approvals:
        return Html("")
    return joined(
        [
            tag("h3", "Approvals"),
            bullets("; ".join(f"{name}: {value}" for name, value in each.items()) for each in approvals),
        ]
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}" + ("" if words.endswith((".", "!", "?")) else ".")
