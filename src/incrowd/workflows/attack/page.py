"""Page: the findings of attacks with pictures, as one page that loads nothing; internal."""

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
    Risk.SINGLING_OUT: "Can one person's row be distinguished from all others?",
    Risk.LINKABILITY: "Can other data be linked to a person's row?",
    Risk.INFERENCE: "Can an unknown value of a person be inferred?",
}
_PRIVATE = 0o600
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(lab: AttackReport, title: str) -> str:
    """Return the page: for each of the three risks the attacks as bars with their controls, and the numbers."""
    sections = findings(lab)
    skipped = [tag("li", f"{name}: {why}") for name, why in lab.skipped.items()]
    left_out = tag("section", tag("h2", "Attacks that did not apply"), tag("ul", *skipped)) if skipped else Markup()
    about = (
        f"Confidence intervals are simultaneous, with confidence {lab.confidence:g}. A leak is an attack that succeeds "
        "more often on people in the data than on the control group. An attack that fails proves nothing."
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
    """Write the page so that only its owner can read it: staged, then renamed."""
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
    runs = [run for run in lab.runs if run.finding.risk is risk]
    title = tag("h2", str(risk).capitalize())
    if not runs:
        return tag("section", title, tag("p", f"{_QUESTIONS[risk]} No attack of this kind was run."))
    verdicts = [tag("li", " ".join([f"{_named(run)}: {run.finding.sentence}", *run.finding.notes])) for run in runs]
    return tag("section", title, tag("p", _QUESTIONS[risk]), _bars(runs), tag("ul", *verdicts), *map(_story, runs))


def _bars(runs: list[AttackRun]) -> Markup:
    marks: list[Markup] = []
    top = 0
    for run in runs:
        marks.append(tag("text", _named(run), x="0", y=top + 14, class_="strong"))
        top += _LINE
        for name, rate in _rates(run.finding):
            marks += _bar(name, rate, top)
            top += _LINE
        top += 6
    title = "Success rate of each attack, with baseline, control group and confidence intervals"
    picture = tag("svg", *marks, height=top + 4, class_="chart", role="img", aria_label=title)
    rows = [
        [
            f"{_named(run)}, {name}",
            f"{rate.hits:,} of {rate.of:,}",
            *(f"{100 * x:.2f} %" for x in (rate.estimate, rate.low, rate.high)),
        ]
        for run in runs
        for name, rate in _rates(run.finding)
    ]
    numbers = table("Rates and their confidence intervals", ["Attack", "Right", "Rate", "At least", "At most"], rows)
    return figure(picture, f"{title}. A thin line is the confidence interval.", numbers)


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


def _story(run: AttackRun) -> Markup:
    if not run.finding.story:
        return Markup()
    steps = [tag("li", line) for line in run.finding.story]
    return tag("details", tag("summary", f"One victim of {run.finding.attack}"), tag("ol", *steps))


def _named(run: AttackRun) -> str:
    return f"{run.finding.attack} ({run.attacker}; knows {run.finding.knows})"
