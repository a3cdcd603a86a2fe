"""Running counts: a whole series of real releases, and its transcript forced upon the same series without one person.

A history is what somebody's rows are, period by period; with a limit of periods a later row counts only if earlier ones
do not.  Frozen counts of each run are its own: what is published must be the same all the same.  Where people can
withdraw, a row without a cell says that somebody does so in that period, and has no rows from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import pyarrow as pa

from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.plan import Plan
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.methods.histograms.continual.method import Continual
from incrowd.methods.histograms.continual.running import ConsentAnswers, PastPeriod, RunningRows
from tests.replay.golden import Parts
from tests.replay.replaying import Recording, Replay, part_of_guarantee
from tests.replay.transcript import Chance

Rows = list[tuple[str, str | None]]
PERIODS = 3
LIMITS: dict[str, dict[str, Any]] = {
    "every period": {},
    "first appearance": {"participations": 1},
    "twice, two apart": {"participations": 2, "apart": 2},
    "twice, withdrawals": {"participations": 2, "withdrawals": True},
    "once, withdrawals": {"participations": 1, "withdrawals": True},
}
STRATEGIES = ("independent", "normalized-root", "root", "window-root")
REPLAYED = tuple(product(STRATEGIES, LIMITS))
OTHERS: list[Rows] = [[("bob", "a"), ("eve", "b")], [], [("eve", "a"), ("eve", "b")]]
LEAVERS: list[Rows] = [[("bob", "a"), ("eve", "b")], [("zoe", "b"), ("bob", None)], [("eve", "a")]]
WORST: Rows = [("ann", None)]
YOU: tuple[Rows, ...] = ([], [("ann", "a")], [("ann", "b")] * 2, [("ann", "a")] * 7)
"""What somebody's rows of one period are: none, one, two, more than are counted."""
LEAVING: tuple[Rows, ...] = ([], [("ann", "a")], [("ann", "b")], [("ann", "a"), ("ann", "b")], [("ann", None)])
"""And where they can withdraw: none, one row, one of two, or a withdrawal."""


@dataclass(frozen=True)
class SeriesPlan:
    """All releases of a series as one: given the rows of each period, it publishes all of them, one after the other."""

    method: Continual
    single: Plan
    schema: Schema

    @property
    def guarantee(self) -> Any:
        return self.single.guarantee

    @property
    def unit(self) -> Unit:
        return self.single.unit

    def release(self, periods: Sequence[Rows], coins: Any) -> Any:
        past: tuple[PastPeriod, ...] = ()
        output, gone = None, set[str]()
        for number, given in enumerate(periods, start=1):
            gone |= {name for name, cell in given if cell is None}
            rows = [row for row in given if row[0] not in gone]
            consent = ConsentAnswers(lambda name: (name, name), partial(_stands, frozenset(gone)))
            columns = {name: [row[place] for row in rows] for place, name in enumerate(("id", "cell"))}
            source = open_source(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}))
            table = Table(self.schema, source, LocalEngine())
            running = RunningRows(table, number, f"{number}", past, bytes(32), consent)
            output = self.method.release(running, coins)
            past = output.past
        return output


def _stands(gone: frozenset[str], pseudonym: str, alike: str) -> bool:
    return pseudonym == alike and pseudonym not in gone


def plan_of(strategy: Any, limit: str) -> SeriesPlan:
    unit = Unit(Kind.PERSON, column="id", max_rows=1 if LIMITS[limit].get("withdrawals") else 2)
    schema = Schema((Column("id", Role.IDENTIFIER), Column("cell", hierarchy=Flat(Categories(("a", "b"))))), unit)
    method = Continual(
        epsilon=Fraction(1), delta=Fraction(1, 10**6), periods=PERIODS, window=2, strategy=strategy, **LIMITS[limit]
    )
    return SeriesPlan(method, method.plan(schema), schema)


def histories(limit: str) -> Iterator[list[Rows]]:
    """Yield every history of somebody's rows over the periods, but for the one without any."""
    own = LEAVING if LIMITS[limit].get("withdrawals") else YOU
    yield from (list(places) for places in product(own, repeat=PERIODS) if any(places))


def parts(strategy: str, limit: str, step: int = 1) -> Parts:
    """Return the largest part of its guarantee that a series lost, over histories of one person."""
    own = plan_of(strategy, limit)
    plan: Any = own
    others = LEAVERS if LIMITS[limit].get("withdrawals") else OTHERS
    recording = Recording.of(plan, others, Chance(0), lambda output: output.table.to_pylist())
    results: list[Replay] = []
    for place, history in enumerate(histories(limit)):
        if place % step == 0 or all(len(rows) > 1 for rows in history) or (WORST in history and place % 3 == 0):
            yours = [more + rows for more, rows in zip(others, history, strict=True)]
            results.append(recording.replay(yours))
    return {"person over all periods": part_of_guarantee(plan, results)}
