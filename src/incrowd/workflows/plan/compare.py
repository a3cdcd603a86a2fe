"""Compare: which route for one table and one (ε, δ), from public numbers alone, before a row is read.

Errors are total variation of a table of two columns, on average over all pairs: the share of the rows that would have
to move.  They hold the noise or the rows left out alone.  What a model cannot express is not known before rows are
read; `tree` and `marginals` measure it privately when they are released.  What crowds leave out can be measured before,
by a private look (`refine`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

from incrowd.accounting.accountant import charge_of
from incrowd.core.domain import Numbers
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.methods.synthesis.marginals.budget import Sensitivity, gaussian_scale
from incrowd.workflows.plan.expectation import expectation
from incrowd.workflows.plan.forecast import declared_rows
from incrowd.workflows.registry import method_class

if TYPE_CHECKING:
    from incrowd.core.plan import Plan
    from incrowd.core.schema import Schema
    from incrowd.workflows.policy.policy import Policy

_MEAN = math.sqrt(2 / math.pi)  # E|z| of Gaussian noise over its scale
_RATES = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2))
_SIDE = 10


@dataclass(frozen=True)
class Route:
    """One way to release a table: what it claims and costs, the error to expect, and what it cannot do.

    `error` is None where public numbers do not tell it; `low` and `high` are the ends of its interval, where a private
    look measured it; `refusal` says why a method cannot be used here at all.
    """

    method: str
    cannot: str
    claim: str = ""
    epsilon: str | None = None
    delta: str | None = None
    error: float | None = None
    refusal: str | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class RouteComparison:
    """Routes for one table of about so many rows, at one (ε, δ)."""

    rows: int
    epsilon: Fraction
    delta: Fraction
    routes: tuple[Route, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        routes = [asdict(route) for route in self.routes]
        return {"rows": self.rows, "epsilon": str(self.epsilon), "delta": str(self.delta), "routes": routes}


@dataclass(frozen=True)
class PublicTable:
    """What is public about a table: its schema, how many classes its columns have, about how many rows, (ε, δ)."""

    schema: Schema
    sizes: tuple[int, ...]
    levels: dict[str, int]
    rows: int
    epsilon: Fraction
    delta: Fraction

    def of_pairs(self, error: Callable[[int], float]) -> float:
        """Return the mean over all pairs of columns of an error that depends on how many cells there are."""
        pairs = [one * other for one, other in combinations(self.sizes, 2)] or [self.sizes[0]]
        return sum(min(1.0, error(cells)) for cells in pairs) / len(pairs)

    def noise(self, scale: float) -> float:
        """Return the error of pairs with Gaussian noise of a scale in every cell."""
        return self.of_pairs(lambda cells: cells * scale * _MEAN / (2 * self.rows))


def compare(policy: Policy) -> RouteComparison:
    """Put the routes for the table of a policy beside each other, at the policy's (ε, δ); no row is read."""
    table = public_table(policy)
    routes = tuple(_tried(name, table) for name in _ROUTES)
    return RouteComparison(table.rows, table.epsilon, table.delta, routes)


def public_table(policy: Policy) -> PublicTable:
    """Return what is public about the table of a policy, or say which line would tell it."""
    guarantee, rows = policy.plan.guarantee, declared_rows(policy)
    if rows is None:
        raise InvalidParameter(
            "comparing methods needs a number of rows: add rows: N under dataset:, an approximate public number."
        )
    epsilon = charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency).epsilon
    if not epsilon.is_finite() or epsilon <= 0 or guarantee.delta <= 0:
        raise InvalidParameter("comparing methods needs epsilon and delta: give the release both.")
    loss, levels = (Fraction(epsilon), guarantee.delta), policy.method.levels
    classes = method_class("marginals")(*loss, levels=levels).classes(policy.schema)
    levels = {column.recoding.column.name: column.recoding.level for column in classes}
    return PublicTable(policy.schema, tuple(map(len, classes)), levels, rows, *loss)


def pair_error(policy: Policy, rows: int) -> float:
    """Return the error of synthetic rows due to noise alone, on average over pairs of columns."""
    method: Any = policy.method
    sizes = tuple(map(len, method.classes(policy.schema)))
    table = PublicTable(policy.schema, sizes, dict(method.levels), rows, method.epsilon, method.delta)
    scale = method.shares(len(sizes), Sensitivity.of(policy.schema.unit)).scale
    return table.noise(float(scale))


def _tried(name: str, table: PublicTable) -> Route:
    """Return a route, or why a method cannot be used for this table."""
    try:
        return _ROUTES[name](table)
    except IncrowdError as error:
        return Route(name, "be used for this table", refusal=str(error).partition("\n")[0])


