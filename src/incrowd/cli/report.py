"""`incrowd report`: a release as a page for the person who signs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import Json, NoLimits, ReadingOptions, takes
from incrowd.cli.output import print_json, print_table, shown_path
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class ReportOptions(ReadingOptions):
    """The options of `incrowd report`."""

    release: Annotated[Path, typer.Argument(help="The folder of a release, or its certificate.json.")]
    internal: Annotated[bool, typer.Option("--internal", help="With comparisons to the original; internal.")] = False
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="DATA", help="With --internal: the original; default the policy's."),
    ] = None
    policy: Annotated[
        Path | None, typer.Option("--policy", metavar="FILE", help="With --internal: the policy of the release.")
    ] = None
    control: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="With --internal: also run attacks, with these people as control group."),
    ] = None
    held_out: Annotated[
        bool,
        typer.Option("--held-out", help="With --internal: also run attacks, with the holdout group as control group."),
    ] = False
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="A new file for the page.")] = None
    no_limits: NoLimits = False
    json: Json = False


@takes(ReportOptions)
def report(options: ReportOptions) -> None:
    """Write the report of a release as one self-contained page.

    The public report renders the certificate and goes beside it, unless --out is given. The internal report compares
    with the original rows: the ledger records this access, and the page goes to .incrowd/internal. With --control or
    --held-out, all applicable attacks are run and reported, too.
    """
    from incrowd.workflows.report.render import render_internal, render_public

    if not options.internal and (options.against or options.policy or options.control or options.held_out):
        raise InvalidParameter(
            "--against, --policy, --control and --held-out need --internal: the public report reads no original rows."
        )
    if options.internal:
        if options.policy is None:
            raise InvalidParameter("--internal needs --policy, which says how columns were generalized.")
        from incrowd.workflows.attack.inputs import ControlGroup
        from incrowd.workflows.policy.policy import load_policy
        from incrowd.workflows.policy.rows import read_as

        control = ControlGroup(options.control, options.held_out)
        policy = read_as(load_policy(options.policy), options.source_options)
        written = render_internal(options.release, policy, options.against, options.out, control)
    else:
        written = render_public(options.release, options.out)
    kind = "internal" if options.internal else "public"
    if options.json:
        print_json({"report": str(written), "kind": kind})
    else:
        note = "This page shows original rows: keep it internal." if options.internal else "Open it in any browser."
        print_table("report", [("page", shown_path(written)), ("kind", kind)], note)
