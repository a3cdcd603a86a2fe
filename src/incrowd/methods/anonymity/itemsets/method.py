"""Itemsets: generalize the items of a set-valued column until no few of them tell anyone apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.cells import Cells
from incrowd.core.claims.privacy import Pseudonymity
from incrowd.core.coins import Coins
from incrowd.core.keys import Codes, Keys, Layout
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Column, Missing, Role, Schema
from incrowd.core.sets import Rows, Sets, read_sets
from incrowd.core.steps.rows import Recode, recode
from incrowd.core.steps.step import Step, fold
from incrowd.core.table import Table
from incrowd.criteria.itemsets import KmAnonymity, KmClaim, check, smallest_support
from incrowd.criteria.measure import Measured
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.itemsets.check import ArrangeSets, CutItems, ItemsCheck, ItemsPicture, ItemTable
from incrowd.methods.anonymity.itemsets.cuts import ItemCut, ItemDemand, ItemTree, best_cut, joinable
from incrowd.methods.shared.columns import released_cells
from incrowd.methods.shared.microdata import Anonymized, CodedColumn, occurring_values
from incrowd.verifier.check import one


@dataclass(frozen=True)
class Itemsets(Method):
    """A table with a set of items in each row, such as diagnoses or purchases, under k^m-anonymity.

    Guarantee: among rows that agree in all other quasi-identifiers, every combination of at most m items that occurs,
    occurs in at least k rows.  This is a property of the output's form.  Nothing else is guaranteed and there is no ε:
    the items were made coarser by looking at all rows, and sensitive columns stay as they are.

    Assumes: nobody knows more than m items of a person; one row holds all items of one person.

    Source: Terrovitis, Mamoulis & Kalnis 2008; Poulis, Loukides, Gkoulalas-Divanis & Skiadopoulos 2013 for other
    quasi-identifiers beside the items, as (k, k^m)-anonymity.

    >>> Itemsets(5, 2, suppression=Fraction(1, 20)).suppression
    Fraction(1, 20)
    """

    name: ClassVar[str] = "itemsets"
    checked_for: ClassVar[str] = "k and m"

    k: int
    m: int
    suppression: Fraction = Fraction(0)
    levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check(self.k, self.m)
        if not 0 <= self.suppression <= 1:
            raise InvalidParameter("suppression is the share of item occurrences that may be left out, from 0 to 1.")

    def column(self, schema: Schema) -> Column:
        """Return the set-valued column, or refuse a schema that has none, or several, or one nobody looks up."""
        columns = [column for column in schema.released if column.separator is not None]
        if len(columns) != 1:
            raise InvalidParameter(
                f"method itemsets releases one set-valued column, and the policy has {len(columns)}: give exactly one "
                "column a separator."
            )
        if not Role.QUASI.covers(columns[0].role):
            raise InvalidParameter(
                f"k^m-anonymity is about quasi-identifiers: give {columns[0].name!r} the role quasi."
            )
        if columns[0].name in self.levels:
            raise InvalidParameter(f"the levels of the items of {columns[0].name!r} are searched for: leave them out.")
        return columns[0]

    def cells(self, schema: Schema) -> Cells | None:
        """Return the tuples of the other columns, or None without others; each must be listed from the declaration."""
        name = self.column(schema).name
        recodings = tuple(
            recoding
            for recoding in released_cells(_of_items(schema), self.levels).recodings
            if recoding.column.name != name
        )
        for recoding in recodings:
            if recoding.classes is None:
                raise InvalidParameter(
                    f"the values of {recoding.column.name!r} beside the items must be declared: list its categories or "
                    "bounds, use a higher level, or make it an identifier."
                )
        return Cells(recodings) if recodings else None

    def plan(self, schema: Schema) -> Plan:
        """Guarantee a form, from the schema alone; k^m-anonymity allows rows that are like no other."""
        steps = self.steps(schema)
        if schema.unit.kind.of_people:
            raise InvalidParameter(
                "method itemsets reads all items of a person from one row: gather them there, and leave the unit's "
                "column out."
            )
        items = len(ItemTree.of(self.column(schema)))
        settings = {"k": self.k, "m": self.m, "suppression": self.suppression, "items": items}
        return Plan(self.name, steps, fold(steps, schema.unit), {}, self.release, None, settings)

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps: which finest levels, how items are made coarser, which order."""
        column = self.column(schema)
        self.cells(schema)
        cut = CutItems(column.name, str(column.separator), self._quasi(schema), self.k, self.m, self.suppression)
        return (self._recode(schema, column), cut, ArrangeSets())

    def release(self, table: Table, coins: Coins) -> ItemTable:
        """Read the rows once, cut the hierarchy of the items, and show every row's items as nodes of the cut."""
        column, tree = self.column(table.schema), ItemTree.of(self.column(table.schema))
        baskets = self.baskets(table)
        sets, classes = baskets.sets(), self.classes(table.schema, baskets)
        retained = np.flatnonzero(joinable(sets, classes, self.k))
        cut = self.cut(sets.take(retained), classes[retained], tree)
        texts = _texts(sets.take(retained), tree, cut, str(column.separator))
        return self._table(table.schema, baskets.cells, baskets.keys()[retained] if baskets.cells else None, texts)

    def baskets(self, table: Table) -> Baskets:
        """Read the rows once: the items at their finest, the other columns at their levels."""
        column, cells = self.column(table.schema), self.cells(table.schema)
        reads = [column.name, *(cells.reads if cells else ())]
        return table.engine.learn(table.rows, reads, partial(Baskets, column, cells))

    def measure(self, table: Table, *, recoded: bool) -> tuple[int, Measured, tuple[str, ...]]:
        """Return how many rows there are, k^m-anonymity as it is found, and over which columns; sets are in memory.

        As it is, whatever stands between separators is an item; recoded, the rules for items and the levels of the
        other columns are applied first, and no item is made coarser.
        """
        schema, column = table.schema, self.column(table.schema)
        names, support = (*self._quasi(schema), column.name), None
        if recoded:
            baskets = self.baskets(table)
            sets, classes = baskets.sets(), self.classes(schema, baskets)
        else:
            written = partial(WrittenSets, names, str(column.separator))
            sets, classes = table.engine.learn(table.rows, names, written).sets()
        if len(sets):
            smallest = int(np.unique(classes, return_counts=True)[1].min())
            support = min(smallest_support(sets.within(classes), self.m), smallest)
        return len(sets), Measured(KmAnonymity.meaning, self.k, support, None), names

    def cut(self, sets: Sets, classes: Rows, tree: ItemTree) -> ItemCut:
        """Return as what each item is shown, and what that loses."""
        return best_cut(sets, classes, tree, ItemDemand(self.k, self.m, int(self.suppression * len(sets.items))))

    def classes(self, schema: Schema, baskets: Baskets) -> Rows:
        """Return the class of each row: which rows agree in all other quasi-identifiers."""
        quasi, cells = self._quasi(schema), baskets.cells
        if cells is None or not quasi:
            return np.zeros(len(baskets.sets()), np.intp)
        places = [cells.names.index(name) for name in quasi]
        codes = cells.layout.unpack(baskets.keys())
        packed = Layout(tuple(cells.layout.sizes[place] for place in places)).pack([codes[place] for place in places])
        return np.unique(packed, return_inverse=True)[1].astype(np.intp)

    def _table(self, schema: Schema, cells: Cells | None, keys: Keys | None, texts: pa.DictionaryArray) -> ItemTable:
        """Return the table, its columns in the order of the schema."""
        column = self.column(schema)
        columns: dict[str, CodedColumn] = {column.name: _ranked(texts)}
        if cells is not None and keys is not None:
            for recoding, codes in zip(cells.recodings, cells.layout.unpack(keys), strict=True):
                values = recoding.classes.values() if recoding.classes else pa.nulls(0)
                columns[recoding.column.name] = occurring_values(values, codes)
        columns = {column.name: columns[column.name] for column in schema.released}
        rows = Anonymized.of(columns, np.ones(len(texts), np.int64), self._quasi(schema))
        return ItemTable(rows, column.name, str(column.separator), self.m)

    def _quasi(self, schema: Schema) -> tuple[str, ...]:
        """Return the quasi-identifiers beside the set-valued column."""
        return tuple(name for name in schema.quasi if schema[name].separator is None)

    def _recode(self, schema: Schema, column: Column) -> Recode:
        """Return how rows are recoded: items one by one, and a missing cell of theirs is a set without any."""
        recoded = recode(released_cells(_of_items(schema), self.levels))
        missing = Missing.DROP if column.missing == Missing.DROP else None
        items = (
            replace(recoded_column, missing=missing) if recoded_column.column == column.name else recoded_column
            for recoded_column in recoded.columns
        )
        return Recode(tuple(items))


