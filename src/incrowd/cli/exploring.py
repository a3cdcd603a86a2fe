"""What `incrowd plan` shows of levels that could be chosen, and how a search for them is watched and stopped."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from incrowd.cli.output import print_table

if TYPE_CHECKING:
    from incrowd.core.table import Engine, Rows
    from incrowd.methods.anonymity.search.optimal import Progress
    from incrowd.workflows.plan.explore import Choice, Explored, Offer
    from incrowd.workflows.policy.policy import Policy

_INTERNAL = "Made from the original rows: keep it apart from what is published. The ledger counts such looks."
_HEADER = ("loss", "left out", "smallest", "levels above the finest")
_SHOWN = 20


def explored_levels(policy: Policy, rows: Rows, engine: Engine, *, minimal: bool, frontier: bool) -> Explored:
    """Search the levels of a table; Ctrl-C ends a search with the best so far, a second one ends the command."""
    from incrowd.workflows.plan.explore import SearchRequest, explore_rows

    with _watched() as told:
        return explore_rows(rows, policy, SearchRequest(minimal, frontier, told), engine)


def show_explored(found: Explored) -> None:
    """Print the minimal levels that lose least, and the two frontiers."""
    if found.minimal or not found.by_k:
        shown = sorted(found.minimal, key=lambda each: each.loss)[:_SHOWN]
        first = "" if len(shown) == len(found.minimal) else f"; the {_SHOWN} that lose least, --json has all"
        print_table(
            f"minimal levels: {len(found.minimal):,} of {found.combinations:,} combinations, none finer will do{first}",
            [_cells(each) for each in shown] or [("none meets the demands",)],
            header=_HEADER if shown else (),
        )
    if found.by_k:
        rows = [(str(each.k), *_offer(each)) for each in found.by_k]
        print_table("what a larger k would lose", rows, header=("k", *_HEADER, "gap at most"))
    if found.by_suppression:
        rows = [(f"{float(each.suppression):.3g}", *_offer(each)) for each in found.by_suppression]
        print_table("what leaving out more rows would save", rows, _INTERNAL, header=("share", *_HEADER, "gap at most"))
    else:
        print(_INTERNAL)


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
