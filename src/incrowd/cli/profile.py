"""`incrowd profile`: what a table holds, and who could be singled out in it."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, ReadingOptions, Remote, takes
from incrowd.cli.output import print_json, print_table, print_text
from incrowd.cli.progress import progress, watched
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.workflows.profile.draft_text import DraftGoal

if TYPE_CHECKING:
    from incrowd.core.table import SourceOptions
    from incrowd.measures.risk.sketch import TupleSpread
    from incrowd.workflows.profile.draft_policy import Draft
    from incrowd.workflows.profile.profile import TableProfile

_SHOWN = 5


@dataclass(frozen=True)
class ProfileOptions(ReadingOptions):
    """What `incrowd profile` can be told."""

    data: Annotated[str | None, typer.Argument(help="The table; by default the policy's source.")] = None
    write: Annotated[Path | None, typer.Option(metavar="FILE", help="Draft a policy into a new file.")] = None
    goal: Annotated[
        DraftGoal,
        typer.Option("--for", metavar="GOAL", help="What the draft lets out: microdata, counts, queries, classic."),
    ] = DraftGoal.MICRODATA
    period: Annotated[
        str | None,
        typer.Option(metavar="YEARS", help="The time that the rows speak of, if public: 2024, 2023-2024, DAY to DAY."),
    ] = None
    public: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN=SOURCE", help="Where the values of a column are publicly listed; can be repeated."
        ),
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
    drafted policy rests on what is publicly known; whatever else was read off the rows is held back, or marked.
    """
    from incrowd.engines.settings import engine_of
    from incrowd.workflows.plan.outside import outside_of
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import reading, settings_of
    from incrowd.workflows.profile.profile import profile as profiled

    policy = None if options.policy is None else load_policy(options.policy)
    with engine_of(settings_of(policy, options.data, options.engine, options.master, options.remote)) as engine:
        address, read = reading(options.data, policy, options.told)
        rows = engine.open(address, read)
        record_look(policy, "profile")
        with progress(not options.json) as tell:
            found = profiled(watched(rows, engine, tell), engine)
        written = None if options.write is None else _write(found, str(address), options, read)
        judged = policy if options.write is None else load_policy(options.write)
        outside = () if judged is None else outside_of(judged, rows, engine)
    if options.json:
        print_json(_as_json(found, written, options.write) | {"outside": [each.to_json() for each in outside]})
    else:
        _show(found, (*rows.notes, *found.notes, *(each.sentence.removesuffix(".") for each in outside)))
        if written is not None and options.write is not None:
            _show_draft(written, options.write, options.goal)


def _write(found: TableProfile, data: str, options: ProfileOptions, read: SourceOptions) -> Draft:
    from incrowd.engines.readers.guess import policy_keys
    from incrowd.workflows.profile.draft_policy import draft, write_draft
    from incrowd.workflows.profile.draft_text import DraftPeriod, DraftRequest, Origin

    target = options.write or Path()
    pairs = [each.partition("=") for each in options.public]
    if not all(name and source for name, _, source in pairs):
        raise InvalidParameter('--public takes a column and where its values are listed: --public ward="staff guide".')
    sources = {name: source for name, _, source in pairs}
    period = None if options.period is None else DraftPeriod(options.period)
    origin = Origin(_seen_from(target.resolve().parent, data), policy_keys(read))
    made = draft(found, origin, DraftRequest(options.goal, period, sources))
    write_draft(made.text, target)
    return made


def _as_json(found: TableProfile, made: Draft | None, target: Path | None) -> dict[str, object]:
    from incrowd.workflows.profile.profile import person_column

    person = person_column(found)
    drafted = {} if made is None else {"released": made.released, "held_back": {c.name: c.why for c in made.held_back}}
    return {
        **found.to_json(),
        "person": None if person is None else person.to_json(),
        "written": None if target is None else str(target),
        **drafted,
    }


def _seen_from(folder: Path, data: str) -> str:
    """Return how a policy in that folder names the data: a path from there, or an address as it is."""
    from incrowd.core.table import IN_ENGINE

    if "://" in data or data.startswith(IN_ENGINE):
        return data
    return Path(os.path.relpath(Path(data).resolve(), folder)).as_posix()


def _show(found: TableProfile, notes: tuple[str, ...]) -> None:
    from incrowd.workflows.profile.profile import person_column

    header = ("column", "type", "role", "different", "missing", "alone", "values")
    rows = [
        (
            column.name,
            str(column.type),
            str(column.role),
            _number(column.facts.spread.distinct, column.facts.spread),
            f"{column.facts.missing:,}",
            f"{column.facts.spread.unique_share:.1%}",
            column.summary,
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
        print_text("No two or three columns single anybody out.")
    for column in found.columns:
        if column.facts.nearly is not None:
            notes += (f"{column.name}: {column.facts.nearly.sentence}",)
    person = person_column(found)
    if person is not None:
        people = f"{'' if person.exact else 'about '}{person.people:,} of them"
        notes += (f"{person.name} tells people apart: {people}, with at most {counted(person.most_rows, 'row')} each",)
    for note in notes:
        print_text(f"note: {note}{'' if note.endswith('?') else '.'}")


def _show_draft(made: Draft, target: Path, goal: DraftGoal) -> None:
    """Say what a draft lets out, what it holds back, and what comes next."""
    print()
    print_text(f"A policy for {goal} was drafted into {target}. It lets out: {', '.join(made.released)}.")
    for column in made.held_back:
        print_text(f"held back: {column.name}: {column.why}.")
    marked = [column.name for column in made.columns if column.released and column.marked]
    if marked:
        vouch = f"; where the values are publicly listed, draft again with --public {shlex.quote(marked[0])}=WHERE"
        print_text(f"read off the rows, and marked: {', '.join(marked)}{'' if goal is DraftGoal.CLASSIC else vouch}.")
    if made.person is not None:
        print_text(f"people are told apart by {made.person.name}, and one row of each takes part.")
    verb = 'query "SELECT COUNT(*) FROM rows" --epsilon 0.1' if goal is DraftGoal.QUERIES else "plan"
    print(f"\nnext\n\n  incrowd {verb} --policy {shlex.quote(str(target))}")


def _number(number: int, spread: TupleSpread) -> str:
    return f"{number:,}" if spread.exact else f"about {float(f'{number:.3g}'):,.0f}"
