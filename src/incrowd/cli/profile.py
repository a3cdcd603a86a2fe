"""`incrowd profile`: the columns of a table, and which of them single people out."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, NoLimits, ReadingOptions, Remote, takes
from incrowd.cli.output import print_json, print_table, print_text
from incrowd.cli.progress import progress, watched
from incrowd.cli.published import show_routes
from incrowd.core.schema import Role
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.workflows.profile.draft_text import DraftGoal, IntendedUse, Readers

if TYPE_CHECKING:
    from incrowd.core.table import SourceOptions
    from incrowd.measures.risk.sketch import TupleSpread
    from incrowd.workflows.plan.routes import RouteTable
    from incrowd.workflows.profile.draft_policy import Draft
    from incrowd.workflows.profile.profile import TableProfile

_SHOWN = 5


@dataclass(frozen=True)
class ProfileOptions(ReadingOptions):
    """The options of `incrowd profile`."""

    data: Annotated[str | None, typer.Argument(help="The table; by default the policy's source.")] = None
    write: Annotated[Path | None, typer.Option(metavar="FILE", help="Draft a policy into a new file.")] = None
    goal: Annotated[
        DraftGoal | None,
        typer.Option(
            "--for",
            metavar="GOAL",
            help="What the draft releases: microdata, synthetic, counts, table, queries, classic; by default what is "
            "recommended.",
        ),
    ] = None
    keep: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="A column that the release must keep; can be repeated.")
    ] = field(default_factory=list)
    use: Annotated[IntendedUse, typer.Option(metavar="USE", help="What readers need: rows or tables.")] = (
        IntendedUse.ROWS
    )
    readers: Annotated[
        Readers | None,
        typer.Option(metavar="WHO", help="Readers: public, contract (named recipients), or own (one organization)."),
    ] = None
    rows: Annotated[int | None, typer.Option(min=1, help="Approximate number of rows, if public.")] = None
    population: Annotated[int | None, typer.Option(min=1, help="How many people it could be about, if public.")] = None
    period: Annotated[
        str | None,
        typer.Option(metavar="YEARS", help="Reference period, if public: 2024, 2023-2024, DAY to DAY."),
    ] = None
    public: Annotated[
        list[str],
        typer.Option(metavar="COLUMN=SOURCE", help="Public source of a column's values; can be repeated."),
    ] = field(default_factory=list)
    unit: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The person ID column: each of its values is one person.")
    ] = None
    confirm: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="Confirm the suggested cleaning of a column, or of all; can be repeated."),
    ] = field(default_factory=list)
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the source as this policy says; its ledger records the access."),
    ] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    no_limits: NoLimits = False
    json: Json = False


@takes(ProfileOptions)
def profile(options: ProfileOptions) -> None:
    """Show types and guessed roles of columns, with reasons, and which columns single people out.

    Every row is read, in bounded memory. The output contains values of the data and is internal. A drafted policy uses
    public values. Columns with other values are not released, or marked as data-dependent.
    """
    from incrowd.engines.settings import engine_of
    from incrowd.workflows.plan.outside import outside_of
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import reading, settings_of
    from incrowd.workflows.profile.profile import profile as profiled

    policy = None if options.policy is None else load_policy(options.policy)
    with engine_of(settings_of(policy, options.data, options.engine, options.master, options.remote)) as engine:
        address, read = reading(options.data, policy, options.source_options)
        rows = engine.open(address, read)
        record_look(policy, "profile")
        with progress(not options.json) as tell:
            profiled_table = profiled(watched(rows, engine, tell), engine, read.clean if policy is None else None)
        written = None if options.write is None else _write(profiled_table, str(address), options, read)
        judged = policy if options.write is None else load_policy(options.write)
        cleaned_rows = rows
        if options.write is not None and judged is not None:  # as a release reads them: cells are cleaned
            cleaned_rows = engine.open(address, judged.options)
        outside = () if judged is None else outside_of(judged, cleaned_rows, engine)
    if options.json:
        print_json(_as_json(profiled_table, written, options) | {"outside": [column.to_json() for column in outside]})
    else:
        _show(
            profiled_table,
            (*rows.notes, *profiled_table.notes, *(column.sentence.removesuffix(".") for column in outside)),
            options.unit,
        )
        if written is not None and options.write is not None:
            _show_draft(written, options.write)
            _ask(options, any(column.section.get("type") == "date" for column in written.draft.columns))
            verb = 'query "SELECT COUNT(*) FROM rows" --epsilon 0.1' if written.goal is DraftGoal.QUERIES else "plan"
            print(f"next\n\n  incrowd {verb} --policy {shlex.quote(str(options.write))}")


@dataclass(frozen=True)
class WrittenDraft:
    """A draft, its goal, and the routes that were compared."""

    draft: Draft
    goal: DraftGoal
    routes: RouteTable


def _write(profile: TableProfile, data: str, options: ProfileOptions, read: SourceOptions) -> WrittenDraft:
    from incrowd.engines.readers.guess import policy_keys
    from incrowd.workflows.plan.routes import RouteNeeds, routes_of
    from incrowd.workflows.policy.document import read_document
    from incrowd.workflows.profile.draft_policy import draft, origin_of, write_draft
    from incrowd.workflows.profile.draft_text import DraftPeriod, DraftRequest

    target = options.write or Path()
    pairs = [text.partition("=") for text in options.public]
    if not all(name and source for name, _, source in pairs):
        raise InvalidParameter('--public takes a column and where its values are listed: --public ward="staff guide".')
    sources = {name: source for name, _, source in pairs}
    period = None if options.period is None else DraftPeriod(options.period)
    origin = origin_of(profile, _seen_from(target.resolve().parent, data), policy_keys(read))
    keep = tuple(options.keep)
    wish = DraftRequest(
        options.goal or DraftGoal.MICRODATA,
        period,
        sources,
        keep,
        options.rows,
        options.population,
        options.unit,
        _confirmed(profile, options),
        options.readers,
    )
    made = draft(profile, origin, wish)
    needs = RouteNeeds(keep, options.use, options.readers)
    routes = routes_of(read_document(made.text).content, target.resolve().parent, needs)
    if options.goal is None and routes.recommended is not None and options.rows is not None:
        wish = replace(wish, goal=routes.recommended)
        made = draft(profile, origin, wish)
    write_draft(made.text, target)
    return WrittenDraft(made, wish.goal, routes)


def _confirmed(profile: TableProfile, options: ProfileOptions) -> frozenset[str]:
    if options.confirm == ["all"]:
        return frozenset(column.name for column in profile.columns if column.clean is not None)
    return frozenset(options.confirm)


def _as_json(profile: TableProfile, written: WrittenDraft | None, options: ProfileOptions) -> dict[str, object]:
    from incrowd.workflows.profile.profile import person_column, person_questions

    person, target = person_column(profile, options.unit), options.write
    drafted: dict[str, object] = {}
    if written is not None:
        held_back = {column.name: column.why for column in written.draft.held_back}
        drafted = {"goal": str(written.goal), "released": written.draft.released, "held_back": held_back}
        drafted |= {"routes": written.routes.to_json()}
    return {
        **profile.to_json(),
        "person": None if person is None else person.to_json(),
        "questions": [question.to_json() for question in person_questions(profile, options.unit)],
        "written": None if target is None else str(target),
        **drafted,
    }


def _seen_from(folder: Path, data: str) -> str:
    """Return how a policy in that folder names the data: a path from there, or an address as it is."""
    from incrowd.core.table import IN_ENGINE
    from incrowd.engines.readers.remote import public_source

    if "://" in data or data == "-" or data.startswith(IN_ENGINE):
        return public_source(data)
    return Path(os.path.relpath(Path(data).resolve(), folder)).as_posix()


def _show(profile: TableProfile, notes: tuple[str, ...], unit: str | None) -> None:
    from incrowd.workflows.profile.profile import person_column, person_questions

    header = ("column", "type", "role", "distinct", "missing", "unique", "values")
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
        for column in profile.columns
    ]
    print_table(f"{profile.rows:,} rows", rows, "unique: rows whose value no other row has", header=header)
    why = [
        (column.name, f"{column.type}: {column.why_type}; {column.role}: {column.why_role}")
        for column in profile.columns
    ]
    print_table("Why", why)
    for size, title in ((2, "Two columns that single people out"), (3, "Three columns")):
        most = [subset for subset in profile.subsets if len(subset.columns) == size and subset.spread.unique][:_SHOWN]
        lines = [(f"{subset.spread.unique_share:.1%}", ", ".join(subset.columns)) for subset in most]
        if lines:
            print_table(title, lines, header=("unique", "columns"))
    if profile.subsets and not any(subset.spread.unique for subset in profile.subsets):
        print_text("No two or three columns single out a person.")
    for column in profile.columns:
        if column.facts.nearly is not None:
            notes += (f"{column.name}: {column.facts.nearly.sentence}",)
        elif column.clean is not None and column.role is not Role.IDENTIFIER:
            notes += (column.clean.sentence(column.name),)
    if profile.totals:
        labels = " ".join(f"--totals {shlex.quote(label)}" for label in profile.totals)
        notes += (
            f"rows that begin with {', '.join(map(repr, profile.totals))} look like sums; leave them out: {labels}",
        )
    person = person_column(profile, unit)
    if person is not None:
        people = f"{'' if person.exact else 'about '}{person.people:,} people"
        notes += (f"person ID column: {person.name}, {people}, at most {counted(person.most_rows, 'row')} each",)
    notes += tuple(question.sentence for question in person_questions(profile, unit))
    for note in notes:
        print_text(f"note: {note}{'' if note.endswith('?') else '.'}")


def _show_draft(written: WrittenDraft, target: Path) -> None:
    """Print the routes, what the draft releases, and what it does not."""
    made, goal = written.draft, written.goal
    show_routes(written.routes)
    print_text(f"A policy for {goal} was drafted into {target}. It releases: {', '.join(made.released)}.")
    for why, names in _reasons(made).items():
        print_text(f"not released: {', '.join(names)}: {why}.")
    marked = [column.name for column in made.columns if column.released and column.marked]
    if marked:
        vouch = f"; if the values are public, draft again with --public {shlex.quote(marked[0])}=WHERE"
        print_text(f"marked as data-dependent: {', '.join(marked)}{'' if goal is DraftGoal.CLASSIC else vouch}.")
    if made.undeclared and goal is DraftGoal.SYNTHETIC:
        print_text(
            f"* in every row: {', '.join(made.undeclared)}: declare bounds of numbers, or categories, from public "
            f"knowledge, or draft again with --public {shlex.quote(made.undeclared[0])}=WHERE."
        )
    if made.person is not None:
        rows = "every row is counted, those of one person in a cell as one contribution"
        rows = rows if goal is DraftGoal.TABLE else "one row per person is used"
        print_text(f"person ID column: {made.person.name}; {rows}.")
    print()


def _ask(options: ProfileOptions, dated: bool) -> None:
    """Print what a draft would be better for, as far as the request left it open; a period where there are dates."""
    questions = {
        "which columns must stay? --keep COLUMN": not options.keep,
        "who will use it? --readers public, contract or own": options.readers is None,
        "which years are the rows about, if that is public? --period YEARS": dated and options.period is None,
        "about how many rows, if that is public? --rows N": options.rows is None,
        "about how many people could it be about, if that is public? --population N": options.population is None,
    }
    questions_left = [question for question, unknown in questions.items() if unknown]
    if questions_left:
        print_table("A better draft: answer these, and draft again", [(question,) for question in questions_left])


def _reasons(made: Draft) -> dict[str, list[str]]:
    """Return the columns that are held back, by the reason."""
    reasons: dict[str, list[str]] = {}
    for column in made.held_back:
        reasons.setdefault(column.why, []).append(column.name)
    return reasons


def _number(number: int, spread: TupleSpread) -> str:
    return f"{number:,}" if spread.exact else f"about {float(f'{number:.3g}'):,.0f}"
