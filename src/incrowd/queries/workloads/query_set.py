"""Count workloads: counting queries on terms, their noisy tables of counts, their answers, how exact they will be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from incrowd.core.coins import Coins
from incrowd.core.steps.step import Step
from incrowd.core.unit import Unit
from incrowd.core.words import counted
from incrowd.mechanisms.vector_noise import AddCube
from incrowd.queries.answer import Answer, AnswerColumn
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.measuring.columns import Expected, Noisy, expected_of, key_columns, present_answer
from incrowd.queries.measuring.groups import collect_groups
from incrowd.queries.measuring.intervals import MISS, Interval
from incrowd.queries.query import Query, QueryTerms
from incrowd.queries.steps.query import GiveAnswer, GroupRows, OneGroup, Understand
from incrowd.queries.steps.workload import AnswerSet, CountBlocks, CountGroups
from incrowd.queries.workloads.atoms import Blocks, Floats, Solution
from incrowd.queries.workloads.domain import CountQuery, Domain
from incrowd.queries.workloads.marginals import KeyTables, axes_of

if TYPE_CHECKING:
    from incrowd.engines.sql.engine import QueryTables as Rows

NOTE = "a least squares solution: numbers of this set of queries agree with each other, and can be below 0"
LAPLACE = 2.17
"""So many standard deviations, at least, hold 95 % of every sum of independent Laplace noises, whatever their factors.

