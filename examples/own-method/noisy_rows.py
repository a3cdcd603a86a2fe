"""The number of rows, with integer Laplace noise: a whole method for incrowd in one module."""

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

SOURCE = Theorem("noisy-rows-noise", "Ghosh, Roughgarden & Sundararajan 2009 (two-sided geometric noise)")
NOISY = Condition("noisy-rows-noisy", "the number of rows gets noise")


@dataclass(frozen=True)
class AddToTotal(Step):
    """The number of rows gets integer Laplace noise."""

    kind: ClassVar[str] = "add noise to the number of rows"
    title: ClassVar[str] = "Count with noise"

    scale: Fraction

    @property
    def sentence(self) -> str:
        return f"The number of rows gets integer Laplace noise of scale {self.scale}."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        return StepGuarantee(Laplace(self.scale, unit.max_rows), (SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        claim = PurePrivacy(
            epsilon=basis.epsilon,
            adjacency=basis.unit.adjacency,
            max_rows=basis.unit.max_rows,
            scale=self.scale,
            unit=basis.unit,
            theorem=(SOURCE,),
            preconditions=(*proved(NOISY), *assumed(basis.guarantee.assumes)),
            not_protected=(GROUPS,),
        )
        return (claim,)


@dataclass(frozen=True, eq=False)
class Total(Tabular):
    """One number."""

    form: ClassVar[str] = "total"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        return {"numbers": 1}


@dataclass(frozen=True)
class NoisyRows(Method):
    """The number of rows, with integer Laplace noise.

    Guarantee: ε-differential privacy.  Assumes: one row is one person, or people have at most `max_rows` rows.
    Source: Ghosh et al. 2009.
    """

    name: ClassVar[str] = "noisy-rows"

    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("noisy-rows needs an epsilon above 0.")

    def plan(self, schema: Schema) -> Plan:
        unit = schema.unit
        steps = (*keep_rows(unit), EveryRow(), AddToTotal(unit.max_rows / self.epsilon))
        guarantee = fold(steps, unit)
        numbers = {"epsilon": charge_of(guarantee.loss, 0, unit.adjacency).epsilon}
        return Plan(self.name, steps, guarantee, numbers, self.release, settings={"epsilon": self.epsilon})

    def release(self, table: Table, coins: Coins) -> Total:
        unit = table.schema.unit
        rows = table.engine.count(table.rows, Cells.of(table.schema, {}), *row_limits(table, coins)).total
        noise = int(coins.laplace(unit.max_rows / self.epsilon, 1)[0])
        return Total(pa.table({"total": pa.array([rows + noise], pa.int64())}))


@dataclass(frozen=True, kw_only=True)
class TotalCheck(Check):
    """One number in one file."""

    def contradiction(self, statement: Statement) -> Problem | None:
        return Problem("a column is said to be released") if statement.released else None

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        (file,) = files
        right = columns_of(file) == ("total",) and len(list(values_of(file, "total"))) == 1
        yield CheckOutcome("number in the file", None if right else Problem("there is not one total"), "one total")

    def recount(self, statement: Statement, output: Total) -> Problem | None:
        return None if len(output) == 1 else Problem("there is not one total")

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Total:
        return Total(pa.table({"total": pa.array([int(total) for total in values_of(files[0], "total")], pa.int64())}))


METHOD = NoisyRows
CHECK = TotalCheck(order=(maybe(KeepRows), one(EveryRow), one(AddToTotal)), claims=(PurePrivacy,))
PICTURE = Picture()
