"""Planning: what every method of learning shares: the budget, the columns, the steps around its sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from incrowd.accounting.concentrated import largest_rho
from incrowd.core.cells import Cells
from incrowd.core.loss import Pure
from incrowd.core.plan import Plan
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.rows import keep_rows, recoded
from incrowd.core.steps.step import Step, fold
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.inputs import ColumnEncoder, name_of
from incrowd.methods.learning.shared.models import TABLE
from incrowd.methods.learning.shared.steps import LearnFrom, ModelForm, PublishModel
from incrowd.methods.shared.columns import bin_column
from incrowd.methods.shared.sampling import charged

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.recoding import Classes
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table
    from incrowd.methods.learning.shared.output import ModelTable


MOST_BINS = 1024  # more bins than rows of most tables fill: nearly all would be noise


@dataclass(frozen=True, eq=False)
class LearningTask:
    """What is learned: from which columns, and what is predicted, with the names of what comes out."""

    inputs: tuple[Classes, ...]
    target: Classes | None = None
    outputs: tuple[str, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many classes each column has."""
        return tuple(map(len, self.inputs))

    @property
    def ordered(self) -> tuple[bool, ...]:
        """Of which columns the codes have an order."""
        return tuple(encoder.ordered for encoder in self.encoders)

    @property
    def classes(self) -> tuple[Classes, ...]:
        """Every column that is read, the target last."""
        return self.inputs if self.target is None else (*self.inputs, self.target)

    @property
    def encoders(self) -> tuple[ColumnEncoder, ...]:
        """How the model's file says that columns are read."""
        return tuple(map(ColumnEncoder.of, self.inputs))

    def around(self, sums: Sequence[Step], schema: Schema, model: ModelForm) -> tuple[Step, ...]:
        """Return all steps, given those that sum with noise."""
        target = None if self.target is None else name_of(self.target)
        columns = tuple(bin_column(name_of(item), item) for item in self.inputs)
        return (
            *keep_rows(schema.unit),
            RecodeToBins(tuple(recoded(item.recoding) for item in self.classes)),
            LearnFrom(columns, target, None if self.outputs in ((), (target,)) else self.outputs),
            *sums,
            PublishModel(model),
        )


@lru_cache(maxsize=64)
def budget_of(epsilon: Fraction, delta: Fraction | None, model: str) -> Fraction:
    """Return the concentrated budget of ε at δ, or refuse a model that needs a δ without one."""
    if delta is None:
        raise InvalidParameter(
            f"{model} needs a delta, such as 1e-6: without one, under epsilon alone, a classifier can be learned by "
            "naive-bayes or random-trees, and kmeans on a grid."
        )
    return largest_rho(epsilon, delta)


def check_parameters(
    epsilon: Fraction, delta: Fraction | None, bins: int | None, expected_rows: int | None = None
) -> None:
    """Refuse parameters that mean nothing."""
    if epsilon <= 0:
        raise InvalidParameter("a model needs an epsilon above 0.")
    if delta is not None and not 0 < delta < 1:
        raise InvalidParameter("delta lies strictly between 0 and 1, such as 1e-6.")
    if bins is not None and not 2 <= bins <= MOST_BINS:
        raise InvalidParameter(f"numbers are taken in 2 to {MOST_BINS:,} bins.")
    if expected_rows is not None and expected_rows < 1:
        raise InvalidParameter("a number of expected rows is at least 1.")


class Learner(Protocol):
    """What a method of learning has: a name, its δ, and what it does to rows."""

    name: ClassVar[str]

    @property
    def delta(self) -> Fraction | None:
        """The chance that ε does not hold; None where it always does."""

    def release(self, table: Table, coins: Coins) -> ModelTable:
        """Read the rows and release the model."""


def plan_of(
    learner: Learner, task: LearningTask, schema: Schema, sums: Sequence[Step], settings: Mapping[str, Any]
) -> Plan:
    """Return the plan of a method with one task."""
    _ = task.encoders  # which refuses columns that no file of a model can hold
    plan = plan_of_steps(learner, schema, task.around(sums, schema, settings["model"]), settings)
    return replace(plan, cells=Cells(tuple(item.recoding for item in task.classes)))


def plan_of_steps(learner: Learner, schema: Schema, steps: tuple[Step, ...], settings: Mapping[str, Any]) -> Plan:
    """Return the plan of steps, its price computed; names that a model's table has of its own are refused."""
    clash = [column.name for column in schema.released if column.name in TABLE.names]
    if clash:
        raise InvalidParameter(
            f"the table of a model has a column {clash[0]!r} of its own: give that of the data another name, or leave "
            "it out of the policy."
        )
    delta = learner.delta or Fraction(0)
    guarantee = fold(steps, schema.unit, delta)
    if isinstance(guarantee.loss, Pure):
        delta, guarantee = Fraction(0), replace(guarantee, delta=Fraction(0))
    spent = charged(guarantee.loss, delta, schema.unit.adjacency)
    stated = {"epsilon": spent, "delta": delta, **settings, "model": settings["model"].words}
    return Plan(learner.name, steps, guarantee, {"epsilon": spent}, learner.release, settings=stated)
