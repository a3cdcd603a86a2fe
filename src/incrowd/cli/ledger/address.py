"""Where the ledger is, and who acts: options that all ledger commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from incrowd.errors import InvalidParameter

DEFAULT = "sqlite:///.incrowd/ledger.sqlite"

Address = Annotated[
    str,
    typer.Option(
        "--ledger",
        metavar="ADDRESS",
        help="sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
        envvar="INCROWD_LEDGER",
    ),
]
Dataset = Annotated[str, typer.Argument(metavar="DATASET", help="The dataset's name.")]
Why = Annotated[str, typer.Option(metavar="TEXT", help="The reason, kept in the ledger.")]
Who = Annotated[str | None, typer.Option(metavar="NAME", help="Who decides; the user of this machine if not given.")]


def person(who: str | None) -> str:
    """Return who acts: the name given, or the user of this machine.

    >>> person("data protection officer")
    'data protection officer'
    """
    if who is not None:
        return who
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise InvalidParameter("this machine does not know who you are: give --who.") from error


def make_folder(address: str) -> None:
    """Make the folder of a ledger that is about to be made in a file."""
    if address.startswith("sqlite:///"):
        folder = Path(address.removeprefix("sqlite:///")).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidParameter("the folder of the ledger cannot be made: choose another --ledger.") from error
