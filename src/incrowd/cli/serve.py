"""`incrowd serve`: answer queries over HTTP."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.options import Json, takes, whole
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter, PackageMissing

if TYPE_CHECKING:
    from incrowd.web.app import ServeOrder
    from incrowd.web.postgres.server import PostgresSettings

_LAST_PORT = 65_535


@dataclass(frozen=True)
class ServeOptions:
    """The options of `incrowd serve`."""

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
    postgres: Annotated[
        str | None,
        typer.Option(metavar="PORT", help="Also speak PostgreSQL's protocol at this port, with tokens as passwords."),
    ] = None
    postgres_socket: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="With --postgres: listen at a socket in this folder, too.")
    ] = None
    workers: Annotated[str, typer.Option(metavar="COUNT", help="Number of processes.")] = "1"
    reply_interval: Annotated[
        str,
        typer.Option(metavar="SECONDS", help="Replies are sent after this time, or 2, 4, 8, … times this time."),
    ] = "0.5"
    query_timeout: Annotated[str, typer.Option(metavar="SECONDS", help="Query timeout.")] = "64"
    steps_per_second: Annotated[
        str, typer.Option(metavar="STEPS", help="Steps of a query that a worker is sure to finish in a second.")
    ] = "500000000"
    requests_per_minute: Annotated[str, typer.Option(metavar="COUNT", help="Rate limit of one user at one worker.")] = (
        "120"
    )
    threads: Annotated[str, typer.Option(metavar="COUNT", help="How many queries one worker runs at once.")] = "16"
    queries_per_user: Annotated[
        str, typer.Option(metavar="COUNT", help="Concurrency limit of one user at one worker.")
    ] = "8"
    queue: Annotated[
        str, typer.Option(metavar="COUNT", help="Concurrency limit of all users together at one worker.")
    ] = "64"
    tls_certificate: Annotated[
        str | None, typer.Option(metavar="FILE", help="Serve HTTPS with this certificate chain (PEM).")
    ] = None
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="The certificate's key.")] = None
    https: Annotated[
        bool, typer.Option("--https", help="A proxy in front serves HTTPS; cookies are sent over HTTPS only.")
    ] = False
    sso: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Believe a proxy that signs users on, as this file says; off by default."),
    ] = None
    show_queries: Annotated[
        bool, typer.Option("--show-queries", help="Write the text of queries into the audit log, not a fingerprint.")
    ] = False
    reload: Annotated[
        bool, typer.Option("--reload", help="Reload the rows when a policy declares a new data version.")
    ] = False
    console: Annotated[
        bool,
        typer.Option("--console", help="Show who asked what, what remains and why queries were refused; then end."),
    ] = False
    as_json: Json = False


@takes(ServeOptions)
def serve(options: ServeOptions) -> None:
    """Answer queries over HTTP, and of PostgreSQL clients with --postgres, until stopped.

    In-flight queries that were charged are answered first.

    Make tokens with `incrowd access grant`, for the ledger of the policy. All workers share ledger, answers, access
    list and audit log. Logs are JSON on standard error.

    --console: show the owner's console instead, beside a running server or without one. It reads no row.
    """
    if options.console:
        return _show_console(options)
    order = _order(options)
    summary = _summary(options, order)
    running = _running(options, order)
    if options.as_json:
        print_json(summary)
    else:
        print_table("Serving", [(name, str(value)) for name, value in summary.items()], "Stop with Ctrl-C.")
    sys.stdout.flush()
    running()
    return None


def _show_console(options: ServeOptions) -> None:
    """Print who asked what, what remains and why queries were refused."""
    from incrowd.workflows.policy.ledger_place import ledger_of
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.query.usage import usage_of

    if not options.policy:
        raise InvalidParameter("no policy to show the server of: give --policy FILE.")
    usage = usage_of(ledger_of(load_policy(options.policy[0])))
    if options.as_json:
        return print_json(usage.to_json())
    budgets = [(one.dataset, one.epsilon_spent, one.epsilon_left or "no budget") for one in usage.datasets]
    print_table("Budgets", budgets, header=("dataset", "epsilon spent", "remaining"))
    users = [
        (
            one.name,
            one.role,
            f"{one.answered} answered, {one.refused} refused, {one.failed} failed",
            "; ".join(one.spent),
        )
        for one in usage.users
    ]
    print_table("Users", users, header=("name", "role", "queries", "spent of allowances"))
    paid = [(one.at.replace("T", " "), one.analyst, one.epsilon, "; ".join(one.queries) or "not stored")
            for one in usage.queries]  # fmt: skip
    print_table("Latest charges", paid, header=("at (UTC)", "by", "epsilon", "query"))
    refused = [(kind, str(times)) for kind, times in usage.reasons] or [("none", "0")]
    print_table(f"Refusals among the latest {usage.requests} queries", refused, header=("reason", "times"))
    tokens = [(token, one.name, f"incrowd access revoke {token}") for one in usage.users for token in one.tokens]
    print_table("Tokens that work", tokens or [("none", "", "")], header=("id", "user", "end it by"))
    return None


def _order(options: ServeOptions) -> ServeOrder:
    if not options.policy:
        raise InvalidParameter("no policy to serve: give --policy FILE.")
    if (options.tls_certificate is None) != (options.tls_key is None):
        raise InvalidParameter("HTTPS needs both --tls-certificate and --tls-key.")
    _check_packages()
    from incrowd.web.app import ServeOrder
    from incrowd.web.settings import Settings

    settings = Settings(
        pace=_seconds(options.reply_interval),
        longest=_seconds(options.query_timeout),
        speed=whole(options.steps_per_second, "steps-per-second"),
        rate=whole(options.requests_per_minute, "requests-per-minute"),
        threads=whole(options.threads, "threads"),
        per_user=whole(options.queries_per_user, "queries-per-user"),
        queue=whole(options.queue, "queue"),
        https=options.https or options.tls_certificate is not None,
        show_queries=options.show_queries,
        reload=options.reload,
        sso=None if options.sso is None else str(options.sso.absolute()),
    )
    return ServeOrder(tuple(options.policy), options.data, settings, _postgres(options))


def _postgres(options: ServeOptions) -> PostgresSettings | None:
    """Return where the PostgreSQL door is, if it is wished; mistakes are raised before the server starts."""
    from incrowd.web.postgres.server import PostgresSettings

    if options.postgres is None:
        if options.postgres_socket is not None:
            raise InvalidParameter("--postgres-socket needs --postgres PORT: the port is part of the socket's name.")
        return None
    port = whole(options.postgres, "postgres")
    if not 1 <= port <= _LAST_PORT or options.postgres == options.port:
        raise InvalidParameter("--postgres is a port of its own: a number from 1 to 65535, other than --port.")
    if options.postgres_socket is not None and not Path(options.postgres_socket).is_dir():
        raise InvalidParameter("--postgres-socket names a folder: make it first.")
    where = PostgresSettings(port, options.host, options.postgres_socket, options.tls_certificate, options.tls_key)
    try:
        where.context()
    except OSError:
        raise InvalidParameter("--tls-certificate and --tls-key cannot be read as PEM files.") from None
    return where


def _check_packages() -> None:
    from importlib.util import find_spec

    if not all(find_spec(package) for package in ("fastapi", "uvicorn", "argon2", "pythonjsonlogger")):
        raise PackageMissing("a server needs more packages: pip install 'incrowd[web]'.")


def _running(options: ServeOptions, order: ServeOrder) -> Callable[[], None]:
    """Return a call that serves until it is stopped; mistakes in policies or tables are raised before it."""
    import uvicorn

    from incrowd.web.app import VARIABLE, open_server
    from incrowd.web.logs import logging_config
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
        # believed only where a proxy was declared; with single sign-on the address of the proxy itself counts
        "proxy_headers": options.https and options.tls_certificate is None and options.sso is None,
        "log_config": logging_config(),
        "timeout_worker_healthcheck": 60,  # a busy worker is not a dead one
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
        **({} if options.postgres is None else {"postgres": f"postgresql://USER@{options.host}:{options.postgres}/"}),
        "workers": int(options.workers),
        "policies": list(order.policies),
    }
