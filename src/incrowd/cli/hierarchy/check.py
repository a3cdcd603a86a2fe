"""`incrowd hierarchy check`: every value that is missing or listed twice, by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.workflows.hierarchies.check import Report

_FAILED = 1
_SHOWN = 50


@dataclass(frozen=True)
class HierarchyCheckOptions:
    """What `incrowd hierarchy check` can be told."""

    files: Annotated[
        list[str], typer.Argument(help="A hierarchy in ARX's format, then the data; with --policy the data alone.")
    ] = field(default_factory=list)
    policy: Annotated[Path | None, typer.Option(metavar="FILE", help="Check everything that this policy declares.")] = (
        None
    )
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column the file is for; by default the file's name.")
    ] = None
    delimiter: Annotated[str, typer.Option(metavar="CHARACTER", help="What separates the levels in the file.")] = ";"
    json: Json = False


@takes(HierarchyCheckOptions)
def check(options: HierarchyCheckOptions) -> None:
    """Name every value that is missing, listed twice or in two places, with a line to paste; exit code 1 if any.

    What is printed holds values of the data: it is for its holder only.
    """
    report = _policy(options, options.policy) if options.policy is not None else _file(options)
    if options.json:
        print_json(report.to_json())
    else:
        _show(report, options.delimiter)
    if not report.passed:
        raise typer.Exit(_FAILED)


def _policy(options: HierarchyCheckOptions, path: Path) -> Report:
    from incrowd.workflows.hierarchies.check import check_policy
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import open_rows

    if len(options.files) > 1:
        raise InvalidParameter("with --policy there is one more file to name at most: the data.")
    policy = load_policy(path)
    if not options.files and policy.source is None:
        return check_policy(policy, None)
    rows = open_rows(options.files[0] if options.files else None, policy)
    record_look(policy, "hierarchy check")
    return check_policy(policy, rows)


def _file(options: HierarchyCheckOptions) -> Report:
    from incrowd.workflows.hierarchies.check import check_file
    from incrowd.workflows.policy.rows import open_rows

    if not 1 <= len(options.files) <= 2:
        raise InvalidParameter("name a hierarchy file, and after it the data if you want; or give --policy.")
    rows = open_rows(options.files[1], None) if len(options.files) > 1 else None
    return check_file(Path(options.files[0]), options.delimiter, rows, options.column)


def _show(report: Report, delimiter: str) -> None:
    if report.passed:
        print(f"Nothing is wrong with {', '.join(report.checked)}.")
        return
    header = ("what", "column", "value", "rows", "fix")
    shown = report.problems[:_SHOWN]
    lines = [
        (problem.what, problem.column or "", problem.value, _count(problem.rows), problem.fix) for problem in shown
    ]
    more = len(report.problems) - len(shown)
    note = f"and {more} more: --json lists all." if more else ""
    title = "1 problem" if len(report.problems) == 1 else f"{len(report.problems):,} problems"
    print_table(title, lines, note, header=header)
    from incrowd.core.hierarchy.arx import ArxStyle, ArxTable

    paste = [problem.paste for problem in shown if problem.paste is not None]
    if paste:
        print("Rows to paste, after a look at their labels:\n")
        print(ArxTable(tuple(paste), ArxStyle(delimiter)).text(), end="")


def _count(rows: int | None) -> str:
    return "" if rows is None else f"{rows:,}"
