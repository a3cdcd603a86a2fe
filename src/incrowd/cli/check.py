"""`incrowd check`: whether a table is already k-anonymous, l-diverse, t-close."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, Remote, takes
from incrowd.cli.output import print_json, print_table

if TYPE_CHECKING:
    from incrowd.workflows.check import Verdict
    from incrowd.workflows.criteria import Finding

_FAILED = 1
_SIGNS = {True: "✓", False: "✗", None: " "}


@dataclass(frozen=True)
class CheckOptions:
    """What `incrowd check` can be told."""

    data: Annotated[
        str | None, typer.Argument(help="The table, or the folder of a release; by default the policy's source.")
    ] = None
    policy: Annotated[Path | None, typer.Option(metavar="FILE", help="The policy to hold it against.")] = None
    quasi: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The quasi-identifiers; by default those of the policy.")
    ] = None
    sensitive: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="A sensitive column; by default those of the policy.")
    ] = field(default_factory=list)
    k: Annotated[int | None, typer.Option(metavar="COUNT", help="At least so many rows look alike.")] = None
    l: Annotated[  # noqa: E741 (the name that everyone knows it by)
        int | None, typer.Option(metavar="COUNT", help="At least so many sensitive values among rows that look alike.")
    ] = None
    entropy_l: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="The same, weighing values by how often they occur.")
    ] = None
    t: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="At most so far from the sensitive column as a whole.")
    ] = None
    recoded: Annotated[
        bool, typer.Option("--recoded", help="Recode by the policy first, instead of taking the table as it is.")
    ] = False
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    json: Json = False


@takes(CheckOptions)
def check(options: CheckOptions) -> None:
    """Say whether a table already meets what is asked: exit code 0 if it does, 1 if not.

    The table is taken as it is, value by value. With a policy its k must hold over all released columns, and no other
    column may be there. Nothing is written but the numbers; rows that only --recoded would hide are not hidden.
    """
    from incrowd.engines.choose import engine_of
    from incrowd.workflows.check import Asked
    from incrowd.workflows.check import check as checked
    from incrowd.workflows.criteria import Wanted
    from incrowd.workflows.looking import record_look
    from incrowd.workflows.opening import open_rows, settings_of
    from incrowd.workflows.policy import load_policy

    wanted = Wanted(options.k, options.l, options.entropy_l, options.t)
    quasi = tuple(name.strip() for name in (options.quasi or "").split(",") if name.strip())
    policy = None if options.policy is None else load_policy(options.policy)
    asked = Asked(quasi, tuple(options.sensitive), options.recoded)
    with engine_of(settings_of(policy, options.data, options.engine, options.master, options.remote)) as engine:
        rows = open_rows(options.data, policy, engine=engine)
        record_look(policy, "check")
        verdict = checked(rows, wanted, asked, policy, engine)
    if options.json:
        print_json(verdict.to_json())
    else:
        _show(verdict)
    if not verdict.passed:
        raise typer.Exit(_FAILED)


def _show(verdict: Verdict) -> None:
    title = f"{'passed' if verdict.passed else 'FAILED'}: {verdict.rows:,} rows, {verdict.measured}"
    header = ("", "criterion", "expected", "found", "rows short")
    rows = [
        (
            _SIGNS[finding.passed],
            f"{finding.criterion}: {finding.sensitive}" if finding.sensitive else finding.criterion,
            "" if finding.expected is None else f"{finding.expected:g}",
            _found(finding),
            "" if finding.short is None else f"{finding.short:,}",
        )
        for finding in verdict.findings
    ]
    meanings = {finding.criterion: finding.means for finding in verdict.findings}
    quasi = next(finding.over for finding in verdict.findings if finding.criterion == "k-anonymity")
    told = [f"quasi-identifiers: {', '.join(quasi)}.", *(f"{name}: {means}." for name, means in meanings.items())]
    print_table(title, rows, "\n".join(told), header=header)


def _found(finding: Finding) -> str:
    if finding.found is None:
        return "no rows"
    named = f" ({', '.join(finding.over)})" if finding.criterion == "columns" and finding.over else ""
    return f"{finding.found:.6g}{named}"
