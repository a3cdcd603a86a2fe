"""Microdata: one row for each row that was kept, in the order of its values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.errors import InvalidParameter
from incrowd.methods.outcomes.outcome import Outcome

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


WEIGHT = "weight"
_THRESHOLDS = {
    "0.09": "classes of at least 11; European Medicines Agency, Policy 0070, for public release",
    "0.2": "classes of at least 5; a common custom",
    "0.33": "classes of at least 3; a custom for recipients under contract",
}


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
        """The names and types of the columns, known before a row is read."""
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
        """Return what the output shows under three attackers and the three tests of the EU's Opinion 05/2014."""
        return exposure(self.counts.counts, unit, private=private)


def exposure(sizes: NDArray[np.int64], unit: Unit, *, private: bool) -> dict[str, Any]:
    """Return what a table shows by the sizes of its classes of rows that look alike.

    >>> from incrowd.core.unit import Unit
    >>> exposure(np.array([5, 20]), Unit(), private=False)["prosecutor"]
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
        "thresholds": _THRESHOLDS,
        "singling out": f"no tuple occurs fewer than {smallest} times"
        + (f", in rows of at least {math.ceil(smallest / several)} people" if several > 1 else ""),
        "linkability": "identifiers are not released; rows are in the order of their values",
        "inference": (
            "bounded by the claims above, for every attribute, whatever the attacker knows"
            if private
            else "not bounded: this release has no epsilon"
        ),
    }


@dataclass(frozen=True)
class ChosenMicrodata(Microdata):
    """Microdata whose levels were chosen by a private look at the rows; the labels tell them, and so does this."""

    form: ClassVar[str] = "chosen microdata"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what microdata shows, and the levels that were chosen: the choice is part of what was guaranteed."""
        return {**super().evidence(unit, private=private), "levels": self.counts.levels}
