"""Item tables: rows with a set of items each, shown as text between separators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.keys import Layout
from incrowd.core.sets import Rows, Sets
from incrowd.criteria.itemsets import smallest_support
from incrowd.methods.outcomes.anonymized import Anonymized
from incrowd.methods.outcomes.outcome import Outcome

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


@dataclass(frozen=True, eq=False)
class ItemTable(Outcome):
    """Rows in the order of what they show; one column holds a set of items, in one way of writing.

    `rows.quasi` names the columns that make a class with each other, the set-valued one not among them; m is the
    number of items that somebody may know of a person.
    """

    form: ClassVar[str] = "itemsets"
    faithful: ClassVar[bool] = True

    rows: Anonymized
    column: str
    separator: str
    m: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def tuples(self) -> int:
        """How many different rows there are."""
        return self.rows.tuples

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns; sets are text."""
        return self.rows.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Unfold the rows batch by batch."""
        return self.rows.batches()

    def sets(self) -> tuple[Sets, Rows]:
        """Return the sets that occur in the rows, row by row, and the class of each row."""
        codes = dict(zip(self.rows.names, self.rows.layout.unpack(self.rows.keys), strict=True))
        values = self.rows.values[self.rows.names.index(self.column)]
        lists = pc.split_pattern(values, self.separator)
        items = lists.flatten().dictionary_encode().indices.to_numpy(zero_copy_only=False)
        lengths = np.append(pc.list_value_length(lists).to_numpy(zero_copy_only=False), 0)
        known = Sets.of(np.repeat(np.arange(len(lengths)), lengths), items, len(lengths))
        sizes = [len(self.rows.values[self.rows.names.index(name)]) + 1 for name in self.rows.quasi]
        keys = Layout(tuple(sizes)).pack([codes[name] for name in self.rows.quasi]) if sizes else None
        classes = (
            np.zeros(len(codes[self.column]), np.intp) if keys is None else np.unique(keys, return_inverse=True)[1]
        )
        every = np.repeat(np.arange(len(classes)), self.rows.counts)
        return known.take(codes[self.column][every].astype(np.intp)), classes[every].astype(np.intp)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:  # noqa: ARG002 (it never has an epsilon)
        """Return what the output shows: its rows, its items, its rarest combination, and how many rows are unique."""
        if not len(self):
            return {"rows": 0}
        sets, classes = self.sets()
        alone = int((self.rows.counts == 1).sum())
        return {
            "rows": len(self),
            "items shown": len(np.unique(sets.items)),
            "largest set": int(sets.lengths.max()),
            "smallest support": min(smallest_support(sets.within(classes), self.m), int(np.bincount(classes).min())),
            "unique rows": alone,
            "singling out": f"{alone:,} rows are like no other: who knows more than {self.m} items may find one",
            "linkability": "identifiers are not released; rows are in the order of their values",
            "inference": "not bounded: this release has no epsilon",
        }