def _of_items(schema: Schema) -> Schema:
    """Return the schema as if each row held one item."""
    return replace(schema, columns=tuple(c if c.separator is None else c.item for c in schema.columns))


def _texts(sets: Sets, tree: ItemTree, cut: ItemCut, separator: str) -> pa.DictionaryArray:
    """Return each row's nodes as text: every label once, in the order of the hierarchy; null for the empty set."""
    labels = list(dict.fromkeys(tree.labels[node] for node in cut.nodes.tolist() if node >= 0))
    places = {label: place for place, label in enumerate(labels)}
    table = np.array([places[tree.labels[node]] if node >= 0 else node for node in cut.nodes.tolist()], np.int32)
    mapped = sets.mapped(table)
    names = pa.array(labels, pa.string()).take(pa.array(mapped.items))
    text = pc.binary_join(pa.ListArray.from_arrays(pa.array(mapped.starts, pa.int32()), names), separator)
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text).dictionary_encode()


def _ranked(texts: pa.DictionaryArray) -> tuple[pa.Array, Codes]:
    """Return the texts that occur in order, and for each row the place of its own; the place after them is null."""
    values = texts.dictionary
    order = pc.array_sort_indices(values).to_numpy()
    ranks = np.empty(len(values) + 1, np.int32)
    ranks[order], ranks[-1] = np.arange(len(values)), len(values)
    codes = texts.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return values.take(pa.array(order)), ranks[codes]


