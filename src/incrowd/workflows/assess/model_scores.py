"""Model scores: the accuracy of a learned model on rows with a known truth; internal, since it is made from them.

Rows are read once, batch by batch.  On the rows that the model was learned from, scores are slightly too good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.reading import read
from incrowd.engines.columns import require
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.models import LearnedModel, Use
from incrowd.methods.shared.model_file import MODEL
from incrowd.verifier.files import CERTIFICATE
from incrowd.workflows.attack.attack import INTERNAL
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.registry import LEARNING

if TYPE_CHECKING:
    from incrowd.core.table import Opened
    from incrowd.workflows.policy.policy import Policy

_BINS, _FINE = 10, 1000
_LEAST = 1e-15


@dataclass(frozen=True)
class ModelScores:
    """The number of rows with a known truth, figures by name, and tables of calibration and classes.

    `calibration` has for each tenth of the predicted probability: the number of rows, the mean probability, the share
    that was right.  `curve` has for two classes the false and the true positive rate at each limit.
    """

    rows: int
    figures: Mapping[str, float]
    calibration: tuple[tuple[int, float, float], ...] = ()
    confusion: Mapping[str, Mapping[str, int]] | None = None
    curve: tuple[tuple[float, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the values for `--json`."""
        return {
            "internal": INTERNAL,
            "rows": self.rows,
            "figures": dict(self.figures),
            "calibration": [list(row) for row in self.calibration],
            "confusion": self.confusion,
            "curve": [list(row) for row in self.curve],
        }


def is_model(release: Path) -> bool:
    """Whether a release is a learned model: its folder, or its file."""
    file = release / MODEL if release.is_dir() else release
    if file.name != MODEL or not file.is_file():
        return False
    beside = file.parent / CERTIFICATE
    return not beside.is_file() or read_certificate(beside).method.name in LEARNING


def model_scores(release: Path, rows: Opened, policy: Policy) -> ModelScores:
    """Return the accuracy of a model on rows, or refuse one that predicts nothing, or another column."""
    model = LearnedModel.load(release)
    if model.target is None:
        raise InvalidParameter(
            "this model predicts no column, so its accuracy cannot be measured. Use incrowd predict to apply it to "
            "rows."
        )
    if model.target != getattr(policy.method, "target_column", None):
        raise InvalidParameter(
            f"the model predicts {model.target!r}, and the policy another column: name the model's own policy."
        )
    names = [column.name for column in model.columns]
    require(rows.names, [*names, model.target])
    batches = (pa.Table.from_batches([column]) for column in rows.batches([*names, model.target]))
    return _classes(model, batches, policy) if model.use is Use.CLASSES else _numbers(model, batches, policy)


def _classes(model: LearnedModel, batches: Any, policy: Policy) -> ModelScores:
    classes, groups = policy.method.task(policy.schema).target, len(model.outputs)  # type: ignore[attr-defined]
    confusion, tenths = np.zeros((groups, groups), np.int64), np.zeros((_BINS, 3))
    lost, squares, limits = 0.0, 0.0, np.zeros((2, _FINE + 1), np.int64)
    for batch in batches:
        truth = classes.recoding.codes(batch[model.target].combine_chunks())
        labeled = (truth >= 0) & (truth < groups)
        chances, own = model.chances(batch)[labeled], truth[labeled]
        guesses, top = chances.argmax(axis=1), chances.max(axis=1)
        np.add.at(confusion, (own, guesses), 1)
        tenth = np.minimum((top * _BINS).astype(np.int64), _BINS - 1)
        np.add.at(tenths, tenth, np.column_stack([np.ones(len(top)), top, guesses == own]))
        lost -= float(np.log(np.maximum(_LEAST, chances[np.arange(len(own)), own])).sum())
        squares += float(((chances - np.eye(groups)[own]) ** 2).sum())
        if groups == 2:
            np.add.at(limits, (own, (chances[:, 1] * _FINE).astype(np.int64)), 1)
    total = int(confusion.sum())
    if not total:
        raise InvalidParameter(
            "no row has a declared class of the target: the accuracy of the model cannot be measured."
        )
    shares = confusion.sum(axis=1) / total
    figures = {
        "accuracy": float(np.trace(confusion)) / total,
        "accuracy of the most common class": float(shares.max()),
        "log loss": lost / total,
        "Brier score": squares / total,
    }
    curve = _curve(limits) if groups == 2 and limits.sum(axis=1).all() else ()
    if curve:
        figures["AUC"] = _area(curve)
    table = {
        name: dict(zip(model.outputs, line, strict=True))
        for name, line in zip(model.outputs, confusion.tolist(), strict=True)
    }
    calibration = tuple((int(n), float(p / n), float(r / n)) for n, p, r in tenths if n)
    return ModelScores(total, figures, calibration, table, curve)


def _curve(limits: NDArray[np.int64]) -> tuple[tuple[float, float], ...]:
    """Return the ROC curve from counts of both classes by the chance of the second: false and true positives."""
    above = np.cumsum(limits[:, ::-1], axis=1) / limits.sum(axis=1, keepdims=True)
    points = np.unique(np.concatenate([[[0.0], [0.0]], above], axis=1).T, axis=0)
    return tuple((float(false), float(true)) for false, true in points)


def _area(curve: tuple[tuple[float, float], ...]) -> float:
    points = np.array(curve)
    return float(np.trapezoid(points[:, 1], points[:, 0]))


def _numbers(model: LearnedModel, batches: Any, policy: Policy) -> ModelScores:
    kind = policy.schema[model.target or ""].type
    sums = np.zeros(5)
    for batch in batches:
        truth = read(batch[model.target].combine_chunks(), kind).values.to_numpy(zero_copy_only=False).astype(float)
        labeled = np.isfinite(truth)
        own, off = truth[labeled], (model.numbers(batch)[labeled] - truth[labeled])
        sums += [len(own), own.sum(), (own**2).sum(), np.abs(off).sum(), (off**2).sum()]
    total, first, second, away, squares = sums.tolist()
    if not total:
        raise InvalidParameter("no row has a number in the target: the accuracy of the model cannot be measured.")
    spread = second - first**2 / total
    figures = {"mean absolute error": away / total, "root mean squared error": (squares / total) ** 0.5}
    return ModelScores(int(total), figures if spread <= 0 else {"R²": 1.0 - squares / spread, **figures})
