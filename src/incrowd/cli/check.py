"""`incrowd check`: whether a table already meets k-anonymity, l-diversity, t-closeness and the other criteria."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, Remote, takes
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from fractions import Fraction

    from incrowd.workflows.check.check import CheckResult
    from incrowd.workflows.check.criteria import CriterionFinding, Wanted

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
    recursive: Annotated[
        str | None,
        typer.Option(
            metavar="C,L", help="The most frequent sensitive value is rarer than C times all but the L − 1 most."
        ),
    ] = None
    beta: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="No sensitive value gains more than this in a class (β-likeness)."),
    ] = None
    enhanced_beta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The same, with less for values that are frequent everywhere.")
    ] = None
    disclosure: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="The logarithm of a ratio of shares stays below it (δ-disclosure)."),
    ] = None
    present_disclosure: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The same for the values that a class shows, as ARX judges.")
    ] = None
    harmless: Annotated[
        list[str], typer.Option(metavar="VALUE", help="A sensitive value that gives nothing away, such as healthy.")
    ] = field(default_factory=list)
    average_risk: Annotated[
        str | None, typer.Option(metavar="SHARE", help="At most so likely is a row found, on average.")
    ] = None
    unique: Annotated[
        str | None,
        typer.Option(metavar="SHARE,PEOPLE", help="At most such a share of rows is unique among so many people."),
    ] = None
    population: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One row for each person from whom the table could come.")
    ] = None
    k_map: Annotated[
        int | None, typer.Option(metavar="COUNT", help="At least so many people of the population look like each row.")
    ] = None
    presence: Annotated[
        str | None,
        typer.Option(metavar="LEAST,MOST", help="Between such shares of the people of a class are in the table."),
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

    The table is taken as it is, value by value. With a policy, what its method demands must hold, or else its k over
    all released columns; and no other column may be there. Nothing is written but the numbers; rows that only
    --recoded would hide are not hidden.
    """
    from incrowd.engines.choose import engine_of
    from incrowd.workflows.check.check import CheckedColumns
    from incrowd.workflows.check.check import check as checked
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import open_rows, released_levels, settings_of

    wanted = _criteria(options)
    quasi = tuple(name.strip() for name in (options.quasi or "").split(",") if name.strip())
    policy = None if options.policy is None else load_policy(options.policy)
    asked = CheckedColumns(quasi, tuple(options.sensitive), options.recoded, released_levels(options.data))
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


def _criteria(options: CheckOptions) -> Wanted:
    """Return what is expected, from the words of the command line."""
    from incrowd.methods.anonymity.syntactic.population import Population, Presence, Unique
    from incrowd.methods.anonymity.syntactic.sensitive import Recursive, Sensitive
    from incrowd.workflows.check.criteria import Wanted

    recursive, unique, presence = (
        _numbers(getattr(options, name), name, 2) for name in ("recursive", "unique", "presence")
    )
    beta, enhanced, disclosure, present, risk = (
        _numbers(getattr(options, name), name, 1)
        for name in ("beta", "enhanced_beta", "disclosure", "present_disclosure", "average_risk")
    )
    there = None if presence is None else Presence(presence[1], presence[0])
    if options.population is None and (there is not None or options.k_map is not None):
        raise InvalidParameter("k-map and presence compare with a population: name its file with --population.")
    sensitive = Sensitive(
        recursive=None if recursive is None else Recursive(recursive[0], _whole(recursive[1], "L of --recursive")),
        beta=None if beta is None else beta[0],
        enhanced_beta=None if enhanced is None else enhanced[0],
        disclosure=None if disclosure is None else disclosure[0],
        present_disclosure=None if present is None else present[0],
        harmless=tuple(options.harmless),
    )
    return Wanted(
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
    """Return the numbers that an option was given, with commas between them; None if it was not."""
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
    meanings = {finding.criterion: finding.means for finding in verdict.findings}
    over = {finding.criterion: finding.over for finding in verdict.findings}
    quasi = next(over[name] for name in ("k-anonymity", *over) if name in over and name != "columns")
    told = [f"quasi-identifiers: {', '.join(quasi)}.", *(f"{name}: {means}." for name, means in meanings.items())]
    print_table(title, rows, "\n".join(told), header=header)


def _number(finding: CriterionFinding) -> str:
    if finding.found is None:
        return "no rows"
    named = f" ({', '.join(finding.over)})" if finding.criterion == "columns" and finding.over else ""
    return f"{finding.found:.6g}{named}"
