"""Rounding: numbers become multiples of a base, to the nearest or by a coin that keeps the mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from incrowd.methods.perturbation.frame import Numbers, RowFrame, need_numbers, uniforms
from incrowd.methods.perturbation.masks import Mask
from incrowd.methods.perturbation.rounding.steps import Direction, RoundValues

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema


@dataclass(frozen=True)
class ValueRounding(Mask):
    """Numbers become multiples of a base: the nearest one, or by a coin one of the two around it.

    Guarantee: none to people.  Each number stays within one base of what it was; by coins, means are kept on average.

    Assumes: the base was declared, not taken from the rows.

    Source: Hundepool et al. 2012, Statistical Disclosure Control, §3.4; tables are rounded so that totals still add up
    by the method protected-table.

    >>> ValueRounding({"income": Fraction(100)}).settings()
    {'rounding': 'income to 100', 'direction': 'nearest'}
    """

    name: ClassVar[str] = "rounding"
    numeric: ClassVar[bool] = True

    columns: Mapping[str, Fraction]
    direction: Literal["nearest", "random"] = "nearest"

    def step(self, schema: Schema) -> RoundValues:
        """Return what happens, from the schema alone."""
        need_numbers(schema, tuple(self.columns))
        scope = self.scope(schema, tuple(self.columns))
        return RoundValues(bases=dict(self.columns), direction=Direction(self.direction), **scope)

    def masked(self, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:  # noqa: ARG002 - the same for every schema
        """Return the frame with rounded numbers; whole numbers stay whole where the base is."""
        columns = {}
        for name, base in self.columns.items():
            numbers = frame.numbers(name) / float(base)
            steps = np.floor(numbers + self._shift(numbers, coins))
            rounded = pa.array(steps * float(base), from_pandas=True)
            whole = pa.types.is_integer(frame.values(name).type) and base.denominator == 1
            columns[name] = rounded.cast(pa.int64()) if whole else rounded
        return frame.replaced(**columns)

    def _shift(self, numbers: Numbers, coins: Coins) -> Numbers | float:
        return uniforms(coins, len(numbers)) if self.direction == "random" else 0.5

    def settings(self) -> dict[str, Any]:
        """Return what people are told of the parameters."""
        return {
            "rounding": "; ".join(f"{name} to {base}" for name, base in self.columns.items()),
            "direction": self.direction,
        }
