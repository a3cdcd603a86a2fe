"""Cells: every tuple that can be released, known from the schema and the levels before a row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.keys import Keys, Layout
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Schema
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Cells:
    """The tuples over some columns, each at its level.

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.schema import Column
    >>> schema = Schema((Column("sex", hierarchy=Flat(Categories(("F", "M")))), Column("zip")))
    >>> Cells.of(schema, {"zip": 1}).size      # F, M, other and missing; every zip is `*`
    4
    >>> Cells.of(schema, {}).size is None      # any zip at all
    True
    """

    recodings: tuple[Recoding, ...]

    def __post_init__(self) -> None:
        if not self.recodings:
            raise InvalidParameter("a release needs at least one column that is not an identifier.")
        if len(set(self.names)) < len(self.names):
            raise InvalidParameter("a column stands in a cell once: name each column once.")

    @classmethod
    def of(cls, schema: Schema, levels: Mapping[str, int], columns: Sequence[str] | None = None) -> Cells:
        """Return the cells of all released columns, or of some of them; a column without a level is at level 0."""
        for name in (*levels, *(columns or ())):
            if schema[name] in schema.unreleased:
                raise InvalidParameter(f"{name!r} is an identifier: it is never released, at no level.")
        chosen = schema.released if columns is None else tuple(schema[name] for name in columns)
        return cls(tuple(Recoding(column, levels.get(column.name, int(column.pseudonymous))) for column in chosen))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(recoding.column.name for recoding in self.recodings)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that must be read."""
        return tuple(recoding.column.name for recoding in self.recodings if recoding.needs_rows)

    @property
    def size(self) -> int | None:
        """How many cells there are, or None if some column is at an open level."""
        sizes = [None if recoding.classes is None else len(recoding.classes) for recoding in self.recodings]
        finite = [size for size in sizes if size is not None]
        return math.prod(finite) if len(finite) == len(sizes) else None

    @property
    def layout(self) -> Layout:
        """How the tuples are laid out in keys; only where no column is at an open level."""
        sizes = []
        for recoding in self.recodings:
            if recoding.classes is None:
                raise InvalidParameter(
                    f"the cells of {recoding.column.name!r} at level {recoding.level} cannot be numbered from the "
                    "declaration: declare categories or bounds, or use a higher level."
                )
            sizes.append(len(recoding.classes))
        return Layout(tuple(sizes))

    def encode(self, batch: pa.RecordBatch) -> Keys:
        """Return the keys of the rows that are not left out; only where no column is at an open level."""
        layout = self.layout
        codes = [
            r.codes(batch.column(r.column.name)) if r.needs_rows else np.zeros(len(batch), np.int32)
            for r in self.recodings
        ]
        inside = np.all([column >= 0 for column in codes], axis=0)
        return layout.pack([column[inside] for column in codes])
