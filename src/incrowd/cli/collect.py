"""`incrowd collect`: collect the reports of a survey over HTTP."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes, whole
from incrowd.cli.output import print_json, print_table, print_text, shown_path
from incrowd.errors import InvalidParameter, PackageMissing

if TYPE_CHECKING:
    from incrowd.workflows.local.survey_file import SurveyFile

collect = typer.Typer(help="Collect locally randomized reports of a survey.", no_args_is_help=True)

SurveyPath = Annotated[Path, typer.Option("--survey", metavar="FILE", help="The survey file.")]


@dataclass(frozen=True)
class CollectServeOptions:
    """The options of `incrowd collect serve`."""

    survey: SurveyPath
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on; default: this machine only.")] = (
        "127.0.0.1"
    )
    port: Annotated[str, typer.Option(metavar="NUMBER", help="The port to listen at.")] = "8000"
    tls_certificate: Annotated[
        str | None, typer.Option(metavar="FILE", help="Serve HTTPS with this certificate chain (PEM).")
    ] = None
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="The certificate's key.")] = None
    json: Json = False


@dataclass(frozen=True)
class CollectTokensOptions:
    """The options of `incrowd collect tokens`."""

    survey: SurveyPath
    count: Annotated[str, typer.Option(metavar="COUNT", help="Number of tokens.")] = "1"
    round: Annotated[
        str | None, typer.Option("--round", metavar="NUMBER", help="The round of a memoized survey that they are for.")
    ] = None
    people: Annotated[
        Path | None,
        typer.Option(
            "--for", metavar="FILE", help="Only for people in this file (one id a line) who consent to the purpose."
        ),
    ] = None
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a sheet of links and QR codes to print.")
    ] = None
    address: Annotated[str, typer.Option(metavar="URL", help="With --html: where respondents find the page.")] = (
        "http://127.0.0.1:8000"
    )
    json: Json = False


@dataclass(frozen=True)
class CollectExportOptions:
    """The options of `incrowd collect export`."""

    survey: SurveyPath
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the reports go, one JSON object a line.")]
    json: Json = False


@collect.command("serve")
@takes(CollectServeOptions)
def serve(options: CollectServeOptions) -> None:
    """Serve the page of a survey and collect its reports until stopped. A survey that is not open is opened first.

    Answers are randomized in the respondent's browser. Reports of a shuffled survey wait in memory until their batch is
    full. Reports of an incomplete batch are lost when the server stops.
    """
    from importlib.util import find_spec

    if not all(find_spec(package) for package in ("fastapi", "uvicorn", "pythonjsonlogger")):
        raise PackageMissing("a server needs more packages: pip install 'incrowd[web]'.")
    if (options.tls_certificate is None) != (options.tls_key is None):
        raise InvalidParameter("HTTPS needs both --tls-certificate and --tls-key.")
    _serve(options)


def _serve(options: CollectServeOptions) -> None:
    import uvicorn

    from incrowd.web.collect.app import SIZE, collector_app
    from incrowd.web.logs import logging_config
    from incrowd.web.settings import Settings
    from incrowd.workflows.collect.collector import Collector
    from incrowd.workflows.local.opening import open_survey
    from incrowd.workflows.local.survey_file import load_survey

    opened = open_survey(load_survey(options.survey))
    https = options.tls_certificate is not None
    application = collector_app(Collector.beside(opened), Settings(size=SIZE, https=https))
    address = f"{'https' if https else 'http'}://{options.host}:{options.port}"
    summary = {"address": address, "survey": opened.file.survey.id, "certificate": opened.certificate.id}
    if options.json:
        print_json(summary)
    else:
        print_table("Collecting", list(summary.items()), "Stop with Ctrl-C.")
    sys.stdout.flush()
    uvicorn.run(
        application,
        host=options.host,
        port=whole(options.port, "port"),
        ssl_certfile=options.tls_certificate,
        ssl_keyfile=options.tls_key,
        access_log=False,
        server_header=False,
        ws="none",
        log_config=logging_config(),
    )


@collect.command("tokens")
@takes(CollectTokensOptions)
def tokens(options: CollectTokensOptions) -> None:
    """Make tokens, one a line. Each token allows one report. They are not stored.

    For a survey with a purpose, tokens go to people who consent to it now: each line is an id and a token. For a survey
    with rounds, each line begins with the round in which its token counts. Where each person answers in one round, it
    is drawn at random, and a person gets one token for all rounds; of a memoized survey, one in each round.
    """
    from incrowd.workflows.collect.collector import Collector, turns_for
    from incrowd.workflows.local.invitations import invited_people, require_no_purpose
    from incrowd.workflows.local.opening import open_survey
    from incrowd.workflows.local.randomize import require_new
    from incrowd.workflows.local.survey_file import load_survey

    if options.html is not None:
        require_new(options.html)
    number = whole(options.count, "count")
    if not 1 <= number <= 10_000_000:
        raise InvalidParameter("--count is from 1 to 10,000,000 tokens.")
    file = load_survey(options.survey)
    if options.people is None:
        require_no_purpose(file)
    invited = None if options.people is None else invited_people(file, options.people)
    turns = turns_for(
        file.survey,
        number if invited is None else len(invited),
        None if options.round is None else whole(options.round, "round"),
    )
    maker = Collector.beside(open_survey(file)).tokens
    made = [maker.issue(turn) for turn in turns]
    names = [None] * number if invited is None else invited
    if options.html is not None:
        _write_sheet(file, dict(zip(made, names, strict=True)), options)
        return
    if options.json:
        _print_tokens(made, names, turns)
        return
    for token, name, turn in zip(made, names, turns, strict=True):
        print(*(str(part) for part in (turn, name, token) if part is not None), sep="\t")


def _print_tokens(made: list[str], names: Sequence[str | None], turns: list[int | None]) -> None:
    people = [name for name in names if name is not None]
    tokens = dict(zip(people, made, strict=True)) if people else made
    rounds = [turn for turn in turns if turn is not None]
    print_json({"tokens": tokens, **({"rounds": rounds} if rounds else {})})


def _write_sheet(file: SurveyFile, people: dict[str, str | None], options: CollectTokensOptions) -> None:
    """Write a sheet that its owner alone can read, since a link is all that it takes to answer."""
    from incrowd.workflows.collect.sheet import sheet
    from incrowd.workflows.local.randomize import write_lines

    if options.html is None:
        return
    names = {token: person for token, person in people.items() if person is not None}
    write_lines(options.html, iter([sheet(file.survey, options.address, people, names)]))
    if options.json:
        print_json({"links": len(people), "out": str(options.html)})
        return
    print_text(f"{len(people):,} links are in {shown_path(options.html)}: print it, and delete it afterwards.")


@collect.command("export")
@takes(CollectExportOptions)
def export(options: CollectExportOptions) -> None:
    """Write the collected reports to a file, in a random order, without tokens and times.

    Reports of a shuffled survey are whole batches: those that wait in memory are not among them.
    """
    from incrowd.methods.local.survey.definition import report_text
    from incrowd.workflows.collect.collector import Collector
    from incrowd.workflows.local.opening import opened_survey
    from incrowd.workflows.local.randomize import require_new, write_lines
    from incrowd.workflows.local.survey_file import load_survey

    require_new(options.out)
    reports = Collector.beside(opened_survey(load_survey(options.survey))).shuffled()
    write_lines(options.out, map(report_text, reports))
    if options.json:
        print_json({"reports": len(reports), "out": str(options.out)})
        return
    print_text(f"{len(reports):,} reports are in {shown_path(options.out)}.")