@dataclass
class Baskets:
    """A summary that keeps every row's items, four bytes each, and the key of its other columns.

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> bought = Column("bought", hierarchy=Flat(Categories(("tea", "milk"))), separator=",")
    >>> baskets = Baskets(bought)
    >>> baskets.add(pa.record_batch({"bought": ["milk,tea", "tea"]}))
    >>> baskets.sets().items.tolist()
    [0, 1, 0]
    """

    column: Column
    cells: Cells | None = None
    _keys: list[Keys] = field(default_factory=list)
    _sets: list[Sets] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Read some rows; those that a rule of the schema leaves out are forgotten."""
        sets, retained = read_sets(batch.column(self.column.name), self.column)
        recodings = () if self.cells is None else self.cells.recodings
        codes = [
            recoding.codes(batch.column(recoding.column.name))
            if recoding.needs_rows
            else np.zeros(len(batch), np.int32)
            for recoding in recodings
        ]
        for column in codes:
            retained &= column >= 0
        self._sets.append(sets if retained.all() else sets.take(np.flatnonzero(retained)))
        if self.cells is not None:
            self._keys.append(self.cells.layout.pack([column[retained] for column in codes]))

    def merge(self, other: Baskets) -> None:
        """Take over what another one read of other rows."""
        self._keys += other._keys
        self._sets += other._sets

    def sets(self) -> Sets:
        """Return the items of all rows."""
        return Sets.joined(self._sets)

    def keys(self) -> Keys:
        """Return the keys of the other columns, row by row; only where there are other columns."""
        empty = np.zeros(0, np.int64 if self.cells is None else self.cells.layout.dtype)
        return np.concatenate([empty, *self._keys])


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
        places = [array.indices.fill_null(len(array.dictionary)).to_numpy(zero_copy_only=False) for array in coded]
        layout = Layout(tuple(len(array.dictionary) + 1 for array in coded))
        keys = layout.pack(places) if coded else np.zeros(len(whole), np.int64)
        return sets.take(every), np.unique(keys, return_inverse=True)[1][every].astype(np.intp)

    def _text(self, array: pa.Array) -> pa.Array:
        if pa.types.is_list(array.type):
            return pc.binary_join(array, self.separator)
        return (array.dictionary_decode() if pa.types.is_dictionary(array.type) else array).cast(pa.string())


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


CHECK = ItemsCheck(order=(one(Recode), one(CutItems), one(ArrangeSets)), claims=(KmClaim, Pseudonymity))
PICTURE = ItemsPicture()
METHOD = Itemsets
