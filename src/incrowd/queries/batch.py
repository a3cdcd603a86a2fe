"""Batch: several queries planned together, and paid for as one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from incrowd.accounting.concentrated import largest_rho
from incrowd.core.steps.step import fold
from incrowd.core.unit import Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.queries.answer import AnswerTables, check_names
from incrowd.queries.measurement import NAME, Measurement, QueryPlan, measurement, price_of
from incrowd.queries.query import Catalog, Query, QueryTerms
from incrowd.queries.steps.query import QueryBatch
from incrowd.queries.workloads.atoms import NoiseKind
from incrowd.queries.workloads.domain import counting
from incrowd.queries.workloads.planning import SetPlanner, chosen_set
from incrowd.queries.workloads.query_set import CountWorkload, deviation_of

if TYPE_CHECKING:
    from sqlglot import exp

    from incrowd.core.coins import Coins
    from incrowd.engines.sql.engine import QueryTables
    from incrowd.queries.measuring.columns import Expected

T = TypeVar("T")
_MISS = 0.05  # intervals of 95 %, as everywhere


@dataclass(frozen=True)
class Batch:
    """Queries on shares of one budget; what they guarantee, they guarantee together.

    Those in `workloads` are answered from tables of counts that they share, and know their places among all queries;
    the others are measured one by one, and have the places that are left.  `offered` is what was offered for all of
    them: a plan that costs more is refused.  None where it is made again.
    """

    measurements: tuple[Measurement, ...]
    unit: Unit
    delta: Fraction
    offered: QueryTerms | None = None
    workloads: tuple[CountWorkload, ...] = ()

    @cached_property
    def plan(self) -> QueryPlan:
        """What will be done and what all answers guarantee together, folded from the steps of all queries."""
        shared = tuple(workload.steps for workload in self.workloads)
        steps = (QueryBatch((*shared, *(measured.steps for measured in self.measurements))),)
        guarantee = fold(steps, self.unit, self.delta)
        return QueryPlan(NAME, steps, guarantee, price_of(guarantee, self.offered), self.draw)

    def draw(self, rows: QueryTables, coins: Coins) -> AnswerTables:
        """Answer the queries one after the other, first those that share tables of counts."""
        shared = [workload.draw(rows, coins) for workload in self.workloads]
        alone = [answer for measured in self.measurements for answer in measured.draw(rows, coins).answers]
        return AnswerTables(self._in_order(shared, alone))

    @cached_property
    def _left(self) -> tuple[int, ...]:
        """The places of the queries that are measured one by one."""
        taken = {place for workload in self.workloads for place in workload.places}
        return tuple(place for place in range(len(taken) + len(self.measurements)) if place not in taken)

    def _in_order(self, shared: Iterable[Sequence[T]], alone: Sequence[T]) -> tuple[T, ...]:
        """Return what belongs to each query, those of each workload and the others, in the order of the queries."""
        by_place = dict(zip(self._left, alone, strict=True))
        for workload, items in zip(self.workloads, shared, strict=True):
            by_place |= dict(zip(workload.places, items, strict=True))
        return tuple(by_place[place] for place in sorted(by_place))

    @property
    def questions(self) -> tuple[Query, ...]:
        """All queries, in the order in which they were asked."""
        shared = [[counting.question for counting in workload.questions] for workload in self.workloads]
        return self._in_order(shared, [measured.question for measured in self.measurements])

    @property
    def expected(self) -> tuple[tuple[Expected, ...], ...]:
        """How exact each column of each answer will be, in the order of the queries."""
        shared = [workload.expected for workload in self.workloads]
        return self._in_order(shared, [measured.expected for measured in self.measurements])

    @property
    def passes(self) -> tuple[tuple[int | None, tuple[exp.Query, ...]], ...]:
        """The queries that read rows, each with the place of its query, None where several share it."""
        shared = tuple((None, (query,)) for workload in self.workloads for query in workload.statistics)
        alone = zip(self._left, (measured.statistics for measured in self.measurements), strict=True)
        return (*shared, *alone)

    @property
    def notes(self) -> tuple[str, ...]:
        """How queries are answered together, and what their numbers are of, where that is not the whole table."""
        caps = (query.caps.sentence for query in self.questions)
        return (*(workload.words for workload in self.workloads), *dict.fromkeys(filter(None, caps)))

    @property
    def width(self) -> float:
        """How wide the noise is, as the mean logarithm over all queries; smaller is better."""
        noises = [measured.noise_choice.noise for measured in self.measurements]
        widths = [math.log(noise.law.combined((0, 0), (1.0, 0.0), _MISS)) for noise in noises if noise is not None]
        return sum(widths) / max(1, len(widths))

    @property
    def squared_error(self) -> float:
        """The total of the variances of all numbers, where all queries count."""
        alone = (measured.question.declared_groups * deviation_of(measured) ** 2 for measured in self.measurements)
        return sum(workload.total for workload in self.workloads) + sum(alone)


def batch(queries: Sequence[Query], unit: Unit, terms: QueryTerms, catalog: Catalog | None = None) -> Batch:
    """Plan queries together: each gets a share of ε (or ρ) in proportion to what it asks for.

    With a δ there are two ways, and the one with the narrower noise is taken: shares of ε, which add up; or shares of
    the ρ that this ε and δ are worth, with Gaussian noise, which is better for many queries.  Thresholds of groups
    that nobody listed take their part of δ first, and ρ is read at the rest.  A plan that costs more than was offered
    is refused.

    With a catalog, counting queries over one declared domain put their shares together and are answered from noisy
    tables of counts, by least squares, where the total of their expected squared errors is smaller than otherwise.

    >>> from sqlglot import parse_one
    >>> from incrowd.queries.query import Aggregate, Contribution, AggregateKind, OutputColumn
    >>> rows, output = parse_one("SELECT 1 FROM t"), OutputColumn("n", parse_one("n"), "n")
    >>> number, reach = Aggregate("n", AggregateKind.ROWS), Contribution(1, 1)
    >>> count = Query("", rows, (), (number,), (output,), reach, ("t",), ("t",))
    >>> [each.terms.epsilon for each in batch([count, count], Unit(), QueryTerms(epsilon=1)).measurements]
    [Fraction(1, 2), Fraction(1, 2)]
    """
    if not queries:
        raise InvalidParameter("a batch needs at least one query.")
    if terms.epsilon is None or terms.rate is not None:
        raise InvalidParameter("a batch reads all rows and is paid for by one epsilon for all: give epsilon, no rate.")
    for query in queries:
        check_names(output.name for output in query.outputs)
    shares = _shares(queries, unit)
    plans = [_pure(queries, unit, terms, shares)]
    if terms.delta:
        plans.append(_concentrated(queries, unit, terms, shares))
    chosen = min(plans, key=lambda plan: plan.width) if catalog is None else _together(plans, catalog)
    _ = chosen.plan  # refused here, if it costs more than was offered
    return chosen


def _together(plans: Sequence[Batch], catalog: Catalog) -> Batch:
    """Return the best plan after counting queries were put together where that is better than equal shares.

    Where all queries count, that with the least total of squared errors; else that whose shares have the narrower
    noise, as without any workload.
    """
    counting_queries = {
        place: counting(measured.question, plans[0].unit, catalog)
        for place, measured in enumerate(plans[0].measurements)
    }
    counts = {place: query for place, query in counting_queries.items() if query is not None}
    groups = SetPlanner.of(counts, catalog) if len(counts) > 1 else None
    if groups is None or not groups.sources:
        return min(plans, key=lambda plan: plan.width)
    alone = min(plans, key=lambda plan: plan.width)
    shared = [_shared(plan, groups, catalog) for plan in (plans if len(counts) == len(counting_queries) else [alone])]
    return _with_gains(min(shared, key=lambda plan: plan.squared_error) if len(shared) > 1 else shared[0], alone)


def _shared(plan: Batch, groups: SetPlanner, catalog: Catalog) -> Batch:
    """Return a plan in which counting queries put their shares together."""
    noise = NoiseKind.LAPLACE if plan.measurements[0].terms.rho is None else NoiseKind.GAUSSIAN
    made = []
    for choice in groups.choices(noise):
        terms = [plan.measurements[place].terms for place in choice.places]
        paid = sum(
            ((term.epsilon if noise is NoiseKind.LAPLACE else term.rho) or Fraction(0) for term in terms), Fraction(0)
        )
        price = QueryTerms(epsilon=paid) if noise is NoiseKind.LAPLACE else QueryTerms(rho=paid)
        chosen = [groups.questions[place] for place in choice.places]
        with suppress(Infeasible):  # noise of a small share that is too wide to be drawn
            made.append(chosen_set(choice, chosen, plan.unit, price, catalog))
    taken = {place for made_set in made for place in made_set.places}
    left = tuple(measured for place, measured in enumerate(plan.measurements) if place not in taken)
    return Batch(left, plan.unit, plan.delta, plan.offered, tuple(made))


def _with_gains(plan: Batch, alone: Batch) -> Batch:
    """Return a plan whose query workloads know how much better they are than in the best plan with equal shares."""
    gained = []
    for workload in plan.workloads:
        chosen = tuple(alone.measurements[place] for place in workload.places)
        equal = replace(alone, measurements=chosen).squared_error
        gained.append(replace(workload, gain=equal / workload.total))
    return replace(plan, workloads=tuple(gained))


def _shares(queries: Sequence[Query], unit: Unit) -> list[Fraction]:
    """Return for each query its number of statistics and picks, as a share of all."""
    trials = [measurement(query, unit, _trial(query)) for query in queries]
    parts = [len(trial.sums.all) + len(trial.picks) for trial in trials]
    return [Fraction(part, sum(parts)) for part in parts]


def _trial(query: Query) -> QueryTerms:
    return QueryTerms(epsilon=Fraction(1), delta=Fraction(0) if query.public_keys else Fraction(1, 10**6))


def _pure(queries: Sequence[Query], unit: Unit, terms: QueryTerms, shares: Sequence[Fraction]) -> Batch:
    if not terms.delta and not all(query.public_keys for query in queries):
        raise InvalidParameter("groups without declared values need a threshold, and that a delta: give one.")
    epsilon = terms.epsilon or Fraction(0)
    paid = [QueryTerms(epsilon=epsilon * share, delta=delta) for share, delta in _deltas(queries, shares, terms.delta)]
    made = tuple(measurement(query, unit, own) for query, own in zip(queries, paid, strict=True))
    return Batch(made, unit, sum((measured.noise_choice.delta for measured in made), Fraction(0)), terms)


def _concentrated(queries: Sequence[Query], unit: Unit, terms: QueryTerms, shares: Sequence[Fraction]) -> Batch:
    hidden = Fraction(0) if all(query.public_keys for query in queries) else terms.delta / 2
    rho = largest_rho(terms.epsilon or Fraction(0), terms.delta - hidden)
    paid = [QueryTerms(rho=rho * share, delta=delta) for share, delta in _deltas(queries, shares, hidden)]
    made = tuple(measurement(query, unit, own) for query, own in zip(queries, paid, strict=True))
    return Batch(made, unit, terms.delta, terms)


def _deltas(
    queries: Sequence[Query], shares: Sequence[Fraction], delta: Fraction
) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield the share of each query, and its part of a δ that the queries with undeclared groups divide."""
    unknown = sum(not query.public_keys for query in queries)
    for query, share in zip(queries, shares, strict=True):
        yield share, Fraction(0) if query.public_keys else delta / unknown
