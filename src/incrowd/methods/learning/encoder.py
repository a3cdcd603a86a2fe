"""Encoder: how a model reads one column of any table: the code of each value, by what was declared.

It gives the same codes as the recoding under which rows were counted, and is written into the model's file, so that a
model can be used where the policy is not known.  A row that would be left out while learning has the code −1 here, and
adds nothing to a prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import Numbers, Type
from incrowd.core.reading import as_dictionary, canonical, read
from incrowd.core.recoding import LEFT_OUT, Classes, Recoding
from incrowd.core.schema import Missing, Outside
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import text_of

MOST_VALUES = 50_000
"""A column with more listed values than this cannot be written into a model's file."""


@dataclass(frozen=True, eq=False)
class ColumnEncoder:
    """A column of a model: its labels, and where its numbers (`starts`) or its values (`places`) belong.

    `ends` are the bounds of numbers, to which values beyond them are moved if `moved`; `outside` and `missing` are the
    codes of what does not fit and of what is not there.
    """

    name: str
    type: Type
    labels: tuple[str | None, ...]
    outside: int
    missing: int
    starts: tuple[float, ...] | None = None
    ends: tuple[float, float] | None = None
    moved: bool = False
    places: Mapping[str, int] | None = None

    @property
    def ordered(self) -> bool:
        """Whether codes have the order of the numbers that they stand for."""
        return self.places is None

    @classmethod
    def of(cls, classes: Classes) -> ColumnEncoder:
        """Return how the column of some classes is read; refuse one whose values are too many to be listed."""
        column = classes.recoding.column
        labels = tuple(text_of(classes.labels()).to_pylist())
        missing = LEFT_OUT if column.missing == Missing.DROP else classes.missing
        if column.fill is not None:
            missing = int(classes.recoding.codes(pa.array([column.fill]))[0])
        rule = column.rule_outside
        outside = LEFT_OUT if rule is Outside.DROP else classes.other if column.has_other else missing
        if isinstance(column.domain, Numbers):
            starts = classes.marks.to_numpy(zero_copy_only=False).astype(np.float64)[1:]
            low, high = (float(bound) for bound in column.domain.bounds if bound is not None)
            moved = rule is Outside.ENDS
            return cls(column.name, column.type, labels, outside, missing, tuple(starts.tolist()), (low, high), moved)
        return cls(column.name, column.type, labels, outside, missing, places=_places(classes))

    def codes(self, array: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """Return the code of each value, −1 where a row would be left out."""
        values, indices = as_dictionary(array)
        stored = read(pa.concat_arrays([values, pa.nulls(1, values.type)]), self.type)
        present = stored.values.is_valid().to_numpy(zero_copy_only=False)
        codes = np.full(len(present), self.missing, np.int64)
        codes[stored.unreadable] = self.outside
        codes[present] = self._numbered(stored.values) if self.places is None else self._placed(stored.values)
        return codes[:-1] if indices is None else codes[indices]

    def _numbered(self, values: pa.Array) -> NDArray[np.int64]:
        numbers = values.drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
        low, high = self.ends or (-np.inf, np.inf)
        if self.moved:
            numbers = np.clip(numbers, low, high)
        codes = np.searchsorted(np.array(self.starts or ()), numbers, side="right").astype(np.int64)
        found: NDArray[np.int64] = np.where((numbers >= low) & (numbers <= high), codes, self.outside)
        return found

    def _placed(self, values: pa.Array) -> NDArray[np.int64]:
        places = self.places or {}
        found = pc.index_in(canonical(values.drop_null()), value_set=pa.array(list(places), pa.string()))
        where = found.fill_null(len(places)).to_numpy(zero_copy_only=False)
        codes: NDArray[np.int64] = np.array([*places.values(), self.outside], np.int64)[where]
        return codes

    def to_json(self) -> dict[str, Any]:
        """Return the column as plain JSON."""
        plain: dict[str, Any] = {"name": self.name, "type": str(self.type), "classes": list(self.labels)}
        plain |= {"outside": self.outside, "missing": self.missing}
        if self.places is not None:
            return plain | {"values": dict(self.places)}
        return plain | {"starts": list(self.starts or ()), "bounds": list(self.ends or ()), "moved": self.moved}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> ColumnEncoder:
        """Read what `to_json` wrote; whatever else raises what its parts raise."""
        labels = tuple(None if each is None else str(each) for each in plain["classes"])
        shared = (str(plain["name"]), Type(plain["type"]), labels, int(plain["outside"]), int(plain["missing"]))
        codes = {*shared[3:], *plain.get("values", {}).values()}
        if not codes <= set(range(LEFT_OUT, len(labels))) or not labels:
            raise ValueError("codes")
        if "values" in plain:
            return cls(*shared, places={str(value): int(code) for value, code in plain["values"].items()})
        starts, ends = (tuple(map(float, plain[name])) for name in ("starts", "bounds"))
        if len(starts) >= len(labels) or list(starts) != sorted(starts) or len(ends) != 2:
            raise ValueError("starts")
        return cls(*shared, starts=starts, ends=(ends[0], ends[1]), moved=bool(plain["moved"]))


def _places(classes: Classes) -> dict[str, int]:
    """Return the code of every declared value."""
    column = classes.recoding.column
    values = Recoding(column, 0).classes
    if values is None or len(values.marks) > MOST_VALUES:
        raise InvalidParameter(
            f"{column.name!r} has too many values, or none that are listed, to be written into a model: list at most "
            f"{MOST_VALUES:,}, or leave it out of columns."
        )
    names = canonical(values.marks)
    codes = classes.recoding.codes(names)
    return dict(zip(names.to_pylist(), codes.tolist(), strict=True))
