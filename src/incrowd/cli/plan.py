"""`incrowd plan`: a dry run of a release."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, ReadingOptions, Remote, takes
from incrowd.cli.output import loss_text, print_json, print_table, print_text, shown_place
from incrowd.cli.published import show_published
from incrowd.core.loss import Syntactic
from incrowd.core.schema import Role
from incrowd.core.terms import joined
from incrowd.errors import InvalidParameter, Refused

if TYPE_CHECKING:
    from incrowd.core.table import Engine, Rows
    from incrowd.methods.anonymity.search.optimal import Progress
    from incrowd.workflows.plan.compare import Route
    from incrowd.workflows.plan.explore import Choice, Explored, Offer
    from incrowd.workflows.plan.forecast import Forecast, Nearest
    from incrowd.workflows.plan.outside import OutsideValues
    from incrowd.workflows.policy.policy import Policy

_INTERNAL = "Computed from the original rows: keep it apart from the release. The ledger records this access."
_HEADER = ("loss", "suppressed", "smallest", "levels above the finest")
_SHOWN = 20


@dataclass(frozen=True)
class PlanOptions(ReadingOptions):
    """The options of `incrowd plan`."""

    policy: Annotated[Path, typer.Option("--policy", help="The policy file.")]
    data: Annotated[str | None, typer.Argument(help="The table; it is checked as in a release.")] = None
    minimal: Annotated[
        bool,
        typer.Option("--minimal", help="Read the rows and list all minimal levels; the ledger records the access."),
    ] = False
    frontier: Annotated[
        bool,
        typer.Option(
            "--frontier", help="Read the rows and show the loss at other k and suppression limits; recorded, too."
        ),
    ] = False
    look: Annotated[
        str | None,
        typer.Option("--look", metavar="EPSILON", help="Spend this ε to estimate what other levels, k and rates keep."),
    ] = None
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="With --look: write the policy of the best choice.")
    ] = None
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Compare methods at the same (ε, δ) by public numbers; with --look, by measurement."
        ),
    ] = False
    caps: Annotated[
        bool,
        typer.Option("--caps", help="For queries: show the noise of each max_rows; with --look, what it keeps."),
    ] = False
    last_step: Annotated[
        int | None, typer.Option("--last-step", metavar="STEP", help="Stop after this step of a list of masks.")
    ] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    json: Json = False


@takes(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Show a release's guarantee, cost and expected output. Spends nothing. Exit 1 if a release would be refused.

    With rows (DATA, or a source in the policy): run all checks of a release before its charge. The output tells only
    how many values lie outside their declared domain.

    --minimal, --frontier: search the levels of a table. The output is computed from the rows and is internal.

    --compare: compare methods at the same (ε, δ), by public numbers alone.

    --look EPSILON: spend this ε on a private preview. It estimates how many rows other levels, k and rates would keep,
    with confidence intervals. With --compare, it measures the error of method safe.

    --caps: for policies with queries, show the noise of a count under each max_rows up to the declared one, and bounds
    of the rows that it keeps; where dataset: rows is declared, recommend one by the worst case. With --look EPSILON, a
    query that costs this ε estimates the rows that each cap keeps, and the recommendation follows the estimates.
    """
    from dataclasses import replace

    from incrowd.cli.look import look_at, show_look
    from incrowd.engines.settings import override
    from incrowd.workflows.plan.forecast import plan as planned
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import read_as

    policy = read_as(load_policy(options.policy, options.last_step), options.source_options)
    policy = replace(policy, engine=override(policy.engine, options.engine, options.master, options.remote))
    if options.caps:
        from incrowd.cli.caps import show_caps

        show_caps(policy, options.data, options.look, json=options.json)
        return
    if options.compare:
        if options.write is not None:
            raise InvalidParameter("--write needs a private preview without --compare: leave --compare out.")
        _show_routes(policy, options.data, options.look, json=options.json)
        return
    if options.look is not None:
        looked = look_at(options.data, policy, options.policy, options.look, options.write)
        show_look(looked, options.write, json=options.json)
        return
    if options.write is not None:
        raise InvalidParameter("--write writes the policy chosen by a private preview: add --look EPSILON.")
    checked = _rows_checked(options, policy)
    explored, forecast = checked.explored, planned(policy, checked.refusal)
    if options.json:
        outside: dict[str, object] = (
            {"outside": [column.to_json() for column in checked.outside]} if checked.outside else {}
        )
        outside |= {"notes": [*checked.notes]} if checked.notes else {}
        print_json(_as_json(forecast) | outside | ({} if explored is None else {"explored": explored.to_json()}))
    else:
        _show(forecast)
        for note in (*checked.notes, *(column.sentence for column in checked.outside)):
            print_text(f"note: {note}")
        if forecast.allowed:
            verb = "release" if policy.graph is None else "graph release"
            print(f"next\n\n  incrowd {verb} --policy {shlex.quote(str(options.policy))} --out out\n")
        if explored is not None:
            show_explored(explored)
    if not forecast.allowed:
        raise typer.Exit(1)


