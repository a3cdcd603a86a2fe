"""Caps: how many rows of a person to use: the noise that each cap costs, and the rows that it keeps.

Declarations bound what a cap keeps.  With c ≤ m, min(h, c) ≥ c/m · min(h, m) for every number h of rows of a person,
so a cap of c keeps at least c/m of the rows that the declared cap m keeps, whatever the rows are.  People keep at most
c rows each, so c times the declared population bounds the share from above, if nobody has more than m rows.  For a
private price the rows of people are counted by a query as any other, which is charged: each person is in one of its
groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter
from incrowd.queries.query import QueryTerms
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import open_queries

_USUAL_EPSILON = Fraction(1)
_TAIL = math.log(20)
"""Noise of scale 1 is within plus or minus this in 95 % of cases (Dwork, McSherry, Nissim & Smith 2006)."""
_MOST = 1000


@dataclass(frozen=True)
class Cap:
    """A cap on the rows of a person: the 95 % error of COUNT(*) by noise, and what is known of the rows that it keeps.

    `least` and `most` bound the kept share of the rows by declarations, `worst` the rows that are left out.  `lost` and
    `retained` are noisy numbers, which were paid for.
    """

    rows: int
    noise: int
    least: float
    most: float = 1.0
    worst: int | None = None
    lost: int | None = None
    retained: float | None = None

    @property
    def error(self) -> int | None:
        """The error of a count of all rows: noise, and rows that are left out, at worst where that was not counted."""
        lost = self.worst if self.lost is None else self.lost
        return None if lost is None else self.noise + lost


@dataclass(frozen=True)
class Caps:
    """Every cap up to the declared one, at the ε of one query; `charged` is what the counts of rows cost."""

    epsilon: Fraction
    caps: tuple[Cap, ...]
    charged: str | None = None

    @property
    def best(self) -> Cap | None:
        """The cap with the least error of a count of all rows; None where nothing is known of the number of rows."""
        errors = [(cap.error, cap.rows, cap) for cap in self.caps if cap.error is not None]
        return min(errors)[2] if errors else None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        best = None if self.best is None else self.best.rows
        caps = [asdict(cap) for cap in self.caps]
        return {"epsilon": str(self.epsilon), "caps": caps, "charged": self.charged, "recommended": best}


def caps_of(policy: Policy, price: Fraction | None = None, data: object = None) -> Caps:
    """Return what caps on the rows of a person cost; with a price, also what they keep, by noisy counts."""
    unit, queries = policy.schema.unit, policy.section.queries
    if queries is None:
        raise InvalidParameter("this policy allows no queries: add a section queries: to it.")
    if unit.column is None or not 1 < unit.max_rows <= _MOST:
        raise InvalidParameter(f"caps are about a person with 2 to {_MOST:,} rows (unit: column and max_rows).")
    epsilon = _USUAL_EPSILON if queries.most_epsilon is None else Fraction(queries.most_epsilon)
    sides = 2 if unit.adjacency is Adjacency.REPLACE else 1
    noise = [math.ceil(sides * rows / epsilon * Fraction(_TAIL)) for rows in range(1, unit.max_rows + 1)]
    declared = tuple(_declared(policy, rows, error) for rows, error in enumerate(noise, start=1))
    if price is None:
        return Caps(epsilon, declared)
    table, person = ('"' + name.replace('"', '""') + '"' for name in (queries.table or policy.name, unit.column))
    inner = f"SELECT {person}, COUNT(*) AS n FROM {table} GROUP BY {person}"  # noqa: S608 - quoted names
    sql = f"SELECT n, COUNT(*) AS people FROM ({inner}) GROUP BY n"  # noqa: S608 - as above
    with open_queries([policy], data) as service:
        reply = service.ask(QueryRequest(sql, QueryTerms(epsilon=price)))
    people = {int(row["n"]): float(row["people"]) for row in reply.answer.rows() if row["n"]}
    return Caps(epsilon, tuple(_with_rows(declared, people)), str(reply.cost.epsilon))


def _declared(policy: Policy, rows: int, noise: int) -> Cap:
    """Return a cap with what declarations say of the rows that it keeps."""
    dataset, highest = policy.section.dataset, policy.schema.unit.max_rows
    if dataset.rows is None:
        return Cap(rows, noise, round(rows / highest, 3))
    most = 1.0 if dataset.population is None else min(1.0, rows * dataset.population / max(1, dataset.rows))
    worst = math.ceil(dataset.rows * Fraction(highest - rows, highest))
    return Cap(rows, noise, round(rows / highest, 3), round(most, 3), worst)


def _with_rows(caps: Sequence[Cap], people: dict[int, float]) -> list[Cap]:
    """Return caps with the rows that they leave out and keep, by noisy numbers of people with 1, 2, … rows."""
    total = sum(rows * many for rows, many in people.items())
    within = [sum(min(held, cap.rows) * many for held, many in people.items()) for cap in caps]
    return [
        replace(cap, lost=math.ceil(total - inside), retained=round(inside / total, 3) if total else 1.0)
        for cap, inside in zip(caps, within, strict=True)
    ]
