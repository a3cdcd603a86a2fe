"""Crowds in secret samples: the exact law of what a real release shows of one cell, for every number of rows in it.

The sample is the only randomness, but for noise on small counts.  With j rows of the cell in the sample, the real
release shows some number of rows; j is binomial, which gives the law, and the laws of neighboring tables give the δ at
the plan's ε, exactly.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from incrowd.accounting import accountant
from incrowd.core.coins import Sample
from incrowd.core.loss import Crowd, Grouped, Loss, NoisyWhenSmall, Pure, Sampled, Sequence, walk
from incrowd.core.table import Table
from incrowd.core.unit import Adjacency
from incrowd.engines.local.engine import LocalEngine
from incrowd.workflows.policy.policy import Policy
from tests.coins import Pairs, ScriptedSample
from tests.replay.examples import EXAMPLES
from tests.replay.golden import Parts
from tests.replay.guarantees import comparable
from tests.replay.laws import Divergence
from tests.replay.neighbors import LAST, pairs, rows_table
from tests.replay.replaying import TOLERANCE
from tests.replay.tables import policy, private
from tests.replay.transcript import Chance, Event, Recorder, Replayer, followed
from tests.tables import Batches

_REACH, _SOME = 34, 3
Law = dict[Any, float]


def crowd_of(loss: Loss) -> Loss | None:
    """Return the part of a loss that is a crowd in a secret sample, with the rows of a person around it."""
    for part in loss.parts if isinstance(loss, Sequence) else (loss,):
        if any(isinstance(item, Sampled) and isinstance(item.inner, Crowd) for item in walk(part)):
            return part
    return None


def sampled(method: str, name: str) -> bool:
    """Whether an example is a crowd in a secret sample."""
    return private(method, name) and crowd_of(policy(method, name).plan.guarantee.loss) is not None


def unbounded(method: str, name: str) -> bool:
    """Whether an example is a crowd without a sample, which has no ε."""
    loss = policy(method, name).plan.guarantee.loss
    return private(method, name) and not comparable(loss) and crowd_of(loss) is None


OTHERS: dict[str, set[str]] = {
    "safe": {"drafted", "no sample"},
    "scheme": set(),
    "suppressed-histogram": {"no sample"},
    "blended-histogram": {"no sample"},
    "points": {"no sample"},
    "partition": set(),
    "slicing": set(),
}
"""Methods with examples that are `sampled`, and the names of their others; `test_contract.py` compares with plans."""
SAMPLED = [
    (method, name)
    for method, ways in EXAMPLES.items()
    if method in OTHERS
    for name in ways
    if name not in OTHERS[method]
]


class SampleCoins(Replayer):
    """Coins with a sample that is written down, and one number for all noise that was not recorded."""

    def __init__(self, events: list[Event], members: int, noise: int) -> None:
        super().__init__(Chance(0, together=True), events)
        self.members, self.value = members, noise

    def laplace(self, scale: Fraction, size: int) -> Any:
        return super().laplace(scale, size) if self.events else np.full(size, self.value, np.int64)

    def outliers(self, scale: Fraction, least: int, size: int) -> Pairs:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    def sample(self, rate: Fraction) -> Sample:
        return ScriptedSample(rate, frozenset(range(self.members)))


class ChoiceCoins(Recorder):
    """Coins that record the choices before a sample, of which every row is a member."""

    def __init__(self, *, noisy: bool) -> None:
        super().__init__(Chance(0, together=True))
        self.noisy = noisy

    def laplace(self, scale: Fraction, size: int) -> Any:
        return np.zeros(size, np.int64) if self.noisy else super().laplace(scale, size)

    def outliers(self, scale: Fraction, least: int, size: int) -> Pairs:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell of an example: what is released of it, by how many of its rows are in the sample."""

    example: Policy
    crowd: Loss

    @property
    def sampled(self) -> Sampled:
        """The sample around the crowd."""
        return next(part for part in walk(self.crowd) if isinstance(part, Sampled))

    @property
    def k(self) -> int:
        """The size of the crowd."""
        inner = self.sampled.inner
        assert isinstance(inner, Crowd)
        return inner.k

    @property
    def noise(self) -> Fraction | None:
        """The ε of noise on small counts."""
        inner = self.sampled.inner
        return inner.epsilon if isinstance(inner, NoisyWhenSmall) else None

    @property
    def most(self) -> int:
        """As many rows as are looked at."""
        return math.ceil(Fraction(6, 5) * self.k / self.sampled.rate)

    @property
    def step(self) -> int:
        """By how many rows of the cell neighbors differ."""
        return next((part.size for part in walk(self.crowd) if isinstance(part, Grouped)), 1)

    @cache  # noqa: B019 - a cell lives as long as its test
    def visible(self, members: int, noise: int = 0) -> int:
        """Return how many rows of the cell a release shows, of a sample with so many."""
        key = max(self.counts(self.most, 0).items(), key=lambda item: item[1])[0]
        return self.counts(members, noise)[key]

    def counts(self, members: int, noise: int) -> Counter[Any]:
        """Return the rows that a release shows of the first table, with how often each."""
        with followed():
            output = self.example.plan.release(self.table, SampleCoins(self.events, members, noise))
        results: Counter[Any] = Counter()
        for batch in output.parts[0].batches():
            for row in batch.to_pylist():
                number = row.pop("count", 1)
                row.pop("exact", None)
                results[tuple(row.items())] += number
        return results

    @property
    def table(self) -> Table:
        """All rows of the cell."""
        return Table(self.example.schema, Batches(rows_table([LAST] * self.most), 10**6), LocalEngine())

    @property
    def events(self) -> list[Event]:
        """The choices that were made before the sample."""
        return _events(self)

    def law(self, rows: int) -> Law:
        """Return the law of what is shown of a cell with so many rows."""
        rate, masses = float(self.sampled.rate), defaultdict[Any, float](float)
        for members in range(rows + 1):
            chance = math.comb(rows, members) * rate**members * (1 - rate) ** (rows - members)
            for outcome, part in self.outcomes(members):
                masses[outcome] += chance * part
        return dict(masses)

    def looked_at(self, members: int) -> bool:
        """Whether the release is run for so many rows: for all, but where rows of people are limited, which is slow."""
        edges = {0, 1, self.k - 1, self.k, self.k + 1, self.most}
        return self.example.schema.unit.column is None or members in edges or members % 9 == 0

    def outcomes(self, members: int) -> Iterator[tuple[int, float]]:
        """Return what is shown of so many rows in the sample, with the probability of the noise on small counts."""
        if self.noise is None or members >= self.k:
            yield self.visible(members) if self.looked_at(members) else members * (members >= self.k), 1.0
            return
        if members:
            assert self.visible(members, _SOME) == self._noisy(members + _SOME), "every count below k has its noise"
        fall = math.exp(-float(self.noise))
        for noise in range(-_REACH, _REACH + 1):
            yield self._noisy(members + noise), (1 - fall) / (1 + fall) * fall ** abs(noise)

    def _noisy(self, number: int) -> int:
        """Return what is shown of a count with noise that is this number; of one row, because some count no others."""
        return self.visible(1, number - 1)


