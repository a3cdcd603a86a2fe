"""`incrowd studio`: all steps of a release in a browser, on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import webbrowser
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.options import Json, takes, whole
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter, OutputUnavailable, PackageMissing

if TYPE_CHECKING:
    from incrowd.web.studio.launch import LaunchFile
    from incrowd.web.studio.sessions import Keys, TrustedProxy

_DEMO = ("policy.yaml", "histogram.yaml", "discharges.csv", "diagnosis.csv")


@dataclass(frozen=True)
class StudioOptions:
    """The options of `incrowd studio`."""

    folder: Annotated[Path | None, typer.Argument(metavar="FOLDER", help="The folder to open; default: this one.")] = (
        None
    )
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Copy the hospital example into FOLDER (default: incrowd-demo) and open it."),
    ] = False
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address with its token, without opening a browser.")
    ] = False
    port: Annotated[str, typer.Option(metavar="NUMBER", help="The port to listen at; by default a free one.")] = "0"
    sso: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Answer to a proxy that signs owners on, as this file says; no token then."),
    ] = None
    address: Annotated[
        str | None,
        typer.Option(metavar="ORIGIN", help="With --sso: what browsers call it, https://studio.example.org."),
    ] = None
    as_json: Json = False


@takes(StudioOptions)
def studio(options: StudioOptions) -> None:
    """Open a folder in the browser: from a table to a signed, verified release, without a network.

    The studio listens on this machine only, under a random host name. Its address works once. Pages edit the same
    policy files that the other commands use. Nothing is spent without a typed confirmation of the amount.
    """
    from importlib.util import find_spec

    if not all(find_spec(package) for package in ("fastapi", "uvicorn", "argon2")):
        raise PackageMissing("the studio needs more packages: pip install 'incrowd[web]'.")
    folder = _folder(options)
    from incrowd.web.studio.app import studio_app
    from incrowd.web.studio.launch import LaunchFile, loopback_sockets, only_studio
    from incrowd.web.studio.sessions import Keys

    with ExitStack() as ending:
        ending.enter_context(only_studio(folder))
        sockets = loopback_sockets(whole(options.port, "port"))
        keys = Keys(int(sockets[0].getsockname()[1]))
        for listener in sockets:
            ending.enter_context(listener)
        proxy = _proxy(options, folder)
        if proxy is not None:
            _announce(folder, f"{proxy.origin}/", options)
        elif options.no_open:
            _announce(folder, keys.address, options)
        else:
            file = LaunchFile.to(keys.address)
            ending.callback(file.remove)
            keys.on_entry = file.remove
            _announce(folder, f"{keys.origin}/", options)
            Thread(target=_open, args=(file, keys), daemon=True).start()
        _run(sockets, studio_app(folder, keys, proxy))


def _proxy(options: StudioOptions, folder: Path) -> TrustedProxy | None:
    """Return the proxy that signs owners on; the access list beside the folder's ledger must be there."""
    if (options.sso is None) != (options.address is None):
        raise InvalidParameter("--sso and --address belong together: which proxy, and under which origin.")
    if options.sso is None or options.address is None:
        return None
    from incrowd.governance.access_list import AccessList
    from incrowd.web.sso import SingleSignOn
    from incrowd.web.studio.sessions import TrustedProxy
    from incrowd.workflows.policy.ledger_place import VARIABLE, ledger_place, state_folder

    beside = f"sqlite:///{(state_folder(folder) / 'ledger.sqlite').resolve().as_posix()}"
    access = AccessList.open(ledger_place() if os.environ.get(VARIABLE) else beside)
    return TrustedProxy(options.address, SingleSignOn.read(options.sso), access)


def _announce(folder: Path, address: str, options: StudioOptions) -> None:
    """Print where the studio is; a program reads the address before anything is served."""
    from incrowd.web.studio.sessions import LIFETIME

    if options.as_json:
        print_json({"address": address, "folder": str(folder)})
    else:
        opens = (
            f"The address works once, within {LIFETIME / 60:.0f} minutes."
            if options.no_open
            else "It opens in your browser."
        )
        safari = " Safari cannot open it: use Firefox, Chrome or Edge." if sys.platform == "darwin" else ""
        print_table("Studio", [("folder", str(folder)), ("address", address)], f"{opens}{safari} Stop with Ctrl-C.")
    sys.stdout.flush()


def _open(file: LaunchFile, keys: Keys) -> None:
    """Open the browser; where there is none, print the address with its token."""
    if not webbrowser.open(file.address) and not keys.used:
        text = f"no browser was started. Open this address, which works once: {keys.address}"
        print(f"incrowd: {text}", file=sys.stderr, flush=True)


def _folder(options: StudioOptions) -> Path:
    """Return the folder that is opened, with the example in it if that is wanted."""
    folder = options.folder or Path("incrowd-demo" if options.demo else ".")
    if not options.demo:
        if not folder.is_dir():
            raise InvalidParameter(f"the folder {folder} does not exist.")
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in _DEMO:
            if not (folder / name).exists():
                shutil.copyfile(_example() / name, folder / name)
    except OSError as error:
        raise OutputUnavailable(f"the example was not copied into {folder}: {error.strerror}.") from None
    return folder


def _example() -> Path:
    """Return where the hospital example is: in the package that was installed, or in a clone of the project."""
    installed = Path(__file__).parents[1] / "web" / "studio" / "demo"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "examples" / "hospital"


def _run(sockets: list[socket.socket], application: Any) -> None:
    import uvicorn

    from incrowd.web.logs import logging_config
    from incrowd.web.strict_http import StrictProtocol

    config = uvicorn.Config(
        application,
        access_log=False,
        server_header=False,
        ws="none",
        http=StrictProtocol,
        proxy_headers=False,
        log_config=logging_config(),
        log_level="warning",
        timeout_graceful_shutdown=10,
    )
    with suppress(KeyboardInterrupt):  # a server ends in order by itself
        uvicorn.Server(config).run(sockets=sockets)
