"""Scheme: a safe release whose levels the rows themselves choose, under differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.cells import Cells
from incrowd.core.domain import Text
from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.choices import SuppressChosen
from incrowd.core.steps.rows import Recode, keep_rows, recoded
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import Step, fold
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.selection import MonotoneNoisyMax, NoisyMax
from incrowd.methods.anonymity.safe.method import Safe
from incrowd.methods.anonymity.scheme.scores import DETAIL, expected_rows, scores
from incrowd.methods.anonymity.scheme.steps import ChooseLevels, OrderChosen
from incrowd.methods.crowds.parameters import Parameters, Target, charged, solve_behind
from incrowd.methods.outcomes.microdata import ChosenMicrodata
from incrowd.methods.person_rows import row_limits

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.table import Table

_MOST = 20_000


@dataclass(frozen=True)
class Scheme:
    """Safe microdata at levels that were chosen for this table, by a selection that is private itself.

    Guarantee: (ε, δ)-differential privacy, ε being what the private choice of levels and the sampled suppression cost
    together, at most `epsilon` where that is given; k-anonymity of the output.  No crowd-blending: the crowds hang on a
    choice that read the rows.

    Assumes: the coins stay secret; the candidate levels and all parameters were chosen without looking at the rows; one
    row is one person, or the person column says whose it is; all releases about these people go through one ledger.

    Source: Li, Qardaji & Su 2010, §4, with the cost of the choice added; McKenna & Sheldon 2020 for the choice.

    Proof.  For every fixed choice g the second stage is (ε₂, δ)-private, with coins of its own.  Let the choice be
    ε₁-private.  For a set S of pairs (g, output), P[(g, o) ∈ S] = Σ_g P[g]·P[o ∈ S_g] ≤ δ + Σ_g P[g]·min(1, e^ε₂·P′[o ∈
    S_g]) ≤ δ + e^(ε₁+ε₂)·P′[S]; δ is paid once, outside.  The choice reads all rows, not the sample that is released:
    a choice made on that sample would be tied to the counts it exposes.  Its score, the worth of a recoding, is moved
    by one row by at most DETAIL·most and by all rows in the same direction (`score`).  ∎

    >>> scheme = Scheme(Fraction(1, 10), epsilon=Fraction(1), delta=Fraction(1, 10**6), rate=Fraction(1, 10))
    >>> scheme.parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "scheme"

    choosing: Fraction
    delta: Fraction
    epsilon: Fraction | None = None
    rate: Fraction | None = None
    k: int | None = None
    lowest: Mapping[str, int] = field(default_factory=dict)
    highest: Mapping[str, int] = field(default_factory=dict)
    weights: bool = False

    def __post_init__(self) -> None:
        if self.choosing <= 0:
            raise InvalidParameter("choosing: the levels costs an epsilon above 0, such as 0.1.")
        if self.rate == 1:
            raise InvalidParameter("method scheme needs a secret sample: give a rate below 1.")
        self._safe({})

    def parameters(self, unit: Unit) -> Parameters:
        """Return k, rate, ε and δ of the release at the chosen levels; with the choice it costs `epsilon` at most."""
        return solve_behind(self.choosing, self.k, self.rate, Target(self.delta, self.epsilon), unit)

    def choices(self, schema: Schema) -> dict[str, range]:
        """Return for each released column the levels that may be chosen, known from the schema alone."""
        released = {column.name: column for column in schema.released}
        for name in (*self.lowest, *self.highest):
            if name not in released:
                raise InvalidParameter(f"there are no levels to choose for {name!r}: it is not a released column.")
        found = {}
        for name, column in released.items():
            least = 1 if column.pseudonymous or isinstance(column.domain, Text) else 0
            low, high = self.lowest.get(name, least), self.highest.get(name, column.hierarchy.height)
            if not least <= low <= high <= column.hierarchy.height:
                raise InvalidParameter(
                    f"the levels of {name!r} run from {least} to {column.hierarchy.height}, and lowest is not above "
                    "highest."
                )
            found[name] = range(low, high + 1)
        candidates = math.prod(map(len, found.values()))
        if candidates > _MOST:
            raise InvalidParameter(
                f"{candidates:,} combinations of levels would have to be weighed, and {_MOST:,} are the most. Narrow "
                "them with lowest: and highest:."
            )
        return found

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone; what was drafted from rows leaves nothing but k-anonymity."""
        unit, candidates = schema.unit, math.prod(map(len, self.choices(schema).values()))
        found = self.parameters(unit)
        steps = self.steps(schema)
        guarantee = fold(steps, unit, found.delta)
        settings: dict[str, Any] = {"choosing": self.choosing, "candidates": candidates, "k": found.k}
        if guarantee.syntactic:
            return Plan(self.name, steps, guarantee, {}, self.release, found.k, settings, cells=self._finest(schema))
        epsilon = charged(guarantee.loss, found.delta, unit.adjacency)
        settings |= {"rate": found.rate, "epsilon": epsilon, "delta": found.delta}
        numbers = {"epsilon": epsilon}
        return Plan(self.name, steps, guarantee, numbers, self.release, found.k, settings, cells=self._finest(schema))

    def _finest(self, schema: Schema) -> Cells:
        """Return the cells that are counted: at the lowest levels among which it chooses."""
        return Cells.of(schema, {name: levels[0] for name, levels in self.choices(schema).items()})

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps: the choice, then those of a safe release, whose levels are told by the labels."""
        unit, choices = schema.unit, self.choices(schema)
        found = self.parameters(unit)
        cells = self._safe({name: levels[0] for name, levels in choices.items()}).cells(schema)
        return (
            ChooseLevels(self.choosing, math.prod(map(len, choices.values())), self._selection(unit).sensitivity),
            *keep_rows(unit),
            SecretSample(found.rate),
            Recode(tuple(recoded(recoding, choices[recoding.column.name][-1]) for recoding in cells.recodings)),
            SuppressChosen(found.k),
            OrderChosen(self.weights),
        )

    def release(self, table: Table, coins: Coins) -> ChosenMicrodata:
        """Count all rows at the finest levels, choose, and release a fresh sample at the chosen ones."""
        choices, unit = self.choices(table.schema), table.schema.unit
        counts = table.engine.count(table.rows, self._finest(table.schema), *row_limits(table, coins))
        found = self.parameters(unit)
        place = self._selection(unit).release(scores(counts, choices, expected_rows(found.k, found.rate)), coins)
        levels = dict(zip(choices, list(product(*choices.values()))[place], strict=True))
        released = self._solved(levels, unit).release(table, coins)
        return ChosenMicrodata(released.counts, released.weight)

    def _selection(self, unit: Unit) -> NoisyMax:
        found = self.parameters(unit)
        sensitivity = DETAIL * expected_rows(found.k, found.rate).most * unit.max_rows
        pick = MonotoneNoisyMax if unit.adjacency is Adjacency.ADD_REMOVE else NoisyMax
        return pick(self.choosing, sensitivity)

    def _safe(self, levels: Mapping[str, int]) -> Safe:
        return Safe(levels, self.epsilon, self.delta, self.rate, self.k, self.weights)

    def _solved(self, levels: Mapping[str, int], unit: Unit) -> Safe:
        """Return the release at these levels, with the k and the rate that were solved behind the choice."""
        found = self.parameters(unit)
        return Safe(levels, None, found.delta, found.rate, found.k, self.weights)
