"""Microdata: rows in the order of their values, held as counts, as they were counted or with generalized labels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.keys import Codes, Keys, Layout, grouped
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.outcome import Outcome, inference

WEIGHT = "weight"


@dataclass(frozen=True)
class Microdata(Outcome):
    """Released rows in the order of their values, held as counts and unfolded when asked for.

    `weight` is 1/rate where the policy asked for weights: a constant, so it tells nothing about anyone.
    """

    form: ClassVar[str] = "microdata"
    faithful: ClassVar[bool] = True

    counts: Counts
    weight: Fraction | None = None

    def __post_init__(self) -> None:
        if self.weight is not None and WEIGHT in self.counts.names:
            raise InvalidParameter(f"a column {WEIGHT!r} is released already: leave weights out.")

    def __len__(self) -> int:
        return self.counts.total

    @property
    def tuples(self) -> int:
        """How many different rows there are."""
        return len(self.counts)

    @property
    def schema(self) -> pa.Schema:
        schema = self.counts.schema
        return schema if self.weight is None else schema.append(pa.field(WEIGHT, pa.float64()))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Unfold the rows batch by batch."""
        for batch in self.counts.batches():
            columns = batch.columns
            if self.weight is not None:
                columns = [*columns, pa.repeat(pa.scalar(float(self.weight)), len(batch))]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output shows under three attackers."""
        return exposure(self.counts.counts, unit)

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return opinion_of_rows(self.counts.counts, unit, private=private)


def exposure(sizes: NDArray[np.int64], unit: Unit) -> dict[str, Any]:
    """Return what a table shows by the sizes of its classes of rows that look alike.

    >>> from incrowd.core.unit import Unit
    >>> exposure(np.array([5, 20]), Unit())["prosecutor"]
    '0.200000'
    """
    if not len(sizes):
        return {"rows": 0, "classes": 0}
    smallest, classes, rows, several = int(sizes.min()), len(sizes), int(sizes.sum()), unit.max_rows
    return {
        "rows": rows,
        "classes": classes,
        "smallest class": smallest,
        "prosecutor": f"{min(1.0, several / smallest):.6f}",
        "journalist": f"{min(1.0, several / smallest):.6f}",
        "marketer": f"{min(1.0, several * classes / rows):.6f}",
    }


def opinion_of_rows(sizes: NDArray[np.int64], unit: Unit, *, private: bool) -> dict[str, str]:
    """Return the three tests of Opinion 05/2014 for rows in classes of these sizes."""
    if not len(sizes):
        return {}
    smallest, several = int(sizes.min()), unit.max_rows
    people = f", in rows of at least {math.ceil(smallest / several)} people" if several > 1 else ""
    return {
        "singling out": f"no tuple occurs fewer than {smallest} times{people}",
        "linkability": "identifiers are not released; rows are in the order of their values",
        "inference": inference(private=private),
    }


@dataclass(frozen=True)
class ChosenMicrodata(Microdata):
    """Microdata whose levels were chosen by a private look at the rows; the labels tell them, and so does this."""

    form: ClassVar[str] = "chosen microdata"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what microdata shows, and the levels that were chosen: the choice is part of what was guaranteed."""
        return {**super().evidence(unit, private=private), "levels": self.counts.levels}


_BATCH = 2**17
CodedColumn = tuple[pa.Array, NDArray[np.integer]]
"""The values that a column shows, each once, and for each tuple the place of its own; the place after them is null."""


def occurring_values(values: pa.Array, codes: NDArray[np.integer]) -> CodedColumn:
    """Return the values that occur in a column, and the place of each tuple's among them.

    >>> occurring_values(pa.array(["a", "b", None]), np.array([1, 2]))[1].tolist()
    [0, 1]
    """
    used = np.zeros(len(values), np.bool_)
    used[codes] = True
    used &= values.is_valid().to_numpy(zero_copy_only=False)
    places = np.where(used, np.cumsum(used) - 1, int(used.sum()))
    return values.filter(pa.array(used)), places[codes]


