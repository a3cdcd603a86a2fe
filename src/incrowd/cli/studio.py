"""`incrowd studio`: the whole road in a browser, on this machine."""

from __future__ import annotations

import shutil
import socket
import sys
import webbrowser
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes, whole
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter, OutputUnavailable, PackageMissing

if TYPE_CHECKING:
    from incrowd.web.studio.entrance import Keys

_HOST = "127.0.0.1"
_DEMO = ("policy.yaml", "histogram.yaml", "discharges.csv", "diagnosis.csv")


@dataclass(frozen=True)
class StudioOptions:
    """What `incrowd studio` can be told."""

    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="The folder whose files are opened; by default this one.")
    ] = None
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Copy the hospital example into FOLDER, incrowd-demo by default, and open it."),
    ] = False
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address, and open no browser.")] = False
    port: Annotated[str, typer.Option(metavar="NUMBER", help="The port to listen at; by default a free one.")] = "0"
    as_json: Json = False


@takes(StudioOptions)
def studio(options: StudioOptions) -> None:
    """Open a folder in the browser: from a table to a signed release and its proof, without a network.

    It listens at 127.0.0.1 alone. The address that is printed works once, in one browser; pages edit the very policy
    files that the other commands run, and nothing is spent without a typed confirmation that says how much.
    """
    from importlib.util import find_spec

    if not all(find_spec(package) for package in ("fastapi", "uvicorn", "argon2")):
        raise PackageMissing("the studio needs more packages: pip install 'incrowd[web]'.")
    folder = _folder(options)
    from incrowd.web.studio.entrance import Keys

    keys = Keys(_port(whole(options.port, "port")))
    if options.as_json:
        print_json({"address": keys.address, "folder": str(folder)})
    else:
        lines = [("folder", str(folder)), ("address", keys.address)]
        print_table("Studio", lines, "The address works once. Stop with Ctrl-C.")
    sys.stdout.flush()
    if not options.no_open:
        late = Timer(1.0, webbrowser.open, (keys.address,))
        late.daemon = True
        late.start()
    _run(folder, keys)


def _folder(options: StudioOptions) -> Path:
    """Return the folder that is opened, with the example in it if that is wanted."""
    folder = options.folder or Path("incrowd-demo" if options.demo else ".")
    if not options.demo:
        if not folder.is_dir():
            raise InvalidParameter(f"there is no folder {folder} to open.")
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


def _port(wanted: int) -> int:
    """Return the port to listen at: the one that is wanted, if it is free, or any."""
    if not 0 <= wanted < 65536:
        raise InvalidParameter("a port is a number from 1 to 65535.")
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, wanted))
        except OSError:
            raise InvalidParameter(f"port {wanted} is not free: choose another with --port.") from None
        return int(probe.getsockname()[1])


def _run(folder: Path, keys: Keys) -> None:
    import uvicorn

    from incrowd.web.logs import LOGGING
    from incrowd.web.studio.app import studio_app
    from incrowd.web.wire import StrictProtocol

    uvicorn.run(
        studio_app(folder, keys),
        host=_HOST,
        port=keys.port,
        access_log=False,
        server_header=False,
        ws="none",
        http=StrictProtocol,
        proxy_headers=False,
        log_config=LOGGING,
        log_level="warning",
        timeout_graceful_shutdown=10,
    )
