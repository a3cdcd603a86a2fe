"""`incrowd local`: surveys of people who randomize before they send."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes, whole
from incrowd.cli.output import loss_text, print_json, print_table, print_text, shown_path

if TYPE_CHECKING:
    from incrowd.methods.local.estimates.answers import QuestionEstimates

local = typer.Typer(help="Collect from people who randomize before they send.", no_args_is_help=True)

SurveyPath = Annotated[Path, typer.Option("--survey", metavar="FILE", help="The survey file.")]


@dataclass(frozen=True)
class LocalPlanOptions:
    """What `incrowd local plan` can be told."""

    domain: Annotated[str, typer.Option(metavar="COUNT", help="How many values the answer can have.")]
    epsilon: Annotated[str, typer.Option(metavar="NUMBER", help="What one report may lose.")]
    people: Annotated[str, typer.Option(metavar="COUNT", help="How many people will probably answer.")]
    delta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Also say what shuffling all reports adds, at this delta.")
    ] = None
    json: Json = False


@dataclass(frozen=True)
class LocalOpenOptions:
    """What `incrowd local open` can be told."""

    survey: SurveyPath
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Copy certificate, weights and report there.")
    ] = None
    json: Json = False


@dataclass(frozen=True)
class LocalRandomizeOptions:
    """What `incrowd local randomize` can be told."""

    answers: Annotated[Path, typer.Argument(help="A table with a column for each question.")]
    survey: SurveyPath
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the reports go, one JSON object a line.")]
    memo: Annotated[
        Path | None, typer.Option("--memo", metavar="FILE", help="Who sent which report; a second run needs it.")
    ] = None
    person: Annotated[
        str | None, typer.Option("--person", metavar="COLUMN", help="The column that tells people apart, for the memo.")
    ] = None
    json: Json = False


@dataclass(frozen=True)
class LocalEstimateOptions:
    """What `incrowd local estimate` can be told."""

    reports: Annotated[Path, typer.Argument(help="The reports, one JSON object a line.")]
    survey: SurveyPath
    ranges: Annotated[
        list[str],
        typer.Option("--range", metavar="NAME=FIRST:LAST", help="A range of an ordered question; can be repeated."),
    ] = field(default_factory=list)
    confidence: Annotated[str, typer.Option(metavar="SHARE", help="How often each interval holds.")] = "0.95"
    json: Json = False


@local.command("plan")
@takes(LocalPlanOptions)
def plan(options: LocalPlanOptions) -> None:
    """Choose the best randomizer for a domain, an epsilon and a number of people, beside the optimum.

    Errors are those of all shares together: the expected sum of their squares.
    """
    from incrowd.workflows.local.planning import plan_locally

    found = plan_locally(
        whole(options.domain, "domain"), options.epsilon, whole(options.people, "people"), options.delta
    )
    if options.json:
        print_json(found.to_json())
        return
    lines = [
        (each.mechanism, f"{each.total_error:.4g}", f"{each.bits:,} bits") for each in (found.choice, *found.others)
    ]
    note = (
        f"The first is chosen. For people drawn at random from evenly spread values its error is "
        f"{100 * found.above_optimum:.1f} % above {found.optimum:.4g}, which no report of this epsilon can beat."
    )
    if found.shuffled is not None:
        note += (
            f" If all reports are shuffled and everyone is honest, the batch has an epsilon of "
            f"{loss_text(found.shuffled[0])} at delta {found.shuffled[1]:g}."
        )
    print_table(f"{found.domain:,} values, {found.people:,} people", lines, note, ("mechanism", "error", "report"))


@local.command("open")
@takes(LocalOpenOptions)
def open_(options: LocalOpenOptions) -> None:
    """Open a survey: charge what one report may lose, once, and certify how reports are made."""
    from incrowd.workflows.local.opening import open_survey, publish_survey
    from incrowd.workflows.local.survey_file import load_survey

    opened = open_survey(load_survey(options.survey))
    if options.out is not None:
        publish_survey(opened, options.out)
    folder = options.out or opened.folder
    told = {
        "survey": opened.file.survey.id,
        "certificate": opened.certificate.id,
        "folder": str(folder),
        "claims": [{"kind": claim.kind, "facts": list(claim.facts)} for claim in opened.certificate.claims],
    }
    if options.json:
        print_json(told)
        return
    rows = [(claim.kind, ", ".join(claim.facts)) for claim in opened.certificate.claims]
    print_table(f"{opened.file.survey.name} is open", rows, f"Certified in {shown_path(folder)}.")


@local.command("randomize")
@takes(LocalRandomizeOptions)
def randomize(options: LocalRandomizeOptions) -> None:
    """Randomize answers where they are held: one report for each person, and the same one again from a memo.

    The survey is opened first, if it was not yet.
    """
    from incrowd.workflows.local.opening import open_survey
    from incrowd.workflows.local.randomize import AnswersFile, randomize_answers
    from incrowd.workflows.local.survey_file import load_survey

    opened = open_survey(load_survey(options.survey))
    given = AnswersFile(options.answers, options.memo, options.person)
    done = randomize_answers(opened, given, options.out)
    if options.json:
        print_json({"reports": done.reports, "new": done.new, "out": str(options.out)})
        return
    print_text(f"{done.reports:,} reports, {done.new:,} of them new, are in {shown_path(options.out)}.")


@local.command("estimate")
@takes(LocalEstimateOptions)
def estimate(options: LocalEstimateOptions) -> None:
    """Estimate from reports what people answered, with intervals; nothing is charged.

    Estimates are unbiased, so a rare value can come out below zero. A projection is biased, and has no interval.
    """
    from incrowd.core.rounding import exact
    from incrowd.workflows.local.estimating import estimate_reports

    found = estimate_reports(options.survey, options.reports, options.ranges, exact(options.confidence, "confidence"))
    if options.json:
        print_json({"questions": [each.to_json() for each in found]})
        return
    for each in found:
        show_estimates(each)


def show_estimates(found: QuestionEstimates) -> None:
    """Print the estimates of a question as a table."""
    rows = [(each.value, f"{each.estimate:.4f}", f"{each.low:.4f} to {each.high:.4f}") for each in found.estimates]
    percent = float(100 * found.confidence)
    note = f"{percent:g} % intervals, about {found.about}; each holds by itself."
    print_table(f"{found.question}: {found.people:,} reports", rows, note, ("value", "estimate", "interval"))
