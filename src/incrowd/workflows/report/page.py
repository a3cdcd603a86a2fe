"""Page: the label, the sections and the style, in one self-contained file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from incrowd.core.certificate import Certificate
from incrowd.core.counts import Counts
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.methods.outcomes.microdata import Microdata
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.methods.outcomes.points import Points
from incrowd.workflows.report.budget import budget_section
from incrowd.workflows.report.chain import chain_section, sampling_rate
from incrowd.workflows.report.charts import loss_curve
from incrowd.workflows.report.claims import claims_section, not_protected_section, signing_section
from incrowd.workflows.report.facts import content_section, evidence_section, verify_section
from incrowd.workflows.report.label import Label, label_of
from incrowd.workflows.report.markup import Html, bullets, section, table, tag
from incrowd.workflows.report.odds import PRIORS
from incrowd.workflows.report.pictures import picture

_CONTENTS = {
    "odds": "Odds",
    "not-protected": "Not protected",
    "claims": "Claims",
    "chain": "How it was made",
    "budget": "Budget",
    "evidence": "Evidence",
    "content": "Content",
    "verify": "Check it",
    "signing": "Sign",
}
# Nothing is loaded and no script runs, whatever a certificate holds: the page forbids it to the browser.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_INTERNAL = "INTERNAL: made from the original rows. Do not publish."


def public_report(certificate: Certificate, released: Outcome | None = None) -> str:
    """Return the public report as HTML; `released`, what was published, adds its picture.

    It says nothing that the certificate and the published table do not say.
    """
    return _page(certificate, released, Html(""), banner="")


def internal_report(certificate: Certificate, released: Outcome, original: Counts | None = None) -> str:
    """Return the report that stays with the data holder: marked on every page, with before and after.

    `original` are the counts of all original rows, recoded to the released levels or put into the same cells.
    """
    inside = Html("") if original is None else _comparison(certificate, released, original)
    return _page(certificate, released, inside, banner=_INTERNAL)


def _comparison(certificate: Certificate, released: Outcome, original: Counts) -> Html:
    from incrowd.workflows.report.comparison import comparison_section
    from incrowd.workflows.report.points_map import maps_section

    match released:
        case Microdata():
            return comparison_section(released.counts, original, sampling_rate(certificate))
        case Points():
            return maps_section(released, original)
    raise InvalidParameter("there is no internal report about releases of this form: use assess, or the public one.")


def _page(certificate: Certificate, released: Outcome | None, inside: Html, *, banner: str) -> str:
    try:
        return _document(certificate, released, inside, banner)
    except IncrowdError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidParameter("this certificate holds fields that cannot be shown: have it verified.") from error


def _document(certificate: Certificate, released: Outcome | None, inside: Html, banner: str) -> str:
    label = label_of(certificate)
    name = str(certificate.dataset.get("name", "release"))
    title = f"{'INTERNAL. ' if banner else ''}Release report: {name}"
    contents = ({"comparison": "Before and after"} if inside else {}) | _CONTENTS
    links = bullets((tag("a", words, href=f"#{place}") for place, words in contents.items()), class_="contents")
    body = tag(
        "main",
        _header(certificate),
        _label(label),
        tag("nav", links, aria_label="Contents"),
        inside,
        _odds(label, certificate),
        not_protected_section(certificate),
        claims_section(certificate),
        chain_section(certificate),
        budget_section(certificate),
        evidence_section(certificate, None if released is None else picture(certificate, released)),
        content_section(certificate),
        verify_section(certificate),
        signing_section(certificate),
        id="main",
    )
    marked = tag("div", tag("span", banner), class_="banner", role="note") if banner else ""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", _style()),
    )
    skip = tag("a", "Skip to the report", href="#main", class_="skip")
    page = tag("body", skip, marked, body, _footer(certificate), class_="internal" if banner else None)
    return f"<!doctype html>\n{tag('html', head, page, lang='en')}\n"


@cache
def _style() -> Html:
    return Html(files("incrowd.workflows.report").joinpath("style.css").read_text(encoding="utf-8"))


def _header(certificate: Certificate) -> Html:
    period = certificate.dataset.get("period")
    about = [
        f"Released {certificate.created[:10]}",
        *([f"period {period}"] if period else []),
        f"made by {certificate.tool}",
    ]
    return tag(
        "header",
        tag("p", "Release report", class_="kicker"),
        tag("h1", certificate.dataset.get("name", "release")),
        tag("p", " · ".join(about), class_="about"),
    )


def _label(label: Label) -> Html:
    alarms = [
        tag("div", tag("strong", f"⚠ {alarm.title}"), tag("p", alarm.text), class_="alarm", role="alert")
        for alarm in label.alarms
    ]
    numbers = label.odds.numbers if label.odds.bounded else "no ε"
    answers = [
        tag("div", tag("dt", answer.question), tag("dd", tag("b", answer.short), tag("p", answer.full)))
        for answer in label.answers
    ]
    return tag(
        "section",
        *alarms,
        tag("div", tag("h2", "Who could learn what", id="label"), tag("p", numbers, class_="numbers"), class_="top"),
        _guess(label) if label.odds.bounded else "",
        tag("dl", *answers, class_="answers"),
        class_="label unbounded" if label.alarms else "label",
        aria_labelledby="label",
    )


def _guess(label: Label) -> Html:
    """Return the attacker's chance as bars: guessing blindly, with this release, with all releases."""
    bars = [("Guessing blindly", "50 %"), ("With this release, at most", label.odds.guess)]
    if label.total.bounded and label.total.epsilon > label.odds.epsilon:
        bars.append(("With all releases so far, at most", label.total.guess))
    rows = [
        tag(
            "div",
            tag("span", name),
            tag(
                "svg",
                tag("rect", width="100%", height=16, class_="rest"),
                tag("rect", width=share.replace(" ", ""), height=16, class_="blind" if place == 0 else "now"),
                tag("line", x1="50%", x2="50%", y1=0, y2=16, class_="half"),
                height=16,
                aria_hidden="true",
            ),
            tag("b", share),
        )
        for place, (name, share) in enumerate(bars)
    ]
    said = tag("p", "How often a guess whether you are in the data is right", class_="bars-title")
    return tag("div", said, *rows, class_="bars")