Proof.  A Laplace noise of variance a is Gaussian with the variance a E, where E is exponential with mean 1; so a sum of
them with variances a_i that add up to 1 is Gaussian with the variance V = Σ a_i E_i.  V is an average of exchangeable
E_i, so E f(V) ≤ E f(E_1) for every convex f.  P[|X| > t] = E h(V) with h(v) = 2 Φ(−t / √v), which is convex up to
v = t² / 3 and concave beyond; h followed by its tangent from there on is convex, lies above h, and its mean over E_1 is
below 0.0494 for t = 2.17.  ∎  Integer noise moves in steps: see `half_width`.
"""


@dataclass(frozen=True, eq=False)
class CountTable:
    """A noisy table of counts: the query that counts, its noise, and how cells are taken together, if they are."""

    table: CountQuery
    measurement: Measurement
    blocks: Blocks | None = None

    @classmethod
    def of(cls, table: CountQuery, unit: Unit, terms: QueryTerms, blocks: Blocks | None = None) -> CountTable:
        """Return a table on terms, from a share of what is paid for all of them."""
        return cls(table, measurement(table.question, unit, terms), blocks)

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return deviation_of(self.measurement)


def deviation_of(counted_once: Measurement) -> float:
    """Return the standard deviation of the noise of counts, that of the continuous law: the integer one has no more."""
    noise = counted_once.noise_choice.noise
    if noise is None:
        raise AssertionError("counts have noise")
    if isinstance(noise, AddCube):
        return math.sqrt(2.0) * float(noise.law.scale)
    return float(noise.law.scales[0])


def half_width(variances: Floats, least: float, *, laplace: bool) -> Floats:
    """Return how far off 95 % of answers with these variances are at most; `least` is the least deviation of a count.

    Of Gaussian noise 1.96 standard deviations, of Laplace noise `LAPLACE` of them.  Integer noise moves in steps: half
    of the largest step is added, which is at most the deviation of the answer over twice the least one of a count.
    """
    times = LAPLACE if laplace else NormalDist().inv_cdf(1.0 - MISS / 2.0)
    return np.asarray((times + 0.5 / least) * np.sqrt(variances))


Answering = Callable[[Sequence[NDArray[np.int64]]], list[Floats]]


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """What least squares makes of the tables: answers of noisy counts, variances of each query, are they whole."""

    answers: Answering
    variances: tuple[Floats, ...]
    whole: bool


@dataclass(frozen=True, eq=False)
class CountWorkload:
    """Queries at their places in a batch, the tables that are measured for them, and what is made of these.

    `gain` is the total of squared errors with equal shares over the one expected here, None where it was not asked.
    """

    places: tuple[int, ...]
    questions: tuple[CountQuery, ...]
    parts: tuple[CountTable, ...]
    over: KeyTables | Domain
    unit: Unit
    gain: float | None = None

    @cached_property
    def fit(self) -> LeastSquares:
        """The least squares solution, from the laws of the noise."""
        precisions = [part.deviation**-2 for part in self.parts]
        if isinstance(self.over, KeyTables):
            return _fit_of_keys(self.over, self.parts, precisions)
        blocks = [part.blocks for part in self.parts if part.blocks is not None]
        return _fit_of_blocks(self.over.atoms.solution(blocks, precisions), blocks)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What will be done: the tables, and the queries that they answer."""
        return (
            AnswerSet(self.places, tuple(map(self._steps_of, self.questions)), tuple(map(self._table, self.parts))),
        )

    def _steps_of(self, counting: CountQuery) -> tuple[Step, ...]:
        query, keys = counting.question, tuple(key.name for key in counting.question.keys)
        return (
            Understand(query.text, query.tables),
            GroupRows(keys, counting.number) if keys else OneGroup(),
            GiveAnswer(tuple(output.name for output in query.outputs)),
        )

    def _table(self, part: CountTable) -> tuple[Step, ...]:
        steps = tuple(step for step in part.measurement.steps if not isinstance(step, GiveAnswer))
        if part.blocks is None or isinstance(self.over, KeyTables):
            return tuple(CountGroups(step.by, step.groups) if isinstance(step, GroupRows) else step for step in steps)
        atoms, queries = self.over.atoms, part.blocks.questions or None
        counts = CountBlocks(len(self.over.cells), atoms.number, atoms.count(part.blocks), part.blocks.size, queries)
        return tuple(counts if isinstance(step, GroupRows | OneGroup) else step for step in steps)

    @cached_property
    def statistics(self) -> tuple[exp.Query, ...]:
        """The queries whose results the answers need: one for each table, or one for all blocks."""
        tables = self.parts if isinstance(self.over, KeyTables) else self.parts[:1]
        return tuple(query for part in tables for query in part.measurement.statistics)

    def draw(self, rows: Rows, coins: Coins) -> tuple[Answer, ...]:
        """Count, add noise to the counts, and answer all queries from what is noisy."""
        collected = rows.collect_together(self.statistics)
        noisy = [
            self._noisy(part, counts, coins) for part, counts in zip(self.parts, self.counts(collected), strict=True)
        ]
        return tuple(
            self._answer(query, values, widths)
            for query, values, widths in zip(self.questions, self.fit.answers(noisy), self.half_widths, strict=True)
        )

    def counts(self, collected: Sequence[pa.Table]) -> list[NDArray[np.int64]]:
        """Return the exact counts of each table, from what the engine collected."""
        if isinstance(self.over, KeyTables):
            pairs = zip(self.parts, collected, strict=True)
            return [collect_groups(part.table.question, table, ("_s0",)).vectors[:, 0] for part, table in pairs]
        cells = collect_groups(self.over.table.question, collected[0], ("_s0",)).vectors[:, 0]
        atoms = _summed(cells, self.over.cells, self.over.atoms.number)
        labels = [(part.blocks, self.over.atoms) for part in self.parts if part.blocks is not None]
        return [_summed(atoms, all_.blocks(blocks), all_.count(blocks)) for blocks, all_ in labels]

    @staticmethod
    def _noisy(part: CountTable, counts: NDArray[np.int64], coins: Coins) -> NDArray[np.int64]:
        noise = part.measurement.noise_choice.noise
        if noise is None:
            raise AssertionError("a table of counts has noise")
        return noise.release(counts[:, None], coins)[:, 0]

    @cached_property
    def half_widths(self) -> tuple[Floats, ...]:
        """How far off 95 % of the numbers of each query are at most, group by group."""
        laplace = isinstance(self.parts[0].measurement.noise_choice.noise, AddCube)
        least = min(part.deviation for part in self.parts)
        return tuple(half_width(variance, least, laplace=laplace) for variance in self.fit.variances)

    @cached_property
    def expected(self) -> tuple[tuple[Expected, ...], ...]:
        """How exact each column of each answer will be: that of the worst of its groups."""
        pairs = zip(self.questions, self.half_widths, strict=True)
        return tuple(_expected(counting.question, float(widths.max())) for counting, widths in pairs)

    @property
    def total(self) -> float:
        """The total of the variances of all numbers."""
        pairs = zip(self.questions, self.fit.variances, strict=True)
        return float(sum(np.broadcast_to(variance, counting.number).sum() for counting, variance in pairs))

    @property
    def words(self) -> str:
        """How the queries are answered, and what is gained by it."""
        queries = counted(len(self.questions), "counting query")
        tables = "1 noisy table" if len(self.parts) == 1 else f"{len(self.parts):,} noisy tables"
        sentence = f"{queries} are answered together, by least squares, from {tables} of counts: {self._tables}."
        if self.gain is None or self.gain <= 1.0:
            return sentence
        gain = f"Their expected total squared error is {self.gain:.3g} times smaller than with equal shares."
        return f"{sentence} {gain}"

    @property
    def _tables(self) -> str:
        if isinstance(self.over, KeyTables):
            return "; ".join(_named(part.table) for part in self.parts)
        parts = [
            _sized(part.blocks, self.over.atoms.count(part.blocks)) for part in self.parts if part.blocks is not None
        ]
        apart = f"{self.over.atoms.number:,} parts of the domain that the queries tell apart"
        return f"{'; '.join(parts)}; atoms are the {apart}"

    def _answer(self, counting: CountQuery, values: Floats, widths: Floats) -> Answer:
        query, names = counting.question, counting.groups
        flat, half = values.reshape(-1), np.broadcast_to(widths, values.reshape(-1).shape)
        interval = Interval(flat - half, flat + half)
        name = query.aggregates[0].name
        numbers = pa.array(np.rint(flat).astype(np.int64) if self.fit.whole else flat)
        column = AnswerColumn(name, numbers, pa.array(interval.low), pa.array(interval.high), NOTE)

        def bounds(names_: frozenset[str]) -> dict[str, Interval]:
            return {name: interval} if name in names_ else {}

        return present_answer(query, Noisy(key_columns(query, names) | {name: column}, len(names), bounds))


