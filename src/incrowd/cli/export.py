"""`incrowd export`: a release in a format that others read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table


@dataclass(frozen=True)
class ExportOptions:
    """What `incrowd export` takes."""

    release: Annotated[Path, typer.Argument(help="The folder of a release, its certificate.json, or a model.json.")]
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="croissant, ro-crate, ddi or dp-registry; onnx, for a model.",
        ),
    ]
    out: Annotated[Path, typer.Option("--out", help="A new file; for ro-crate, a new folder with copies of all files.")]
    curator: Annotated[str | None, typer.Option("--curator", help="Who publishes it.")] = None
    license: Annotated[str | None, typer.Option("--license", help="Under which licence: its address.")] = None
    url: Annotated[str | None, typer.Option("--url", help="Where it is published.")] = None
    json: Json = False


@takes(ExportOptions)
def export(options: ExportOptions) -> None:
    """Write a release in a format that others read.

    It costs nothing and reads neither rows nor a ledger: whatever is written follows from the release alone.
    """
    from incrowd.workflows.export.formats import PublisherInfo
    from incrowd.workflows.export.formats import export as write

    made = write(options.release, options.to, options.out, PublisherInfo(options.curator, options.license, options.url))
    if options.json:
        print_json({"file": str(options.out), "format": options.to, "notes": list(made.notes)})
        return
    lines = [("file", str(options.out)), ("format", options.to), *(("note", note) for note in made.notes)]
    print_table("exported", lines, "It was made from the release alone, and costs nothing.")
