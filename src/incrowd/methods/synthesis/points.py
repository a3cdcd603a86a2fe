"""Points: a public box in cells, counts of crowded cells exact and of others noisy or none, and points made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from incrowd.core.guarantee import Guarantee
from incrowd.core.unit import Kind, Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.crowds.count_claims import Small, crowd_claims
from incrowd.methods.crowds.parameters import Parameters, Target
from incrowd.methods.crowds.safe_claims import assumptions
from incrowd.methods.crowds.small_counts import crowd_of, loss_of, solve
from incrowd.methods.outcomes.points import Points
from incrowd.methods.synthesis.accuracy import Accuracy, accuracy, least_pieces, refusal
from incrowd.methods.synthesis.grid import FINE, Grid, Place
from incrowd.methods.synthesis.placing import released_cells, uniform_offsets
from incrowd.methods.synthesis.slowly_changing import slowly_changing

if TYPE_CHECKING:
    from incrowd.core.certificate import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table

_MADE_OF_COUNTS = "points are made of the released counts: Gehrke, Hay, Lui & Pass 2012, Example 4"
_PEOPLE = "; group privacy over a person's rows, each with a coin of its own"
_DESIGN = {True: "none: every row is read", False: "Poisson, one secret coin per row"}
_PLACES = {
    "centers": "every point at the center of its cell",
    "uniform": f"every point anywhere in its cell: one of {FINE} places along each side, or any whole number or day",
}


@dataclass(frozen=True)
class SyntheticPoints:
    """Synthetic points in a public box: means of all slowly changing functions survive, and nobody's record does.

    Promise: (k, ε)-crowd-blending, with ε that of the noise (0 without noise: small cells are suppressed); on a secret
    sample (ε, δ)-differential privacy by the tight curve, and zero-knowledge with respect to the sample.  For every
    function that changes slowly a bound on how far its mean over the points is from its mean over the rows.

    Assumes: the box, s and all parameters were chosen without looking at the rows; the coins stay secret; one row is
    one person, or the person column says whose it is; all releases about these people go through one ledger.

    Source: Gehrke, Hay, Lui & Pass 2012, Example 4 (points), Examples 1 and 2 (cells), Theorem 1 (sampling).

    >>> wanted = Target(Fraction(1, 10**6), Fraction(1))
    >>> SyntheticPoints(s=10, epsilon=Fraction(1), rate=Fraction(1, 10), target=wanted).parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "points"

    columns: tuple[str, ...] = ()
    s: int | None = None
    error: Fraction | None = None
    k: int | None = None
    epsilon: Fraction | None = None
    place: Literal["centers", "uniform"] = "centers"
    rate: Fraction | None = None
    target: Target | None = None

    def __post_init__(self) -> None:
        if (self.s is None) == (self.error is None):
            raise InvalidParameter("method points needs s (cells along each side of the box) or error, one of the two.")
        if self.s is not None and self.s < 1:
            raise InvalidParameter("s is the number of cells along each side of the box: at least 1.")
        if self.error is not None and self.error <= 0:
            raise InvalidParameter("the wanted error lies above 0, such as 0.01: a share of the sides of the box.")
        if self.k is not None and self.k < 1:
            raise InvalidParameter("a crowd needs k of at least 1.")
        if self.epsilon is not None and self.epsilon < 0:
            raise InvalidParameter("the epsilon of the noise is above 0; left out, cells below k are suppressed.")
        if self.rate is not None and not 0 < self.rate <= 1:
            raise InvalidParameter("the rate lies above 0 and at most at 1; below 1 there is a secret sample.")
        if self.place not in tuple(Place):
            raise InvalidParameter(f"points are placed at centers or uniform, not {self.place!r}.")
        if len(set(self.columns)) < len(self.columns):
            raise InvalidParameter("name each column once; left out, all released ones are taken.")
        if self.target is None and self.rate not in (None, 1):
            raise InvalidParameter("a secret sample needs target: {delta: …}, with epsilon or with both k and rate.")
        if self.unsampled and self.k is None:
            raise InvalidParameter(
                "without a secret sample, which is what target asks for, k must be given; then no epsilon is promised."
            )

    @property
    def unsampled(self) -> bool:
        """Whether every row is read: then crowds are exact, and there is no ε."""
        return self.rate == 1 or self.target is None

    @property
    def noise(self) -> Fraction | None:
        """The ε of the noise on small cells; None where they are suppressed."""
        return self.epsilon or None

    def parameters(self, unit: Unit) -> Parameters:
        """Return k, rate, ε and δ for a unit, the missing one solved."""
        if self.target is None or self.unsampled:
            raise InvalidParameter("without a secret sample there is no epsilon: give a target and a rate below 1.")
        return solve(self.k, self.rate, self.target, unit, self.noise)

    def small(self, unit: Unit) -> Small:
        """Return what becomes of cells below k, k solved where it was left open."""
        return Small(self.k if self.k is not None else self.parameters(unit).k, self.noise)

    def grid(self, schema: Schema) -> Grid:
        """Return the cells of the public box; what was drafted from rows is refused, and free text has no place."""
        names = self.columns or tuple(column.name for column in schema.released)
        for name in names:
            if schema[name] in schema.unreleased:
                raise InvalidParameter(f"{name!r} is an identifier: it is never released.")
            if not schema[name].domain.provenance.sound:
                raise InvalidParameter(
                    f"the bounds of {name!r} were drafted from rows, and no promise can rest on them. Where the same "
                    'is public, write public: "source" there.'
                )
        return _grid(tuple(schema[name] for name in names), self.s, self.error, Place(self.place))

    def accuracy(self, schema: Schema) -> Accuracy:
        """Return what is known about slowly changing functions before a row is read."""
        return accuracy(self.grid(schema), Place(self.place), self.small(schema.unit).k, self.noise)

    def settings(self, schema: Schema) -> Mapping[str, Any]:
        """Return the grid and k, and where there is a sample the rate, ε and δ, the solved one named."""
        grid = self.grid(schema)
        found = {"k": self.small(schema.unit).k} if self.unsampled else asdict(self.parameters(schema.unit))
        sides = max(axis.slices.pieces for axis in grid.axes)
        return {**found, "s": sides, "cells": grid.size, **self.accuracy(schema).to_json()}

    def smallest_class(self, schema: Schema) -> None:  # noqa: ARG002 (no method of this kind releases rows)
        """Return None: no rows are released."""
        return

    def guarantee(self, schema: Schema) -> Guarantee:
        """Promise from the schema alone; a grid on which noise would drown everything is refused here."""
        small, unit, grid = self.small(schema.unit), schema.unit, self.grid(schema)
        told = None if small.noise is None else refusal(grid, small.k, small.noise)
        if told is not None:
            raise Infeasible(told)
        if self.unsampled and unit.max_rows > 1:
            raise InvalidParameter(
                "at rate 1 crowds of rows say nothing about people with several rows: keep max_rows at 1."
            )
        if self.unsampled:
            because = f"{small.source}, and 4"
            return Guarantee(crowd_of(small.k, small.noise), unit, because, assumptions(unit, sampled=False))
        found, people = self.parameters(unit), _PEOPLE if unit.max_rows > 1 else ""
        loss = loss_of(found.k, found.rate, unit, small.noise)
        because = f"{small.curve}{people}; {_MADE_OF_COUNTS}"
        return Guarantee(loss, unit, because, assumptions(unit, sampled=True), found.delta)

    def claims(self, schema: Schema) -> tuple[Claim, ...]:
        """Return the claims about people in order of strength, and the one about slowly changing functions."""
        found = None if self.unsampled else self.parameters(schema.unit)
        about_people = crowd_claims(self.small(schema.unit), found, schema.unit)
        grid, place = self.grid(schema), Place(self.place)
        return (*about_people, slowly_changing(self.accuracy(schema), grid, place, schema.unit))

    def chain(self, schema: Schema) -> tuple[Mapping[str, Any], ...]:
        """Return the steps: whose rows, which sample, which grid, what small cells become, where points are put."""
        small, grid, unit = self.small(schema.unit), self.grid(schema), schema.unit
        whose = {"column": unit.column, "rows": unit.max_rows, "rule": "at random among a person's own"}
        rate = Fraction(1) if self.unsampled else self.parameters(unit).rate
        drawn = {"rate": str(rate), "design": _DESIGN[self.unsampled]}
        return (
            *([{"step": "keep rows of each person", **whose}] if unit.kind is Kind.PERSON else []),
            {"step": "sample", **drawn},
            {"step": "grid", "cells": str(grid.size), "columns": grid.to_json()},
            _small_cells(small),
            {"step": "place points", "at": self.place, "rule": _PLACES[self.place], "order": "by cell"},
        )

    def release(self, table: Table, coins: Coins) -> Points:
        """Count the sampled rows of each cell in one pass, release the counts, and put points into the cells."""
        schema, k, grid = table.schema, self.small(table.schema.unit).k, self.grid(table.schema)
        kept: list[Any] = []
        if schema.unit.column is not None:
            column = schema[schema.unit.column]
            kept.append(table.engine.limit(table.rows, column, schema.unit.max_rows, coins))
        if not self.unsampled:
            kept.append(coins.sample(self.parameters(schema.unit).rate))
        at_least = k if self.noise is None else 1
        counts = table.engine.count(table.rows, grid.cells, *kept, at_least=at_least).at_least(at_least)
        keys, released = released_cells(counts, k, self.noise, coins)
        offsets = uniform_offsets(grid, keys, released, coins) if self.place == "uniform" else None
        return Points(grid, keys, released, self.accuracy(schema), offsets)


def _small_cells(small: Small) -> Mapping[str, Any]:
    if small.noise is None:
        return {"step": "suppress counts", "k": small.k, "below": 0}
    law = {"noise": "integer Laplace", "scale": str(1 / small.noise), "clamp": True}
    return {"step": "noise when small", "k": small.k, "epsilon": str(small.noise), **law}


@lru_cache(maxsize=64)
def _grid(columns: tuple[Any, ...], s: int | None, error: Fraction | None, place: Place) -> Grid:
    if s is not None:
        return Grid.of(columns, s)
    if error is None:
        raise AssertionError("s or error is given")
    return Grid.of(columns, least_pieces(Grid.of(columns, 1), place, error))
