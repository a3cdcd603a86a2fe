"""`incrowd profile`: what a table holds, and who could be singled out in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, Remote, takes
from incrowd.cli.output import print_json, print_table

if TYPE_CHECKING:
    from incrowd.measures.sketch import TupleSpread
    from incrowd.workflows.profile.profile import TableProfile

_SHOWN = 5


@dataclass(frozen=True)
class ProfileOptions:
    """What `incrowd profile` can be told."""

    data: Annotated[str | None, typer.Argument(help="The table; by default the policy's source.")] = None
    write: Annotated[Path | None, typer.Option(metavar="FILE", help="Draft a policy into a new file.")] = None
    nulls: Annotated[
        list[str], typer.Option(metavar="TEXT", help="How a missing value is spelled, such as NA; can be repeated.")
    ] = field(default_factory=list)
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A policy that says how the source is read; its ledger is told.")
    ] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    json: Json = False


@takes(ProfileOptions)
def profile(options: ProfileOptions) -> None:
    """Show types, guessed roles with reasons, and which columns single people out.

    Every row is read; memory stays bounded. What is printed holds values of the data: it is for its holder only. A
    drafted policy marks whatever was read off the rows, and promises nothing before its owner has decided.
    """
    from incrowd.engines.choose import engine_of
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import open_rows, settings_of
    from incrowd.workflows.profile.profile import profile as profiled

    policy = None if options.policy is None else load_policy(options.policy)
    with engine_of(settings_of(policy, options.data, options.engine, options.master, options.remote)) as engine:
        rows = open_rows(options.data, policy, tuple(options.nulls), engine)
        record_look(policy, "profile")
        found = profiled(rows, engine)
    if options.write is not None:
        _write(found, options.data or (policy.source if policy else None) or "", options.write, tuple(options.nulls))
    if options.json:
        print_json(found.to_json() | {"written": None if options.write is None else str(options.write)})
    else:
        _show(found, (*rows.notes, *found.notes), options.write)


def _write(found: TableProfile, data: str, target: Path, nulls: tuple[str, ...]) -> None:
    from incrowd.workflows.profile.draft_policy import Origin, draft, write_draft

    write_draft(draft(found, Origin(_seen_from(target.resolve().parent, data), nulls)), target)


def _seen_from(folder: Path, data: str) -> str:
    """Return how a policy in that folder names the data: a path from there, or an address as it is."""
    from incrowd.core.table import IN_ENGINE

    if "://" in data or data.startswith(IN_ENGINE):
        return data
    return Path(os.path.relpath(Path(data).resolve(), folder)).as_posix()


def _show(found: TableProfile, notes: tuple[str, ...], written: Path | None) -> None:
    header = ("column", "type", "role", "different", "missing", "alone", "values")
    rows = [
        (
            column.name,
            str(column.type),
            str(column.role),
            _number(column.facts.spread.distinct, column.facts.spread),
            f"{column.facts.missing:,}",
            f"{column.facts.spread.unique_share:.1%}",
            column.shown,
        )
        for column in found.columns
    ]
    print_table(f"{found.rows:,} rows", rows, "alone: rows with a value that no other row has", header=header)
    why = [
        (column.name, f"{column.type}: {column.why_type}; {column.role}: {column.why_role}") for column in found.columns
    ]
    print_table("Why", why)
    for size, title in ((2, "Two columns that single people out"), (3, "Three columns")):
        most = [subset for subset in found.subsets if len(subset.columns) == size and subset.spread.unique][:_SHOWN]
        lines = [(f"{subset.spread.unique_share:.1%}", ", ".join(subset.columns)) for subset in most]
        if lines:
            print_table(title, lines, header=("alone", "columns"))
    if found.subsets and not any(subset.spread.unique for subset in found.subsets):
        print("No two or three columns single anybody out.")
    for note in notes:
        print(f"note: {note}.")
    if written is not None:
        print(f"A policy was drafted into {written}: read its comments, they say what is yours to decide.")


def _number(number: int, spread: TupleSpread) -> str:
    return f"{number:,}" if spread.exact else f"about {float(f'{number:.3g}'):,.0f}"
