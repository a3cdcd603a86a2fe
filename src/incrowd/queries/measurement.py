"""Measurement: how a query is answered, and what that costs; all but the answer is known with the data unplugged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from incrowd.accounting import accountant
from incrowd.core.coins import Coins
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Loss
from incrowd.core.plan import Plan
from incrowd.core.rounding import round_up
from incrowd.core.steps.step import Step, fold
from incrowd.core.unit import Unit
from incrowd.engines.sql.engine import SampledTable
from incrowd.errors import (
    IncrowdError,
    Infeasible,
    InvalidParameter,
    MixedUnits,
    QueryFailed,
    Refused,
    UnknownColumn,
)
from incrowd.mechanisms.vector_noise import AddCube
from incrowd.queries.answer import Answer, AnswerColumn, AnswerTables
from incrowd.queries.measuring.columns import (
    TOTALED,
    Expected,
    Noisy,
    check_outputs,
    expected_of,
    key_columns,
    present_answer,
)
from incrowd.queries.measuring.estimates import NO_INTERVAL, Reading
from incrowd.queries.measuring.groups import (
    AnswerGroups,
    GroupTotals,
    Names,
    collect_groups,
    names_in,
    public_groups,
    total_groups,
)
from incrowd.queries.measuring.intervals import MISS, Interval, ShownGroup
from incrowd.queries.measuring.noise import NoiseChoice, Workload, choose_noise
from incrowd.queries.measuring.picks import Pick, is_pick, pick_of
from incrowd.queries.measuring.statistics import Statistics, statistics_of, statistics_query
from incrowd.queries.query import AggregateKind, Query, QueryTerms
from incrowd.queries.steps import noise as noise_steps
from incrowd.queries.steps import query as query_steps

if TYPE_CHECKING:
    from incrowd.engines.sql.engine import QueryTables as Rows
    from incrowd.queries.measuring.statistics import Statistic

NAME = "question"
_ABOUT_QUESTIONS = (Refused, InvalidParameter, MixedUnits, UnknownColumn)
"""Errors whose words whoever asks may read, because they are about the query; after the charge none of them is."""


@dataclass(frozen=True)
class QueryPlan(Plan):
    """How one query is answered, or several that are paid for as one."""

    @property
    def verb(self) -> str:
        return "answered"

    def failure(self, error: IncrowdError) -> IncrowdError:
        """Return how an error after the charge is told: none is about the query any more."""
        return QueryFailed(str(error)) if isinstance(error, _ABOUT_QUESTIONS) else error

    def over(self, units: Mapping[str, Unit]) -> dict[str, Guarantee]:
        """Return what is guaranteed to each of the datasets that are read, by their names."""
        own, delta = self.guarantee.unit, self.guarantee.delta
        return {name: self.guarantee if unit == own else fold(self.steps, unit, delta) for name, unit in units.items()}


def measurement(query: Query, unit: Unit, terms: QueryTerms) -> Measurement:
    """Return how a query is answered on these terms, or refuse it; no row is read.

    With a rate, the statistics must be collected from a secret Poisson sample of the one table that the query reads.

    >>> from fractions import Fraction
    >>> from sqlglot import parse_one
    >>> from incrowd.queries.query import Aggregate, Contribution, AggregateKind, OutputColumn
    >>> count = Aggregate("n", AggregateKind.ROWS)
    >>> rows, output = parse_one("SELECT 1 FROM t"), OutputColumn("n", parse_one("n"), "n")
    >>> query = Query("", rows, (), (count,), (output,), Contribution(1, 1), ("t",), ("t",))
    >>> measurement(query, Unit(), QueryTerms(epsilon=1)).expected[0].half_width
    3.0
    """
    check_outputs(query)
    if terms.rate is not None and len(query.tables) != 1:
        raise InvalidParameter("a secret sample needs a query of one table: leave the rate out.")
    if terms.rate is not None and any(aggregate.kind is AggregateKind.DISTINCT for aggregate in query.aggregates):
        raise InvalidParameter("COUNT(DISTINCT x) does not follow from a sample: leave the rate out.")
    made = Measurement(query, unit, terms)
    _ = made.picks
    return made


@dataclass(frozen=True)
class Measurement:
    """A query on terms: its guarantee, the queries an engine runs for it, its expected errors, and its answer."""

    question: Query
    unit: Unit
    terms: QueryTerms

    @cached_property
    def sums(self) -> Statistics:
        """What is added up in each group."""
        return statistics_of(self.question, self.unit)

    @cached_property
    def noise_choice(self) -> NoiseChoice:
        """The noise, and what it costs."""
        picks = [aggregate for aggregate in self.question.aggregates if is_pick(aggregate)]
        workload = Workload(self.sums, len(picks), self.question.contribution, self.unit)
        plain = tuple(aggregate for aggregate in self.question.aggregates if not is_pick(aggregate))
        return choose_noise(workload, self.terms, lambda law, error: Reading(self.sums, law).meets(plain, error))

    @cached_property
    def picks(self) -> tuple[Pick, ...]:
        """What is picked in each group."""
        epsilon, rows = self.noise_choice.pick, self.question.contribution.rows
        aggregates = [aggregate for aggregate in self.question.aggregates if is_pick(aggregate)]
        groups = len(public_groups(self.question)) if aggregates and self.question.public_keys else None
        return tuple(
            pick_of(aggregate, self.unit, groups, epsilon, rows) for aggregate in aggregates if epsilon is not None
        )

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What will be done, in order."""
        return steps_of_query(self.question, self.terms, self.sums, self.noise_choice, self.picks)

    @cached_property
    def plan(self) -> QueryPlan:
        """What will be done and what that guarantees, folded from the steps; only `draw` needs rows."""
        guarantee = fold(self.steps, self.unit, self.noise_choice.delta)
        paid_in_rho = self.terms.rho is not None and not guarantee.delta
        return QueryPlan(NAME, self.steps, guarantee, {} if paid_in_rho else price_of(guarantee, self.terms), self.draw)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Itself: it has no parts."""
        return (self,)

    @property
    def loss(self) -> Loss:
        """What it costs the unit."""
        return self.plan.guarantee.loss

    @cached_property
    def statistics(self) -> tuple[exp.Query, ...]:
        """The queries whose results `answer` needs, in this order."""
        sums = (statistics_query(self.question, self.sums),) if self.sums.all else ()
        listed = () if self.question.listed is None else (self.question.listed.query,)
        return (*sums, *(pick.query(self.question) for pick in self.picks), *listed)

    @cached_property
    def expected(self) -> tuple[Expected, ...]:
        """How exact each column of the answer will be."""
        return expected_of(
            self.question, self._reading(1), {pick.aggregate.name: self._note(pick) for pick in self.picks}
        )

    def _note(self, pick: Pick) -> str:
        """Return what is known of a pick."""
        return pick.note if self.terms.rate is None else f"{pick.note}; rows are counted in the secret sample"

    def draw(self, rows: Rows, coins: Coins) -> AnswerTables:
        """Collect the statistics, all of them from one secret sample if one is asked for, and answer the query."""
        rate = self.terms.rate
        sample = None if rate is None else SampledTable(self.question.tables[0], coins.sample(rate))
        return AnswerTables((self.answer(rows.collect_together(self.statistics, sample), coins),))

    def answer(self, collected: tuple[pa.Table, ...], coins: Coins) -> Answer:
        """Return the noisy answer to what the engine collected for `statistics`."""
        return self.noisy_answer(collected, coins)(1)

    def noisy_answer(self, collected: tuple[pa.Table, ...], coins: Coins) -> Callable[[int], Answer]:
        """Return the noisy answer, with intervals of which so many hold simultaneously; the noise is drawn once."""
        tables = list(collected)
        listed = None if self.question.listed is None else names_in(self.question, tables.pop())
        groups = self._groups(tables)
        names, noisy, picked = groups.names, groups.vectors, dict[str, AnswerColumn]()
        if self.noise_choice.noise is not None:
            noisy = self.noise_choice.noise.release(groups.vectors, coins)
            if self.noise_choice.threshold is not None and self.sums.counting is not None:
                places = np.flatnonzero(noisy[:, self.sums.counting] >= self.noise_choice.threshold.least)
                names, noisy = groups.names_at(places), noisy[places]
        names, noisy = (names, noisy) if listed is None else _only(frozenset(listed), names, noisy)
        totals = self._totals(names, noisy)
        names, noisy = (names, noisy) if totals is None else (totals.names, totals.vectors)
        for pick, table in zip(self.picks, tables, strict=True):
            values = pick.picked(self.question, table, names, coins)
            picked[pick.aggregate.name] = AnswerColumn(pick.aggregate.name, values, note=self._note(pick))
        several = np.zeros(len(names), dtype=np.bool_) if totals is None else totals.several

        def presented(together: int) -> Answer:
            columns = self._read(noisy, together) if totals is None else self._totaled(totals, together)
            bounds = partial(self._ranges, noisy, several, together)
            return present_answer(
                self.question, Noisy(key_columns(self.question, names) | columns | picked, len(names), bounds)
            )

        return presented

    def _groups(self, tables: list[pa.Table]) -> AnswerGroups:
        """Return the groups, taking the table of sums off the list."""
        if not self.sums.all:
            names = public_groups(self.question)
            return AnswerGroups(names, np.zeros((len(names), 0), dtype=np.int64))
        return collect_groups(self.question, tables.pop(0), tuple(f"_s{i}" for i in range(len(self.sums.all))))

    def _reading(self, numbers: int) -> Reading | None:
        """Return how numbers are read off statistics, with intervals that hold for so many of them at once."""
        noise, threshold, place = self.noise_choice.noise, self.noise_choice.threshold, self.sums.counting
        if noise is None:
            return None
        selection = None if threshold is None or place is None else ShownGroup(place, threshold.least, noise.law)
        return Reading(self.sums, noise.law, MISS / max(1, numbers), self.terms.rate, selection)

    def _read(self, noisy: NDArray[np.int64], together: int = 1) -> dict[str, AnswerColumn]:
        reading, columns = self._reading(together), {}
        for aggregate in self.question.aggregates:
            if reading is not None and not is_pick(aggregate):
                estimate = reading.of(aggregate, noisy)
                low, high = _ends(estimate.interval)
                note = "" if estimate.interval else NO_INTERVAL
                columns[aggregate.name] = AnswerColumn(aggregate.name, pa.array(estimate.values), low, high, note)
        return columns

    def _totals(self, names: tuple[Names, ...], noisy: NDArray[np.int64]) -> GroupTotals | None:
        """Return the noisy statistics of the groups, and of all totals over them, if there are any."""
        sets = self.question.totals
        return total_groups(names, noisy, sets, len(self.question.keys)) if sets else None

    def _totaled(self, totals: GroupTotals, together: int) -> dict[str, AnswerColumn]:
        """Return the numbers of groups and totals; a total has no interval."""
        alone = pa.array(~totals.several)
        columns = {
            name: AnswerColumn(
                name,
                column.values,
                None if column.low is None else pc.if_else(alone, column.low, None),
                None if column.high is None else pc.if_else(alone, column.high, None),
                "; ".join(filter(None, (column.note, TOTALED))),
            )
            for name, column in self._read(totals.vectors, together).items()
        }
        marks = {
            name: AnswerColumn(name, pa.array(totals.over[:, place].astype(np.int64)))
            for place, name in enumerate(self.question.marks)
        }
        return columns | marks

    def _ranges(
        self, noisy: NDArray[np.int64], several: NDArray[np.bool_], together: int, names: frozenset[str]
    ) -> dict[str, Interval]:
        """Return intervals of some aggregates that hold simultaneously: each misses a part of what all of them may.

        What is the sum of several groups has none.
        """
        reading = self._reading(together * max(1, len(names)))
        aggregates = [
            aggregate for aggregate in self.question.aggregates if aggregate.name in names and not is_pick(aggregate)
        ]
        intervals = (
            {aggregate.name: reading.of(aggregate, noisy).interval for aggregate in aggregates}
            if reading is not None
            else {}
        )
        return {
            name: Interval(*(np.where(several, np.nan, end) for end in interval))
            for name, interval in intervals.items()
            if interval is not None
        }


def price_of(guarantee: Guarantee, terms: QueryTerms | None) -> Mapping[str, Any]:
    """Return the number of a claim that an accountant computes: the ε that is charged; never more than was offered."""
    spend = accountant.charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    if terms is None or terms.epsilon is None:
        return {"epsilon": spend.epsilon}
    if spend.epsilon > round_up(terms.epsilon) or spend.delta > round_up(terms.delta):
        raise Infeasible(
            f"epsilon {float(terms.epsilon):g} was offered, and what is asked would cost {float(spend.epsilon):.6g} "
            f"with delta {float(spend.delta):g}. Ask for fewer numbers at once, or offer that much."
        )
    return {"epsilon": spend.epsilon}


def _only(
    listed: frozenset[Names], names: tuple[Names, ...], noisy: NDArray[np.int64]
) -> tuple[tuple[Names, ...], NDArray[np.int64]]:
    """Return the groups that a public table has, after the noise of all."""
    places = [place for place, name in enumerate(names) if name in listed]
    return tuple(names[place] for place in places), noisy[places]


def _ends(interval: Interval | None) -> tuple[pa.Array | None, pa.Array | None]:
    return (None, None) if interval is None else (pa.array(interval.low), pa.array(interval.high))


def steps_of_query(
    query: Query, terms: QueryTerms, sums: Statistics, choice: NoiseChoice, picked: tuple[Pick, ...]
) -> tuple[Step, ...]:
    """Return the steps: the query, whose rows, which groups, which sums, which noise, which picks, the answer."""
    reach = query.contribution
    return (
        query_steps.Understand(query.text, query.tables, terms.to_json()),
        *(() if terms.rate is None else (query_steps.RowSample(terms.rate),)),
        query_steps.BoundContribution(reach.rows, reach.groups, query.caps.rows or None, query.caps.groups),
        _groups(query),
        *_noisy(sums, choice),
        *(
            _pick(pick, noise_steps.ConcentratedPick if terms.rho is not None else noise_steps.PrivatePick)
            for pick in picked
        ),
        query_steps.GiveAnswer(tuple(output.name for output in query.outputs)),
    )


def _groups(query: Query) -> Step:
    by = tuple(key.name for key in query.keys)
    if not query.public_keys:
        return query_steps.OpenGroups(by)
    groups = query.declared_groups
    if query.listed is not None:
        return query_steps.ListedGroups(by, groups, query.listed.table)
    return query_steps.GroupRows(by, groups) if by else query_steps.OneGroup()


def _noisy(sums: Statistics, choice: NoiseChoice) -> tuple[Step, ...]:
    if choice.noise is None:
        return ()
    steps = (noise_steps.AddUp(tuple(map(_statistic, sums.all)), sums.rows), _noise(choice))
    if choice.threshold is None or sums.counting is None:
        return steps
    return (*steps, noise_steps.GroupThreshold(choice.threshold.least, sums.counting, choice.threshold.delta))


def _statistic(statistic: Statistic) -> noise_steps.NumberInGroup:
    value = None if statistic.value is None else statistic.value.name
    grid = statistic.grid
    return noise_steps.NumberInGroup(
        statistic.of, statistic.width, value, *((None, None) if grid is None else (grid.center, grid.step))
    )


def _noise(choice: NoiseChoice) -> Step:
    match choice.noise:
        case AddCube(epsilon=epsilon, law=law):
            kind = noise_steps.CubeNoise if len(law.widths) > 1 else noise_steps.LaplaceNoise
            return kind(epsilon, law.widths, law.fine, law.scale)
        case None:
            raise AssertionError("sums have noise")
    scales, share = choice.noise.law.scales, choice.share
    return (
        noise_steps.GaussianNoise(scales)
        if share is None
        else noise_steps.SharedGaussianNoise(scales, share.epsilon, share.delta)
    )


def _pick(pick: Pick, kind: type[noise_steps.PrivatePick]) -> noise_steps.PrivatePick:
    mechanism, aggregate = pick.mechanism, pick.aggregate
    return kind(
        aggregate.name,
        aggregate.kind,
        pick.candidates.number,
        pick.epsilon,
        mechanism.sensitivity,
        mechanism.scale,
        aggregate.at,
        noise_steps.PickScore.EXCESS if aggregate.kind is AggregateKind.QUANTILE else None,
    )
