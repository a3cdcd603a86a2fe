"""A whole method in a hundred lines: how many rows there are, with noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from incrowd.accounting.accountant import charge_of
from incrowd.core.cells import Cells
from incrowd.core.claims.claim import GROUPS, Claim, assumed, proved
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.coins import Coins
from incrowd.core.loss import Laplace
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import KeepRows, keep_rows
from incrowd.core.steps.samples import EveryRow
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions, fold
from incrowd.core.table import Table
from incrowd.core.terms import Condition, Theorem
from incrowd.core.unit import Unit
from incrowd.drawing.picture import Picture
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import row_limits
from incrowd.methods.shared.outcome import Tabular
from incrowd.verifier.check import Check, CheckOutcome, Problem, maybe, one
from incrowd.verifier.files import columns_of, values_of

_SOURCE = Theorem("toy-noise", "Ghosh, Roughgarden & Sundararajan 2009 (two-sided geometric noise)")
_NOISY = Condition("toy-total-noisy", "the total gets noise")


@dataclass(frozen=True)
class AddToTotal(Step):
    """The number of rows gets integer Laplace noise."""

    kind: ClassVar[str] = "add to total"
    title: ClassVar[str] = "Count with noise"

    scale: Fraction

    @property
    def sentence(self) -> str:
        return f"The number of rows gets integer Laplace noise of scale {self.scale}."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee the privacy loss of a person with all their rows."""
        return StepGuarantee(Laplace(self.scale, unit.max_rows), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        unit = basis.unit
        return (
            PurePrivacy(
                epsilon=basis.epsilon,
                adjacency=unit.adjacency,
                max_rows=unit.max_rows,
                scale=self.scale,
                unit=unit,
                theorem=(_SOURCE,),
                preconditions=(*proved(_NOISY), *assumed(basis.guarantee.assumes)),
                not_protected=(GROUPS,),
            ),
        )


@dataclass(frozen=True, eq=False)
class Total(Tabular):
    """One number."""

    form: ClassVar[str] = "total"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        return {"numbers": 1}


@dataclass(frozen=True)
class NoisyTotal(Method):
    """How many rows there are, with integer Laplace noise: ε-differentially private.

    Guarantee: ε-differential privacy.  Assumes: one row is one person.  Source: Ghosh et al. 2009.
    """

    name: ClassVar[str] = "noisy-total"

    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("a total needs an epsilon above 0.")

    def plan(self, schema: Schema) -> Plan:
        unit = schema.unit
        steps: tuple[Step, ...] = (*keep_rows(unit), EveryRow(), AddToTotal(unit.max_rows / self.epsilon))
        guarantee = fold(steps, unit)
        numbers = {"epsilon": charge_of(guarantee.loss, 0, unit.adjacency).epsilon}
        return Plan(self.name, steps, guarantee, numbers, self.release, None, {"epsilon": self.epsilon})

    def release(self, table: Table, coins: Coins) -> Total:
        """Count, and add noise."""
        unit = table.schema.unit
        rows = table.engine.count(table.rows, Cells.of(table.schema, {}), *row_limits(table, coins)).total
        noise = int(coins.laplace(unit.max_rows / self.epsilon, 1)[0])
        return Total(pa.table({"total": pa.array([rows + noise], pa.int64())}))


class TotalCheck(Check):
    """One number in a file, and no column of the input."""

    def contradiction(self, statement: Statement) -> Problem | None:
        return Problem("no column is released") if statement.released else None

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        (file,) = files
        right = columns_of(file) == ("total",) and len(list(values_of(file, "total"))) == 1
        problem = None if right else Problem("there is not one total")
        yield CheckOutcome("number in the file", problem, "there is one total")

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        return None if len(output) == 1 else Problem("there is not one total")

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Total:
        totals = [int(value) for value in values_of(files[0], "total")]
        return Total(pa.table({"total": pa.array(totals, pa.int64())}))


CHECK = TotalCheck(order=(maybe(KeepRows), one(EveryRow), one(AddToTotal)), claims=(PurePrivacy,))
PICTURE = Picture()
METHOD = NoisyTotal