def _show_routes(policy: Policy, data: str | None, epsilon: str | None, *, json: bool) -> None:
    """Print a comparison of methods by public numbers, or by a private preview."""
    from incrowd.workflows.plan.compare import compare
    from incrowd.workflows.plan.preview.preview import refine

    refined = None if epsilon is None else refine(data, policy, epsilon)
    comparison = compare(policy) if refined is None else refined.comparison
    if json:
        print_json(comparison.to_json() if refined is None else refined.to_json())
        return
    spent, measured = "no row read, nothing spent", ""
    if refined is not None:
        chosen = refined.looked.chosen
        spent = f"epsilon {chosen.epsilon} charged for a private preview (entry {chosen.entry})"
        measured = (
            " That of safe was measured with noise, relative to the declared number of rows; its 95 % confidence "
            f"interval is shown. Private preview: {refined.looked.sentence}"
        )
    print_table(
        f"methods for about {comparison.rows:,} rows: {spent}",
        map(_route, comparison.routes),
        "error: mean total variation over pairs of columns, due to noise or suppression alone. Model error comes on "
        f"top; tree and marginals measure it privately at release.{measured}",
        header=("method", "error", "epsilon, delta", "claim and limitation"),
    )


def _route(route: Route) -> tuple[str, ...]:
    if route.refusal is not None:
        return (route.method, "-", "-", route.refusal)
    error = "unknown" if route.error is None else f"{route.error:.2g}"
    if route.low is not None and route.high is not None:
        error = f"{error} ({route.low:.2g} to {route.high:.2g})"
    price = ", ".join(loss_text(float(amount or 0)) for amount in (route.epsilon, route.delta))
    return (route.method, error, price, f"{route.claim}; cannot {route.cannot}")


@dataclass(frozen=True)
class CheckedRows:
    """Why rows would be refused, what a search found, values outside their domain, and keys that lead nowhere."""

    refusal: str | None = None
    explored: Explored | None = None
    outside: tuple[OutsideValues, ...] = ()
    notes: tuple[str, ...] = ()


def _rows_checked(options: PlanOptions, policy: Policy) -> CheckedRows:
    """Return what the rows tell the data holder; empty without rows."""
    from incrowd.engines.settings import engine_of
    from incrowd.workflows.plan.outside import outside_of
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.release.prepare import open_data, rehearse

    if options.data is None and policy.source is None:
        if options.minimal or options.frontier:
            raise InvalidParameter("--minimal and --frontier read rows: give a table, or a source in the policy.")
        return CheckedRows()
    if policy.linked:
        if options.minimal or options.frontier:
            raise InvalidParameter(
                "--minimal and --frontier search the levels of one table, and these are linked ones."
            )
        return _linked_checked(options, policy)
    with engine_of(policy.engine) as engine:
        refusal = None
        try:
            rows = rehearse(options.data, policy, engine)
        except Refused as error:
            rows, refusal = open_data(options.data, policy, engine), str(error)
        if options.minimal or options.frontier:
            explored = explored_levels(policy, rows, engine, minimal=options.minimal, frontier=options.frontier)
            return CheckedRows(refusal, explored)
        record_look(policy, "plan")
        return CheckedRows(refusal, None, () if refusal else outside_of(policy, rows, engine))


def _linked_checked(options: PlanOptions, policy: Policy) -> CheckedRows:
    """Return why a release of linked tables would be refused, if it would be, and which keys lead nowhere."""
    from incrowd.engines.settings import engine_of
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.release.linked import rehearse_tables

    with engine_of(policy.engine) as engine:
        try:
            notes = rehearse_tables(options.data, policy, engine)
        except Refused as error:
            return CheckedRows(str(error))
    record_look(policy, "plan")
    return CheckedRows(notes=notes)


