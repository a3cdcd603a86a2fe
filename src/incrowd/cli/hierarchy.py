"""`incrowd hierarchy`: draft and check hierarchies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, ReadingOptions, takes
from incrowd.cli.output import print_json, print_notes, print_table, print_text
from incrowd.core.table import SourceOptions
from incrowd.errors import InvalidParameter, OutputUnavailable

if TYPE_CHECKING:
    from incrowd.workflows.hierarchies.build import Built, HierarchyRequest
    from incrowd.workflows.hierarchies.check import Report


_FAILED = 1
_SHOWN = 50
hierarchy = typer.Typer(help="Draft and check hierarchies.", no_args_is_help=True)


@dataclass(frozen=True)
class HierarchyCheckOptions(ReadingOptions):
    """The options of `incrowd hierarchy check`."""

    files: Annotated[
        list[str], typer.Argument(help="A hierarchy in ARX's format, then the data; with --policy the data alone.")
    ] = field(default_factory=list)
    policy: Annotated[Path | None, typer.Option(metavar="FILE", help="Check everything that this policy declares.")] = (
        None
    )
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column the file is for; by default the file's name.")
    ] = None
    delimiter: Annotated[str, typer.Option(metavar="CHARACTER", help="Delimiter of the levels in the file.")] = ";"
    json: Json = False

    @property
    def source_options(self) -> SourceOptions:
        """How the data is read; --delimiter is that of the hierarchy file."""
        return replace(super().source_options, delimiter=None)


@takes(HierarchyCheckOptions)
def check(options: HierarchyCheckOptions) -> None:
    """List values that are missing, listed twice or in two places, each with a line to paste. Exit 1 if there are any.

    The output contains values of the data and is internal.
    """
    report = _policy(options, options.policy) if options.policy is not None else _file(options)
    if options.json:
        print_json(report.to_json())
    else:
        _show_report(report, options.delimiter)
    if not report.passed:
        raise typer.Exit(_FAILED)


def _policy(options: HierarchyCheckOptions, path: Path) -> Report:
    from incrowd.workflows.hierarchies.check import check_policy
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import open_here

    if len(options.files) > 1:
        raise InvalidParameter("with --policy, give at most one file: the data.")
    policy = load_policy(path)
    if not options.files and policy.source is None:
        return check_policy(policy, None)
    rows = open_here(options.files[0] if options.files else None, policy, options.source_options)
    record_look(policy, "hierarchy check")
    return check_policy(policy, rows)


def _file(options: HierarchyCheckOptions) -> Report:
    from incrowd.workflows.hierarchies.check import check_file
    from incrowd.workflows.policy.rows import open_rows

    if not 1 <= len(options.files) <= 2:
        raise InvalidParameter("give a hierarchy file, optionally followed by the data; or give --policy.")
    rows = open_rows(options.files[1], None, options.source_options) if len(options.files) > 1 else None
    print_notes(() if rows is None else rows.notes)
    return check_file(Path(options.files[0]), options.delimiter, rows, options.column)


def _show_report(report: Report, delimiter: str) -> None:
    if report.passed:
        print_text(f"No problems in {', '.join(report.checked)}.")
        return
    header = ("what", "column", "value", "rows", "fix")
    listed = report.problems[:_SHOWN]
    lines = [
        (problem.what, problem.column or "", problem.value, _count(problem.rows), problem.fix) for problem in listed
    ]
    more = len(report.problems) - len(listed)
    note = f"and {more} more: --json lists all." if more else ""
    title = "1 problem" if len(report.problems) == 1 else f"{len(report.problems):,} problems"
    print_table(title, lines, note, header=header)
    from incrowd.core.hierarchy.tree import ArxStyle, ArxTable

    paste = [problem.paste for problem in listed if problem.paste is not None]
    if paste:
        print_text("Rows to paste, after you check their labels:\n")
        print(ArxTable(tuple(paste), ArxStyle(delimiter)).text(), end="")


def _count(rows: int | None) -> str:
    return "" if rows is None else f"{rows:,}"


@dataclass(frozen=True)
class BuildOptions(ReadingOptions):
    """The options of `incrowd hierarchy build`."""

    column: Annotated[str, typer.Option(metavar="NAME", help="The column it is for.")]
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="intervals, prefix, redaction, dates, groups; or a public list: icd-10, countries, regions.",
        ),
    ]
    out: Annotated[Path, typer.Option(metavar="FILE", help="A new file, in ARX's format.")]
    data: Annotated[
        str | None, typer.Argument(help="Take the values from these rows; the draft is then marked as data-dependent.")
    ] = None
    steps: Annotated[
        str,
        typer.Option(metavar="A,B,C", help="Widths, lengths, periods or sizes, fine to coarse; a language or country."),
    ] = ""
    values: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A public list of values, one a line; no row is read.")
    ] = None
    range: Annotated[
        str | None, typer.Option(metavar="LOW,HIGH", help="Public bounds of whole numbers or days; no row is read.")
    ] = None
    json: Json = False


@takes(BuildOptions)
def build(options: BuildOptions) -> None:
    """Draft a hierarchy and print the lines for the policy.

    Values come from a public list, a public range, or the rows. Values from rows are marked derived: rows in the
    policy. No guarantee depends on them until the owner names a public source for them.
    """
    from incrowd.workflows.hierarchies.build import HierarchyRequest

    steps = tuple(step.strip() for step in options.steps.split(",") if step.strip())
    built = _built(options, HierarchyRequest(options.column, options.kind, steps))
    _write(built.table.text(), options.out)
    snippet = _snippet(built, options.out)
    if options.json:
        summary = {"file": str(options.out), "values": len(built.table.rows), "levels": built.column.hierarchy.height}
        print_json(summary | {"derived": "rows" if built.derived else None, "policy": snippet})
    else:
        _show_built(built, options.out, snippet)


def _built(options: BuildOptions, wish: HierarchyRequest) -> Built:
    from incrowd.workflows.hierarchies.build import LISTED_KINDS, from_range, from_rows, from_values
    from incrowd.workflows.hierarchies.public_lists import from_list
    from incrowd.workflows.policy.rows import open_rows

    if options.kind in LISTED_KINDS:
        return from_list(wish)
    sources = [source for source in (options.data, options.values, options.range) if source is not None]
    if len(sources) != 1:
        raise InvalidParameter("give one source of values: DATA, --values or --range.")
    if options.values is not None:
        return from_values(wish, _lines(options.values))
    if options.range is not None:
        low, comma, high = options.range.partition(",")
        if not comma:
            raise InvalidParameter("a range is written LOW,HIGH, such as 0,99.")
        return from_range(wish, low.strip(), high.strip())
    rows = open_rows(options.data, None, options.source_options)
    print_notes(rows.notes)
    return from_rows(wish, rows)


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line]
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"{path} cannot be read as UTF-8 text with one value a line.") from None


def _write(text: str, target: Path) -> None:
    try:
        with target.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        raise OutputUnavailable(f"{target} already exists. Choose another name.") from None
    except OSError as error:
        raise OutputUnavailable(f"{target} could not be written: {error.strerror}.") from None


def _snippet(built: Built, out: Path) -> str:
    derived = ", derived: rows" if built.derived else "" if built.public is None else f', public: "{built.public}"'
    return f"{built.column.name}: {{type: {built.column.type}, hierarchy: {{file: {out.name}{derived}}}}}"


def _show_built(built: Built, out: Path, snippet: str) -> None:
    print_text(f"{out}: {len(built.table.rows):,} values, levels 0 to {built.column.hierarchy.height}.")
    print(f"\nIn the policy, with the role you decide on:\n\n  {snippet}\n")
    if built.derived:
        print_text(
            "This draft comes from rows and lists their values: keep it internal. It voids every guarantee but "
            "k-anonymity "
            'until you add public: "source", the public source of the same values.'
        )


hierarchy.command("check")(check)
hierarchy.command("build")(build)
