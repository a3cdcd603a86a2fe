"""Rounding: numbers become multiples of a base, the nearest one or by a coin that preserves the mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.core.schema import Schema
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.shared.frame import RowFrame, uniforms
from incrowd.methods.perturbation.shared.masks import Mask, MaskInput, need_numbers
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskPicture
from incrowd.methods.perturbation.shared.steps import Exactness, KeptStatistic, Masking, Statistics, column_list


class Direction(StrEnum):
    """To which of the two neighboring multiples a number is rounded."""

    NEAREST = "nearest"
    RANDOM = "random"


_WORDS = {
    Direction.NEAREST: "the nearest one, up where two are as near",
    Direction.RANDOM: "one of the two around it, at random so that the mean is preserved",
}


@dataclass(frozen=True, kw_only=True)
class RoundValues(Masking):
    """Each number becomes a multiple of a base."""

    kind: ClassVar[str] = "round values"
    title: ClassVar[str] = "Round"
    row_by_row: ClassVar[bool] = True
    numeric: ClassVar[bool] = True
    source: ClassVar[Theorem] = Theorem(
        "rounding-error", "a rounded number lies within one base of the number; at random, its mean is the number"
    )

    bases: Mapping[str, Fraction]
    direction: Direction

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(base <= 0 for base in self.bases.values()):
            raise InvalidParameter("a base for rounding is above 0.")

    @property
    def changes(self) -> tuple[str, ...]:
        return tuple(self.bases)

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        return {name: Displacement(DistanceKind.NUMBER, float(base)) for name, base in self.bases.items()}

    @property
    def statistics(self) -> Statistics:
        near = (KeptStatistic.NEARNESS, Exactness.EXACT)
        return (near, (KeptStatistic.MEANS, Exactness.MEAN)) if self.direction is Direction.RANDOM else (near,)

    @property
    def sentence(self) -> str:
        return f"In {column_list(self.changes)}, each number becomes a multiple of a base: {_WORDS[self.direction]}."


@dataclass(frozen=True)
class ValueRounding(Mask):
    """Numbers become multiples of a base: the nearest one, or at random one of the two around it.

    Guarantee: none to people.  Each number stays within one base of what it was; by coins, means are kept on average.

    Assumes: the base was declared, not taken from the rows.

    Source: Hundepool et al. 2012, Statistical Disclosure Control, §3.4; tables are rounded so that totals still add up
    by the method protected-table.

    >>> ValueRounding({"income": Fraction(100)}).settings()
    {'rounding': 'income to 100', 'direction': 'nearest'}
    """

    name: ClassVar[str] = "rounding"

    columns: Mapping[str, Fraction]
    direction: Literal["nearest", "random"] = "nearest"

    def step(self, schema: Schema) -> RoundValues:
        need_numbers(schema, tuple(self.columns))
        scope = self.scope(schema, tuple(self.columns))
        return RoundValues(bases=dict(self.columns), direction=Direction(self.direction), **scope)

    def masked(self, rows: MaskInput) -> RowFrame:
        """Return the rows with rounded numbers; whole numbers stay whole where the base is."""
        frame, columns = rows.frame, {}
        for name, base in self.columns.items():
            multiples = frame.numbers(name) / float(base)
            shift = uniforms(rows.coins, len(multiples)) if self.direction == "random" else 0.5
            rounded = pa.array(np.floor(multiples + shift) * float(base), from_pandas=True)
            whole = pa.types.is_integer(frame.values(name).type) and base.denominator == 1
            columns[name] = rounded.cast(pa.int64()) if whole else rounded
        return frame.replaced(**columns)

    def settings(self) -> dict[str, Any]:
        return {
            "rounding": "; ".join(f"{name} to {base}" for name, base in self.columns.items()),
            "direction": self.direction,
        }


CHECK = MaskCheck(RoundValues)
PICTURE = MaskPicture()
METHOD = ValueRounding
