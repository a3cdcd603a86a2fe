"""`incrowd serve`: answer questions over HTTP."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.options import Json, takes, whole
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter, PackageMissing

if TYPE_CHECKING:
    from incrowd.web.app import ServeOrder


@dataclass(frozen=True)
class ServeOptions:
    """What `incrowd serve` can be told."""

    policy: Annotated[
        list[str], typer.Option("--policy", metavar="FILE", help="The policy to serve; repeat it for several datasets.")
    ] = field(default_factory=list)
    data: Annotated[
        str | None, typer.Option("--data", metavar="DATA", help="The rows, instead of the policy's source.")
    ] = None
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen; this machine alone by default.")] = (
        "127.0.0.1"
    )
    port: Annotated[str, typer.Option(metavar="NUMBER", help="The port to listen at.")] = "8000"
    workers: Annotated[str, typer.Option(metavar="COUNT", help="How many processes answer.")] = "1"
    pace: Annotated[
        str,
        typer.Option(
            metavar="SECONDS", help="What every reply to a question takes; what can be more work twice that, and so on."
        ),
    ] = "0.5"
    longest: Annotated[str, typer.Option(metavar="SECONDS", help="How long somebody waits for an answer.")] = "64"
    speed: Annotated[
        str, typer.Option(metavar="STEPS", help="How many steps of a question's work a worker surely does in a second.")
    ] = "500000000"
    rate: Annotated[str, typer.Option(metavar="COUNT", help="Requests a minute of one holder at one worker.")] = "120"
    threads: Annotated[str, typer.Option(metavar="COUNT", help="How many questions a worker works on at once.")] = "16"
    each: Annotated[
        str, typer.Option(metavar="COUNT", help="Questions that one holder has in hand at once at one worker.")
    ] = "8"
    queue: Annotated[
        str, typer.Option(metavar="COUNT", help="Questions that all holders have in hand at once at one worker.")
    ] = "64"
    tls_certificate: Annotated[
        str | None, typer.Option(metavar="FILE", help="Serve HTTPS with this certificate chain (PEM).")
    ] = None
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="The certificate's key.")] = None
    https: Annotated[
        bool, typer.Option("--https", help="Browsers come by HTTPS, through a proxy in front; cookies are held to it.")
    ] = False
    show_questions: Annotated[
        bool, typer.Option("--show-questions", help="Write the text of questions into the audit log, not a mark of it.")
    ] = False
    reload: Annotated[
        bool, typer.Option("--reload", help="Take new rows when a policy declares a new version of its data.")
    ] = False
    as_json: Json = False


@takes(ServeOptions)
def serve(options: ServeOptions) -> None:
    """Answer questions over HTTP until stopped; what was charged is answered before the server stops.

    Tokens come from `incrowd access grant`, with the ledger of the policy. All workers share the ledger, the answers,
    the tokens and the audit log; logs are JSON on standard error.
    """
    order = _order(options)
    told = _summary(options, order)
    running = _running(options, order)
    if options.as_json:
        print_json(told)
    else:
        print_table("Serving", [(name, str(value)) for name, value in told.items()], "Stop with Ctrl-C.")
    sys.stdout.flush()
    running()


def _order(options: ServeOptions) -> ServeOrder:
    if not options.policy:
        raise InvalidParameter("say what is served: --policy FILE.")
    if (options.tls_certificate is None) != (options.tls_key is None):
        raise InvalidParameter("HTTPS needs both --tls-certificate and --tls-key.")
    _check_packages()
    from incrowd.web.app import ServeOrder
    from incrowd.web.settings import Settings

    settings = Settings(
        pace=_seconds(options.pace),
        longest=_seconds(options.longest),
        speed=whole(options.speed, "speed"),
        rate=whole(options.rate, "rate"),
        threads=whole(options.threads, "threads"),
        per_user=whole(options.each, "each"),
        queue=whole(options.queue, "queue"),
        https=options.https or options.tls_certificate is not None,
        show_questions=options.show_questions,
        reload=options.reload,
    )
    return ServeOrder(tuple(options.policy), options.data, settings)


def _check_packages() -> None:
    from importlib.util import find_spec

    if not all(find_spec(package) for package in ("fastapi", "uvicorn", "argon2", "pythonjsonlogger")):
        raise PackageMissing("a server needs more packages: pip install 'incrowd[web]'.")


def _running(options: ServeOptions, order: ServeOrder) -> Callable[[], None]:
    """Return a call that serves until it is stopped; whatever is wrong with policies or tables shows before it."""
    import uvicorn

    from incrowd.web.app import VARIABLE, open_server
    from incrowd.web.logs import LOGGING
    from incrowd.web.strict_http import StrictProtocol

    workers = whole(options.workers, "workers")
    if workers < 1:
        raise InvalidParameter("a server has at least one worker.")
    config: dict[str, Any] = {
        "host": options.host,
        "port": whole(options.port, "port"),
        "ssl_certfile": options.tls_certificate,
        "ssl_keyfile": options.tls_key,
        "access_log": False,
        "server_header": False,
        "ws": "none",
        "http": StrictProtocol,
        "proxy_headers": options.https and options.tls_certificate is None,  # believed only where a proxy was declared
        "log_config": LOGGING,
        "timeout_worker_healthcheck": 60,  # a busy worker is no dead worker
        "timeout_graceful_shutdown": int(order.settings.longest) + 10,
    }
    application = open_server(order)
    if workers == 1:
        return lambda: uvicorn.run(application, **config)
    application.state.close()
    os.environ[VARIABLE] = order.written()
    return lambda: uvicorn.run("incrowd.web.app:application", factory=True, workers=workers, **config)


def _seconds(text: str) -> float:
    from incrowd.core.rounding import exact

    return float(exact(text, "a time in seconds"))


def _summary(options: ServeOptions, order: ServeOrder) -> dict[str, Any]:
    scheme = "https" if options.tls_certificate is not None else "http"
    address = f"{scheme}://{options.host}:{options.port}"
    return {
        "address": address,
        "description": f"{address}/docs",
        "workers": int(options.workers),
        "policies": list(order.policies),
    }
