"""Coding: values beyond a declared bound become the bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.schema import Schema
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.shared.frame import RowFrame
from incrowd.methods.perturbation.shared.masks import Mask, MaskInput, need_numbers
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskPicture
from incrowd.methods.perturbation.shared.steps import Exactness, KeptStatistic, Masking, column_list


@dataclass(frozen=True)
class CodedColumn:
    """The bounds of one column: the lower one, the upper one, or both."""

    column: str
    bottom: Fraction | None = None
    top: Fraction | None = None

    def __post_init__(self) -> None:
        if self.bottom is None and self.top is None:
            raise InvalidParameter(f"{self.column!r} needs a bottom, a top, or both.")
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise InvalidParameter(f"the bottom of {self.column!r} must lie below its top.")

    @property
    def bounds(self) -> dict[str, Fraction]:
        """The declared bounds by name."""
        return {name: bound for name, bound in (("bottom", self.bottom), ("top", self.top)) if bound is not None}


@dataclass(frozen=True, kw_only=True)
class CodeEnds(Masking):
    """Values above a declared top become the top; values below a declared bottom become the bottom."""

    kind: ClassVar[str] = "code ends"
    title: ClassVar[str] = "Cut off the ends"
    row_by_row: ClassVar[bool] = True
    numeric: ClassVar[bool] = True
    source: ClassVar[Theorem] = Theorem(
        "end-coding", "top and bottom coding by declared bounds: values between them stay as they are"
    )
    statistics = ((KeptStatistic.INSIDE, Exactness.EXACT),)

    columns: tuple[CodedColumn, ...]

    @property
    def changes(self) -> tuple[str, ...]:
        return tuple(coded.column for coded in self.columns)

    def stays_among(self, name: str, labels: frozenset[str | None]) -> bool:
        coded = next(coded for coded in self.columns if coded.column == name)
        return all(str(bound) in labels for bound in coded.bounds.values())

    @property
    def sentence(self) -> str:
        return f"In {column_list(self.changes)}, values beyond a declared bound become the bound, each by itself."


@dataclass(frozen=True)
class Ends:
    """What the smallest and the largest values of a column become."""

    bottom: Fraction | None = None
    top: Fraction | None = None


@dataclass(frozen=True)
class TopCoding(Mask):
    """Top and bottom coding: extreme values become the bound, so that nobody stands out by them.

    Guarantee: none to people.  Values between the bounds stay as they are.

    Assumes: the bounds were declared, not taken from the rows.

    Source: Hundepool et al. 2012, Statistical Disclosure Control, §3.2.2.

    >>> TopCoding({"income": Ends(top=Fraction(100000))}).settings()
    {'coding': 'income: top 100000'}
    """

    name: ClassVar[str] = "coding"

    columns: Mapping[str, Ends]

    def step(self, schema: Schema) -> CodeEnds:
        need_numbers(schema, tuple(self.columns))
        return CodeEnds(columns=self._coded(), **self.scope(schema, tuple(self.columns)))

    def _coded(self) -> tuple[CodedColumn, ...]:
        return tuple(CodedColumn(name, ends.bottom, ends.top) for name, ends in self.columns.items())

    def masked(self, rows: MaskInput) -> RowFrame:
        """Return the rows with values between the bounds; a column keeps its type where the bounds have it."""
        frame = rows.frame
        return frame.replaced(**{coded.column: _clipped(frame.values(coded.column), coded) for coded in self._coded()})

    def settings(self) -> dict[str, Any]:
        bounds = {coded.column: coded.bounds.items() for coded in self._coded()}
        texts = (f"{name}: {', '.join(f'{end} {bound}' for end, bound in ends)}" for name, ends in bounds.items())
        return {"coding": "; ".join(texts)}


def _clipped(values: pa.Array, coded: CodedColumn) -> pa.Array:
    whole = pa.types.is_integer(values.type) and all(bound.denominator == 1 for bound in coded.bounds.values())
    kind = pa.int64() if whole else pa.float64()
    numbers = pc.cast(values, kind)
    for end, bound in coded.bounds.items():
        choose = pc.max_element_wise if end == "bottom" else pc.min_element_wise
        numbers = choose(numbers, pa.scalar(int(bound) if whole else float(bound), kind), skip_nulls=False)
    return numbers


CHECK = MaskCheck(CodeEnds)
PICTURE = MaskPicture()
METHOD = TopCoding
