"""Running counts: a whole series of real releases, and its transcript forced upon the same series without one person.

A history is what somebody's rows are, period by period; with a limit of periods a later row counts only if earlier ones
do not.  Frozen counts of each run are its own: what is published must be the same all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
from incrowd.methods.histograms.continual.running import PastPeriod, RunningRows
from tests.replay.golden import Parts
from tests.replay.replaying import Recording, Replay, part_of_guarantee
from tests.replay.transcript import Chance

Rows = list[tuple[str, str]]
PERIODS = 3
LIMITS: dict[str, dict[str, Any]] = {
    "every period": {},
    "first appearance": {"participations": 1},
    "twice, two apart": {"participations": 2, "apart": 2},
}
STRATEGIES = ("independent", "normalized-root", "root", "window-root")
REPLAYED = tuple(product(STRATEGIES, LIMITS))
OTHERS: list[Rows] = [[("bob", "a"), ("eve", "b")], [], [("eve", "a"), ("eve", "b")]]
YOU: tuple[Rows, ...] = ([], [("ann", "a")], [("ann", "b")] * 2, [("ann", "a")] * 7)
"""What somebody's rows of one period are: none, one, two, more than are counted."""


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
        output = None
        for number, rows in enumerate(periods, start=1):
            columns = {name: [row[place] for row in rows] for place, name in enumerate(("id", "cell"))}
            source = open_source(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}))
            table = Table(self.schema, source, LocalEngine())
            output = self.method.release(RunningRows(table, number, f"{number}", past, bytes(32)), coins)
            past = output.past
        return output


def plan_of(strategy: Any, limit: str) -> SeriesPlan:
    unit = Unit(Kind.PERSON, column="id", max_rows=2)
    schema = Schema((Column("id", Role.IDENTIFIER), Column("cell", hierarchy=Flat(Categories(("a", "b"))))), unit)
    method = Continual(
        epsilon=Fraction(1), delta=Fraction(1, 10**6), periods=PERIODS, window=2, strategy=strategy, **LIMITS[limit]
    )
    return SeriesPlan(method, method.plan(schema), schema)


def histories() -> Iterator[list[Rows]]:
    """Yield every history of somebody's rows over the periods, but for the one without any."""
    yield from (list(places) for places in product(YOU, repeat=PERIODS) if any(places))


def parts(strategy: str, limit: str, step: int = 1) -> Parts:
    """Return the largest part of its guarantee that a series lost, over histories of one person."""
    own = plan_of(strategy, limit)
    plan: Any = own
    recording = Recording.of(plan, OTHERS, Chance(0), lambda output: output.table.to_pylist())
    results: list[Replay] = []
    for place, history in enumerate(histories()):
        if place % step == 0 or all(len(rows) > 1 for rows in history):
            yours = [others + rows for others, rows in zip(OTHERS, history, strict=True)]
            results.append(recording.replay(yours))
    return {"person over all periods": part_of_guarantee(plan, results)}
