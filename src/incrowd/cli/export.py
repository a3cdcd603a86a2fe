"""`incrowd export`: a release in another format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table


@dataclass(frozen=True)
class ExportOptions:
    """The options of `incrowd export`."""

    release: Annotated[Path, typer.Argument(help="The folder of a release, its certificate.json, or a model.json.")]
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="croissant, ro-crate, ddi or dp-registry; onnx or model-card, for a model.",
        ),
    ]
    out: Annotated[Path, typer.Option("--out", help="A new file; for ro-crate, a new folder with copies of all files.")]
    curator: Annotated[str | None, typer.Option("--curator", help="Name of the publisher.")] = None
    license: Annotated[str | None, typer.Option("--license", help="Address of the license.")] = None
    url: Annotated[str | None, typer.Option("--url", help="Address of the publication.")] = None
    json: Json = False


@takes(ExportOptions)
def export(options: ExportOptions) -> None:
    """Write a release in another format.

    It costs nothing and reads neither rows nor a ledger: the output depends on the release alone.
    """
    from incrowd.workflows.export.formats import PublisherInfo
    from incrowd.workflows.export.formats import export as write

    made = write(options.release, options.to, options.out, PublisherInfo(options.curator, options.license, options.url))
    if options.json:
        print_json({"file": str(options.out), "format": options.to, "notes": list(made.notes)})
        return
    lines = [("file", str(options.out)), ("format", options.to), *(("note", note) for note in made.notes)]
    print_table("exported", lines, "Made from the release alone, at no cost.")
