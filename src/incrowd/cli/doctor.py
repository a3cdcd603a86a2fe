"""`incrowd doctor`: what is installed, and whether releases can work on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table

_WORDS = {True: "yes", False: "NO", None: "-"}


@dataclass(frozen=True)
class DoctorOptions:
    """The options of `incrowd doctor`."""

    policy: Annotated[Path | None, typer.Option("--policy", help="A policy, whose folder for state is tested.")] = None
    json: Json = False


@takes(DoctorOptions)
def doctor(options: DoctorOptions) -> None:
    """Say what is installed and what each verb needs; test random numbers, clock, locks and rights of this machine.

    Exits with 1 if something that releases depend on does not work. Nothing is left behind.
    """
    from incrowd.workflows.doctor import findings
    from incrowd.workflows.policy.ledger_place import state_folder

    tested = findings(state_folder(Path.cwd() if options.policy is None else options.policy.absolute().parent))
    failed = [finding for finding in tested if finding.good is False]
    if options.json:
        print_json({"ok": not failed, "findings": [vars(finding) for finding in tested]})
    else:
        note = f"Not ready: {', '.join(finding.about for finding in failed)}." if failed else "Ready."
        rows = [(finding.about, _WORDS[finding.good], finding.text) for finding in tested]
        print_table("This machine", rows, note, ("", "good", "found"))
    if failed:
        raise typer.Exit(1)
