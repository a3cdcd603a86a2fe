"""Shuffle: the values of a column are dealt out again, in the order that a model of the other columns gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from scipy.special import ndtri

from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.covariance import covariance, need_spread, root
from incrowd.methods.perturbation.frame import Numbers, RowFrame, need_numbers, normals
from incrowd.methods.perturbation.masks import GroupedMask
from incrowd.methods.perturbation.shuffle.steps import ScoreModel, ShuffleValues

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema

_MOST = 200


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
    numeric: ClassVar[bool] = True

    columns: tuple[str, ...]
    given: tuple[str, ...] = ()
    model: Literal["copula", "linear"] = "copula"

    def step(self, schema: Schema) -> ShuffleValues:
        """Return what happens, from the schema alone."""
        need_numbers(schema, self.columns, whole=True)
        for name in self.given:
            if schema[name] in schema.unreleased:
                raise InvalidParameter(f"{name!r} is an identifier, and nothing can be predicted from one.")
        return ShuffleValues(
            columns=self.columns,
            given=self.given,
            model=ScoreModel(self.model),
            **self.scope(schema, self.columns, self.given),
        )

    def examine(self, frame: RowFrame, schema: Schema) -> None:  # noqa: ARG002 - the same for every schema
        """Refuse columns that do not vary, and predictors with too many categories."""
        need_spread(frame, self.columns, whole=True)
        for name in self.given:
            self._known(frame, name)

    def masked(self, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:  # noqa: ARG002 - the same for every schema
        """Return the frame with its values dealt out again."""
        scores = np.column_stack([normal_scores(frame.numbers(name)) for name in self.columns])
        known = np.column_stack([np.ones(len(frame)), *(self._known(frame, name) for name in self.given)])
        fitted = known @ np.linalg.lstsq(known, scores, rcond=None)[0]
        drawn = fitted + normals(coins, *scores.shape) @ root(covariance(scores - fitted))
        dealt = {}
        for place, name in enumerate(self.columns):
            ascending = frame.values(name).take(np.argsort(frame.numbers(name), kind="stable"))
            dealt[name] = ascending.take(np.argsort(np.argsort(drawn[:, place], kind="stable"), kind="stable"))
        return frame.replaced(**dealt)

    def _known(self, frame: RowFrame, name: str) -> Numbers:
        """Return what is known of a row by one column: a number, or an indicator for each category but one."""
        values = frame.values(name)
        if values.type in ("int64", "double") and not values.null_count:
            numbers = frame.numbers(name)
            known: Numbers = np.column_stack([numbers if self.model == "linear" else normal_scores(numbers)])
            return known
        codes = frame.groups([name])
        number = int(codes.max(initial=0)) + 1
        if number > _MOST:
            raise InvalidParameter(f"{name!r} has more than {_MOST} categories: predict from it at a higher level.")
        indicators: Numbers = (codes[:, None] == np.arange(1, number)).astype(np.float64)
        return indicators

    def broken(self, before: RowFrame, after: RowFrame, schema: Schema) -> str | None:  # noqa: ARG002 - the same for every schema
        """Return that some value got lost, or None."""
        same = all(np.array_equal(np.sort(before.numbers(name)), np.sort(after.numbers(name))) for name in self.columns)
        return None if same else "every value of a column"

    def settings(self) -> dict[str, Any]:
        """Return what people are told of the parameters."""
        return {"shuffle": ", ".join(self.columns), "given": ", ".join(self.given), "model": self.model}


def normal_scores(values: Numbers) -> Numbers:
    """Return the quantiles of the normal distribution at the ranks of values; equal values share their mean rank.

    >>> normal_scores(np.array([10.0, 30.0, 20.0])).round(2).tolist()
    [-0.67, 0.67, 0.0]
    """
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(times) - (times - 1) / 2.0
    scores: Numbers = ndtri(ranks[place] / (len(values) + 1.0))
    return scores
