"""Parquet: files that a database reads itself, since they store each column as it is declared."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from incrowd.core.domain import Type
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Opened
from incrowd.engines.columns import quote
from incrowd.engines.readers.columnar import Parquet
from incrowd.engines.readers.sources import Source
from incrowd.engines.sql.engine import TextLimit, longest_text

_WHOLE = (pa.types.is_int8, pa.types.is_int16, pa.types.is_int32, pa.types.is_int64)
_SHORT = (pa.types.is_uint8, pa.types.is_uint16, pa.types.is_uint32)


def native_query(source: Opened, schema: Schema) -> tuple[str, tuple[str, ...]] | None:
    """Return a query of the files that gives the declared columns in their declared types, and the files.

    None if some column is stored in another way than it is declared: then its values are interpreted one by one, as for
    every other source.
    """
    if not isinstance(source, Source) or not isinstance(source.reader, Parquet):
        return None
    types = source.reader.types
    selected = [_column(column, types.get(column.name), longest_text(column, schema)) for column in schema.columns]
    if any(each is None for each in selected):
        return None
    paths = tuple(path.resolve().as_posix() for path in source.reader.paths)
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    wanted = ", ".join(filter(None, selected))
    return f"SELECT {wanted} FROM read_parquet([{listed}], hive_partitioning = false)", paths  # noqa: S608 - quoted


def _column(column: Column, kind: pa.DataType | None, limit: TextLimit | None) -> str | None:
    if kind is None:
        return None
    name = quote(column.name)
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    wrapped = _SELECT[column.type](name, kind)
    if wrapped is None:
        return None
    return f"{wrapped if limit is None else limit.sql(wrapped)} AS {name}"


def _integer(name: str, kind: pa.DataType) -> str | None:
    return f"CAST({name} AS BIGINT)" if any(test(kind) for test in (*_WHOLE, *_SHORT)) else None


def _decimal(name: str, kind: pa.DataType) -> str | None:
    if pa.types.is_float64(kind):
        return f"CASE WHEN isfinite({name}) THEN {name} END"
    return f"CAST({name} AS DOUBLE)" if any(test(kind) for test in (*_WHOLE, *_SHORT)) else None


def _text(name: str, kind: pa.DataType) -> str | None:
    return name if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def _date(name: str, kind: pa.DataType) -> str | None:
    if pa.types.is_date32(kind):
        return f"CASE WHEN isfinite({name}) THEN {name} END"
    return None


def _boolean(name: str, kind: pa.DataType) -> str | None:
    return name if pa.types.is_boolean(kind) else None


_SELECT: dict[Type, Callable[[str, pa.DataType], str | None]] = {
    Type.INTEGER: _integer,
    Type.DECIMAL: _decimal,
    Type.TEXT: _text,
    Type.DATE: _date,
    Type.BOOLEAN: _boolean,
}
