"""Budget: what was spent before, what this release spent and what is left; as bars and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from incrowd.core.certificate import Certificate
from incrowd.core.words import counted, short_down, short_up
from incrowd.workflows.report.markup import Html, section, table, tag
from incrowd.workflows.report.odds import Odds

_DIGITS = 6
_HEIGHT = 26
_KEY = (("before", "earlier releases"), ("now", "this release"), ("left", "left"))


def budget_section(certificate: Certificate) -> Html:
    """Return the accounting: bars, numbers rounded against ourselves, the rule and the ledger's anchor."""
    accounting, anchor = certificate.accounting, certificate.ledger
    releases = int(accounting.get("releases") or 1)
    facts = [
        ("Releases counted", counted(releases, "release")),
        ("How losses add up", accounting.get("composition", "")),
        ("Rule that gave this release's loss", accounting.get("rule", "")),
        ("Ledger", tag("code", anchor.get("chain", "none"))),
        ("Entry", str(anchor.get("sequence", "none"))),
        ("Hash of the entry", tag("code", anchor.get("hash", "none"))),
    ]
    described = [part for name, value in facts for part in (tag("dt", name), tag("dd", value))]
    return section(
        "budget",
        "What it cost, and what is left",
        _bars(accounting),
        tag("dl", *described),
        tag(
            "p",
            tag("small", "A ledger whose end was cut off is found by holding it against this entry: "),
            tag("code", "incrowd ledger check --against certificate.json"),
        ),
    )


def _bars(accounting: Mapping[str, Any]) -> Html:
    spent, total = Odds.of(accounting["spent"]), Odds.of(accounting["total"])
    left = None if accounting.get("left") is None else Odds.of(accounting["left"])
    pairs = [("ε", spent.epsilon, total.epsilon, left.epsilon if left else Decimal(0))]
    pairs += [("δ", spent.delta, total.delta, left.delta if left else Decimal(0))]
    drawn = [_bar(*pair) for pair in pairs if pair[2].is_finite() and pair[2] + pair[3] > 0]
    rows = [
        ["Spent by this release", short_up(spent.epsilon, _DIGITS), short_up(spent.delta, _DIGITS)],
        ["Spent by all releases", short_up(total.epsilon, _DIGITS), short_up(total.delta, _DIGITS)],
    ]
    if left is not None:
        rows.append(["Left", short_down(left.epsilon, _DIGITS), short_down(left.delta, _DIGITS)])
    numbers = table("Amounts: spent is rounded up, left is rounded down", ["", "ε", "δ"], rows)
    return tag("div", *drawn, _key() if drawn else "", numbers, class_="budget")


def _bar(sign: str, spent: Decimal, total: Decimal, left: Decimal) -> Html:
    earlier, now = (
        100.0 * float(part / (total + left)) for part in (max(total - spent, Decimal(0)), min(spent, total))
    )
    parts = (("before", 0.0, earlier), ("now", earlier, now), ("left", earlier + now, 100.0 - earlier - now))
    drawn = [
        tag("rect", x=f"{start:.3f}%", width=f"{wide:.3f}%", height=_HEIGHT, class_=kind)
        for kind, start, wide in parts
        if wide > 1e-9
    ]
    title = (
        f"Budget of {sign}: this release spent {short_up(spent)}, all releases together {short_up(total)}, "
        f"left is {short_down(left)}"
    )
    name = tag("span", sign, aria_hidden="true")
    return tag("div", name, tag("svg", *drawn, height=_HEIGHT, role="img", aria_label=title), class_="one")


def _key() -> Html:
    swatches = (
        tag("span", tag("svg", tag("rect", width=14, height=14, class_=kind), width=14, height=14), f" {words}")
        for kind, words in _KEY
    )
    return tag("p", *swatches, class_="key", aria_hidden="true")
