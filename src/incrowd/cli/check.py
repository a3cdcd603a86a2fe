"""`incrowd check`: whether a table already meets k-anonymity, l-diversity, t-closeness and the other criteria."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, NoLimits, ReadingOptions, Remote, takes
from incrowd.cli.output import print_json, print_table, print_text
from incrowd.cli.progress import progress, watched
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from incrowd.workflows.check.check import CheckResult
    from incrowd.workflows.check.criteria import CheckCriteria, CriterionFinding
    from incrowd.workflows.check.published.reading import PublishedCounts
    from incrowd.workflows.check.verdict import FileVerdict
    from incrowd.workflows.profile.profile import ColumnProfile

_FAILED = 1
_ABOUT_COLUMNS = ("columns", "identifiers")
_SIGNS = {True: "✓", False: "✗", None: " "}


@dataclass(frozen=True)
class CheckOptions(ReadingOptions):
    """The options of `incrowd check`."""

    data: Annotated[
        str | None, typer.Argument(help="The table, or the folder of a release; default: the policy's source.")
    ] = None
    policy: Annotated[Path | None, typer.Option(metavar="FILE", help="The policy to check against.")] = None
    quasi: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The quasi-identifiers; by default those of the policy.")
    ] = None
    sensitive: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="A sensitive column; by default those of the policy.")
    ] = field(default_factory=list)
    k: Annotated[int | None, typer.Option(metavar="COUNT", help="Minimum size of an equivalence class (k).")] = None
    l: Annotated[  # noqa: E741 (the name that everyone knows it by)
        int | None,
        typer.Option(metavar="COUNT", help="Minimum number of sensitive values in a class (distinct l-diversity)."),
    ] = None
    entropy_l: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Minimum entropy l-diversity of a class.")
    ] = None
    t: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Maximum distance of a class from the whole column (t-closeness)."),
    ] = None
    recursive: Annotated[
        str | None,
        typer.Option(metavar="C,L", help="Recursive (c, l)-diversity of a class."),
    ] = None
    beta: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Maximum relative gain of a sensitive value in a class (β-likeness)."),
    ] = None
    enhanced_beta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Enhanced β-likeness: a lower limit for frequent values.")
    ] = None
    disclosure: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Maximum log ratio of shares (δ-disclosure privacy)."),
    ] = None
    present_disclosure: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="δ-disclosure of values that occur in a class, as in ARX.")
    ] = None
    harmless: Annotated[
        list[str], typer.Option(metavar="VALUE", help="A sensitive value that discloses nothing, such as healthy.")
    ] = field(default_factory=list)
    average_risk: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Maximum average re-identification risk.")
    ] = None
    unique: Annotated[
        str | None,
        typer.Option(metavar="SHARE,PEOPLE", help="Maximum share of rows unique in a population of this size."),
    ] = None
    population: Annotated[Path | None, typer.Option(metavar="FILE", help="Population table, one row per person.")] = (
        None
    )
    k_map: Annotated[
        int | None,
        typer.Option(metavar="COUNT", help="Minimum matching people in the population for each row (k-map)."),
    ] = None
    presence: Annotated[
        str | None,
        typer.Option(metavar="LEAST,MOST", help="Minimum and maximum δ-presence of a class."),
    ] = None
    recoded: Annotated[bool, typer.Option("--recoded", help="Generalize by the policy first.")] = False
    table: Annotated[
        bool | None,
        typer.Option("--table/--rows", help="DATA is a table of counts as published, or rows; default: as it looks."),
    ] = None
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --table: the column of numbers, one row per cell.")
    ] = None
    zeros: Annotated[
        bool | None,
        typer.Option(
            "--zeros-shown/--zeros-hidden", help="With --table: whether zeros are published; default: as it looks."
        ),
    ] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    no_limits: NoLimits = False
    json: Json = False


@takes(CheckOptions)
def check(options: CheckOptions) -> None:
    """Check whether a table can be published as it is. Exit 0 if yes, 1 if not.

    Without a policy, column roles are guessed and the verdict is one sentence. With a policy, the criteria of its
    method must hold, or else its k over all released columns, and no other column may be present. Columns that look
    like identifiers always fail. Values are checked as they are, unless --recoded is given.

    With --table, DATA is a table of counts with totals and hidden cells (*, x, <5, blank). Every hidden cell is listed
    with the interval that readers can infer, and the subtraction that gives it away. --k is the smallest count that
    may be shown.
    """
    from incrowd.engines.settings import engine_of
    from incrowd.workflows.check.check import CheckedColumns
    from incrowd.workflows.check.check import check as checked
    from incrowd.workflows.check.criteria import CheckCriteria
    from incrowd.workflows.check.verdict import K, verdict
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import open_rows, released_levels, settings_of

    criteria = _criteria(options)
    quasi = tuple(name.strip() for name in (options.quasi or "").split(",") if name.strip())
    policy = None if options.policy is None else load_policy(options.policy)
    columns = CheckedColumns(quasi, tuple(options.sensitive), options.recoded, released_levels(options.data))
    alone = (
        policy is None
        and options.data is not None
        and columns == CheckedColumns()
        and criteria == CheckCriteria(k=criteria.k)
    )
    published = _published(options) if alone or options.table else None
    if published is not None:
        if not _judge_table(published, options):
            raise typer.Exit(_FAILED)
        return
    with engine_of(settings_of(policy, options.data, options.engine, options.master, options.remote)) as engine:
        rows = open_rows(options.data, policy, options.source_options, engine)
        record_look(policy, "check")
        with progress(not options.json) as tell:
            seen = watched(rows, engine, tell)
            if alone:
                judged = verdict(seen, K if criteria.k is None else criteria.k, engine)
            else:
                result = checked(seen, criteria, columns, policy, engine)
    passed = _judge(judged, options, rows.notes) if alone else _report(result, options, rows.notes)
    if not passed:
        raise typer.Exit(_FAILED)


def _published(options: CheckOptions) -> PublishedCounts | None:
    """Return the table of counts that a file holds, if it is to be read as one; None for rows."""
    from incrowd.errors import IncrowdError
    from incrowd.workflows.check.published.reading import looks_published, read_published

    if options.table is False or (options.table is None and options.value is None and options.data is None):
        return None
    if options.data is None:
        raise InvalidParameter("--table needs the file of a published table: incrowd check --table FILE.")
    if options.table or options.value is not None:
        return read_published(options.data, options.source_options, options.value)
    try:
        return looks_published(options.data, options.source_options)
    except IncrowdError:  # the reader of rows reports what is wrong with the file
        return None


def _judge_table(table: PublishedCounts, options: CheckOptions) -> bool:
    """Show what readers of a published table of counts can infer."""
    from incrowd.workflows.check.published.judging import judge_published

    judged = judge_published(table, options.k, zeros=options.zeros)
    if options.json:
        print_json(judged.to_json())
        return judged.passed
    knows = f"A reader knows: {'; '.join(judged.knows)}."
    print_table(judged.sentence, judged.reasons() or (("no problem", "in any cell"),), knows)
    how = () if options.table else ("read as a table of counts; --rows reads it as rows",)
    _tell((*how, *judged.notes, "other tables about the same people can give more away"))
    return judged.passed


def _report(result: CheckResult, options: CheckOptions, notes: Sequence[str]) -> bool:
    if options.json:
        print_json(result.to_json() | {"notes": list(notes)})
    else:
        _show(result)
        _tell(notes)
    return result.passed


def _tell(notes: Sequence[str]) -> None:
    """Print how the table was read."""
    for note in notes:
        print_text(f"note: {note}.")


def _judge(judged: FileVerdict, options: CheckOptions, notes: Sequence[str]) -> bool:
    """Show what was guessed about a table without a policy."""
    data = options.data or ""
    if options.json:
        print_json(judged.to_json(data) | {"notes": list(notes)})
        return judged.passed
    print_table(judged.sentence, judged.reasons() or (("no problem", "in any column"),))
    roles = [(column.name, str(column.type), _guess(column, judged)) for column in judged.profile.columns]
    print_table(f"guessed from {judged.profile.rows:,} rows", roles, header=("column", "type", "role"))
    _tell(notes)
    print("\nnext" if notes else "next")
    for command, purpose in judged.commands(data):
        print(f"\n  {command}\n    {purpose}")
    return judged.passed


def _guess(column: ColumnProfile, judged: FileVerdict) -> str:
    if column.identity is not None:
        return f"identifier: {column.identity.kind}"
    role = "key" if column in judged.keys else "quasi" if column.name in judged.quasi else str(column.role)
    return f"{role}: {column.why_role}"


def _criteria(options: CheckOptions) -> CheckCriteria:
    """Return the criteria of the command line."""
    from incrowd.methods.anonymity.shared.demands import Population, Presence, Recursive, Sensitive, Unique
    from incrowd.workflows.check.criteria import CheckCriteria

    recursive, unique, presence = (
        _numbers(getattr(options, name), name, 2) for name in ("recursive", "unique", "presence")
    )
    beta, enhanced, disclosure, present, risk = (
        _numbers(getattr(options, name), name, 1)
        for name in ("beta", "enhanced_beta", "disclosure", "present_disclosure", "average_risk")
    )
    there = None if presence is None else Presence(presence[1], presence[0])
    if options.population is None and (there is not None or options.k_map is not None):
        raise InvalidParameter("k-map and presence need a population: give --population.")
    sensitive = Sensitive(
        recursive=None if recursive is None else Recursive(recursive[0], _whole(recursive[1], "L of --recursive")),
        beta=None if beta is None else beta[0],
        enhanced_beta=None if enhanced is None else enhanced[0],
        disclosure=None if disclosure is None else disclosure[0],
        present_disclosure=None if present is None else present[0],
        harmless=tuple(options.harmless),
    )
    return CheckCriteria(
        options.k,
        options.l,
        options.entropy_l,
        options.t,
        sensitive,
        average_risk=None if risk is None else risk[0],
        unique=None if unique is None else Unique(unique[0], _whole(unique[1], "PEOPLE of --unique")),
        population=None if options.population is None else Population(str(options.population), options.k_map, there),
    )


def _numbers(text: str | None, name: str, count: int) -> list[Fraction] | None:
    """Return the numbers of an option, separated by commas; None if it is missing."""
    from incrowd.core.rounding import exact

    if text is None:
        return None
    option, parts = f"--{name.replace('_', '-')}", text.split(",")
    if len(parts) != count:
        raise InvalidParameter(f"{option} takes {'one number' if count == 1 else 'two numbers, such as 2,3'}.")
    return [exact(part.strip(), option) for part in parts]


def _whole(number: Fraction, name: str) -> int:
    if number.denominator != 1:
        raise InvalidParameter(f"{name} is a whole number.")
    return int(number)


def _show(verdict: CheckResult) -> None:
    title = f"{'passed' if verdict.passed else 'FAILED'}: {verdict.rows:,} rows, {verdict.measured}"
    header = ("", "criterion", "expected", "found", "rows short")
    rows = [
        (
            _SIGNS[finding.passed],
            f"{finding.criterion}: {finding.sensitive}" if finding.sensitive else finding.criterion,
            "" if finding.expected is None else f"{finding.expected:g}",
            _number(finding),
            "" if finding.short is None else f"{finding.short:,}",
        )
        for finding in verdict.findings
    ]
    meanings = {finding.criterion: finding.measured.meaning.means for finding in verdict.findings}
    over = {finding.criterion: finding.over for finding in verdict.findings}
    quasi = next(over[name] for name in ("k-anonymity", *over) if name in over and name not in _ABOUT_COLUMNS)
    notes = [f"quasi-identifiers: {', '.join(quasi)}.", *(f"{name}: {means}." for name, means in meanings.items())]
    print_table(title, rows, "\n".join(notes), header=header)
    if verdict.identities:
        print_table(
            "possible identifiers", [(name, identity.sentence) for name, identity in verdict.identities.items()]
        )
    if verdict.unexamined:
        print(f"not examined: {', '.join(verdict.unexamined)}.")


def _number(finding: CriterionFinding) -> str:
    if finding.value is None:
        return "no rows"
    named = f" ({', '.join(finding.over)})" if finding.criterion in _ABOUT_COLUMNS and finding.over else ""
    return f"{finding.value:.6g}{named}"
