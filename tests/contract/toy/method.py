"""The method: its parameters and its plan."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import pyarrow as pa

from incrowd.accounting.accountant import charge_of
from incrowd.core.cells import Cells
from incrowd.core.coins import Coins
from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.rows import keep_rows
from incrowd.core.steps.samples import EveryRow
from incrowd.core.steps.step import Step, fold
from incrowd.core.table import Table
from incrowd.errors import InvalidParameter
from incrowd.methods.person_rows import row_limits
from tests.contract.toy.steps import AddToTotal, Total


@dataclass(frozen=True)
class NoisyTotal:
    """How many rows there are, with integer Laplace noise: ε-differentially private.

    Guarantee: ε-differential privacy.  Assumes: one row is one person.  Source: Ghosh et al. 2009.
    """

    name: ClassVar[str] = "noisy-total"

    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("a total needs an epsilon above 0.")

    def plan(self, schema: Schema) -> Plan:
        """Guarantee what the noise costs."""
        unit = schema.unit
        steps: tuple[Step, ...] = (*keep_rows(unit), EveryRow(), AddToTotal(unit.max_rows / self.epsilon))
        guarantee = fold(steps, unit)
        spend = charge_of(guarantee.loss, 0, unit.adjacency)
        return Plan(
            self.name, steps, guarantee, {"epsilon": spend.epsilon}, self.release, None, {"epsilon": self.epsilon}
        )

    def release(self, table: Table, coins: Coins) -> Total:
        """Count, and add noise."""
        unit = table.schema.unit
        rows = table.engine.count(table.rows, Cells.of(table.schema, {}), *row_limits(table, coins)).total
        noise = int(coins.laplace(unit.max_rows / self.epsilon, 1)[0])
        return Total(pa.table({"total": pa.array([rows + noise], pa.int64())}))
