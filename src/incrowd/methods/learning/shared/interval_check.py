"""Interval check: confidence intervals of a model's file, against its own predictions and the noise that is stated.

The noisy sums that intervals come from are not published, so their width cannot be computed again.  It cannot be below
what the noise alone makes: with products A of features and noise e on their products with the target, the coefficients
move by A⁻¹e at least, and an element of the diagonal of A⁻¹ is at least one over that of A, which is at most the rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.learning.shared.inputs import UNIT
from incrowd.methods.learning.shared.steps import ModelForm, MultiplyColumns, PublishModel
from incrowd.verifier.check import Problem

if TYPE_CHECKING:
    from incrowd.core.statement import Statement
    from incrowd.methods.learning.shared.inference import LinearInference
    from incrowd.methods.learning.shared.inputs import ColumnEncoder
    from incrowd.methods.learning.shared.models import LearnedModel

_CLOSE = 1e-6  # numbers of a model are written with nine digits
_SURE = 6.0  # standard deviations of noise: more in one case of 10^9


def other_intervals(statement: Statement, model: LearnedModel) -> Problem | None:
    """Return a problem if intervals stand where none are learned, are of another line, or too narrow, else None."""
    inference, publish = model.inference, statement.basis.find(PublishModel)
    if inference is None:
        return None
    if publish is None or publish.model is not ModelForm.LINEAR or model.trees or model.bounds is None:
        return Problem("the model has confidence intervals, and such a model has none")
    if not _same_line(model, inference):
        return Problem("the confidence intervals are of another line than the model predicts by")
    covariance, spread = inference.covariance, np.diag(inference.covariance)
    largest = float(spread.max())
    proper = bool(spread.min() > 0) and np.allclose(covariance, covariance.T, rtol=0, atol=_CLOSE * largest)
    if not proper or np.linalg.eigvalsh(covariance)[0] < -_CLOSE * largest * len(spread):
        return Problem("the confidence intervals come from no covariance")
    if np.any(np.sqrt(spread[:-1]) < (1 - _CLOSE) * _least_widths(statement, model, inference)):
        return Problem("the confidence intervals are narrower than the noise alone makes them")
    return None


def _same_line(model: LearnedModel, inference: LinearInference) -> bool:
    """Whether the coefficients give the model's score for every class of every column, up to rounding."""
    columns = {column.name: column for column in model.columns}
    if inference.terms[-1:] != ((None, None),) or len(set(inference.terms)) < len(inference.terms):
        return False
    lines = {name: np.zeros(len(column.labels)) for name, column in columns.items()}
    parts = zip(inference.terms[:-1], inference.values, inference.estimates.tolist(), strict=False)
    for (name, label), values, estimate in parts:
        column = columns.get(name or "")
        numbers = None if column is None else _numbers(column, label, values)
        if column is None or numbers is None:
            return False
        lines[column.name] += estimate * numbers
    apart = [table[:, 0] - lines[name] for name, table in zip(columns, model.tables, strict=True)]
    constant = float(model.offset[0]) + sum(float(line[0]) for line in apart)
    sizes = [np.abs(line).max() for line in (*lines.values(), *apart, model.offset, inference.estimates)]
    near = _CLOSE * (1.0 + float(max(sizes)))
    return all(np.ptp(line) <= near for line in apart) and abs(constant - float(inference.estimates[-1])) <= near


def _numbers(column: ColumnEncoder, label: str | None, values: tuple[float, ...] | None) -> NDArray[np.float64] | None:
    """Return what each class of a column is to a term: a number, or whether it is the one that is named."""
    if values is None:
        return np.array([own == label for own in column.labels], np.float64) if label in column.labels else None
    if column.ends is None or len(values) != len(column.labels) or label is not None:
        return None
    near = _CLOSE * (column.ends[1] - column.ends[0])
    inside = all(column.ends[0] - near <= value <= column.ends[1] + near for value in values)
    return np.array(values) if inside else None


def _least_widths(statement: Statement, model: LearnedModel, inference: LinearInference) -> NDArray[np.float64]:
    """Return for each coefficient but the constant the standard deviation that noise makes in the best of cases."""
    step, rows = statement.basis.need(MultiplyColumns), statement.evidence.get("rows estimated", math.inf)
    own = math.isqrt(step.square // 4) + 1  # what the constant and the largest target are, or one more
    doubt = _SURE * float(step.scale) * (1.0 / max(1, own - 2) ** 2 + 1.0 / UNIT**2)
    alone = float(step.beside) / (max(UNIT, own) * own) / (1.0 + rows + doubt)
    low, high = model.bounds or (0.0, 0.0)
    ends = {column.name: column.ends for column in model.columns}
    widths = []
    for (name, _), values in zip(inference.terms[:-1], inference.values, strict=False):
        first, last = ends[name or ""] or (0.0, 2.0)
        widths.append(alone * (high - low) / 2.0 / (1.0 if values is None else (last - first) / 2.0))
    return np.array(widths)
