"""`incrowd hierarchy build`: a hierarchy by a rule, in ARX's format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json
from incrowd.errors import InvalidParameter, OutputUnavailable

if TYPE_CHECKING:
    from incrowd.workflows.hierarchies.build import Built, HierarchyRequest


@dataclass(frozen=True)
class BuildOptions:
    """What `incrowd hierarchy build` can be told."""

    column: Annotated[str, typer.Option(metavar="NAME", help="The column it is for.")]
    kind: Annotated[str, typer.Option(metavar="KIND", help="intervals, prefix, redaction, dates or groups.")]
    out: Annotated[Path, typer.Option(metavar="FILE", help="A new file, in ARX's format.")]
    data: Annotated[str | None, typer.Argument(help="Rows to take the values from; the draft is then marked.")] = None
    steps: Annotated[
        str, typer.Option(metavar="A,B,C", help="Widths, lengths, periods or sizes, from fine to coarse.")
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
    """Draft a hierarchy and print what to write into the policy.

    Values come from a public list, a public range, or the rows. What was taken from rows is marked in the policy, since
    the file has no place for a mark: no promise rests on it until its owner names a public source that says the same.
    """
    from incrowd.workflows.hierarchies.build import HierarchyRequest

    steps = tuple(step.strip() for step in options.steps.split(",") if step.strip())
    built = _built(options, HierarchyRequest(options.column, options.kind, steps))
    _write(built.table.text(), options.out)
    snippet = _snippet(built, options.out)
    if options.json:
        found = {"file": str(options.out), "values": len(built.table.rows), "levels": built.column.hierarchy.height}
        print_json(found | {"derived": "rows" if built.derived else None, "policy": snippet})
    else:
        _show(built, options.out, snippet)


def _built(options: BuildOptions, wish: HierarchyRequest) -> Built:
    from incrowd.workflows.hierarchies.build import from_range, from_rows, from_values
    from incrowd.workflows.policy.rows import open_rows

    given = [each for each in (options.data, options.values, options.range) if each is not None]
    if len(given) != 1:
        raise InvalidParameter("take the values from one place: DATA, --values or --range.")
    if options.values is not None:
        return from_values(wish, _lines(options.values))
    if options.range is not None:
        low, comma, high = options.range.partition(",")
        if not comma:
            raise InvalidParameter("a range is written LOW,HIGH, such as 0,99.")
        return from_range(wish, low.strip(), high.strip())
    return from_rows(wish, open_rows(options.data, None))


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
        raise OutputUnavailable(f"{target} exists, and nothing is overwritten. Choose another name.") from None
    except OSError as error:
        raise OutputUnavailable(f"{target} could not be written: {error.strerror}.") from None


def _snippet(built: Built, out: Path) -> str:
    mark = ", derived: rows" if built.derived else ""
    return f"{built.column.name}: {{type: {built.column.type}, hierarchy: {{file: {out.name}{mark}}}}}"


def _show(built: Built, out: Path, snippet: str) -> None:
    print(f"{out}: {len(built.table.rows):,} values, levels 0 to {built.column.hierarchy.height}.")
    print(f"\nIn the policy, with the role you decide on:\n\n  {snippet}\n")
    if built.derived:
        print(
            "It was drafted from rows: it lists values that occur there, so keep it internal. It voids every promise "
            'but k-anonymity until you add public: "source", where a public source says the same.'
        )
