"""Page: the report of a data subject in plain words, as the server shows it and as the data holder prints it."""

from __future__ import annotations

from html import escape

from incrowd.governance.consent.phrases import decimal, known_language, phrase
from incrowd.governance.consent.record import page
from incrowd.workflows.consent.subject import EligibleRelease, SubjectReport

_DAY = 10


def subject_page(report: SubjectReport, person: str, language: str = "en") -> str:
    """Return the report of a person as a page that loads nothing, to print and to pass on."""
    own = known_language(language)
    intro = phrase(own, "for", person=person, day=report.as_of[:_DAY])
    return page(own, "title", f"<p>{escape(intro)}</p>{report_body(own, report, 'how')}")


def report_body(language: str, report: SubjectReport, how: str) -> str:
    """Return what a person reads: whether they consent, until when, which releases there were, and what they tell."""
    lines = [phrase(language, "yes" if report.consents else "no", purpose=report.purpose)]
    lines += [phrase(language, "until_day", day=report.until[:_DAY])] if report.until else []
    releases = "".join(_release(language, release) for release in report.releases)
    listed = releases or f"<p>{escape(phrase(language, 'so_far'))}</p>"
    closing = (report.sentence(language), phrase(language, "basis"), phrase(language, how))
    return (
        f"{_paragraphs(lines)}<h2>{escape(phrase(language, 'releases'))}</h2>{listed}<section>{_paragraphs(closing)}"
        "</section>"
    )


def _release(language: str, release: EligibleRelease) -> str:
    epsilon = decimal(language, release.short_epsilon)
    loss = phrase(language, "no_bound") if release.unbounded else phrase(language, "bounded", epsilon=epsilon)
    facts = {"on": release.at[:_DAY], "name": " ".join(filter(None, (release.dataset, release.period))), "loss": loss}
    rows = "".join(f"<dt>{escape(phrase(language, name))}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    return f"<section><dl>{rows}</dl></section>"


def _paragraphs(texts: list[str] | tuple[str, ...]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)