_EVENTS: dict[int, list[Event]] = {}


def _events(cell: Cell) -> list[Event]:
    if id(cell) not in _EVENTS:
        coins = ChoiceCoins(noisy=cell.noise is not None)
        with followed():
            cell.example.plan.release(cell.table, coins)
        _EVENTS[id(cell)] = coins.events
    return _EVENTS[id(cell)]


def parts(method: str, name: str) -> Parts:
    """Return the largest part of its δ that a cell reaches at the plan's ε, over all numbers of rows."""
    example = policy(method, name)
    crowd = crowd_of(example.plan.guarantee.loss)
    assert crowd is not None
    cell, epsilon = Cell(example, crowd), Fraction(str(example.plan.numbers["epsilon"]))
    allowed = accountant.delta(crowd, epsilon, example.schema.unit.adjacency).value
    laws = [cell.law(rows) for rows in range(cell.most + 1)]
    if example.schema.unit.adjacency is Adjacency.REPLACE:
        kind, several = "replaced", [two_cells(laws[rows], laws[rows - 1]) for rows in range(1, cell.most + 1)]
    else:
        kind, several = "added or removed", list(zip(laws[cell.step :], laws, strict=False))
    worst = max(max(excess(one, other, epsilon), excess(other, one, epsilon)) for one, other in several)
    assert worst <= allowed * (1 + TOLERANCE)
    return {kind: worst / allowed} | choice_parts(example)


def choice_parts(example: Policy) -> Parts:
    """Return the largest part of its ε that the choices before the sample lose, if there are any."""
    loss = example.plan.guarantee.loss
    allowed = sum(float(part.epsilon) for part in walk(loss) if isinstance(part, Pure))
    if not allowed:
        return {}
    worst = 0.0
    for pair in pairs(example.schema.unit):
        coins = ChoiceCoins(noisy=False)
        table, neighbor = (Table(example.schema, Batches(rows), LocalEngine()) for rows in (pair.table, pair.neighbor))
        with followed():
            example.plan.release(neighbor, coins)
            replayer = Replayer(coins.chance, coins.events)
            example.plan.release(table, replayer)
        worst = max(worst, Divergence.total(replayer.divergences()).epsilon / allowed)
    assert worst <= 1 + TOLERANCE
    return {"choice, added or removed": worst}


def two_cells(one: Law, other: Law) -> tuple[Law, Law]:
    """Return the laws of two cells of which one has a row more, before and after that row moves to the other cell."""
    pairs = {(x, y): p * q for x, p in one.items() for y, q in other.items()}
    return pairs, {(y, x): mass for (x, y), mass in pairs.items()}


def excess(one: Law, other: Law, epsilon: Fraction) -> float:
    """Return the δ of two laws at ε: by how much the first exceeds e^ε times the second."""
    ratio = math.exp(epsilon)
    return math.fsum(max(0.0, mass - ratio * other.get(outcome, 0.0)) for outcome, mass in one.items())
