"""Frame: rows in memory, in the order of their values, whose columns masks replace; draws and covariances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.coins import Coins
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.schema import Schema
from incrowd.core.table import Table
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.shared.columns import released_cells, row_limits

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

_WORD = 2**53  # as many different numbers as a float holds between 0 and 1


@dataclass(frozen=True, eq=False)
class RowFrame:
    """Rows that were read by the rules of the schema: limited per person, typed, missing values as nulls.

    They are in the order of their values: the order of the source reveals nothing and changes nothing.

    >>> frame = RowFrame(pa.table({"sex": ["F", "M", "F"], "age": [30, None, 50]}))
    >>> frame.numbers("age").tolist(), frame.groups(["sex"]).tolist()
    ([30.0, nan, 50.0], [0, 1, 0])
    >>> frame.replaced(age=np.array([31.5, np.nan, 49.0])).table["age"].to_pylist()
    [31.5, None, 49.0]
    """

    table: pa.Table
    classes: Mapping[str, Classes] = field(default_factory=dict)
    origin: pa.Table | None = None
    """The rows as they were read, where some were suppressed since."""
    remaining: Places | None = None
    """The places of the remaining rows among those."""

    @classmethod
    def read(
        cls, table: Table, levels: Mapping[str, int], unreleased: Sequence[str], coins: Coins | None = None
    ) -> RowFrame:
        """Count the rows of each tuple once, and expand them; `unreleased` columns are read too.

        Without coins every row is read: the rows of a person are not limited.
        """
        released = released_cells(table.schema, levels)
        more = tuple(Recoding(table.schema[name], 0) for name in unreleased if name not in released.names)
        cells = Cells((*released.recodings, *more))
        limits = () if coins is None else row_limits(table, coins)
        counts = table.engine.count(table.rows, cells, *limits)
        return cls(counts.expand(), dict(zip(counts.names, counts.classes, strict=True)))

    def __len__(self) -> int:
        rows: int = self.table.num_rows
        return rows

    def numbers(self, name: str) -> Numbers:
        """Return a column as floating-point numbers, missing ones as NaN."""
        column = pc.cast(self.table[name].combine_chunks(), pa.float64())
        values: Numbers = column.to_numpy(zero_copy_only=False)
        return values

    def matrix(self, names: Sequence[str]) -> Numbers:
        """Return some columns of numbers side by side."""
        return np.column_stack([self.numbers(name) for name in names])

    def values(self, name: str) -> pa.Array:
        """Return a column as it is, text as text."""
        column = self.table[name].combine_chunks()
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    def groups(self, names: Sequence[str]) -> Places:
        """Return for each row the number of its group: rows that agree in some columns; without columns, all rows."""
        numbers = np.zeros(len(self), np.int64)
        for name in names:
            codes = self.values(name).dictionary_encode(null_encoding="encode").indices.to_numpy()
            numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
        return numbers.astype(np.int64)

    def replaced(self, **columns: Numbers | pa.Array) -> RowFrame:
        """Return the frame with other values in some columns; NaN is missing."""
        table = self.table
        for name, values in columns.items():
            column = pa.array(values, from_pandas=True) if isinstance(values, np.ndarray) else values
            table = table.set_column(table.column_names.index(name), name, column)
        return RowFrame(table, self.classes, self.origin, self.remaining)

    @property
    def places(self) -> Places:
        """For each row, its place among the rows as they were read."""
        return np.arange(len(self)) if self.remaining is None else self.remaining

    @property
    def start(self) -> RowFrame:
        """The rows as they were read."""
        return self if self.origin is None else RowFrame(self.origin, self.classes)

    def take(self, rows: Places) -> RowFrame:
        """Return some of the rows, in an order."""
        return RowFrame(self.table.take(pa.array(rows)), self.classes, self.start.table, self.places[rows])

    def ordered(self) -> RowFrame:
        """Return the rows in the order of the values that they have now.

        >>> RowFrame(pa.table({"sex": ["M", "F"], "age": [30, 50]})).ordered().table["age"].to_pylist()
        [50, 30]
        """
        return self.take(_order(self._decoded(self.table.column_names)).to_numpy().astype(np.int64))

    def without(self, suppressed: NDArray[np.bool_]) -> RowFrame:
        """Return the frame without some rows; it still has the rows as they were read."""
        return self.take(np.flatnonzero(~suppressed).astype(np.int64))

    def parts(self, names: Sequence[str]) -> list[Places]:
        """Return the rows of each group of rows that agree in some columns.

        >>> [rows.tolist() for rows in RowFrame(pa.table({"sex": ["F", "M", "F"]})).parts(["sex"])]
        [[0, 2], [1]]
        """
        groups = self.groups(names)
        order = np.argsort(groups, kind="stable").astype(np.int64)
        return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)

    def households(self, name: str) -> tuple[Places, Places]:
        """Return the first row of each household, and each row's household; without an id a row is one of its own.

        >>> first, number = RowFrame(pa.table({"h": ["a", None, "a", None]})).households("h")
        >>> first.tolist(), number.tolist()
        ([0, 1, 3], [0, 1, 0, 2])
        """
        missing = self.values(name).is_null().to_numpy(zero_copy_only=False)
        own = np.where(missing, len(self) + np.arange(len(self)), self.groups([name]))
        first, number = np.unique(own, return_index=True, return_inverse=True)[1:]
        return first.astype(np.int64), number.astype(np.int64)

    def lifted(self, name: str, level: int) -> pa.Array:
        """Return the labels of a column at a higher level than it was read at."""
        classes = self.classes[name]
        higher, codes = classes.rise(level)
        places = pc.index_in(pc.cast(self.values(name), pa.string()), value_set=pc.cast(classes.values(), pa.string()))
        return higher.labels().take(pa.array(codes)).take(places)

    def released(self, schema: Schema) -> pa.Table:
        """Return the released columns, rows in the order of what they show, text as dictionaries of what occurs."""
        names = [column.name for column in schema.released]
        decoded = self._decoded(names)
        ordered = decoded.take(_order(decoded))
        return pa.table([_encoded(ordered[name].combine_chunks()) for name in names], names=names)

    def _decoded(self, names: Sequence[str]) -> pa.Table:
        return pa.table([self.values(name) for name in names], names=names)


def _order(table: pa.Table) -> pa.Array:
    return pc.sort_indices(table, [(name, "ascending") for name in table.column_names])


def _encoded(column: pa.Array) -> pa.Array:
    return column.dictionary_encode() if pa.types.is_string(column.type) else column


def normals(coins: Coins, rows: int, columns: int = 1) -> Numbers:
    """Draw standard normal numbers, rounded to multiples of 2⁻²⁰."""
    sample = coins.gaussian(Fraction(2**20), rows * columns).astype(np.float64) / 2**20
    return sample.reshape(rows, columns)


def uniforms(coins: Coins, size: int) -> Numbers:
    """Draw numbers uniform on [0, 1), multiples of 2⁻⁵³."""
    return coins.below(_WORD, size).astype(np.float64) / _WORD


def shuffled(coins: Coins, size: int) -> Places:
    """Draw a random order of `size` rows; two equal words of 62 bits keep the order they had."""
    return np.argsort(coins.below(2**62, size), kind="stable").astype(np.int64)


def covariance(values: Numbers) -> Numbers:
    """Return the covariances of columns, with the number of rows as divisor.

    >>> covariance(np.array([[1.0, 2.0], [3.0, 6.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    return np.atleast_2d(np.cov(values, rowvar=False, bias=True))


def root(covariances: Numbers) -> Numbers:
    """Return a matrix that gives independent standard normal rows these covariances."""
    sizes, directions = np.linalg.eigh(covariances)
    half: Numbers = (directions * np.sqrt(np.maximum(sizes, 0.0))).T
    return half


def weight_of(schema: Schema) -> str:
    """Return the column of survey weights, or refuse a schema without one."""
    if schema.weight is None:
        raise InvalidParameter("there are no survey weights: give their column the role weight.")
    return schema.weight


def weights_of(frame: RowFrame, name: str) -> Numbers:
    """Return the survey weights of the rows, or refuse weights that are missing or not above 0."""
    weights = frame.numbers(name)
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise Infeasible(
            f"some weight in {name!r} is missing, or not above 0: declare missing: drop, or clean the column first."
        )
    return weights
