"""Scheme: a safe release whose levels the rows themselves choose, under differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.accounting import accountant
from incrowd.core.cells import Cells
from incrowd.core.domain import Text
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Pure, Sequence
from incrowd.core.schema import Schema
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.noisy_max import MonotoneNoisyMax, NoisyMax
from incrowd.methods.anonymity import chosen
from incrowd.methods.anonymity.safe.method import Safe
from incrowd.methods.anonymity.scheme.kept import kept_of
from incrowd.methods.anonymity.scheme.worth import DETAIL, worths
from incrowd.methods.crowds.parameters import Parameters, Target, loss_of
from incrowd.methods.outcomes.microdata import ChosenMicrodata

if TYPE_CHECKING:
    from incrowd.core.certificate import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.table import Table

_MOST = 20_000
_ENDING = "order by chosen levels"
_BECAUSE = (
    "levels chosen by an epsilon-private selection, then sampled suppression with fresh coins at those levels: "
    "adaptive composition"
)


@dataclass(frozen=True)
class Scheme:
    """Safe microdata at levels that were chosen for this table, by a selection that is private itself.

    Promise: (ε, δ)-differential privacy, ε being what the private choice of levels and the sampled suppression cost
    together; k-anonymity of the output.  No crowd-blending: the crowds hang on a choice that read the rows.

    Assumes: the coins stay secret; the candidate levels and all parameters were chosen without looking at the rows; one
    row is one person, or the person column says whose it is; all releases about these people go through one ledger.

    Source: Li, Qardaji & Su 2010, §4, with the cost of the choice added; McKenna & Sheldon 2020 for the choice.

    Proof.  For every fixed choice g the second stage is (ε₂, δ)-private, with coins of its own.  Let the choice be
    ε₁-private.  For a set S of pairs (g, output), P[(g, o) ∈ S] = Σ_g P[g]·P[o ∈ S_g] ≤ δ + Σ_g P[g]·min(1, e^ε₂·P′[o ∈
    S_g]) ≤ δ + e^(ε₁+ε₂)·P′[S]; δ is paid once, outside.  The choice reads all rows, not the sample that is released:
    a choice made on that sample would be tied to the counts it exposes.  Its score, the worth of a recoding, is moved
    by one row by at most DETAIL·most and by all rows in the same direction (`worth`).  ∎

    >>> scheme = Scheme(Fraction(1, 10), Target(Fraction(1, 10**6), Fraction(1)), rate=Fraction(1, 10))
    >>> scheme.parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "scheme"

    choosing: Fraction
    target: Target
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
        """Return k, rate, ε and δ of the release at the chosen levels; the choice costs `choosing` beside them."""
        return self._safe({}).parameters(unit)

    def settings(self, schema: Schema) -> Mapping[str, Any]:
        """Return the numbers of both stages, and what they cost together."""
        found = self.parameters(schema.unit)
        told = {"choosing": self.choosing, "candidates": math.prod(map(len, self.choices(schema).values()))}
        return {**told, "k": found.k, "rate": found.rate, "epsilon": self.epsilon(schema.unit), "delta": found.delta}

    def epsilon(self, unit: Unit) -> Decimal:
        """Return what both stages cost together."""
        return accountant.charge_of(self.loss(unit), self.parameters(unit).delta, unit.adjacency).epsilon

    def loss(self, unit: Unit) -> Sequence:
        """Return the loss of both stages."""
        found = self.parameters(unit)
        return Sequence((Pure(self.choosing), loss_of(found.k, found.rate, unit)))

    def smallest_class(self, schema: Schema) -> int:
        """Return k."""
        return self.parameters(schema.unit).k

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

    def guarantee(self, schema: Schema) -> Guarantee:
        """Promise from the schema alone; what was drafted from rows leaves nothing but k-anonymity."""
        self.choices(schema)
        return chosen.promise(schema, self.loss(schema.unit), self.parameters(schema.unit), self._choice)

    def claims(self, schema: Schema) -> tuple[Claim, ...]:
        """Return the claims: differential privacy of both stages together, and the form of the output."""
        unit, promised = schema.unit, self.guarantee(schema)
        return chosen.claims(promised, schema, self.parameters(unit), self._choice, self.epsilon(unit))

    def chain(self, schema: Schema) -> tuple[Mapping[str, Any], ...]:
        """Return the steps: the choice, then those of a safe release, whose levels are told by the labels."""
        choices = self.choices(schema)
        steps = list(self._safe({name: levels[0] for name, levels in choices.items()}).chain(schema))
        recode = next(place for place, step in enumerate(steps) if step["step"] == "recode")
        columns = [
            {**column, "level": f"chosen from {choices[column['column']][0]} to {choices[column['column']][-1]}"}
            for column in steps[recode]["columns"]
        ]
        choose = {
            "step": "choose levels",
            "epsilon": str(self.choosing),
            "candidates": math.prod(map(len, choices.values())),
            "by": "permute-and-flip over what each recoding would keep of all rows",
            "sensitivity": self._selection(schema.unit).sensitivity,
        }
        last = {"step": _ENDING, "by": "released values", "weights": self.weights}
        return (choose, *steps[:recode], {**steps[recode], "columns": columns}, *steps[recode + 1 : -1], last)

    def release(self, table: Table, coins: Coins) -> ChosenMicrodata:
        """Count all rows at the finest levels, choose, and release a fresh sample at the chosen ones."""
        choices, unit = self.choices(table.schema), table.schema.unit
        cells = Cells.of(table.schema, {name: levels[0] for name, levels in choices.items()})
        limits = []
        if unit.column is not None:
            limits.append(table.engine.limit(table.rows, table.schema[unit.column], unit.max_rows, coins))
        counts = table.engine.count(table.rows, cells, *limits)
        found = self.parameters(unit)
        place = self._selection(unit).release(worths(counts, choices, kept_of(found.k, found.rate)), coins)
        levels = dict(zip(choices, list(product(*choices.values()))[place], strict=True))
        released = self._safe(levels).release(table, coins)
        return ChosenMicrodata(released.counts, released.weight)

    @property
    def _choice(self) -> chosen.Choice:
        return chosen.Choice(
            self.choosing,
            _BECAUSE,
            "the candidate levels, the recoding rules and the parameters were chosen without looking at the rows",
            "one row moves the worth of every recoding by at most the stated sensitivity",
            "the sample that is released has coins of its own, not those of the choice",
            "crowd-blending is not claimed: who stands in which crowd hangs on a choice that read the rows",
        )

    def _selection(self, unit: Unit) -> NoisyMax:
        found = self.parameters(unit)
        sensitivity = DETAIL * kept_of(found.k, found.rate).most * unit.max_rows
        pick = MonotoneNoisyMax if unit.adjacency is Adjacency.ADD_REMOVE else NoisyMax
        return pick(self.choosing, sensitivity)

    def _safe(self, levels: Mapping[str, int]) -> Safe:
        return Safe(levels, self.target, self.rate, self.k, self.weights)
