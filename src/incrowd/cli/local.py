"""`incrowd local`: surveys with local randomization."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes, whole
from incrowd.cli.output import loss_text, print_json, print_table, print_text, shown_path
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.methods.local.estimates import QuestionEstimates
    from incrowd.workflows.local.planning import SurveyPlan

local = typer.Typer(help="Surveys with local randomization.", no_args_is_help=True)

_USELESS = 0.4
SurveyPath = Annotated[Path, typer.Option("--survey", metavar="FILE", help="The survey file.")]


@dataclass(frozen=True)
class LocalPlanOptions:
    """The options of `incrowd local plan`."""

    people: Annotated[str, typer.Option(metavar="COUNT", help="Expected number of respondents.")]
    survey: Annotated[
        Path | None, typer.Option("--survey", metavar="FILE", help="The survey file, in place of domain and ε.")
    ] = None
    domain: Annotated[str | None, typer.Option(metavar="COUNT", help="Number of possible answers.")] = None
    epsilon: Annotated[str | None, typer.Option(metavar="NUMBER", help="ε of one report.")] = None
    delta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Also show the ε after shuffling, at this delta.")
    ] = None
    json: Json = False


@dataclass(frozen=True)
class LocalOpenOptions:
    """The options of `incrowd local open`."""

    survey: SurveyPath
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Copy certificate, weights and report there.")
    ] = None
    json: Json = False


@dataclass(frozen=True)
class LocalRandomizeOptions:
    """The options of `incrowd local randomize`."""

    answers: Annotated[Path, typer.Argument(help="A table with a column for each question.")]
    survey: SurveyPath
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the reports go, one JSON object a line.")]
    memo: Annotated[
        Path | None, typer.Option("--memo", metavar="FILE", help="Stores each person's report, for later runs.")
    ] = None
    person: Annotated[
        str | None, typer.Option("--person", metavar="COLUMN", help="Person ID column, for the memo.")
    ] = None
    json: Json = False


@dataclass(frozen=True)
class LocalEstimateOptions:
    """The options of `incrowd local estimate`."""

    survey: SurveyPath
    reports: Annotated[
        Path | None,
        typer.Argument(help="The reports, one JSON object a line; default: what `collect serve` has stored."),
    ] = None
    ranges: Annotated[
        list[str],
        typer.Option("--range", metavar="NAME=FIRST:LAST", help="A range of an ordered question; can be repeated."),
    ] = field(default_factory=list)
    crosses: Annotated[
        list[str],
        typer.Option("--cross", metavar="NAME:NAME", help="Two questions to cross; can be repeated."),
    ] = field(default_factory=list)
    confidence: Annotated[str, typer.Option(metavar="SHARE", help="Confidence of each interval.")] = "0.95"
    likelihood: Annotated[
        bool,
        typer.Option("--likelihood", help="Also show the shares of largest likelihood, for questions with categories."),
    ] = False
    json: Json = False


@local.command("plan")
@takes(LocalPlanOptions)
def plan(options: LocalPlanOptions) -> None:
    """Choose the best randomizer for a domain, an epsilon and a number of respondents, compared with the optimum.

    The error is the expected sum of squared errors of all shares.

    With a survey file, show how wide the confidence interval of each question will be. Nothing is opened or charged.
    """
    from incrowd.workflows.local.planning import plan_locally

    if options.survey is not None:
        _plan_survey(options)
        return
    if options.domain is None or options.epsilon is None:
        raise InvalidParameter("a plan needs a survey file (--survey), or --domain and --epsilon.")
    plan = plan_locally(
        whole(options.domain, "domain"), options.epsilon, whole(options.people, "people"), options.delta
    )
    if options.json:
        print_json(plan.to_json())
        return
    lines = [
        (mechanism.mechanism, f"{mechanism.total_error:.4g}", f"{mechanism.bits:,} bits")
        for mechanism in (plan.choice, *plan.others)
    ]
    note = (
        "The first is chosen. These errors are about the respondents themselves. About a population from which they "
        f"are drawn at random, with evenly spread answers, the error of the first is {plan.sampled_error:.4g}: "
        f"{100 * plan.above_optimum:.1f} % above {plan.optimum:.4g}, the minimum there at this epsilon."
    )
    if plan.shuffled is not None:
        note += (
            f" If all reports are shuffled and everyone is honest, the epsilon of the batch is "
            f"{loss_text(plan.shuffled[0])} at delta {plan.shuffled[1]:g}."
        )
    print_table(f"{plan.domain:,} values, {plan.people:,} people", lines, note, ("mechanism", "error", "report"))


def _plan_survey(options: LocalPlanOptions) -> None:
    from incrowd.workflows.local.planning import plan_survey
    from incrowd.workflows.local.survey_file import load_survey

    if options.survey is None or (options.domain, options.epsilon, options.delta) != (None, None, None):
        raise InvalidParameter(
            "a survey file has its own domains, epsilon and delta: give --survey and --people alone."
        )
    survey = load_survey(options.survey).survey
    plan = plan_survey(survey, whole(options.people, "people"))
    if options.json:
        print_json(plan.to_json())
        return
    rows = [
        (item.question, item.mechanism, f"{item.reports:,}", f"± {item.half_width:.2g}", item.about)
        for item in plan.questions
    ]
    head = ("question", "mechanism", "reports", "interval", "of a")
    print_table(f"{survey.name}: {plan.people:,} people", rows, _plan_note(plan), head)


def _plan_note(plan: SurveyPlan) -> str:
    cost = loss_text(float(plan.epsilon))
    note = f"A report costs its person epsilon {cost}. Intervals are at 95 % confidence, each by itself."
    if any(item.about in ("share", "range") and item.half_width > _USELESS for item in plan.questions):
        note += " An interval of ± 0.5 tells nothing: invite more people, ask fewer questions, or raise epsilon."
    if any(item.about == "word" for item in plan.questions):
        note += (
            " The interval of a word is the share from which on it is almost surely found (five standard deviations)."
        )
    if plan.batches is not None and plan.shuffled is not None:
        note += (
            f" {plan.batches:,} batches will be full, and only their reports are estimated from; to those who see a "
            f"batch alone a report costs epsilon {loss_text(plan.shuffled[0])} at delta {plan.shuffled[1]:g}."
        )
    return note


@local.command("open")
@takes(LocalOpenOptions)
def open_(options: LocalOpenOptions) -> None:
    """Open a survey: charge the ε of one report, once, and certify the randomizer."""
    from incrowd.workflows.local.opening import open_survey, publish_survey
    from incrowd.workflows.local.survey_file import load_survey

    opened = open_survey(load_survey(options.survey))
    if options.out is not None:
        publish_survey(opened, options.out)
    folder = options.out or opened.folder
    summary = {
        "survey": opened.file.survey.id,
        "certificate": opened.certificate.id,
        "folder": str(folder),
        "claims": [{"kind": claim.kind, "facts": list(claim.facts)} for claim in opened.certificate.claims],
    }
    if options.json:
        print_json(summary)
        return
    rows = [(claim.kind, ", ".join(claim.facts)) for claim in opened.certificate.claims]
    print_table(f"{opened.file.survey.name} is open", rows, f"Certified in {shown_path(folder)}.")


@local.command("randomize")
@takes(LocalRandomizeOptions)
def randomize(options: LocalRandomizeOptions) -> None:
    """Randomize answers locally: one report per person. With a memo, a person keeps the same report.

    A survey that is not open is opened first.
    """
    from incrowd.workflows.local.opening import open_survey
    from incrowd.workflows.local.randomize import AnswersFile, randomize_answers
    from incrowd.workflows.local.survey_file import load_survey

    opened = open_survey(load_survey(options.survey))
    answers = AnswersFile(options.answers, options.memo, options.person)
    done = randomize_answers(opened, answers, options.out)
    if options.json:
        print_json({"reports": done.reports, "new": done.new, "out": str(options.out)})
        return
    print_text(f"{done.reports:,} reports, {done.new:,} of them new, are in {shown_path(options.out)}.")


@local.command("estimate")
@takes(LocalEstimateOptions)
def estimate(options: LocalEstimateOptions) -> None:
    """Estimate the shares of answers from reports, with confidence intervals. Nothing is charged.

    Without a file, the reports are those that the collector of the survey has stored, also while it runs. Those of a
    shuffled survey are whole batches. Questions can be crossed where a report holds all answers (`answers: all`).

    Estimates are unbiased, so a rare value can have a negative estimate. Shares of largest likelihood are not below
    zero, add up to one, and are nearer to the truth on average where there are many values; they are biased. The
    interval of a value does not depend on the estimate.
    """
    from incrowd.core.rounding import exact
    from incrowd.workflows.collect.collector import Collector
    from incrowd.workflows.local.estimating import EstimateQuery, estimate_reports
    from incrowd.workflows.local.opening import opened_survey
    from incrowd.workflows.local.randomize import read_reports
    from incrowd.workflows.local.survey_file import load_survey

    file = load_survey(options.survey)
    sent = Collector.beside(opened_survey(file)).reports() if options.reports is None else read_reports(options.reports)
    query = EstimateQuery(options.ranges, options.crosses, exact(options.confidence, "confidence"), options.likelihood)
    questions = estimate_reports(file.survey, sent, query)
    if options.json:
        print_json({"questions": [question.to_json() for question in questions]})
        return
    for question in questions:
        show_estimates(question)


def show_estimates(question: QuestionEstimates) -> None:
    """Print the estimates of a question as a table."""
    likely = any(value.likeliest is not None for value in question.estimates)
    rows = [
        (
            value.value,
            f"{value.estimate:.4f}",
            f"{value.low:.4f} to {value.high:.4f}",
            *([f"{value.likeliest:.4f}"] if likely else []),
        )
        for value in question.estimates
    ]
    percent = float(100 * question.confidence)
    note = f"{percent:g} % confidence intervals (pointwise), about {question.about}."
    head = ("value", "estimate", "interval", *(["likeliest"] if likely else []))
    print_table(f"{question.title}: {counted(question.people, 'report')}", rows, note, head)
