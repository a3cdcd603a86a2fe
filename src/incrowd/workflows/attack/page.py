"""Page: what the attack lab found, with pictures, as one page that loads nothing; internal."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.drawing.markup import figure, joined, table, tag
from incrowd.engines.writers.sinks import staging_folder
from incrowd.errors import OutputUnavailable
from incrowd.workflows.attack.attack import INTERNAL, AttackReport, AttackRun

_LINE, _NAME, _WIDE = 20, 30.0, 58.0
_QUESTIONS = {
    Risk.SINGLING_OUT: "Can one person's row be told from all others?",
    Risk.LINKABILITY: "Can what is known elsewhere be linked to a person's row?",
    Risk.INFERENCE: "Can something unknown about a person be concluded?",
}
_PRIVATE = 0o600
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(lab: AttackReport, title: str) -> str:
    """Return the page: for each of the three risks the attacks as bars beside their controls, and the numbers."""
    sections = findings(lab)
    skipped = [tag("li", f"{name}: {why}") for name, why in lab.skipped.items()]
    left_out = tag("section", tag("h2", "What was not tried"), tag("ul", *skipped)) if skipped else Markup()
    about = (
        f"Intervals hold for all attacks together with confidence {lab.confidence:g}. A leak is an attack that is "
        "right about people in the data more often than about people who are not. What finds nothing proves nothing."
    )
    head = tag("header", tag("p", "Attack report", class_="kicker"), tag("h1", title), tag("p", about, class_="about"))
    banner = tag("div", tag("span", f"INTERNAL: {INTERNAL}."), class_="banner", role="note")
    main = tag("main", head, *sections, left_out, id="main")
    style = files("incrowd.workflows.report").joinpath("style.css").read_text(encoding="utf-8")
    inside = joined(
        [
            Markup('<meta charset="utf-8">'),
            Markup('<meta http-equiv="Content-Security-Policy" content="{}">').format(_POLICY),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup('<meta name="color-scheme" content="light dark">'),
            tag("title", f"INTERNAL. Attack report: {title}"),
            tag("style", Markup(style)),  # noqa: S704 - a file of the package
        ]
    )
    body = tag("body", banner, main, class_="internal")
    return f"<!doctype html>\n{tag('html', tag('head', inside), body, lang='en')}\n"


def findings(lab: AttackReport) -> list[Markup]:
    """Return a section for each of the three risks."""
    return [_section(lab, risk) for risk in Risk]


def write_page(lab: AttackReport, target: Path, title: str) -> None:
    """Write the page where only its owner can read it: beside, then renamed."""
    try:
        with staging_folder(target) as folder:
            written = folder / target.name
            written.write_text(page(lab, title), encoding="utf-8")
            written.chmod(_PRIVATE)
            written.replace(target)
    except OSError as error:
        why = error.strerror or "the operating system refused"
        raise OutputUnavailable(f"{target} could not be written: {why}. Nothing appeared there.") from None


def _section(lab: AttackReport, risk: Risk) -> Markup:
    tried = [each for each in lab.tried if each.finding.risk is risk]
    title = tag("h2", str(risk).capitalize())
    if not tried:
        return tag("section", title, tag("p", f"{_QUESTIONS[risk]} No attack of this kind was run."))
    verdicts = [
        tag("li", " ".join([f"{_named(each)}: {each.finding.sentence}", *each.finding.notes])) for each in tried
    ]
    return tag("section", title, tag("p", _QUESTIONS[risk]), _bars(tried), tag("ul", *verdicts), *map(_story, tried))


def _bars(tried: list[AttackRun]) -> Markup:
    drawn: list[Markup] = []
    top = 0
    for each in tried:
        drawn.append(tag("text", _named(each), x="0", y=top + 14, class_="strong"))
        top += _LINE
        for name, rate in _rates(each.finding):
            drawn += _bar(name, rate, top)
            top += _LINE
        top += 6
    title = "Success of each attack beside its blind guess and outsiders, with intervals"
    picture = tag("svg", *drawn, height=top + 4, class_="chart", role="img", aria_label=title)
    rows = [
        [
            f"{_named(each)}, {name}",
            f"{rate.hits:,} of {rate.of:,}",
            *(f"{100 * x:.2f} %" for x in (rate.estimate, rate.low, rate.high)),
        ]
        for each in tried
        for name, rate in _rates(each.finding)
    ]
    numbers = table("Rates and their intervals", ["Attack", "Right", "Rate", "At least", "At most"], rows)
    return figure(picture, f"{title}. A thin line is the interval.", numbers)


def _rates(finding: Finding) -> list[tuple[str, Rate]]:
    rates = [("success", finding.success), ("baseline", finding.baseline)]
    return rates if finding.control is None else [*rates, ("control group", finding.control)]


def _bar(name: str, rate: Rate, top: int) -> list[Markup]:
    at = [_NAME + _WIDE * share for share in (0.0, rate.estimate, rate.low, rate.high)]
    middle = top + _LINE / 2
    line = {"y1": middle, "y2": middle, "stroke": "currentColor"}
    return [
        tag("text", name, x=f"{_NAME - 1}%", y=top + 14, class_="end"),
        tag(
            "rect",
            x=f"{at[0]:.2f}%",
            y=top + 3,
            width=f"{at[1] - at[0]:.2f}%",
            height=_LINE - 6,
            class_="bar" if name == "success" else "bar noisy",
        ),
        tag("line", x1=f"{at[2]:.2f}%", x2=f"{at[3]:.2f}%", **line),
        tag("text", f"{100 * rate.estimate:.1f} %", x=f"{at[3] + 0.8:.2f}%", y=top + 14, class_="faint"),
    ]


def _story(tried: AttackRun) -> Markup:
    if not tried.finding.story:
        return Markup()
    steps = [tag("li", line) for line in tried.finding.story]
    return tag("details", tag("summary", f"One victim of {tried.finding.attack}"), tag("ol", *steps))


def _named(tried: AttackRun) -> str:
    return f"{tried.finding.attack} ({tried.attacker}; knows {tried.finding.knows})"
