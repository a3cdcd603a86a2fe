"""Page: a certificate as one page for the person who signs; it loads nothing and runs no script.

Steps and claims render their sentences, the method draws its picture.  A page depends on the certificate without its
report and signature, and on the published output: the same tools render the same text.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from markupsafe import Markup

from incrowd import __version__
from incrowd.core.certificate import COMPOSITION, LIMITS, Accounting, Certificate
from incrowd.core.claims.claim import Claim, Precondition, Status
from incrowd.core.codec import encode
from incrowd.core.steps.rows import Recode, RecodedColumn
from incrowd.core.steps.step import walk
from incrowd.core.words import short_down, short_up
from incrowd.drawing.glyphs import scenes
from incrowd.drawing.markup import Description, framed, table, text
from incrowd.drawing.picture import Picture
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.verifier.files import tables_of
from incrowd.verifier.judge import statement_of
from incrowd.workflows.bounds.odds import PRIORS, Odds
from incrowd.workflows.registry import picture_of
from incrowd.workflows.report.curve import loss_curve
from incrowd.workflows.report.label import Label, label_of
from incrowd.workflows.report.summary import ReportSummary, summary_of

if TYPE_CHECKING:
    from jinja2 import Environment


Item = TypeVar("Item", bound=Hashable)

MEANING = {
    Status.PROVED: ("✓ proved", "follows from how the program works"),
    Status.CHECKED: ("✓ checked", "was tested on this release"),
    Status.ASSUMED: ("○ assumed", "cannot be checked by software; the signer vouches for it"),
    Status.NOT_MET: ("✗ not met", "known to be false: the guarantee is weaker than it says"),
}
"""How it is known that a condition holds, as a sign and in words."""
_DIGITS = 6
GENERATOR = f"incrowd {__version__} with " + ", ".join(
    f"{name} {version(name)}" for name in ("jinja2", "markupsafe", "numpy", "scipy")
)
"""What writes a report, as its page says: where this is the same, the same certificate gives the same page."""
_MISSING = {"class": "a class of their own", "drop": "row is suppressed", None: "the empty set"}
_OUTSIDE = {
    "ends": "an open-ended label at the nearest bound",
    "bound": "counted as the nearest bound; a published bound stands for them, too",
    "other": "one class for all",
    "drop": "row is suppressed",
    None: "nothing is outside",
}
_IN_HEAD = frozenset({"name", "commitment", "period"})
_ATTACKERS = {
    "prosecutor": "knows that the person is in the published file and looks for the row; the worst row counts",
    "journalist": "does not know whether the person is in it and wants to show that anyone can be found",
    "marketer": "wants to match as many rows as possible; the average counts",
}
_THRESHOLDS = {
    "0.09": "classes of at least 11; European Medicines Agency, Policy 0070, for public release",
    "0.2": "classes of at least 5; a common custom",
    "0.33": "classes of at least 3; a custom for recipients under contract",
}
_TESTS = {
    "singling out": "Can one person's row be told from all others?",
    "linkability": "Can rows about one person be linked across tables?",
    "inference": "Can a person's value be deduced?",
}


@dataclass(frozen=True)
class Remark:
    """A sentence, and which claims it belongs to; a condition has a status too."""

    sentence: str
    claims: str
    status: Status | None = None


def gaps(claims: tuple[Claim, ...]) -> list[Remark]:
    """List what the claims do not protect."""
    stated = ((gap, place) for place, claim in enumerate(claims, 1) for gap in claim.not_protected)
    return [Remark(sentence(str(gap)), words) for gap, words in _once(stated, len(claims))]


def conditions(claims: tuple[Claim, ...]) -> list[Remark]:
    """List what the claims depend on: proved conditions first, assumptions last."""
    stated = ((precondition, place) for place, claim in enumerate(claims, 1) for precondition in claim.preconditions)
    remarks: list[tuple[Precondition, str]] = list(_once(stated, len(claims)))
    remarks.sort(key=lambda remark: list(Status).index(remark[0].status))
    return [Remark(sentence(condition.text), words, condition.status) for condition, words in remarks]


def assumptions(claims: tuple[Claim, ...]) -> list[str]:
    """List what the signer vouches for."""
    return [sentence(text) for text in dict.fromkeys(text for claim in claims for text in claim.assumed)]


def sentence(words: str) -> str:
    """Return words as a sentence.

    >>> sentence("what holds for a group")
    'What holds for a group.'
    """
    return f"{words[:1].upper()}{words[1:]}" + ("" if words.endswith((".", "!", "?")) else ".")


def _once(items: Iterable[tuple[Item, int]], of: int) -> Iterator[tuple[Item, str]]:
    """Yield each item once, in order, with the numbers of the claims that it belongs to."""
    places_of: dict[Item, list[int]] = {}
    for item, place in items:
        places_of.setdefault(item, []).append(place)
    for item, places in places_of.items():
        yield item, _numbers(places, of)


def _numbers(places: list[int], of: int) -> str:
    if len(places) == of:
        return "all claims"
    if len(places) > 2 and places[-1] - places[0] == len(places) - 1:
        return f"claims {places[0]} to {places[-1]}"
    return f"claim{'s' if len(places) > 1 else ''} {', '.join(map(str, places))}"


@dataclass(frozen=True)
class BarPart:
    """A part of a bar: what it stands for, where it starts and how wide it is, in percent."""

    kind: str
    start: float
    wide: float


@dataclass(frozen=True)
class BudgetBar:
    """The whole budget of ε or δ: what was spent, by this release and by all, and what is left."""

    sign: str
    spent: Decimal
    total: Decimal
    left: Decimal

    @property
    def title(self) -> str:
        """What the bar shows, for those who do not see it."""
        return (
            f"Budget of {self.sign}: this release spent {short_up(self.spent)}, all releases together "
            f"{short_up(self.total)}, {short_down(self.left)} remains"
        )

    @property
    def parts(self) -> tuple[BarPart, ...]:
        """What earlier releases spent, what this one did, and what is left."""
        amounts = (max(self.total - self.spent, Decimal(0)), min(self.spent, self.total))
        earlier, now = (100.0 * float(amount / (self.total + self.left)) for amount in amounts)
        parts = (
            BarPart("before", 0.0, earlier),
            BarPart("now", earlier, now),
            BarPart("left", earlier + now, 100.0 - earlier - now),
        )
        return tuple(part for part in parts if part.wide > 1e-9)


@dataclass(frozen=True)
class BudgetOverview:
    """The bars that can be drawn, and all amounts: spent is rounded up, left is rounded down."""

    bars: tuple[BudgetBar, ...]
    rows: tuple[tuple[str, str, str], ...]


def budget_of(accounting: Accounting) -> BudgetOverview:
    """Return what a release cost and what is left."""
    spent, total = Odds.of(accounting.spent), Odds.of(accounting.total)
    left = None if accounting.left is None else Odds.of(accounting.left)
    rest = left or Odds(Decimal(0), Decimal(0))
    bars = (
        BudgetBar("ε", spent.epsilon, total.epsilon, rest.epsilon),
        BudgetBar("δ", spent.delta, total.delta, rest.delta),
    )
    rows = [
        (name, short_up(odds.epsilon, _DIGITS), short_up(odds.delta, _DIGITS))
        for name, odds in (("Spent by this release", spent), ("Spent by all releases", total))
    ]
    if left is not None:
        rows.append(("Remaining", short_down(left.epsilon, _DIGITS), short_down(left.delta, _DIGITS)))
    return BudgetOverview(tuple(bar for bar in bars if bar.total.is_finite() and bar.total + bar.left > 0), tuple(rows))


@dataclass(frozen=True)
class Card:
    """A step, in words and as the table after it."""

    title: str
    sentence: str
    picture: Markup | None


@dataclass(frozen=True)
class AttackerLine:
    """An attacker who looks for a person: what they know, their success rate, and the limits it stays below."""

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
    attackers: list[AttackerLine]
    tests: list[tuple[str, str, str]]


@dataclass(frozen=True)
class ReportPage:
    """Everything that a page shows, in the order of its sections."""

    certificate: Certificate
    label: Label
    summary: ReportSummary
    comparison: Markup | None
    beliefs: tuple[tuple[str, str], ...]
    curve: Markup | None
    claims: tuple[tuple[int, Claim], ...]
    other_bounds: tuple[tuple[int, Claim], ...]
    gaps: tuple[Remark, ...]
    limits: tuple[str, ...]
    composition: str
    generator: str
    conditions: tuple[Remark, ...]
    cards: tuple[Card, ...]
    recoded: tuple[RecodedColumn, ...]
    levels: Mapping[str, int]
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
    label = label_of(certificate, describe(certificate))
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


def _page(certificate: Certificate, output: Any, comparison: Markup | None) -> ReportPage:
    picture, claims, steps = picture_of(certificate.method.name), certificate.claims, tuple(walk(certificate.steps))
    label = label_of(certificate, describe(certificate))
    figure = None if output is None else picture.draw(statement_of(certificate), output)
    return ReportPage(
        certificate=certificate,
        label=label,
        summary=summary_of(certificate, label, len(assumptions(claims)), output),
        comparison=comparison,
        beliefs=tuple((f"{100 * float(p):g} % (1 in {int(1 / p):,})", label.odds.belief(p)) for p in PRIORS)
        if label.odds.bounded
        else (),
        curve=loss_curve(certificate.guarantee, label.odds),
        claims=tuple(item for item in enumerate(claims, 1) if not item[1].restates),
        other_bounds=tuple(item for item in enumerate(claims, 1) if item[1].restates),
        gaps=tuple(gaps(claims)),
        limits=LIMITS,
        composition=COMPOSITION,
        generator=GENERATOR,
        conditions=tuple(conditions(claims)),
        cards=_cards(certificate),
        recoded=tuple(column for step in steps if isinstance(step, Recode) for column in step.columns),
        levels=_published_levels(certificate),
        budget=budget_of(certificate.accounting),
        evidence=_evidence(certificate, _sizes(certificate, picture), figure, _tests(certificate, output)),
        identity=_identity(certificate),
        assumptions=tuple(assumptions(claims)),
    )


def _published_levels(certificate: Certificate) -> dict[str, int]:
    """Return the level at which each column was published, where the output shows it."""
    levels = certificate.evidence.get("levels")
    pairs = levels.items() if isinstance(levels, dict) else ()
    return {str(name): level for name, level in pairs if isinstance(level, int)}


def describe(certificate: Certificate) -> Description:
    """Return what was published, in words."""
    return picture_of(certificate.method.name).description(statement_of(certificate))


def _sizes(certificate: Certificate, picture: Picture) -> list[tuple[str, int]]:
    """Return the whole numbers of the evidence under their labels."""
    evidence, labels = certificate.evidence, picture.evidence
    if labels is None:
        labels = {name: name.capitalize() for name in sorted(evidence)}
    return [(label, evidence[name]) for name, label in labels.items() if isinstance(evidence.get(name), int)]


def _cards(certificate: Certificate) -> tuple[Card, ...]:
    steps = tuple(walk(certificate.steps))
    texts = [("The table", "Rows as they were recorded. They stay with the data holder.")]
    texts += [(step.title, step.sentence) for step in steps]
    return tuple(Card(*text, scene) for text, scene in zip(texts, scenes(step.glyph for step in steps), strict=True))


def _tests(certificate: Certificate, output: Any) -> list[tuple[str, str, str]]:
    """Return the three tests of Opinion 05/2014, each with its question and what the output says to it."""
    if output is None:
        return []
    private = Decimal(certificate.accounting.spent.epsilon).is_finite()
    opinion = output.opinion(certificate.guarantee.unit, private=private)
    return [(name, question, opinion[name]) for name, question in _TESTS.items() if name in opinion]


def _evidence(
    certificate: Certificate,
    sizes: list[tuple[str, int]],
    picture: Markup | None,
    tests: list[tuple[str, str, str]],
) -> Evidence:
    numbers = certificate.evidence
    limits = {Decimal(limit): source for limit, source in _THRESHOLDS.items() if "prosecutor" in numbers}
    return Evidence(
        sizes,
        picture,
        [Markup("≤ {}<br><small>{}</small>").format(limit, source) for limit, source in limits.items()],
        [
            AttackerLine(
                name, knows, str(numbers[name]), tuple(Decimal(str(numbers[name])) <= limit for limit in limits)
            )
            for name, knows in _ATTACKERS.items()
            if name in numbers
        ],
        tests,
    )


def _identity(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    """Return what else the certificate says of the dataset."""
    facts = ((name, value) for name, value in encode(certificate.dataset).items() if name not in _IN_HEAD)
    return tuple((name.capitalize(), ", ".join(value) if isinstance(value, list) else value) for name, value in facts)


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from incrowd.drawing.templates import TemplateCache

    environment = Environment(
        loader=PackageLoader(__package__ or "", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=text,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.bytecode_cache = TemplateCache(__file__, environment)
    environment.globals |= {
        "table": table,
        "framed": framed,
        "MEANING": MEANING,
        "MISSING": _MISSING,
        "OUTSIDE": _OUTSIDE,
    }
    return environment
