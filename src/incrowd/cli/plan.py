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
from incrowd.cli.output import loss_text, print_json, print_table, print_text
from incrowd.core.loss import Syntactic
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

_INTERNAL = "Made from the original rows: keep it apart from what is published. The ledger counts such looks."
_HEADER = ("loss", "left out", "smallest", "levels above the finest")
_SHOWN = 20


@dataclass(frozen=True)
class PlanOptions(ReadingOptions):
    """What `incrowd plan` takes."""

    policy: Annotated[Path, typer.Option("--policy", help="The policy file.")]
    data: Annotated[str | None, typer.Argument(help="The table, which is then checked as a release checks it.")] = None
    minimal: Annotated[
        bool, typer.Option("--minimal", help="Read the rows and list all minimal levels; the ledger records the look.")
    ] = False
    frontier: Annotated[
        bool,
        typer.Option(
            "--frontier", help="Read the rows and say what other k and suppression limits cost; recorded too."
        ),
    ] = False
    look: Annotated[
        str | None,
        typer.Option("--look", metavar="EPSILON", help="Pay so much and show what other levels, k and rates keep."),
    ] = None
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="With --look: the policy of the best choice.")
    ] = None
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Other methods at the same (epsilon, delta), from public numbers; with --look, measured."
        ),
    ] = False
    until: Annotated[
        int | None, typer.Option("--until", metavar="STEP", help="Only the first so many steps of a list of masks.")
    ] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    json: Json = False


