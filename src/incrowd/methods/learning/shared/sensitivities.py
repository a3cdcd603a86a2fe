"""Sensitivities: how much one row adds to the sums of a model, recomputed from the columns that a certificate names.

Nothing of the algorithms is used here: the whole numbers that they work in are stated again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from incrowd.core.domain import Type
from incrowd.core.hierarchy.hierarchy import RuleKind
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.rows import RecodedColumn
from incrowd.methods.learning.shared.steps import (
    FollowGradients,
    LearnFrom,
    ModelForm,
    MoveCenters,
    MultiplyColumns,
    PublishModel,
    SumByColumn,
)
from incrowd.methods.learning.shared.tree_steps import SampleGradients, SumLeaves
from incrowd.verifier.check import Problem

if TYPE_CHECKING:
    from incrowd.core.statement import Statement

_NUMBER, _RESIDUAL, _SAMPLED, _ROW = 256, 2**16, 32, 181
"""What stands for a number at its bound, for a residual of 1, also on samples, and for a row beside its target."""
_CUT = {RuleKind.INTERVALS, RuleKind.CUTS, RuleKind.SLICES}
_OTHER = Problem("a row adds more or less to the sums than is stated, by the columns and classes of the model")


@dataclass(frozen=True)
class Vector:
    """A row as a vector: how many numbers it has, how many columns, and how many of those are numbers with bounds."""

    width: int
    columns: int
    bounded: int

    def square(self, reach: Fraction) -> int:
        """Return what the squares add up to at most, where numbers are clipped to a share of their longest vector."""
        share = reach + (1 - reach) / max(1, self.bounded)
        return math.floor(share**2 * self.bounded * _NUMBER**2) + _NUMBER**2 * (self.columns - self.bounded)


def other_sensitivity(statement: Statement) -> Problem | None:
    """Return a problem if a sum has another sensitivity than the columns of the model give it, else None."""
    learn = statement.basis.need(LearnFrom)
    classes = None if learn.target is None or learn.outputs is None else len(learn.outputs)
    for step in statement.steps:
        match step:
            case FollowGradients():
                scores = 1 if classes in (None, 2) else classes
                wrong = (step.residual, step.outputs) != (_RESIDUAL, scores)
            case SampleGradients():
                wrong = step.residual != _SAMPLED
            case SumByColumn() | SumLeaves():
                wrong = (step.reach, step.weight) != (_NUMBER, _ROW)
            case MoveCenters():
                stated = (step.centers, step.numbers, step.square, step.weight)
                wrong = all(stated != _centers(learn, vector) for vector in _vectors(statement))
            case MultiplyColumns():
                stated_ = (step.numbers, step.square)
                publish = statement.basis.find(PublishModel)  # a candidate of a tuning has none, and is never linear
                linear = publish is not None and publish.model is ModelForm.LINEAR
                wrong = all(stated_ != _products(learn, vector, linear=linear) for vector in _vectors(statement))
            case _:
                wrong = False
        if wrong:
            return _OTHER
    return None


def _centers(learn: LearnFrom, vector: Vector) -> tuple[int, int, int, int]:
    square = vector.square(Fraction(1, 2))
    weight = max(1, round(math.sqrt(square) / (4.0 * vector.width) ** 0.25))
    return len(learn.outputs or ()), vector.width, square, weight


def _products(learn: LearnFrom, vector: Vector, *, linear: bool) -> tuple[int, int]:
    """Return how many numbers are multiplied, and their squares: of components, of a number, or of classes."""
    if learn.target is None:
        return vector.width + 1, vector.square(Fraction(1, 2)) + _NUMBER**2
    if learn.outputs is None:
        square = vector.square(Fraction(1) if linear else Fraction(1, 2))
        return vector.width + 2, square + 2 * max(1, math.isqrt(square // 2)) ** 2
    square = vector.square(Fraction(7, 10))
    one_class = math.isqrt(square)
    return vector.width + 1 + len(learn.outputs), square + max(1, 2 * one_class // 5) ** 2 + one_class**2


def _vectors(statement: Statement) -> set[Vector]:
    """Return the vectors that rows can be: of a column of numbers without intervals, two are possible."""
    recoded = {column.column: column for column in statement.basis.need(RecodeToBins).columns}
    vectors = {Vector(0, 0, 0)}
    for column in statement.basis.need(LearnFrom).columns:
        vectors = {
            Vector(one.width + (1 if bounded else column.size or 0), one.columns + 1, one.bounded + bounded)
            for one in vectors
            for bounded in _bounded(recoded[column.column], statement.types.get(column.column))
        }
    return vectors


def _bounded(column: RecodedColumn, kind: str | None) -> tuple[bool, ...]:
    """Return whether a column has numbers with bounds; both, where its rule does not say."""
    if kind not in (Type.INTEGER, Type.DECIMAL) or column.level == column.of:
        return (False,)
    return (True,) if column.rule.kind in _CUT else (True, False)
