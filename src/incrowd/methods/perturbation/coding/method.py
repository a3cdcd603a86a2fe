"""Coding: values beyond a declared bound become the bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.methods.perturbation.coding.steps import CodedColumn, CodeEnds
from incrowd.methods.perturbation.frame import RowFrame, need_numbers
from incrowd.methods.perturbation.masks import Mask

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema


@dataclass(frozen=True)
class Ends:
    """What the smallest and the largest values of a column become."""

    bottom: Fraction | None = None
    top: Fraction | None = None


@dataclass(frozen=True)
class TopCoding(Mask):
    """Top and bottom coding: what is extreme becomes the bound, so that nobody stands out by it.

    Guarantee: none to people.  Values between the bounds stay as they are.

    Assumes: the bounds were declared, not taken from the rows.

    Source: Hundepool et al. 2012, Statistical Disclosure Control, §3.2.2.

    >>> TopCoding({"income": Ends(top=Fraction(100000))}).settings()
    {'coding': 'income: top 100000'}
    """

    name: ClassVar[str] = "coding"
    numeric: ClassVar[bool] = True

    columns: Mapping[str, Ends]

    def step(self, schema: Schema) -> CodeEnds:
        """Return what happens, from the schema alone."""
        need_numbers(schema, tuple(self.columns))
        coded = tuple(CodedColumn(name, ends.bottom, ends.top) for name, ends in self.columns.items())
        return CodeEnds(columns=coded, **self.scope(schema, tuple(self.columns)))

    def masked(self, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:  # noqa: ARG002 - nothing here is random
        """Return the frame with its ends cut off; a column keeps its type where the bounds have it."""
        return frame.replaced(**{name: _coded(frame.values(name), ends) for name, ends in self.columns.items()})

    def settings(self) -> dict[str, Any]:
        """Return what people are told of the parameters."""
        ends = (f"{name}: {_words(each)}" for name, each in self.columns.items())
        return {"coding": "; ".join(ends)}


def _coded(values: pa.Array, ends: Ends) -> pa.Array:
    bounds = [each for each in (ends.bottom, ends.top) if each is not None]
    whole = pa.types.is_integer(values.type) and all(each.denominator == 1 for each in bounds)
    kind = pa.int64() if whole else pa.float64()
    numbers = pc.cast(values, kind)
    for bound, choose in ((ends.bottom, pc.max_element_wise), (ends.top, pc.min_element_wise)):
        if bound is not None:
            edge = pa.scalar(int(bound) if whole else float(bound), kind)
            numbers = choose(numbers, edge, skip_nulls=False)
    return numbers


def _words(ends: Ends) -> str:
    told = [f"{name} {bound}" for name, bound in (("bottom", ends.bottom), ("top", ends.top)) if bound is not None]
    return ", ".join(told)
