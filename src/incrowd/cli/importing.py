"""`incrowd import`: a project of another program becomes a policy, hierarchies and data."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import Json, NoLimits, takes
from incrowd.cli.output import print_json, print_text


@dataclass(frozen=True)
class ProjectOptions:
    """The options of `incrowd import`."""

    project: Annotated[Path, typer.Argument(help="A project of ARX (.deid), or metadata of τ-ARGUS (.rda).")]
    out: Annotated[Path, typer.Option("--out", help="A new folder for policy, hierarchies and data.")]
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The microdata that τ-ARGUS metadata describes.")
    ] = None
    no_limits: NoLimits = False
    json: Json = False


@takes(ProjectOptions)
def import_project(options: ProjectOptions) -> None:
    """Import a project of ARX, or metadata of τ-ARGUS, as a policy with hierarchies and data in a new folder.

    Imported hierarchies count as data-dependent until you name a public source. What has no counterpart is listed.
    """
    from incrowd.workflows.imports.imports import read_project

    project = read_project(options.project, options.data, limited=not options.no_limits)
    policy = project.write(options.out)
    if options.json:
        columns = {column.name: column.section["role"] for column in project.columns}
        print_json({"policy": str(policy), "columns": columns, "left_out": list(project.left_out)})
        return
    print_text(f"{len(project.columns)} columns of {project.program} were imported into {options.out}.")
    for note in project.left_out:
        print_text(f"not imported: {note}.")
    print(f"\nnext\n\n  incrowd plan --policy {shlex.quote(str(policy))}")