def _sized(blocks: Blocks, number: int) -> str:
    """Return what the blocks of a table are, in words."""
    if blocks.size is None:
        return f"{counted(number, 'group')} of {counted(len(blocks.questions), 'query')} of the set"
    return f"{number:,} atoms" if blocks.size == 1 else f"{number:,} blocks of {blocks.size:,} atoms"


def _named(table: CountQuery) -> str:
    """Return by what a table counts, as its text says it."""
    return f"by {table.question.text.rpartition(' GROUP BY ')[2]}" if table.keys else "all rows"


def _summed(counts: NDArray[np.int64], labels: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """Return the sums of counts with the same label, exactly; what has none is left out."""
    sums = np.zeros(number, dtype=np.int64)
    np.add.at(sums, labels[labels >= 0], counts[labels >= 0])
    return sums


def _expected(query: Query, half: float) -> tuple[Expected, ...]:
    aggregate = query.aggregates[0].name
    bare = {output.name for output in query.outputs if output.aggregate == aggregate}
    expectations = expected_of(query, None, {})
    return tuple(
        replace(expectation, half_width=half, note="") if expectation.output in bare else expectation
        for expectation in expectations
    )


def _fit_of_keys(over: KeyTables, parts: Sequence[CountTable], precisions: Sequence[float]) -> LeastSquares:
    marginals, sets = over.marginals, [axes_of(part.table, over.keys) for part in parts]
    variances = marginals.variances(sets, precisions)

    def answers(noisy: Sequence[NDArray[np.int64]]) -> list[Floats]:
        tables = marginals.answers(sets, precisions, noisy)
        return [_in_own_order(values, query, over.keys) for values, query in zip(tables, over.questions, strict=True)]

    return LeastSquares(answers, tuple(np.array([variance]) for variance in variances), len(parts) == 1)


def _in_own_order(values: Floats, counting: CountQuery, keys: Sequence[str]) -> Floats:
    """Return a table whose axes are in the order of all keys with its axes in the order of a query's keys."""
    order = axes_of(counting, keys)
    return np.transpose(values, [order.index(keys.index(text)) for text in counting.names])


def _fit_of_blocks(solved: Solution, blocks: Sequence[Blocks]) -> LeastSquares:
    ends = np.cumsum(solved.atoms.groups)[:-1]
    variances = tuple(np.split(solved.variances, ends))
    return LeastSquares(lambda noisy: solved.answers(blocks, noisy), variances, solved.whole(blocks))
