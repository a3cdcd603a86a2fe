"""Caps: how many rows of a person to use: the noise that each cap costs, and for a private price the rows it keeps.

The rows of people are counted by a query as any other, which is charged: each person is in one of its groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
    """A cap on the rows of a person: the 95 % error of COUNT(*) by noise, and the rows that it leaves out, if known."""

    rows: int
    noise: int
    lost: int | None = None
    retained: float | None = None

    @property
    def error(self) -> int:
        """The error of a count of all rows: noise, and rows that are left out."""
        return self.noise + (self.lost or 0)


@dataclass(frozen=True)
class Caps:
    """Every cap up to the declared one, at the ε of one query; `charged` is what the counts of rows cost."""

    epsilon: Fraction
    caps: tuple[Cap, ...]
    charged: str | None = None

    @property
    def best(self) -> Cap | None:
        """The cap with the least error of a count of all rows; None where the rows that caps leave out are unknown."""
        return None if self.charged is None else min(self.caps, key=lambda cap: (cap.error, cap.rows))

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        caps = [{"rows": cap.rows, "noise": cap.noise, "lost": cap.lost, "retained": cap.retained} for cap in self.caps]
        best = None if self.best is None else self.best.rows
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
    if price is None:
        return Caps(epsilon, tuple(Cap(rows, error) for rows, error in enumerate(noise, start=1)))
    table, person = ('"' + name.replace('"', '""') + '"' for name in (queries.table or policy.name, unit.column))
    inner = f"SELECT {person}, COUNT(*) AS n FROM {table} GROUP BY {person}"  # noqa: S608 - quoted names
    sql = f"SELECT n, COUNT(*) AS people FROM ({inner}) GROUP BY n"  # noqa: S608 - as above
    with open_queries([policy], data) as service:
        reply = service.ask(QueryRequest(sql, QueryTerms(epsilon=price)))
    people = {int(row["n"]): float(row["people"]) for row in reply.answer.rows() if row["n"]}
    return Caps(epsilon, tuple(_with_rows(noise, people)), str(reply.cost.epsilon))


def _with_rows(noise: Sequence[int], people: dict[int, float]) -> list[Cap]:
    """Return caps with the rows that they leave out and keep, by noisy numbers of people with 1, 2, … rows."""
    total = sum(rows * many for rows, many in people.items())
    caps = []
    for rows, error in enumerate(noise, start=1):
        within = sum(min(held, rows) * many for held, many in people.items())
        caps.append(Cap(rows, error, math.ceil(total - within), round(within / total, 3) if total else 1.0))
    return caps
