"""Written sets: the items of each row as they are written, whatever stands between separators."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.keys import Layout
from incrowd.core.sets import Rows, Sets


@dataclass
class WrittenSets:
    """A summary of different rows as they are written, and how often each occurs; the last column holds sets.

    >>> written = WrittenSets(("sex", "ill"), ";")
    >>> written.add(pa.record_batch({"sex": ["F", "M"], "ill": ["flu; gout", None]}))
    >>> sets, classes = written.sets()
    >>> sets.lengths.tolist(), len(set(classes.tolist()))
    ([2, 0], 2)
    """

    names: tuple[str, ...]
    separator: str
    _parts: list[pa.Table] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Count some rows."""
        columns = {name: self._text(batch.column(name)) for name in self.names}
        self._parts.append(pa.table(columns).group_by(list(self.names)).aggregate([([], "count_all")]))

    def merge(self, other: WrittenSets) -> None:
        """Take over what another one counted of other rows."""
        self._parts += other._parts

    def sets(self) -> tuple[Sets, Rows]:
        """Return the items of each row, numbered as they are met, and its class over the columns before."""
        if not self._parts:
            return Sets.joined([]), np.zeros(0, np.intp)
        whole = pa.concat_tables(self._parts).combine_chunks()
        every = np.repeat(np.arange(len(whole)), whole.column("count_all").to_numpy())
        lists = pc.split_pattern(_whole(whole, self.names[-1]).fill_null(""), self.separator)
        items = pc.utf8_trim_whitespace(lists.flatten()).dictionary_encode()
        lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
        table = np.array(
            [-1 if name == "" else place for place, name in enumerate(items.dictionary.to_pylist())], np.int32
        )
        codes = items.indices.to_numpy(zero_copy_only=False)
        sets = Sets.of(np.repeat(np.arange(len(lengths)), lengths), codes, len(lengths)).mapped(table)
        coded = [_whole(whole, name).dictionary_encode() for name in self.names[:-1]]
        places = [each.indices.fill_null(len(each.dictionary)).to_numpy(zero_copy_only=False) for each in coded]
        layout = Layout(tuple(len(each.dictionary) + 1 for each in coded))
        keys = layout.pack(places) if coded else np.zeros(len(whole), np.int64)
        return sets.take(every), np.unique(keys, return_inverse=True)[1][every].astype(np.intp)

    def _text(self, array: pa.Array) -> pa.Array:
        if pa.types.is_list(array.type):
            return pc.binary_join(array, self.separator)
        return (array.dictionary_decode() if pa.types.is_dictionary(array.type) else array).cast(pa.string())


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