def _as_json(forecast: Forecast) -> dict[str, object]:
    from incrowd.workflows.plan.forecast import undeclared
    from incrowd.workflows.policy.ledger_place import places

    left = forecast.standing.left if forecast.standing else None
    consent: dict[str, object] = {} if forecast.policy.gate is None else {"consent": forecast.policy.gate.sentence}
    return consent | {
        "dataset": forecast.policy.name,
        "method": forecast.policy.method.name,
        "parameters": {name: str(value) for name, value in forecast.parameters.items()},
        "epsilon": str(forecast.epsilon) if forecast.epsilon.is_finite() else None,
        "delta": str(forecast.delta),
        "rule": forecast.rule,
        "unit": str(forecast.guarantee.unit),
        "because": joined(forecast.guarantee.because),
        "assumes": list(map(str, sorted(forecast.guarantee.assumes))),
        "left": None if left is None else left.to_json(),
        "allowed": forecast.allowed,
        "refusal": forecast.refusal,
        "warnings": list(forecast.warnings),
        "drafted": _drafted(forecast),
        "defaults": _defaults(forecast),
        "expectation": None if forecast.expectation is None else forecast.expectation.to_json(),
        "rehearsed": None if forecast.rehearsed is None else forecast.rehearsed.to_json(),
        "published": [column.to_json() for column in forecast.published],
        "places": {place.name: {"value": place.value, "by": place.by} for place in places(forecast.policy)},
        "undeclared": undeclared(forecast.policy),
        "nearest": [{name: str(value) for name, value in asdict(nearest).items()} for nearest in forecast.nearest],
        "biased": [
            {"ratio": str(row.ratio), "irregular": row.irregular, "epsilon": row.epsilon and str(row.epsilon)}
            for row in forecast.biased
        ],
    }


def _show(forecast: Forecast) -> None:
    from incrowd.workflows.policy.ledger_place import places

    parameters = forecast.parameters
    lines = [
        ("dataset", forecast.policy.name),
        *[
            (place.name, f"{shown_place(place.value)} ({place.by})")
            for place in places(forecast.policy)
            if place.changes
        ],
        ("protects", forecast.policy.schema.protects),
        ("method", forecast.policy.method.name),
        *[
            (name, str(value) + (" (solved)" if parameters.get("solved") == name else ""))
            for name, value in parameters.items()
            if name not in {"solved", "epsilon", "delta"} and value is not None
        ],
        (
            "epsilon",
            loss_text(float(forecast.epsilon)) if forecast.epsilon.is_finite() else "no bound on the privacy loss",
        ),
        ("delta", loss_text(float(forecast.delta))),
        ("because", joined(forecast.guarantee.because)),
        *[("assumes", str(term)) for term in sorted(forecast.guarantee.assumes)],
        *([] if forecast.policy.gate is None else [("consent", forecast.policy.gate.sentence)]),
        *_one_line({name: value for name, value in _defaults(forecast).items() if name != "ledger"}),
        *[("nearest", _nearest(nearest)) for nearest in forecast.nearest],
        *[("note", text) for text in forecast.warnings],
        *[("data-dependent", text) for text in _drafted(forecast)],
        *_expected(forecast),
        ("verdict", "would be released" if forecast.allowed else f"would be refused: {forecast.refusal}"),
    ]
    print_table("Plan (nothing spent)", lines)
    show_published(forecast.policy)
    if forecast.biased:
        header = ("highest rate / lowest", "irregular people", f"epsilon at delta {loss_text(float(forecast.delta))}")
        rows = [
            (str(row.ratio), str(row.irregular), "none" if row.epsilon is None else loss_text(float(row.epsilon)))
            for row in forecast.biased
        ]
        print_table("with a more biased sample", rows, header=header)


def _drafted(forecast: Forecast) -> list[str]:
    """Return the data-dependent lines, and the guarantee with public sources for them."""
    from incrowd.workflows.plan.warnings import drafted_lines, vouched_words

    words = vouched_words(forecast.policy)
    return [*drafted_lines(forecast.policy), *([] if words is None else [words])]


def _expected(forecast: Forecast) -> list[tuple[str, str]]:
    """Return the expected output as lines and as a bar, or which line of the policy would tell it."""
    from incrowd.workflows.plan.forecast import undeclared

    expectation, line = forecast.expectation, undeclared(forecast.policy)
    unsaid = [] if line is None else [("expect", line)]
    if forecast.rehearsed is not None:
        return [("expect", forecast.rehearsed.sentence)]
    if expectation is None:
        return unsaid
    guessed = ", ".join(expectation.guessed)
    note = [("", f"each character of {guessed} counts as one of ten")] if guessed else []
    lines = [("expect", text) for text in expectation.lines]
    return [("cells", expectation.spread), *lines, ("", f"0 % {expectation.bar} 100 %"), *note, *unsaid]


