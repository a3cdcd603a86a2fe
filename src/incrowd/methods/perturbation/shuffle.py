"""Shuffle: the values of a column are dealt out again, in the order that a model of the other columns predicts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Literal

import numpy as np

from incrowd.core.codec import named
from incrowd.core.schema import Schema
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.shared.frame import Numbers, RowFrame, covariance, normals, root
from incrowd.methods.perturbation.shared.masks import GroupedMask, MaskInput, lost_values, need_numbers, need_spread
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskPicture
from incrowd.methods.perturbation.shared.steps import ColumnMasking, Exactness, KeptStatistic, by_group, column_list

_MOST = 200  # each category is a column of the regression


class ScoreModel(StrEnum):
    """What the normal scores of the shuffled columns are predicted from."""

    COPULA = "copula"
    LINEAR = "linear"


_WORDS = {ScoreModel.COPULA: "normal scores of the ranks", ScoreModel.LINEAR: "values as they are"}


@dataclass(frozen=True, kw_only=True)
class ShuffleValues(ColumnMasking):
    """New values are drawn from a model of the columns given others; the old values are dealt out in their order."""

    kind: ClassVar[str] = "shuffle values"
    title: ClassVar[str] = "Shuffle"
    glyph: ClassVar[str | None] = None
    numeric: ClassVar[bool] = True
    source: ClassVar[Theorem] = Theorem(
        "data-shuffling",
        "Muralidhar & Sarathy 2006, data shuffling, on normal scores: values only change rows; "
        "given the other columns, what a row gets is independent of what it had",
    )
    statistics = ((KeptStatistic.VALUES, Exactness.EXACT), (KeptStatistic.RANK_CORRELATIONS, Exactness.LIMIT))

    predictors: tuple[str, ...] = named("given")
    model: ScoreModel

    def __post_init__(self) -> None:
        super().__post_init__()
        if set(self.columns) & set(self.predictors):
            raise InvalidParameter("a column is shuffled, or the others are predicted from it; not both.")

    @property
    def reads(self) -> tuple[str, ...]:
        return (*self.predictors, *self.within)

    def depends_on(self, statistic: KeptStatistic) -> frozenset[str] | None:
        own = frozenset((*self.changes, *self.within))
        return own | frozenset(self.predictors) if statistic is KeptStatistic.RANK_CORRELATIONS else own

    @property
    def sentence(self) -> str:
        others = f"{_WORDS[self.model]} of {column_list(self.predictors)}" if self.predictors else "nothing else"
        return (
            f"Values of {column_list(self.columns)} are dealt out again in the order of new ones, drawn from a normal "
            f"model of their scores given {others}{by_group(self.within)}. The model is fitted to all rows; "
            "dependence that is not monotone is lost."
        )


@dataclass(frozen=True)
class Shuffle(GroupedMask):
    """Data shuffling: every value stays in its column, and goes to a row where a model would expect such a value.

    The normal scores of the ranks are regressed on the columns named `given`: on their normal scores (copula) or on
    their values (linear); categories count as one indicator each.  New scores are drawn from the fitted model, and the
    old values are dealt out in their order.

    Guarantee: none to people.  Every value occurs as often as before; rank correlations are kept ever better with more
    rows, as far as the normal model of the scores is right.  Given the other columns, what a row gets does not depend
    on what it had.

    Assumes: nothing.

    Source: Muralidhar & Sarathy 2006.

    >>> Shuffle(("income",), given=("age",)).settings()
    {'shuffle': 'income', 'given': 'age', 'model': 'copula'}
    """

    name: ClassVar[str] = "shuffle"

    columns: tuple[str, ...]
    given: tuple[str, ...] = ()
    model: Literal["copula", "linear"] = "copula"

    def step(self, schema: Schema) -> ShuffleValues:
        need_numbers(schema, self.columns, whole=True)
        for name in self.given:
            if schema[name] in schema.unreleased:
                raise InvalidParameter(f"{name!r} is an identifier, and nothing can be predicted from one.")
        return ShuffleValues(
            columns=self.columns,
            predictors=self.given,
            model=ScoreModel(self.model),
            **self.scope(schema, self.columns, self.given),
        )

    def examine(self, rows: MaskInput) -> None:
        """Refuse columns that do not vary, and predictors with too many categories."""
        need_spread(rows.frame, self.columns, whole=True)
        for name in self.given:
            self._predictor(rows.frame, name)

    def masked(self, rows: MaskInput) -> RowFrame:
        frame = rows.frame
        scores = np.column_stack([normal_scores(frame.numbers(name)) for name in self.columns])
        predictors = np.column_stack([np.ones(len(frame)), *(self._predictor(frame, name) for name in self.given)])
        fitted = predictors @ np.linalg.lstsq(predictors, scores, rcond=None)[0]
        sample = fitted + normals(rows.coins, *scores.shape) @ root(covariance(scores - fitted))
        columns = {}
        for name, new_scores in zip(self.columns, sample.T, strict=True):
            ascending = frame.values(name).take(np.argsort(frame.numbers(name), kind="stable"))
            columns[name] = ascending.take(np.argsort(np.argsort(new_scores, kind="stable"), kind="stable"))
        return frame.replaced(**columns)

    def _predictor(self, frame: RowFrame, name: str) -> Numbers:
        """Return what a column predicts from: its numbers, or an indicator of each category but one."""
        values = frame.values(name)
        if values.type in ("int64", "double") and not values.null_count:
            numbers = frame.numbers(name)
            predictor: Numbers = np.column_stack([numbers if self.model == "linear" else normal_scores(numbers)])
            return predictor
        codes = frame.groups([name])
        number = int(codes.max(initial=0)) + 1
        if number > _MOST:
            raise InvalidParameter(f"{name!r} has more than {_MOST} categories: predict from it at a higher level.")
        indicators: Numbers = (codes[:, None] == np.arange(1, number)).astype(np.float64)
        return indicators

    def broken(self, rows: MaskInput, after: RowFrame) -> str | None:
        return lost_values(rows.frame, after, self.columns)

    def settings(self) -> dict[str, Any]:
        return {"shuffle": ", ".join(self.columns), "given": ", ".join(self.given), "model": self.model}


def normal_scores(values: Numbers) -> Numbers:
    """Return the quantiles of the normal distribution at the ranks of values; equal values share their mean rank.

    >>> normal_scores(np.array([10.0, 30.0, 20.0])).round(2).tolist()
    [-0.67, 0.67, 0.0]
    """
    from scipy.special import ndtri

    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(times) - (times - 1) / 2.0
    scores: Numbers = ndtri(ranks[place] / (len(values) + 1.0))
    return scores


CHECK = MaskCheck(ShuffleValues)
PICTURE = MaskPicture()
METHOD = Shuffle
