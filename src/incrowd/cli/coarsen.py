"""`incrowd coarsen`: a coarser table from a release, at no cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import Json, takes, whole
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class CoarsenOptions:
    """The options of `incrowd coarsen`."""

    release: Annotated[Path, typer.Argument(help="The folder of a release, or its certificate.json.")]
    policy: Annotated[Path, typer.Option("--policy", help="The policy of the release, for its hierarchies.")]
    out: Annotated[Path, typer.Option("--out", help="A new folder for the coarser table and its certificate.")]
    levels: Annotated[
        list[str] | None,
        typer.Option("--levels", metavar="COLUMN=LEVEL", help="A column at a higher level; may be given repeatedly."),
    ] = None
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="NAMES", help="Only these columns, separated by commas.")
    ] = None
    json: Json = False


@takes(CoarsenOptions)
def coarsen(options: CoarsenOptions) -> None:
    """Generalize a released table further. It reads no original rows, charges nothing and keeps every guarantee.

    The new certificate contains that of the release, and `incrowd verify --parent` recomputes the table.
    """
    from incrowd.workflows.coarsen.method import Coarser
    from incrowd.workflows.coarsen.method import coarsen as coarsened
    from incrowd.workflows.policy.policy import load_policy

    names = tuple(name.strip() for name in (options.columns or "").split(",") if name.strip())
    coarser = Coarser(dict(map(_level, options.levels or ())), names)
    released = coarsened(options.release, load_policy(options.policy), coarser, options.out)
    if options.json:
        print_json({"folder": str(options.out), "certificate": released.certificate.to_json()})
        return
    lines = [
        ("data", str(options.out / released.certificate.outputs[0].name)),
        ("certificate", str(options.out / "certificate.json")),
        ("report", str(options.out / "report.html")),
        ("guarantee", released.certificate.claims[0].kind),
        ("spent", "nothing: computed from the release"),
    ]
    print_table("generalized", lines)


def _level(text: str) -> tuple[str, int]:
    name, sign, level = text.rpartition("=")
    if not sign or not name:
        raise InvalidParameter("a level is written as COLUMN=LEVEL, such as zip=2.")
    return name, whole(level, f"the level of {name!r}")
