"""Sets: the items of each row of a set-valued column, as codes laid end to end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.keys import Codes
from incrowd.core.reading import as_dictionary
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Missing
from incrowd.errors import InvalidParameter

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Sets:
    """One set of items for each row: row i holds `items[starts[i]:starts[i + 1]]`, each code once, in order.

    >>> sets = Sets.of(np.array([0, 0, 0, 2]), np.array([7, 3, 7, 1]), rows=3)
    >>> [sets.row(place).tolist() for place in range(len(sets))]
    [[3, 7], [], [1]]
    """

    starts: NDArray[np.int64]
    items: Codes

    @classmethod
    def of(cls, owners: NDArray[np.integer], items: NDArray[np.integer], rows: int) -> Sets:
        """Gather items, given with the number of the row each belongs to; what a row holds twice it holds once."""
        size = int(items.max(initial=0)) + 1
        keys = owners.astype(np.int64) * size + items
        if len(keys) > 1 and not np.all(keys[1:] > keys[:-1]):
            keys = np.sort(keys)
            keys = keys[np.append(True, keys[1:] != keys[:-1])]
        owners, unique_items = np.divmod(keys, size)
        starts = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=rows))))
        return cls(starts.astype(np.int64), unique_items.astype(np.int32))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many items each row holds."""
        return np.diff(self.starts)

    @property
    def owners(self) -> Rows:
        """The row of each item."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def row(self, place: int) -> Codes:
        """Return the items of one row."""
        return self.items[self.starts[place] : self.starts[place + 1]]

    def take(self, rows: Rows) -> Sets:
        """Return some of the rows, in the order asked for."""
        lengths = self.lengths[rows]
        ends = np.cumsum(lengths)
        within = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
        starts = np.concatenate(([0], ends)).astype(np.int64)
        return Sets(starts, self.items[np.repeat(self.starts[:-1][rows], lengths) + within])

    def mapped(self, table: Codes) -> Sets:
        """Return the sets with every item replaced; −1 in the table takes an item away, equal ones become one.

        >>> Sets.of(np.array([0, 0]), np.array([0, 2]), 1).mapped(np.array([5, 5, -1], np.int32)).row(0).tolist()
        [5]
        """
        items = table[self.items]
        present = items >= 0
        return Sets.of(self.owners[present], items[present], len(self))

    def within(self, classes: NDArray[np.integer]) -> Sets:
        """Return the sets with the class of its row made part of each item: an item of two classes becomes two.

        A combination of the new items is then a combination within one class.  The order of the old items comes first.
        """
        size = int(classes.max(initial=0)) + 1
        if (int(self.items.max(initial=0)) + 1) * size >= 2**31:
            raise InvalidParameter("there are too many classes and items: coarsen the quasi-identifiers first.")
        items = self.items * np.int32(size) + np.repeat(classes.astype(np.int32), self.lengths)
        return Sets(self.starts, items)

    @classmethod
    def joined(cls, parts: list[Sets]) -> Sets:
        """Return the rows of several one after the other."""
        lengths = np.concatenate([np.zeros(0, np.int64), *(part.lengths for part in parts)])
        items = np.concatenate([np.zeros(0, np.int32), *(part.items for part in parts)])
        return cls(np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), items.astype(np.int32))


def read_sets(array: pa.Array, column: Column) -> tuple[Sets, NDArray[np.bool_]]:
    """Return the items of each row of a set-valued column, and which rows take part.

    The codes are those of the item's classes at level 0.  A row without items, or whose items are missing, has the
    empty set, unless its column drops what is missing; an item outside the domain is `other`, or drops its row.

    >>> from incrowd.core.hierarchy.tree import tree
    >>> ill = Column("ill", hierarchy=tree({"lungs": ["flu", "cough"], "heart": ["attack"]}), separator=";")
    >>> sets, kept = read_sets(pa.array(["cough;flu", None, "gout;flu;flu"]), ill)
    >>> [sets.row(place).tolist() for place in range(3)], kept.tolist()
    ([[0, 1], [], [0, 3]], [True, True, True])
    >>> read_sets(pa.array([["flu"], ["attack", "flu"]]), ill)[0].items.tolist()
    [0, 0, 2]
    """
    lists = _lists(array, column)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False), np.int64)
    owners = np.repeat(np.arange(len(lists)), lengths)
    values, places = as_dictionary(lists.flatten())
    trimmed = pc.utf8_trim_whitespace(pc.cast(values, pa.string()))
    codes = Recoding(column.item, 0).codes_of(trimmed)
    absent = np.append(pc.equal(trimmed, "").to_numpy(zero_copy_only=False), True)
    item_codes = np.arange(len(trimmed)) if places is None else places
    rows_used = np.ones(len(lists), np.bool_)
    rows_used[owners[(codes[item_codes] < 0) & ~absent[item_codes]]] = False
    if column.missing == Missing.DROP:
        rows_used &= lists.is_valid().to_numpy(zero_copy_only=False)
    real = ~absent[item_codes] & rows_used[owners]
    return Sets.of(owners[real], codes[item_codes[real]], len(lists)), rows_used


def items_of(array: pa.Array, column: Column) -> pa.Array:
    """Return all items of a set-valued column as they are written, one after the other.

    >>> from incrowd.core.hierarchy.tree import tree
    >>> bought = Column("bought", hierarchy=tree({"drinks": ["tea", "milk"]}), separator=",")
    >>> items_of(pa.array(["tea, beer", None, ",milk"]), bought).to_pylist()
    ['tea', 'beer', 'milk']
    """
    items = pc.utf8_trim_whitespace(_lists(array, column).flatten().cast(pa.string()))
    return items.filter(pc.fill_null(pc.not_equal(items, ""), False))


def _lists(array: pa.Array, column: Column) -> pa.Array:
    """Return a list of items for each row; text is parted at the separator."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return array
    return pc.split_pattern(pc.cast(array, pa.string()), str(column.separator))
