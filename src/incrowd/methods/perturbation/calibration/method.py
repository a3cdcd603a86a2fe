"""Calibration: weights of the rows that are left are scaled so that they add up to what they did before."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.core.schema import Role
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.perturbation.calibration.steps import CalibrateWeights
from incrowd.methods.perturbation.frame import Numbers, Places, RowFrame, weight_of, weights_of
from incrowd.methods.perturbation.masks import Mask

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema

_ROUNDS = 1000
_ROUNDING = 1e-9
Target = tuple[Places, Numbers]
"""For each row that is left its group, and for each group the sum of the weights as they were read."""


@dataclass(frozen=True)
class WeightCalibration(Mask):
    """Survey weights after suppression: multiplied so that strata keep the sums that the weights had.

    With one set of columns, their groups keep their sums; with several `margins`, weights are raked until each of them
    does, but for a `tolerance`.

    Guarantee: none to people.  The sums of the weights in the named groups are those of the rows as they were read.

    Assumes: nothing.

    Source: Deming & Stephan 1940; Deville & Särndal 1992.

    >>> WeightCalibration((("region",),)).settings()
    {'calibration': 'region'}
    """

    name: ClassVar[str] = "calibration"

    margins: tuple[tuple[str, ...], ...] = ()
    tolerance: Fraction = Fraction(1, 10**6)

    def step(self, schema: Schema) -> CalibrateWeights:
        """Return what happens, from the schema alone."""
        strata, weight = schema.of_role(Role.STRATA), weight_of(schema)
        margins = self.margins or ((strata,) if strata else ())
        if not margins:
            raise InvalidParameter(
                "weights are calibrated to the sums of groups: name their columns as margins, or give columns the role "
                "strata."
            )
        for name in (each for margin in margins for each in margin):
            if schema[name] in schema.unreleased:
                raise InvalidParameter(f"{name!r} is an identifier: weights are calibrated by released columns.")
            if schema[weight].shared and not schema[name].shared:
                raise InvalidParameter(
                    f"the weights are shared by the rows of a household and {name!r} is not: calibrating by it would "
                    "tear households apart. Name columns that they share."
                )
        return CalibrateWeights(weight=weight, margins=margins, tolerance=self.tolerance)

    def examine(self, frame: RowFrame, schema: Schema) -> None:
        """Refuse weights that are none, groups of which no row is left, and margins that cannot be met together."""
        self._raked(frame, self.step(schema))

    def masked(self, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:  # noqa: ARG002 - nothing here is random
        """Return the frame with calibrated weights."""
        step = self.step(schema)
        return frame.replaced(**{step.weight: self._raked(frame, step)})

    def _raked(self, frame: RowFrame, step: CalibrateWeights) -> Numbers:
        weights = weights_of(frame, step.weight)
        targets = [_target(frame, margin, step.weight) for margin in step.margins]
        for _ in range(1 if len(targets) == 1 else _ROUNDS):
            for group, total in targets:
                weights = weights * (total / np.bincount(group, weights, len(total)))[group]
            if _apart(weights, targets) <= float(self.tolerance):
                return weights
        raise Infeasible(
            f"the weights of the rows that are left cannot be made to add up by all margins within {_ROUNDS:,} rounds: "
            "let the tolerance be larger, or name fewer margins."
        )

    def broken(self, before: RowFrame, after: RowFrame, schema: Schema) -> str | None:
        """Return that some sum differs by more than it may, or None."""
        step = self.step(schema)
        targets = [_target(before, margin, step.weight) for margin in step.margins]
        most = _ROUNDING if len(targets) == 1 else float(self.tolerance) + _ROUNDING
        return None if _apart(after.numbers(step.weight), targets) <= most else "the sums of the weights"

    def settings(self) -> dict[str, Any]:
        """Return what people are told of the parameters."""
        return {"calibration": "; ".join(", ".join(margin) for margin in self.margins) or "strata"}


def _target(frame: RowFrame, margin: tuple[str, ...], weight: str) -> Target:
    """Return the groups of the rows that are left, and what the weights of each are to add up to."""
    start = frame.start
    both = {name: pa.concat_arrays([start.values(name), frame.values(name)]) for name in margin}
    group = RowFrame(pa.table(both)).groups(margin)
    total = np.bincount(group[: len(start)], weights_of(start, weight)).astype(np.float64)
    left = group[len(start) :]
    if len(np.unique(left)) < len(total):
        raise Infeasible(
            f"in some group of rows alike in {', '.join(margin)} no row is left, whose weight could stand for it: let "
            "fewer rows be left out, or make larger groups."
        )
    return left, total


def _apart(weights: Numbers, targets: list[Target]) -> float:
    """Return by which share of it some sum is off, at most."""
    return max(
        float(np.abs(np.bincount(group, weights, len(total)) / total - 1.0).max(initial=0.0))
        for group, total in targets
    )
