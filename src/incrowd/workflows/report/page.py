"""Page: a certificate as one page for the person who signs; it loads nothing and runs no script.

The words are those of the steps and claims, the pictures those of the method.  A page hangs on the certificate without
its report and signature, and on the published output alone: made again by the same tools, it is the same text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from incrowd.core.certificate import Certificate
from incrowd.core.codec import encode
from incrowd.core.steps.rows import Recode, RecodedColumn
from incrowd.core.steps.step import walk
from incrowd.drawing.glyphs import scenes
from incrowd.drawing.markup import framed, table, text
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.verify.files import tables_of
from incrowd.verify.judge import statement_of
from incrowd.workflows.registry import picture_of
from incrowd.workflows.report.budget import BudgetOverview, budget_of
from incrowd.workflows.report.claims import MEANING, Remark, assumptions, conditions, gaps
from incrowd.workflows.report.curve import loss_curve
from incrowd.workflows.report.label import Label, label_of
from incrowd.workflows.report.odds import PRIORS
from incrowd.workflows.report.picture import described, sizes

if TYPE_CHECKING:
    from jinja2 import Environment

CHARTS = ", ".join(
    f"{name} {version(name)}" for name in ("jinja2", "markupsafe", "altair", "vl-convert-python", "numpy", "scipy")
)
"""What computes and draws a report: where these are the same, so is the page."""
_MISSING = {"class": "a class of their own", "drop": "row is left out"}
_OUTSIDE = {"ends": "nearest bound", "other": "one class for all", "drop": "row is left out"}
_IN_HEAD = frozenset({"name", "unit", "commitment", "period"})
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


@dataclass(frozen=True)
class Card:
    """A step, in words and as the table after it."""

    title: str
    sentence: str
    picture: Markup | None


@dataclass(frozen=True)
class Attacker:
    """Somebody who looks for a person: what they know, their chance, and below which limits it is."""

    name: str
    knows: str
    chance: str
    below: tuple[bool, ...]


@dataclass(frozen=True)
class Evidence:
    """What the output itself shows: its sizes, its picture, the chances of attackers beside limits, and tests."""

    sizes: list[tuple[str, int]]
    picture: Markup | None
    limits: list[Markup]
    attackers: list[Attacker]
    tests: list[tuple[str, str, str]]


@dataclass(frozen=True)
class Page:
    """Everything that a page shows, in the order of its sections."""

    certificate: Certificate
    label: Label
    comparison: Markup | None
    beliefs: tuple[tuple[str, str], ...]
    curve: Markup | None
    gaps: tuple[Remark, ...]
    conditions: tuple[Remark, ...]
    cards: tuple[Card, ...]
    recoded: tuple[RecodedColumn, ...]
    budget: BudgetOverview
    evidence: Evidence
    identity: tuple[tuple[str, str], ...]
    assumptions: tuple[str, ...]


def public_report(certificate: Certificate, output: Any = None) -> str:
    """Return the public report as HTML; `output`, what was published, adds its picture.

    It says nothing that the certificate and the published table do not say.
    """
    return _rendered(certificate, output, None, internal=False)


def internal_report(certificate: Certificate, output: Any, comparison: Markup | None = None) -> str:
    """Return the report that stays with the data holder: marked on every page, with before and after."""
    return _rendered(certificate, output, comparison, internal=True)


def summary_html(certificate: Certificate) -> str:
    """Return the label as a fragment of HTML that brings its own style and takes the page's colors."""
    label = label_of(certificate, described(certificate, picture_of(certificate.method.name)))
    return _templates().get_template("summary.html").render(certificate=certificate, label=label)


def _rendered(certificate: Certificate, output: Any, comparison: Markup | None, *, internal: bool) -> str:
    bare = replace(certificate, outputs=tables_of(certificate), signature=None)
    try:
        page = _page(bare, output, comparison)
    except IncrowdError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InvalidParameter("this certificate holds fields that cannot be shown: have it verified.") from error
    return _templates().get_template("page.html").render(page=page, internal=internal)


def _page(certificate: Certificate, output: Any, comparison: Markup | None) -> Page:
    own, claims, steps = picture_of(certificate.method.name), certificate.claims, tuple(walk(certificate.steps))
    label = label_of(certificate, described(certificate, own))
    drawn = None if own is None or output is None else own.picture(statement_of(certificate), output)
    return Page(
        certificate=certificate,
        label=label,
        comparison=comparison,
        beliefs=tuple((f"{100 * float(p):g} % (1 in {int(1 / p):,})", label.odds.belief(p)) for p in PRIORS)
        if label.odds.bounded
        else (),
        curve=loss_curve(certificate.guarantee, label.odds),
        gaps=tuple(gaps(claims)),
        conditions=tuple(conditions(claims)),
        cards=_cards(certificate),
        recoded=tuple(column for step in steps if isinstance(step, Recode) for column in step.columns),
        budget=budget_of(certificate.accounting),
        evidence=_evidence(certificate, sizes(certificate, own), drawn),
        identity=_identity(certificate),
        assumptions=tuple(assumptions(claims)),
    )


def _cards(certificate: Certificate) -> tuple[Card, ...]:
    steps = tuple(walk(certificate.steps))
    told = [("The table", "Rows as they were recorded. They stay with the data holder.")]
    told += [(step.title, step.sentence) for step in steps]
    return tuple(Card(*words, drawn) for words, drawn in zip(told, scenes(s.glyph for s in steps), strict=True))


def _evidence(certificate: Certificate, sizes: list[tuple[str, int]], picture: Markup | None) -> Evidence:
    told = certificate.evidence
    limits = {Decimal(limit): source for limit, source in dict(told.get("thresholds", {})).items()}
    return Evidence(
        sizes,
        picture,
        [Markup("≤ {}<br><small>{}</small>").format(limit, source) for limit, source in limits.items()],
        [
            Attacker(name, knows, str(told[name]), tuple(Decimal(str(told[name])) <= limit for limit in limits))
            for name, knows in _ATTACKERS.items()
            if name in told
        ],
        [(name, question, str(told[name])) for name, question in _TESTS.items() if name in told],
    )


def _identity(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    """Return what else the certificate says of the dataset."""
    told = ((name, value) for name, value in encode(certificate.dataset).items() if name not in _IN_HEAD)
    return tuple((name.capitalize(), ", ".join(value) if isinstance(value, list) else value) for name, value in told)


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader(__package__ or "", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=text,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {"table": table, "framed": framed, "MEANING": MEANING, "MISSING": _MISSING, "OUTSIDE": _OUTSIDE}
    return made
