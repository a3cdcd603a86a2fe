"""Choose: which engine for which source, and the table that the two make with a schema."""

from __future__ import annotations

from incrowd.core.schema import Schema
from incrowd.core.table import Table
from incrowd.engines.columns import require
from incrowd.engines.local import LocalEngine
from incrowd.engines.options import DEFAULTS, SourceOptions
from incrowd.engines.sources import open_source


def open_table(source: object, schema: Schema, options: SourceOptions = DEFAULTS) -> Table:
    """Open a source under a schema, on the engine where its rows live; no row is read.

    Files and frames are read in this process.

    >>> import pyarrow as pa
    >>> from incrowd.core.schema import Column, Role
    >>> table = open_table(pa.table({"zip": ["01234"]}), Schema((Column("zip", Role.QUASI),)))
    >>> type(table.engine).__name__, table.rows.names
    ('LocalEngine', ('zip',))
    """
    rows = open_source(source, options)
    require(rows.names, schema.names)
    return Table(schema, rows, LocalEngine())