def _one_line(defaults: dict[str, str]) -> list[tuple[str, str]]:
    """Return the defaults of the policy in one line; columns with equal defaults are counted, `--json` names them.

    >>> _one_line({"unit": "row", "age.missing": "a class of its own", "sex.missing": "a class of its own"})
    [('default', 'unit: row; missing in 2 columns: a class of its own')]
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for name, value in defaults.items():
        alike.setdefault((name.rpartition(".")[2], value), []).append(name)
    lines = [
        f"{names[0] if len(names) == 1 else f'{key} in {len(names)} columns'}: {value}"
        for (key, value), names in alike.items()
    ]
    return [("default", "; ".join(lines))] if lines else []


def _nearest(nearest: Nearest) -> str:
    """Return the guarantee of a release with a secret sample, in words."""
    method = f"method safe with k = {nearest.k} on a secret sample of {nearest.rate}"
    return f"{method}: epsilon {loss_text(float(nearest.epsilon))} at delta {loss_text(float(nearest.delta))}"


def _defaults(forecast: Forecast) -> dict[str, str]:
    """Return the defaults that the policy relies on."""
    from incrowd.workflows.registry import LEARNING

    section, levels = forecast.policy.section, getattr(forecast.policy.method, "levels", None)
    filled = {}
    if "unit" not in section.dataset.model_fields_set:
        filled["unit"] = str(forecast.policy.schema.unit)
    if "ledger" not in section.model_fields_set:
        from incrowd.workflows.policy.ledger_place import public_address

        place, policy = forecast.policy.ledger_address, forecast.policy
        filled["ledger"] = section.ledger if place == policy.own_ledger else public_address(place)
    if section.budget is None:
        filled["budget"] = "the cost of this release"
    for name, column in section.columns.items():
        if "missing" not in column.model_fields_set and not Role.IDENTIFIER.covers(column.role):
            rows = forecast.policy.plan.smallest_class is not None
            own = "a class of its own" if column.separator is None else "the empty set"
            filled[f"{name}.missing"] = own if rows or levels is not None else "its row is suppressed"
        if column.bounds is not None and column.outside is None and not Role.IDENTIFIER.covers(column.role):
            moved = "the nearest bound" if forecast.policy.plan.method in LEARNING else "open-ended labels"
            filled[f"{name}.outside"] = moved
    if levels is not None and not isinstance(forecast.guarantee.loss, Syntactic):
        names = getattr(forecast.policy.method, "columns", ()) or [
            column.name for column in forecast.policy.schema.released
        ]
        filled |= {f"{name}.level": "0" for name in names if name not in levels}
    return filled


def explored_levels(policy: Policy, rows: Rows, engine: Engine, *, minimal: bool, frontier: bool) -> Explored:
    """Search the levels of a table. Ctrl-C ends the search with the best so far; a second one ends the command."""
    from incrowd.workflows.plan.explore import SearchRequest, explore_rows

    with _watched() as watch:
        return explore_rows(rows, policy, SearchRequest(minimal, frontier, watch), engine)


def show_explored(explored: Explored) -> None:
    """Print the minimal levels with the least loss, and the two frontiers."""
    if explored.minimal or not explored.by_k:
        finest = sorted(explored.minimal, key=lambda choice: choice.loss)[:_SHOWN]
        first = "" if len(finest) == len(explored.minimal) else f"; the {_SHOWN} with least loss, --json has all"
        print_table(
            f"minimal levels: {len(explored.minimal):,} of {explored.combinations:,} combinations{first}",
            [_cells(choice) for choice in finest] or [("none meets the criteria",)],
            header=_HEADER if finest else (),
        )
    if explored.by_k:
        rows = [(str(offer.k), *_offer(offer)) for offer in explored.by_k]
        print_table("information loss at larger k", rows, header=("k", *_HEADER, "gap"))
    if explored.by_suppression:
        rows = [(f"{float(offer.suppression):.3g}", *_offer(offer)) for offer in explored.by_suppression]
        print_table("information loss with more suppression", rows, _INTERNAL, header=("share", *_HEADER, "gap"))
    else:
        print_text(_INTERNAL)


def _offer(offer: Offer) -> tuple[str, ...]:
    if offer.choice is None:
        return ("-", "-", "-", "none meets the criteria", "-")
    return (*_cells(offer.choice), f"{offer.gap:.3g}")


def _cells(choice: Choice) -> tuple[str, ...]:
    levels = ", ".join(f"{name} {level}" for name, level in choice.levels.items() if level) or "all at their finest"
    smallest = "-" if choice.smallest is None else f"{choice.smallest:,}"
    return (f"{choice.loss:.6g}", f"{choice.suppressed:,}", smallest, levels)


@contextmanager
def _watched() -> Iterator[Callable[[Progress], bool]]:
    """Give a function that shows progress on a terminal, and says when Ctrl-C was pressed."""
    stopped = threading.Event()

    def watch(progress: Progress) -> bool:
        if sys.stderr.isatty():
            best = "none yet" if progress.best is None else f"{progress.best.score:.6g}"
            print(
                f"\r{progress.judged:,} judged, best {best}, none below {progress.bound:.6g}", end="", file=sys.stderr
            )
        return stopped.is_set()

    with _interrupted(stopped):
        yield watch
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)


@contextmanager
def _interrupted(stopped: threading.Event) -> Iterator[None]:
    """Set the event at the first Ctrl-C, and be interrupted as usual at the second; only the main thread can listen."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def first(_: int, __: FrameType | None) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
