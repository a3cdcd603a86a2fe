"""Summary: the label in a few lines, for notebooks."""

from __future__ import annotations

from incrowd.core.certificate import Certificate
from incrowd.workflows.report.label import label_of
from incrowd.workflows.report.markup import tag

_BOX = "border:1px solid #8888;border-radius:6px;padding:.6em 1em;max-width:46em;font-family:system-ui,sans-serif"
_ALARM = "border:2px solid #c62828;border-radius:4px;padding:.3em .6em;margin:.4em 0;font-weight:bold"
_CELL = "text-align:left;vertical-align:top;padding:.15em .8em .15em 0;background:none;color:inherit;border:0"
_QUIET = "font-size:.85em;opacity:.75;margin:.4em 0 0"


def summary_html(certificate: Certificate) -> str:
    """Return the label as a fragment of HTML that brings its own style and takes the page's colors."""
    label = label_of(certificate)
    alarms = [tag("div", f"⚠ {alarm.title}", style=_ALARM) for alarm in label.alarms]
    rows = [
        tag("tr", tag("th", answer.question, style=_CELL, scope="row"), tag("td", answer.short, style=_CELL))
        for answer in label.answers
    ]
    numbers = label.odds.numbers if label.odds.bounded else "no ε"
    return tag(
        "div",
        tag("div", tag("b", certificate.dataset.get("name", "release")), f" · {numbers}"),
        *alarms,
        tag("table", tag("tbody", *rows), style="border-collapse:collapse;margin:.4em 0"),
        tag("p", f"Certificate {certificate.id}. The whole report: release.report()", style=_QUIET),
        style=_BOX,
    )
