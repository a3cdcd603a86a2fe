"""`incrowd series`: the same release every period."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.options import Json, Who, person, takes
from incrowd.cli.output import cost_text, print_json, print_table, print_text

if TYPE_CHECKING:
    from incrowd.workflows.policy.policy import Policy
    from incrowd.workflows.series.series import PeriodStatus, Series, SeriesRun

PolicyFile = Annotated[Path, typer.Option("--policy", help="The policy file, with period:.")]
Data = Annotated[str | None, typer.Argument(help="The table; by default the policy's source.")]
_FAILED = 1
series = typer.Typer(help="Release the same table every period, under one budget.", no_args_is_help=True)


@dataclass(frozen=True)
class SeriesPlanOptions:
    """The options of `incrowd series plan`."""

    policy: PolicyFile
    json: Json = False


@series.command("plan")
@takes(SeriesPlanOptions)
def plan(options: SeriesPlanOptions) -> None:
    """Show what all releases of a series guarantee and cost. Spends nothing, and reads no rows."""
    from incrowd.workflows.series.outlook import outlook_of

    outlook = outlook_of(_policy(options.policy))
    if options.json:
        print_json(outlook.to_json())
    else:
        print_table("Series (nothing spent)", outlook.lines)
        if outlook.strategies:
            print_table("Noise by plan", outlook.strategies, header=outlook.header)
    if outlook.refusal is not None:
        raise typer.Exit(_FAILED)


@dataclass(frozen=True)
class SeriesRunOptions:
    """The options of `incrowd series run`."""

    policy: PolicyFile
    out: Annotated[Path, typer.Option("--out", help="A folder: each period gets a folder of its name there.")]
    data: Data = None
    period: Annotated[
        str | None, typer.Option("--period", metavar="PERIOD", help="The period to release, such as 2025-03.")
    ] = None
    until: Annotated[
        str | None, typer.Option("--until", metavar="PERIOD", help="Release every open period up to this one.")
    ] = None
    again: Annotated[
        bool, typer.Option("--again", help="Release a period again that was charged before: charged in sequence.")
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Release even if probably empty.")] = False
    form: Annotated[str, typer.Option("--format", help="parquet, csv or tsv.")] = "parquet"
    json: Json = False


@series.command("run")
@takes(SeriesRunOptions)
def run(options: SeriesRunOptions) -> None:
    """Release one period, or every open one up to a period.

    A period that was published is returned as it is: nothing is drawn or charged twice. A period whose rows were opened
    and whose release was not delivered is missing.
    """
    from incrowd.errors import InvalidParameter
    from incrowd.workflows.release.deliver import Destination
    from incrowd.workflows.series.series import RunTerms, SeriesPlaces, run_period, run_series

    if (options.period is None) == (options.until is None):
        raise InvalidParameter("give --period PERIOD for one period, or --until PERIOD for all open ones up to it.")
    if options.again and options.period is None:
        raise InvalidParameter("--again releases one period: give it with --period.")

    def make(folder: Path) -> Destination:
        return Destination(folder, options.form)

    policy = _policy(options.policy)
    if options.period is not None:
        place = make(options.out / options.period)
        terms = RunTerms(options.again, options.force)
        runs: Any = [run_period(options.data, policy, options.period, place, terms)]
    else:
        runs = run_series(options.data, policy, SeriesPlaces(options.out, options.until, make, options.force))
    plain = []
    for made in runs:
        if options.json:
            plain.append(_plain(made))
        else:
            print_text(_sentence(made))
    if options.json:
        print_json({"periods": plain})


def _plain(made: SeriesRun | PeriodStatus) -> dict[str, Any]:
    from incrowd.workflows.series.series import PeriodStatus

    if isinstance(made, PeriodStatus):
        return made.to_json()
    facts = {"period": made.label, "state": "released" if made.new else "published before"}
    return {**facts, "folder": str(made.folder), "certificate": made.certificate.digest()}


def _sentence(made: SeriesRun | PeriodStatus) -> str:
    from incrowd.workflows.series.series import PeriodState, PeriodStatus

    if isinstance(made, PeriodStatus) and made.state is PeriodState.MISSING:
        return f"{made.label}: missing; its charge is not refunded"
    if isinstance(made, PeriodStatus):
        return f"{made.label}: published before"
    state = "released into" if made.new else "published before, in"
    return f"{made.label}: {state} {made.folder}"


@dataclass(frozen=True)
class SeriesStatusOptions:
    """The options of `incrowd series status`."""

    policy: PolicyFile
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write a page of the whole series to this new file.")
    ] = None
    json: Json = False


@series.command("status")
@takes(SeriesStatusOptions)
def status(options: SeriesStatusOptions) -> None:
    """Show which periods were published, which are missing, and what each has spent."""
    from incrowd.workflows.series.series import Series

    chosen = Series.of(_policy(options.policy))
    if options.out is not None:
        from incrowd.workflows.series.page import write_page

        write_page(chosen, options.out)
    if options.json:
        periods = [period.to_json() for period in chosen.status()]
        print_json({"series": chosen.name, "closed": chosen.closed, "periods": periods})
        return
    rows = [(period.label, str(period.state), _spent(period, chosen)) for period in chosen.status()]
    state = "closed" if chosen.closed else "open"
    print_table(f"Series {chosen.name} of {chosen.policy.name}, {state}", rows, header=("period", "state", "spent"))


def _spent(period: PeriodStatus, chosen: Series) -> str:
    together = chosen.policy.releases is not None and bool(period.releases)
    alone = period.alone
    if alone is None:
        return "with the series" if together else ""
    own = cost_text(str(alone.epsilon), str(alone.delta)) if period.bounded else "no bound on the privacy loss"
    return f"with the series; other releases: {own}" if together else own


@dataclass(frozen=True)
class SeriesCloseOptions:
    """The options of `incrowd series close`."""

    policy: PolicyFile
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, kept in the ledger.")]
    who: Who = None
    json: Json = False


@series.command("close")
@takes(SeriesCloseOptions)
def close(options: SeriesCloseOptions) -> None:
    """Close a series: nothing more is released in it, and nothing is refunded."""
    from incrowd.workflows.series.series import close_series

    close_series(_policy(options.policy), person(options.who), options.why)
    if options.json:
        print_json({"closed": True})
    else:
        print_text("The series is closed. Nothing was refunded.")


def _policy(path: Path) -> Policy:
    from incrowd.workflows.policy.policy import load_policy

    return load_policy(path)
