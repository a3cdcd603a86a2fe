"""Raw cells: a table without recoding, each value unchanged, missing values a class of their own."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from incrowd.core.cells import Cells
from incrowd.core.domain import Type
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Role
from incrowd.core.table import Engine, Rows
from incrowd.engines.local.engine import LOCAL


def as_is(rows: Rows, names: Sequence[str], engine: Engine = LOCAL) -> Cells:
    """Return the cells of these columns as stored; only their types are read.

    >>> from incrowd.engines.readers.sources import open_source
    >>> cells = as_is(open_source(pa.table({"zip": ["02139"], "pay": [1.5]})), ["zip", "pay"])
    >>> [str(recoding.column.type) for recoding in cells.recodings]
    ['text', 'decimal']
    """
    stored = engine.types(rows, names)
    # Floating-point numbers stay numbers: writing out each of them would take longer than all the rest.
    kinds = {name: Type.DECIMAL if pa.types.is_floating(stored[name]) else Type.TEXT for name in names}
    return Cells(tuple(Recoding(Column(name, Role.QUASI, kinds[name]), 0) for name in names))