@takes(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Say what a release would guarantee, cost and leave; nothing is spent.

    Where the rows are named, all that a release checks before its charge is checked: they are read, and nothing of them
    is shown but how many values lie outside what is declared, to the holder of the data.  With --minimal or --frontier
    what is shown is internal: it was made from them.  With --look EPSILON that much is paid, and how many rows several
    choices of levels, k and rate would keep is shown, with intervals; with --compare besides, what that means for the
    route by method safe.  Exit code 1 if a release would be refused.
    """
    from dataclasses import replace

    from incrowd.cli.look import look_at, show_look
    from incrowd.engines.settings import override
    from incrowd.workflows.plan.forecast import plan as planned
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import read_as

    policy = read_as(load_policy(options.policy, options.until), options.told)
    policy = replace(policy, engine=override(policy.engine, options.engine, options.master, options.remote))
    if options.compare:
        if options.write is not None:
            raise InvalidParameter("--write writes the policy that a look chose by itself: leave --compare out.")
        _show_routes(policy, options.data, options.look, json=options.json)
        return
    if options.look is not None:
        looked = look_at(options.data, policy, options.policy, options.look, options.write)
        show_look(looked, options.write, json=options.json)
        return
    if options.write is not None:
        raise InvalidParameter("--write writes the policy that a private look chose: give --look EPSILON with it.")
    checked = _rows_checked(options, policy)
    explored, found = checked.explored, planned(policy, checked.refusal)
    if options.json:
        outside = {"outside": [each.to_json() for each in checked.outside]} if checked.outside else {}
        print_json(_as_json(found) | outside | ({} if explored is None else {"explored": explored.to_json()}))
    else:
        _show(found)
        for each in checked.outside:
            print_text(f"note: {each.sentence}")
        if found.allowed:
            verb = "release" if policy.graph is None else "graph release"
            print(f"next\n\n  incrowd {verb} --policy {shlex.quote(str(options.policy))} --out out\n")
        if explored is not None:
            show_explored(explored)
    if not found.allowed:
        raise typer.Exit(1)


def _show_routes(policy: Policy, data: str | None, epsilon: str | None, *, json: bool) -> None:
    """Print routes from public numbers alone, or after a private look that is paid."""
    from incrowd.workflows.plan.compare import compare
    from incrowd.workflows.plan.refine import refine

    refined = None if epsilon is None else refine(data, policy, epsilon)
    found = compare(policy) if refined is None else refined.comparison
    if json:
        print_json(found.to_json() if refined is None else refined.to_json())
        return
    spent, measured = "no row is read, nothing is spent", ""
    if refined is not None:
        chosen = refined.looked.chosen
        spent = f"epsilon {chosen.epsilon} charged by entry {chosen.entry} for a look"
        measured = (
            " That of safe was measured with noise, of the declared number of rows; its interval holds with a chance "
            f"of 95 %. The look's {refined.looked.sentence}"
        )
    print_table(
        f"routes for about {found.rows:,} rows: {spent}",
        map(_route, found.routes),
        "error: mean total variation of pairs of columns by noise, or by rows left out, alone. What a model cannot "
        f"express comes on top; tree and marginals measure it privately when they are released.{measured}",
        header=("method", "error", "epsilon, delta", "claim, and what it cannot do"),
    )


def _route(route: Route) -> tuple[str, ...]:
    if route.refusal is not None:
        return (route.method, "-", "-", route.refusal)
    error = "not known" if route.error is None else f"{route.error:.2g}"
    if route.low is not None and route.high is not None:
        error = f"{error} ({route.low:.2g} to {route.high:.2g})"
    price = ", ".join(loss_text(float(amount or 0)) for amount in (route.epsilon, route.delta))
    return (route.method, error, price, f"{route.claim}; cannot {route.cannot}")


@dataclass(frozen=True)
class CheckedRows:
    """Why a release of rows would be refused, what was found in them, and what lies outside the declaration."""

    refusal: str | None = None
    explored: Explored | None = None
    outside: tuple[OutsideValues, ...] = ()


def _rows_checked(options: PlanOptions, policy: Policy) -> CheckedRows:
    """Return what the rows that are named tell the holder of the data; nothing where none are."""
    from incrowd.engines.settings import engine_of
    from incrowd.workflows.plan.outside import outside_of
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.release.prepare import open_data, rehearse

    if options.data is None and policy.source is None:
        if options.minimal or options.frontier:
            raise InvalidParameter(
                "minimal levels and a frontier are made from rows: name a table, or a source in the policy."
            )
        return CheckedRows()
    with engine_of(policy.engine) as engine:
        refusal = None
        try:
            rows = rehearse(options.data, policy, engine)
        except Refused as error:
            rows, refusal = open_data(options.data, policy, engine), str(error)
        if options.minimal or options.frontier:
            found = explored_levels(policy, rows, engine, minimal=options.minimal, frontier=options.frontier)
            return CheckedRows(refusal, found)
        record_look(policy, "plan")
        return CheckedRows(refusal, None, () if refusal else outside_of(policy, rows, engine))


def _as_json(found: Forecast) -> dict[str, object]:
    from incrowd.workflows.plan.forecast import undeclared

    left = found.standing.left if found.standing else None
    consent: dict[str, object] = {} if found.policy.gate is None else {"consent": found.policy.gate.sentence}
    return consent | {
        "dataset": found.policy.name,
        "method": found.policy.method.name,
        "parameters": {name: str(value) for name, value in found.parameters.items()},
        "epsilon": str(found.epsilon) if found.epsilon.is_finite() else None,
        "delta": str(found.delta),
        "rule": found.rule,
        "unit": str(found.guarantee.unit),
        "because": joined(found.guarantee.because),
        "assumes": list(map(str, sorted(found.guarantee.assumes))),
        "left": None if left is None else left.to_json(),
        "allowed": found.allowed,
        "refusal": found.refusal,
        "warnings": list(found.warnings),
        "drafted": _drafted(found),
        "defaults": _defaults(found),
        "expectation": None if found.expectation is None else found.expectation.to_json(),
        "rehearsed": None if found.rehearsed is None else found.rehearsed.to_json(),
        "undeclared": undeclared(found.policy),
        "nearest": [{name: str(value) for name, value in asdict(each).items()} for each in found.nearest],
        "biased": [
            {"ratio": str(row.ratio), "irregular": row.irregular, "epsilon": row.epsilon and str(row.epsilon)}
            for row in found.biased
        ],
    }


def _show(found: Forecast) -> None:
    parameters = found.parameters
    lines = [
        ("dataset", found.policy.name),
        ("protects", str(found.guarantee.unit)),
        ("method", found.policy.method.name),
        *[
            (name, str(value) + (" (solved)" if parameters.get("solved") == name else ""))
            for name, value in parameters.items()
            if name not in {"solved", "epsilon", "delta"} and value is not None
        ],
        ("epsilon", loss_text(float(found.epsilon))),
        ("delta", loss_text(float(found.delta))),
        ("because", joined(found.guarantee.because)),
        *[("assumes", str(term)) for term in sorted(found.guarantee.assumes)],
        *([] if found.policy.gate is None else [("consent", found.policy.gate.sentence)]),
        *_one_line(_defaults(found)),
        *[("nearest", _nearest(each)) for each in found.nearest],
        *[("note", text) for text in found.warnings],
        *[("drafted", text) for text in _drafted(found)],
        *_expected(found),
        ("verdict", "would be released" if found.allowed else f"would be refused: {found.refusal}"),
    ]
    print_table("plan: nothing is spent", lines)
    if found.biased:
        header = ("highest rate / lowest", "irregular people", f"epsilon at delta {loss_text(float(found.delta))}")
        rows = [
            (str(row.ratio), str(row.irregular), "none" if row.epsilon is None else loss_text(float(row.epsilon)))
            for row in found.biased
        ]
        print_table("if the sample were more biased", rows, header=header)


def _drafted(found: Forecast) -> list[str]:
    """Return the lines that were read off the rows, and what the guarantee becomes when they are vouched for."""
    from incrowd.workflows.plan.drafts import drafted_lines, vouched_words

    words = vouched_words(found.policy)
    return [*drafted_lines(found.policy), *([] if words is None else [words])]


def _expected(found: Forecast) -> list[tuple[str, str]]:
    """Return in words and as a bar what will probably come out, or which line of the policy would tell."""
    from incrowd.workflows.plan.forecast import undeclared

    expectation, line = found.expectation, undeclared(found.policy)
    unsaid = [] if line is None else [("expect", line)]
    if found.rehearsed is not None:
        return [("expect", found.rehearsed.sentence)]
    if expectation is None:
        return unsaid
    guessed = ", ".join(expectation.guessed)
    note = f" (each character of {guessed} taken for one of ten)" if guessed else ""
    return [("expect", f"{expectation.sentence}{note}"), ("", f"0 % {expectation.bar} 100 %"), *unsaid]


def _one_line(defaults: dict[str, str]) -> list[tuple[str, str]]:
    """Return in one line what the policy left out; columns that are alike are counted, `--json` names them.

    >>> _one_line({"ledger": "sqlite:///l", "age.missing": "a class of its own", "sex.missing": "a class of its own"})
    [('default', 'ledger: sqlite:///l; missing in 2 columns: a class of its own')]
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for name, value in defaults.items():
        alike.setdefault((name.rpartition(".")[2], value), []).append(name)
    told = [
        f"{names[0] if len(names) == 1 else f'{key} in {len(names)} columns'}: {value}"
        for (key, value), names in alike.items()
    ]
    return [("default", "; ".join(told))] if told else []


def _nearest(each: Nearest) -> str:
    """Return in words what a release with a secret sample in front would guarantee instead."""
    told = f"method safe with k = {each.k} on a secret sample of {each.rate}"
    return f"{told}: epsilon {loss_text(float(each.epsilon))} at delta {loss_text(float(each.delta))}"


def _defaults(found: Forecast) -> dict[str, str]:
    """Return what the policy left out, and what stands there instead."""
    section, levels = found.policy.section, getattr(found.policy.method, "levels", None)
    filled = {}
    if "unit" not in section.dataset.model_fields_set:
        filled["unit"] = str(found.policy.schema.unit)
    if "ledger" not in section.model_fields_set:
        from incrowd.workflows.policy.ledger_place import public_address

        place, policy = found.policy.ledger_address, found.policy
        filled["ledger"] = section.ledger if place == policy.own_ledger else public_address(place)
    if section.budget is None:
        filled["budget"] = "what this release costs"
    for name, column in section.columns.items():
        if "missing" not in column.model_fields_set and column.role not in ("identifier", "household"):
            rows = found.policy.plan.smallest_class is not None
            own = "a class of its own" if column.separator is None else "the empty set"
            filled[f"{name}.missing"] = own if rows or levels is not None else "its row is left out"
    if levels is not None and not isinstance(found.guarantee.loss, Syntactic):
        names = getattr(found.policy.method, "columns", ()) or [column.name for column in found.policy.schema.released]
        filled |= {f"{name}.level": "0" for name in names if name not in levels}
    return filled


def explored_levels(policy: Policy, rows: Rows, engine: Engine, *, minimal: bool, frontier: bool) -> Explored:
    """Search the levels of a table; Ctrl-C ends a search with the best so far, a second one ends the command."""
    from incrowd.workflows.plan.explore import SearchRequest, explore_rows

    with _watched() as told:
        return explore_rows(rows, policy, SearchRequest(minimal, frontier, told), engine)


def show_explored(found: Explored) -> None:
    """Print the minimal levels that lose least, and the two frontiers."""
    if found.minimal or not found.by_k:
        finest = sorted(found.minimal, key=lambda each: each.loss)[:_SHOWN]
        first = "" if len(finest) == len(found.minimal) else f"; the {_SHOWN} that lose least, --json has all"
        print_table(
            f"minimal levels: {len(found.minimal):,} of {found.combinations:,} combinations, none finer will do{first}",
            [_cells(each) for each in finest] or [("none meets the demands",)],
            header=_HEADER if finest else (),
        )
    if found.by_k:
        rows = [(str(each.k), *_offer(each)) for each in found.by_k]
        print_table("what a larger k would lose", rows, header=("k", *_HEADER, "gap at most"))
    if found.by_suppression:
        rows = [(f"{float(each.suppression):.3g}", *_offer(each)) for each in found.by_suppression]
        print_table("what leaving out more rows would save", rows, _INTERNAL, header=("share", *_HEADER, "gap at most"))
    else:
        print_text(_INTERNAL)


def _offer(offer: Offer) -> tuple[str, ...]:
    if offer.choice is None:
        return ("-", "-", "-", "none meets the demands", "-")
    return (*_cells(offer.choice), f"{offer.gap:.3g}")


def _cells(choice: Choice) -> tuple[str, ...]:
    levels = ", ".join(f"{name} {level}" for name, level in choice.levels.items() if level) or "all at their finest"
    smallest = "-" if choice.smallest is None else f"{choice.smallest:,}"
    return (f"{choice.loss:.6g}", f"{choice.suppressed:,}", smallest, levels)


@contextmanager
def _watched() -> Iterator[Callable[[Progress], bool]]:
    """Give a function that shows progress on a terminal, and says when Ctrl-C was pressed."""
    stopped = threading.Event()

    def told(progress: Progress) -> bool:
        if sys.stderr.isatty():
            best = "none yet" if progress.best is None else f"{progress.best.score:.6g}"
            print(
                f"\r{progress.judged:,} judged, best {best}, none below {progress.bound:.6g}", end="", file=sys.stderr
            )
        return stopped.is_set()

    with _interrupted(stopped):
        yield told
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