def _priced(plan: Plan, cannot: str, error: float | None) -> Route:
    guarantee = plan.guarantee
    spend = charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    claim = plan.claims[0].kind
    bounded = None if error is None else min(1.0, error)
    return Route(plan.method, cannot, claim, str(spend.epsilon), str(spend.delta), bounded)


def safe_at(table: PublicTable, rate: Fraction) -> Any:
    """Return the method of a secret sample at the levels of a comparison."""
    return method_class("safe")(table.levels, table.epsilon, table.delta, rate)


def best_rate(table: PublicTable) -> Fraction:
    """Return the rate under which the fewest rows are lost and sampling costs least, as far as public numbers tell."""
    errors = {rate: _sampled(table, rate) for rate in _RATES}
    return min(_RATES, key=lambda rate: (errors[rate] is None, errors[rate] or 0.0))


def safe_route(table: PublicTable, rate: Fraction, lost: float | None) -> Route:
    """Return the route of a secret sample, given the share of rows that its crowds leave out."""
    error = None if lost is None else lost + sampling_error(table, rate)
    return _priced(safe_at(table, rate).plan(table.schema), "keep rare rows: they are suppressed", error)


def _safe(table: PublicTable) -> Route:
    rate = best_rate(table)
    return safe_route(table, rate, _lost(table, rate))


def _sampled(table: PublicTable, rate: Fraction) -> float | None:
    lost = _lost(table, rate)
    return None if lost is None else lost + sampling_error(table, rate)


def _lost(table: PublicTable, rate: Fraction) -> float | None:
    """Return the share of rows that crowds leave out by Zipf's law."""
    expected = expectation(safe_at(table, rate).plan(table.schema), table.schema, table.rows)
    return None if expected is None else 1 - expected.skewed


def sampling_error(table: PublicTable, rate: Fraction) -> float:
    """Return what a sample at a rate adds to the error of pairs."""
    share = float((1 - rate) / rate)
    return table.of_pairs(lambda m: math.sqrt(m * share / (2 * math.pi * table.rows)))


def _scheme(table: PublicTable) -> Route:
    choosing = table.epsilon / 10
    within = table.epsilon - choosing
    plan = method_class("scheme")(choosing, table.delta, within, rate=Fraction(1, 10)).plan(table.schema)
    return _priced(plan, "tell its levels in advance", None)


def _points(table: PublicTable) -> Route:
    names = tuple(column.name for column in table.schema.released if isinstance(column.domain, Numbers))
    loss = {"epsilon": table.epsilon, "delta": table.delta}
    plan = method_class("points")(columns=names, s=_SIDE, rate=Fraction(1, 10), **loss).plan(table.schema)
    others = len(table.schema.released) - len(names)
    cannot = f"contain columns that are not numbers: {others} here" if others else "keep differences within a cell"
    return _priced(plan, cannot, None)


def _histogram(table: PublicTable) -> Route:
    """Noise in every cell of the whole table: a cell of a pair is the sum of many."""
    names = tuple(column.name for column in table.schema.released)
    plan = method_class("private-histogram")(columns=names, levels=table.levels, epsilon=table.epsilon).plan(
        table.schema
    )
    a = math.exp(-float(table.epsilon))
    deviation, cells = math.sqrt(2 * a) / (1 - a), math.prod(table.sizes)
    error = table.of_pairs(lambda m: m * math.sqrt(cells / m) * deviation * _MEAN / (2 * table.rows))
    return _priced(plan, f"be small: it lists {cells:,} counts", error)


def _tree(table: PublicTable) -> Route:
    method = method_class("tree")(table.epsilon, table.delta, levels=table.levels)
    third, edges = method.spendable(()) / 3, max(1, len(table.sizes) - 1)
    scale = float(gaussian_scale(third, edges, Sensitivity.of(table.schema.unit)))
    cannot = f"model pairs beyond the {edges} it measures: their error is unknown in advance"
    return _priced(method.plan(table.schema), cannot, table.noise(scale))


def _marginals(table: PublicTable) -> Route:
    method = method_class("marginals")(table.epsilon, table.delta, levels=table.levels)
    columns = len(table.sizes)
    rounds, shares = method.rounds_at(table.epsilon, columns), method.shares(columns, Sensitivity.of(table.schema.unit))
    cannot = f"model tables beyond the about {rounds} it measures: their error is unknown in advance"
    return _priced(method.plan(table.schema), cannot, table.noise(float(shares.scale)))


_ROUTES: dict[str, Callable[[PublicTable], Route]] = {
    "safe": _safe,
    "scheme": _scheme,
    "points": _points,
    "private-histogram": _histogram,
    "tree": _tree,
    "marginals": _marginals,
}
