"""Anonymized: rows whose columns show generalized labels, held as tuples with how often each occurs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.keys import Codes, Keys, Layout, grouped
from incrowd.errors import InvalidParameter
from incrowd.methods.outcomes.microdata import exposure
from incrowd.methods.outcomes.outcome import Outcome

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


_BATCH = 2**17


@dataclass(frozen=True, eq=False)
class Anonymized(Outcome):
    """Rows in the order of what they show, held as counted tuples and unfolded when asked for.

    `values` lists for each column what it shows, in order, each value once; in a tuple the code after the last value
    stands for missing.  `quasi` names the columns by which classes are told apart; the others are kept as they are.

    >>> one = Anonymized.of({"age": pa.array(["[20, 29]", "[30, 39]"])}, [np.array([1, 0, 1])], np.array([2, 5, 1]))
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
        columns: dict[str, pa.Array],
        codes: Sequence[NDArray[np.integer]],
        rows: NDArray[np.int64],
        quasi: Sequence[str] | None = None,
    ) -> Self:
        """Gather tuples, given column by column as codes of the values that each column shows."""
        if len(columns) != len(codes):
            raise InvalidParameter("an anonymized table needs codes for each of its columns.")
        layout = Layout(tuple(len(values) + 1 for values in columns.values()))
        keys, counts = grouped(layout.pack([column.astype(np.int32) for column in codes]), rows)
        return cls(
            tuple(columns), tuple(columns.values()), keys, counts, tuple(columns) if quasi is None else tuple(quasi)
        )

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
        """Return what the output shows under three attackers and the three tests of the EU's Opinion 05/2014."""
        return exposure(self.sizes, unit, private=private)


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
        levels = {name: sorted({each[name] for each in self.rounds}) for name in self.quasi if self.rounds}
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
        told = {"missing cells": sum(missing.values()), "missing cells by column": missing}
        return {**super().evidence(unit, private=private), **told}
