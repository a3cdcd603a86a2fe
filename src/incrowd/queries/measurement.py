"""Measurement: how a question is answered, and what that costs; all but the answer is known with the data unplugged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from incrowd.accounting import accountant
from incrowd.core.coins import Coins
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Loss
from incrowd.core.rounding import round_up
from incrowd.core.steps.step import Step, fold
from incrowd.core.unit import Unit
from incrowd.engines.sql.engine import Drawn
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.queries.answer import Answer, AnswerColumn
from incrowd.queries.measuring.accuracy import Expected, expected_of
from incrowd.queries.measuring.chain import question_steps
from incrowd.queries.measuring.estimates import NO_INTERVAL, Reading
from incrowd.queries.measuring.groups import ARROW, Groups, Names, gathered, listed
from incrowd.queries.measuring.law import MISS
from incrowd.queries.measuring.noise import Asked, Settled, settled
from incrowd.queries.measuring.picks import Pick, is_pick, pick_of
from incrowd.queries.measuring.presenting import Noisy, check_outputs, presented
from incrowd.queries.measuring.ratios import Interval
from incrowd.queries.measuring.statistics import Statistics, collected, statistics_of
from incrowd.queries.output import AnswerTables
from incrowd.queries.plan import NAME, QuestionPlan
from incrowd.queries.question import Question
from incrowd.queries.terms import Terms

if TYPE_CHECKING:
    from incrowd.engines.sql.engine import Asked as Rows


def measurement(question: Question, unit: Unit, terms: Terms) -> Measurement:
    """Return how a question is answered on these terms, or refuse it; no row is read.

    With a rate, the statistics must be collected from a secret Poisson sample of the one table that the question reads.

    >>> from fractions import Fraction
    >>> from sqlglot import parse_one
    >>> from incrowd.queries.question import Aggregate, Contribution, Kind, Output
    >>> count = Aggregate("n", Kind.ROWS)
    >>> rows, output = parse_one("SELECT 1 FROM t"), Output("n", parse_one("n"), "n")
    >>> question = Question("", rows, (), (count,), (output,), Contribution(1, 1), ("t",), ("t",))
    >>> measurement(question, Unit(), Terms(epsilon=1)).expected[0].half_width
    3.0
    """
    check_outputs(question)
    if terms.rate is not None and len(question.tables) != 1:
        raise InvalidParameter(
            "a secret sample is drawn of one table, and this question reads more. Leave the rate out."
        )
    made = Measurement(question, unit, terms)
    _ = made.picks
    return made


@dataclass(frozen=True)
class Measurement:
    """A question on terms: its promise, the queries an engine runs for it, its expected errors, and its answer."""

    question: Question
    unit: Unit
    terms: Terms

    @cached_property
    def sums(self) -> Statistics:
        """What is added up in each group."""
        return statistics_of(self.question, self.unit)

    @cached_property
    def settled(self) -> Settled:
        """The noise, and what it costs."""
        picks = [each for each in self.question.aggregates if is_pick(each)]
        asked = Asked(self.sums, len(picks), self.question.contribution, self.unit)
        plain = tuple(each for each in self.question.aggregates if not is_pick(each))
        return settled(asked, self.terms, lambda law, error: Reading(self.sums, law).meets(plain, error))

    @cached_property
    def picks(self) -> tuple[Pick, ...]:
        """What is picked in each group."""
        each, rows = self.settled.pick, self.question.contribution.rows
        groups = len(listed(self.question)) if self.question.public_keys else None
        wanted = [aggregate for aggregate in self.question.aggregates if is_pick(aggregate)]
        return tuple(pick_of(aggregate, self.unit, groups, each, rows) for aggregate in wanted if each is not None)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What will be done, in order."""
        return question_steps(self.question, self.terms, self.sums, self.settled, self.picks)

    @cached_property
    def plan(self) -> QuestionPlan:
        """What will be done and what that promises, folded from the steps; only `draw` needs rows."""
        promise = fold(self.steps, self.unit, self.settled.delta)
        paid_in_rho = self.terms.rho is not None and not promise.delta
        return QuestionPlan(NAME, self.steps, promise, {} if paid_in_rho else price_of(promise, self.terms), self.draw)

    @property
    def loss(self) -> Loss:
        """What it costs the unit."""
        return self.plan.promise.loss

    @cached_property
    def statistics(self) -> tuple[exp.Query, ...]:
        """The queries whose results `answer` needs, in this order."""
        sums = (collected(self.question, self.sums),) if self.sums.all else ()
        return (*sums, *(pick.query(self.question) for pick in self.picks))

    @cached_property
    def expected(self) -> tuple[Expected, ...]:
        """How exact each column of the answer will be."""
        return expected_of(self.question, self._reading(1), self.picks)

    def draw(self, rows: Rows, coins: Coins) -> AnswerTables:
        """Collect the statistics, all of them from one secret sample if one is asked for, and answer the question."""
        rate = self.terms.rate
        drawn = None if rate is None else Drawn(self.question.tables[0], coins.sample(rate))
        return AnswerTables((self.answer(tuple(rows.collect(query, drawn) for query in self.statistics), coins),))

    def answer(self, collected: tuple[pa.Table, ...], coins: Coins) -> Answer:
        """Return the noisy answer to what the engine collected for `statistics`."""
        tables = list(collected)
        groups = self._groups(tables)
        names, noisy, columns = groups.names, groups.vectors, {}
        if self.settled.noise is not None:
            noisy = self.settled.noise.release(groups.vectors, coins)
            if self.settled.threshold is not None and self.sums.counting is not None:
                shown = np.flatnonzero(noisy[:, self.sums.counting] >= self.settled.threshold.least)
                names, noisy = groups.kept(shown), noisy[shown]
            columns = self._read(noisy)
        for pick, table in zip(self.picks, tables, strict=True):
            found = pick.picked(self.question, table, names, coins)
            columns[pick.aggregate.name] = AnswerColumn(pick.aggregate.name, found, note=pick.note)
        bounds = partial(self._ranges, noisy)
        return presented(self.question, Noisy(self._keys(names) | columns, len(names), bounds))

    def _groups(self, tables: list[pa.Table]) -> Groups:
        """Return the groups, taking the table of sums off the list."""
        if not self.sums.all:
            names = listed(self.question)
            return Groups(names, np.zeros((len(names), 0), dtype=np.int64))
        return gathered(self.question, tables.pop(0), tuple(f"_s{i}" for i in range(len(self.sums.all))))

    def _reading(self, numbers: int) -> Reading | None:
        """Return how numbers are read off statistics, with intervals that hold for so many of them at once."""
        noise = self.settled.noise
        return None if noise is None else Reading(self.sums, noise.law, MISS / max(1, numbers), self.terms.rate)

    def _read(self, noisy: NDArray[np.int64]) -> dict[str, AnswerColumn]:
        reading, columns = self._reading(1), {}
        for aggregate in self.question.aggregates:
            if reading is not None and not is_pick(aggregate):
                found = reading.of(aggregate, noisy)
                low, high = _ends(found.interval)
                note = "" if found.interval else NO_INTERVAL
                columns[aggregate.name] = AnswerColumn(aggregate.name, pa.array(found.values), low, high, note)
        return columns

    def _ranges(self, noisy: NDArray[np.int64], names: frozenset[str]) -> dict[str, Interval]:
        """Return intervals of some aggregates that hold together: each misses a part of what all of them may."""
        reading = self._reading(len(names))
        wanted = [each for each in self.question.aggregates if each.name in names and not is_pick(each)]
        found = {each.name: reading.of(each, noisy).interval for each in wanted} if reading is not None else {}
        return {name: interval for name, interval in found.items() if interval is not None}

    def _keys(self, names: tuple[Names, ...]) -> dict[str, AnswerColumn]:
        values = zip(*names, strict=True) if names else [()] * len(self.question.keys)
        return {
            key.name: AnswerColumn(key.name, pa.array(column, ARROW[key.type]))
            for key, column in zip(self.question.keys, values, strict=bool(self.question.keys))
        }


def price_of(promise: Guarantee, terms: Terms) -> Mapping[str, Any]:
    """Return the number of a claim that an accountant computes: the ε that is charged; never more than was offered."""
    spend = accountant.charge_of(promise.loss, promise.delta, promise.unit.adjacency)
    offered = terms.epsilon
    if offered is not None and (spend.epsilon > round_up(offered) or spend.delta > round_up(terms.delta)):
        raise Infeasible(
            f"epsilon {float(offered):g} was offered, and what is asked would cost {float(spend.epsilon):.6g} with "
            f"delta {float(spend.delta):g}. Ask for fewer numbers at once, or offer that much."
        )
    return {"epsilon": spend.epsilon}


def _ends(interval: Interval | None) -> tuple[pa.Array | None, pa.Array | None]:
    return (None, None) if interval is None else (pa.array(interval.low), pa.array(interval.high))
