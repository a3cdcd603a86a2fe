"""Calibration: weights of the remaining rows are scaled so that they add up to what they did before suppression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.schema import Role, Schema
from incrowd.core.steps.step import ClaimBasis
from incrowd.core.terms import Theorem
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.perturbation.shared.frame import Numbers, Places, RowFrame, weight_of, weights_of
from incrowd.methods.perturbation.shared.masks import Mask, MaskInput
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskPicture
from incrowd.methods.perturbation.shared.steps import (
    Exactness,
    KeptStatistic,
    Masking,
    Statistics,
    column_list,
    maskings,
)

_READ = "original-rows"
_ROUNDS = 1000  # raking converges geometrically where it does; then it is refused
_ROUNDING = 1e-9  # sums of weights are equal up to this, relative to them
Target = tuple[Places, Numbers]
"""For each remaining row its group, and for each group the sum of the weights as they were read."""


@dataclass(frozen=True, kw_only=True)
class CalibrateWeights(Masking):
    """Weights are multiplied so that their sums in the groups of each margin are those of the rows as they were read.

    One margin is met by one multiplication; several are raked, one after the other, until all are met but for a
    `tolerance`, a share of each sum.
    """

    kind: ClassVar[str] = "calibrate weights"
    title: ClassVar[str] = "Calibrate weights"
    source: ClassVar[Theorem] = Theorem(
        "iterative-fitting",
        "Deming & Stephan 1940, iterative proportional fitting: after multiplying by total over "
        "sum, the sum is the total; Deville & Särndal 1992",
    )

    weight: str
    margins: tuple[tuple[str, ...], ...]
    tolerance: Fraction

    def __post_init__(self) -> None:
        if not self.margins or not all(self.margins) or any(self.weight in margin for margin in self.margins):
            raise InvalidParameter("weights are calibrated to margins: one or more sets of other columns.")
        if not 0 < self.tolerance <= Fraction(1, 100):
            raise InvalidParameter("the tolerance of raking is a share of each sum, above 0 and at most 1/100.")

    @property
    def changes(self) -> tuple[str, ...]:
        return (self.weight,)

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for margin in self.margins for name in margin))

    @property
    def unreleased(self) -> tuple[str, ...]:
        return (_READ,)

    @property
    def statistics(self) -> Statistics:
        how = Exactness.ROUNDED if len(self.margins) == 1 else Exactness.NEARLY
        return ((KeptStatistic.TOTALS, how),) * len(self.margins)

    def check_order(self, before: tuple[Masking, ...], after: tuple[Masking, ...]) -> None:
        for step in (*before, *after):
            both = sorted({*self.changes, *self.reads} & set(step.changes))
            if both:
                raise InvalidParameter(
                    f"{both[0]!r} is used to calibrate and changed by {step.kind!r}: calibrate by other columns."
                )
        if any(step.suppresses_rows for step in after):
            raise InvalidParameter("rows are suppressed after weights were calibrated: calibrate them afterwards.")

    def disturbs(self, columns: frozenset[str] | None) -> bool:
        return columns is None or self.weight in columns

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim the sums of each margin, where nothing changes them and rows were suppressed before only."""
        masks = tuple(maskings(basis.steps))
        place = next(place for place, step in enumerate(masks) if step is self)
        try:
            self.check_order(masks[:place], masks[place + 1 :])
        except InvalidParameter:
            return self.masked_claim(basis)
        share = self.tolerance if len(self.margins) > 1 else None
        sums = [
            replace(self.preservation(statistic, how, basis), within=margin, share=share)
            for margin, (statistic, how) in zip(self.margins, self.statistics, strict=True)
        ]
        return (*sums, *self.masked_claim(basis))

    @property
    def sentence(self) -> str:
        groups = "; and by ".join(column_list(margin) for margin in self.margins)
        near = "" if len(self.margins) == 1 else f", up to a share of {float(self.tolerance):g} of each sum"
        return (
            f"Weights in {column_list((self.weight,))} are multiplied until their sums by {groups} are those of the "
            f"rows as they were read{near}."
        )


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
        strata, weight = schema.of_role(Role.STRATA), weight_of(schema)
        margins = self.margins or ((strata,) if strata else ())
        if not margins:
            raise InvalidParameter("weights are calibrated to margins: name margins, or give columns the role strata.")
        for name in (column for margin in margins for column in margin):
            if schema[name] in schema.unreleased:
                raise InvalidParameter(f"{name!r} is an identifier: weights are calibrated by released columns.")
            if schema[weight].shared and not schema[name].shared:
                raise InvalidParameter(
                    f"calibrating shared weights by {name!r}, which is not shared, would split households: name others."
                )
        return CalibrateWeights(weight=weight, margins=margins, tolerance=self.tolerance)

    def examine(self, rows: MaskInput) -> None:
        """Refuse invalid weights, groups without a remaining row, and margins that cannot be met together."""
        self._raked(rows.frame, self.step(rows.schema))

    def masked(self, rows: MaskInput) -> RowFrame:
        step = self.step(rows.schema)
        return rows.frame.replaced(**{step.weight: self._raked(rows.frame, step)})

    def _raked(self, frame: RowFrame, step: CalibrateWeights) -> Numbers:
        weights = weights_of(frame, step.weight)
        targets = [_target(frame, margin, step.weight) for margin in step.margins]
        for _ in range(1 if len(targets) == 1 else _ROUNDS):
            for group, total in targets:
                weights = weights * (total / np.bincount(group, weights, len(total)))[group]
            if _deviation(weights, targets) <= float(self.tolerance):
                return weights
        raise Infeasible(
            f"raking did not meet all margins in {_ROUNDS:,} rounds: raise the tolerance, or name fewer margins."
        )

    def broken(self, rows: MaskInput, after: RowFrame) -> str | None:
        step = self.step(rows.schema)
        targets = [_target(rows.frame, margin, step.weight) for margin in step.margins]
        most = _ROUNDING if len(targets) == 1 else float(self.tolerance) + _ROUNDING
        return None if _deviation(after.numbers(step.weight), targets) <= most else "the sums of the weights"

    def settings(self) -> dict[str, Any]:
        return {"calibration": "; ".join(", ".join(margin) for margin in self.margins) or "strata"}


def _target(frame: RowFrame, margin: tuple[str, ...], weight: str) -> Target:
    """Return the groups of the remaining rows, and the sum of the weights that each group must have."""
    start = frame.start
    both = {name: pa.concat_arrays([start.values(name), frame.values(name)]) for name in margin}
    group = RowFrame(pa.table(both)).groups(margin)
    total = np.bincount(group[: len(start)], weights_of(start, weight)).astype(np.float64)
    remaining = group[len(start) :]
    if len(np.unique(remaining)) < len(total):
        raise Infeasible(
            f"all rows of some group of {', '.join(margin)} were suppressed: suppress fewer, or make larger groups."
        )
    return remaining, total


def _deviation(weights: Numbers, targets: list[Target]) -> float:
    """Return the largest relative deviation of a sum from its target."""
    return max(
        float(np.abs(np.bincount(group, weights, len(total)) / total - 1.0).max(initial=0.0))
        for group, total in targets
    )


CHECK = MaskCheck(CalibrateWeights)
PICTURE = MaskPicture()
METHOD = WeightCalibration