def _odds(label: Label, certificate: Certificate) -> Html:
    odds = label.odds
    title = "Odds with and without you"
    if not odds.bounded:
        told = "There is no ε, so nothing bounds how far this release can move anyone's belief about you."
        return section("odds", title, tag("p", tag("strong", told, class_="bad")))
    rows = [[f"{100 * float(prior):g} % (1 in {int(1 / prior):,})", odds.belief(prior)] for prior in PRIORS]
    drawing = loss_curve(certificate.guarantee, odds)
    return section(
        "odds",
        title,
        tag(
            "p",
            "At worst this release acts as if it did one of two things. With a chance of "
            f"δ, {odds.failure}, it gives the truth about you away. Otherwise it moves the odds of what anyone "
            f"believes about you, by a factor of e^ε, {odds.times} at most:",
        ),
        table("What someone may come to believe", ["Before the release, a belief of", "becomes at most"], rows),
        tag(
            "p",
            tag(
                "small",
                "Source: Kairouz, Oh & Viswanath 2015. A guess at even odds is right with probability at most "
                "(e^ε + δ)/(1 + e^ε). A belief π becomes at most πe^ε/(1 − π + πe^ε). Both hold for every attacker, "
                "whatever else they know. They say nothing about what holds for you without your data: if people like "
                "you are described by the data of others, that is learned with or without you.",
            ),
        ),
        drawing or "",
    )


def _footer(certificate: Certificate) -> Html:
    said = (
        "This page shows what the certificate says; the certificate decides. It is evidence for a decision, not a "
        "verdict of compliance. It loads nothing from a network and runs no script."
    )
    return tag("footer", tag("p", said), tag("p", "Certificate ", tag("code", certificate.id)))
