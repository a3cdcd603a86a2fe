"""`incrowd collect`: take the reports of a survey over HTTP."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import Json, takes, whole
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter, PackageMissing

collect = typer.Typer(help="Take reports of people who randomize before they send.", no_args_is_help=True)

SurveyPath = Annotated[Path, typer.Option("--survey", metavar="FILE", help="The survey file.")]


@dataclass(frozen=True)
class CollectServeOptions:
    """What `incrowd collect serve` can be told."""

    survey: SurveyPath
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen; this machine alone by default.")] = (
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
    """What `incrowd collect tokens` can be told."""

    survey: SurveyPath
    count: Annotated[str, typer.Option(metavar="COUNT", help="How many tokens to make.")] = "1"
    people: Annotated[
        Path | None,
        typer.Option(
            "--for", metavar="FILE", help="For people who consent to the purpose, of those named an id a line."
        ),
    ] = None
    json: Json = False


@collect.command("serve")
@takes(CollectServeOptions)
def serve(options: CollectServeOptions) -> None:
    """Serve the page of a survey and take its reports until stopped; the survey is opened first, if it was not yet.

    Answers are randomized in the visitor's browser. Reports of a shuffled survey wait in memory until their batch is
    full: those of a batch that is not full are lost when the server stops.
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
    from incrowd.web.logs import LOGGING
    from incrowd.web.settings import Settings
    from incrowd.workflows.collect.collector import Collector
    from incrowd.workflows.local.opening import open_survey
    from incrowd.workflows.local.survey_file import load_survey

    opened = open_survey(load_survey(options.survey))
    https = options.tls_certificate is not None
    application = collector_app(Collector.beside(opened), Settings(size=SIZE, https=https))
    address = f"{'https' if https else 'http'}://{options.host}:{options.port}"
    told = {"address": address, "survey": opened.file.survey.id, "certificate": opened.certificate.id}
    if options.json:
        print_json(told)
    else:
        print_table("Collecting", list(told.items()), "Stop with Ctrl-C.")
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
        log_config=LOGGING,
    )


@collect.command("tokens")
@takes(CollectTokensOptions)
def tokens(options: CollectTokensOptions) -> None:
    """Make tokens, one a line: whoever has one can send one report. They are not kept.

    A survey with a purpose has tokens for people who consent to it when they are made: each line is an id and a token.
    """
    from incrowd.workflows.collect.collector import Collector
    from incrowd.workflows.local.invitations import invited_people, require_no_purpose
    from incrowd.workflows.local.opening import open_survey
    from incrowd.workflows.local.survey_file import load_survey

    number = whole(options.count, "count")
    if not 1 <= number <= 10_000_000:
        raise InvalidParameter("tokens are made 1 to 10,000,000 at a time: write --count.")
    file = load_survey(options.survey)
    if options.people is None:
        require_no_purpose(file)
    invited = None if options.people is None else invited_people(file, options.people)
    maker = Collector.beside(open_survey(file)).tokens
    if invited is not None:
        _show_invited({each: maker.issue() for each in invited}, options)
        return
    made = [maker.issue() for _ in range(number)]
    if options.json:
        print_json({"tokens": made})
        return
    for token in made:
        print(token)


def _show_invited(made: dict[str, str], options: CollectTokensOptions) -> None:
    if options.json:
        print_json({"tokens": made})
        return
    for person, token in made.items():
        print(person, token, sep="\t")
