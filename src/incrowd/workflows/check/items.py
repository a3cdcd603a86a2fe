"""Item check: the rarest combination of items in a table as it is, or after the rules of its policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.keys import Layout
from incrowd.core.schema import Role
from incrowd.core.sets import Rows as Places
from incrowd.core.sets import Sets
from incrowd.core.table import Engine, Rows, Table
from incrowd.criteria.itemsets import KmAnonymity, smallest_support
from incrowd.criteria.measure import Measured
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.itemsets.method import Itemsets
from incrowd.workflows.check.criteria import CriterionFinding
from incrowd.workflows.policy.policy import Policy


def rarest_items(rows: Rows, policy: Policy, engine: Engine, *, recoded: bool) -> tuple[int, CriterionFinding]:
    """Return how many rows there are, and k^m-anonymity as the policy of method itemsets demands it.

    As it is, whatever stands between separators is an item; recoded, the policy's rules for items and the levels of its
    other columns are applied first, and no item is made coarser.  Sets are held in memory.
    """
    method, schema = policy.method, policy.schema
    if not isinstance(method, Itemsets):
        raise InvalidParameter("only a policy of method itemsets says which items must not be rare.")
    column = method.column(schema)
    quasi = tuple(c.name for c in schema.released if c.role is Role.QUASI and c is not column)
    if recoded:
        baskets = method.baskets(Table(schema, rows, engine))
        sets, classes = baskets.sets(), method.classes(schema, baskets)
    else:
        names = (*quasi, column.name)
        sets, classes = engine.learn(rows, names, partial(WrittenSets, names, str(column.separator))).sets()
    found = None
    if len(sets):
        found = min(
            smallest_support(sets.within(classes), method.m), int(np.unique(classes, return_counts=True)[1].min())
        )
    return len(sets), CriterionFinding(Measured(KmAnonymity.meaning, method.k, found, None), (*quasi, column.name))


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

    def sets(self) -> tuple[Sets, Places]:
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