@dataclass(frozen=True, eq=False)
class Anonymized(Outcome):
    """Rows in the order of what they show, held as counted tuples and unfolded when asked for.

    `values` lists for each column what it shows, in order, each value once; in a tuple the code after the last value
    stands for missing.  `quasi` names the columns by which classes are told apart; the others are kept as they are.

    >>> ages = pa.array(["[20, 29]", "[30, 39]"]), np.array([1, 0, 1])
    >>> one = Anonymized.of({"age": ages}, np.array([2, 5, 1]))
    >>> one.to_arrow().column("age").to_pylist()
    ['[20, 29]', '[20, 29]', '[20, 29]', '[20, 29]', '[20, 29]', '[30, 39]', '[30, 39]', '[30, 39]']
    """

    form: ClassVar[str] = "anonymized"
    faithful: ClassVar[bool] = True

    names: tuple[str, ...]
    values: tuple[pa.Array, ...]
    keys: Keys
    counts: NDArray[np.int64]
    quasi: tuple[str, ...]

    @classmethod
    def of(
        cls,
        columns: Mapping[str, CodedColumn],
        rows: NDArray[np.int64],
        quasi: Sequence[str] | None = None,
        **more: Any,
    ) -> Self:
        """Gather tuples, column by column as values and codes of them; without quasi-identifiers all columns are."""
        values = tuple(values for values, _ in columns.values())
        layout = Layout(tuple(len(column) + 1 for column in values))
        keys, counts = grouped(layout.pack([codes.astype(np.int32) for _, codes in columns.values()]), rows)
        return cls(tuple(columns), values, keys, counts, tuple(columns) if quasi is None else tuple(quasi), **more)

    def __len__(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def layout(self) -> Layout:
        """How the tuples are laid out in keys."""
        return Layout(tuple(len(values) + 1 for values in self.values))

    @property
    def tuples(self) -> int:
        """How many different rows there are."""
        return len(self.keys)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many rows each class over the quasi-identifiers holds."""
        places = [self.names.index(name) for name in self.quasi]
        codes = self.layout.unpack(self.keys)
        sizes = Layout(tuple(self.layout.sizes[place] for place in places))
        return grouped(sizes.pack([codes[place] for place in places]), self.counts)[1]

    @cached_property
    def schema(self) -> pa.Schema:
        """The names and types of the columns; what is shown as text is a dictionary of exactly what occurs."""
        text = pa.dictionary(pa.int32(), pa.string())
        kinds = [text if pa.types.is_string(values.type) else values.type for values in self.values]
        return pa.schema(list(zip(self.names, kinds, strict=True)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Unfold the rows batch by batch."""
        ends = np.cumsum(self.counts)
        total = len(self)
        for start in range(0, total, _BATCH):
            stop = min(start + _BATCH, total)
            first, last = np.searchsorted(ends, (start, stop - 1), side="right")
            times = np.diff(np.concatenate(([start], np.minimum(ends[first : last + 1], stop))))
            codes = self.layout.unpack(self.keys[first : last + 1])
            columns = [_rows(values, np.repeat(code, times)) for values, code in zip(self.values, codes, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output shows under three attackers."""
        return exposure(self.sizes, unit)

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return opinion_of_rows(self.sizes, unit, private=private)


def _rows(values: pa.Array, codes: Codes) -> pa.Array:
    indices = pa.array(codes, pa.int32(), mask=codes == len(values))
    return pa.DictionaryArray.from_arrays(indices, values) if pa.types.is_string(values.type) else values.take(indices)


@dataclass(frozen=True, eq=False)
class Generalized(Anonymized):
    """Rows at levels that a search found; nothing bounds what the levels tell, and they are told."""

    levels: Mapping[str, int] = field(default_factory=dict)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output shows, and the levels it is at."""
        return {**super().evidence(unit, private=private), "levels": dict(self.levels)}


@dataclass(frozen=True, eq=False)
class LocallyGeneralized(Anonymized):
    """Rows at the levels of the round that released them; quasi-identifiers are text, of one or several levels."""

    rounds: tuple[Mapping[str, int], ...] = ()

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output shows, and for each column the levels that its labels are from."""
        levels = {
            name: sorted({levels_of_round[name] for levels_of_round in self.rounds})
            for name in self.quasi
            if self.rounds
        }
        return {**super().evidence(unit, private=private), "levels": levels}


@dataclass(frozen=True, eq=False)
class Partitioned(Anonymized):
    """Rows in boxes that were cut privately: all columns together make a class."""

    form: ClassVar[str] = "partitioned"


@dataclass(frozen=True, eq=False)
class Blanked(Anonymized):
    """Rows in the order of what they show, missing cells last; classes are rows that show and miss the same."""

    form: ClassVar[str] = "blanked"
    blanks: ClassVar[bool] = True

    @property
    def missing(self) -> dict[str, int]:
        """How many cells of each quasi-identifier are missing."""
        codes = dict(zip(self.names, zip(self.values, self.layout.unpack(self.keys), strict=True), strict=True))
        return {name: int(self.counts[codes[name][1] == len(codes[name][0])].sum()) for name in self.quasi}

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output shows, with missing cells as values of their own, and how many there are."""
        missing = self.missing
        cells = {"missing cells": sum(missing.values()), "missing cells by column": missing}
        return {**super().evidence(unit, private=private), **cells}
