"""The smallest equivalence class of a written table, counted from the file alone."""

from __future__ import annotations

import glob
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.engines.columns import quote

_MEMORY = "256MB"
_SMALL_ROWS, _SMALL_TEXT = 200_000, 1 << 24  # these surely fit into memory; both ways give the same number


def smallest_class(path: Path, columns: tuple[str, ...]) -> int | None:
    """Return how often the rarest tuple over `columns` occurs in a Parquet, CSV or TSV file; None if there are no rows.

    The code that counts is independent of the code that released: Arrow in memory for a small file, DuckDB out of core
    for a large one.  Without DuckDB it is Arrow too: a release that was charged must not fail for a missing package.
    """
    in_memory = _is_small(path) or not _has_duckdb()
    return (_in_memory if in_memory else _out_of_core)(path, columns) or None


def _is_small(path: Path) -> bool:
    """Whether a file surely fits in memory: by the number of rows in its footer, or by its bytes of text."""
    if path.suffix == ".parquet":
        from pyarrow import parquet as pq

        return bool(pq.read_metadata(path).num_rows <= _SMALL_ROWS)
    return path.stat().st_size <= _SMALL_TEXT


def _has_duckdb() -> bool:
    try:
        import incrowd.engines.spill  # noqa: F401 - it needs fsspec, as DuckDB's extra does
    except ImportError:
        return False
    return True


def _in_memory(path: Path, columns: tuple[str, ...]) -> int | None:
    table = _read(path).select(list(columns))
    smallest: int | None = pc.min(table.group_by(list(columns)).aggregate([([], "count_all")])["count_all"]).as_py()
    return smallest


def _read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        from pyarrow import parquet as pq

        with pq.ParquetFile(path) as file:
            return file.read()
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True)
    with csv.open_csv(path, parse_options=parse) as reader:
        names = reader.schema.names
    texts = csv.ConvertOptions(
        column_types={name: pa.string() for name in names},
        strings_can_be_null=True,
        null_values=[""],  # and not "NA" or "null", which may be values
        quoted_strings_can_be_null=False,
    )
    return csv.read_csv(path, parse_options=parse, convert_options=texts)


def _out_of_core(path: Path, columns: tuple[str, ...]) -> int | None:
    from incrowd.engines.spill import memory_database

    place = glob.escape(str(path))  # DuckDB reads * in a path as a wildcard
    names = ", ".join(map(quote, columns))
    with memory_database(_MEMORY) as connection:
        rows = (
            connection.read_parquet(place)
            if path.suffix == ".parquet"
            else connection.read_csv(
                place,
                header=True,
                all_varchar=True,
                allow_quoted_nulls=False,
                quotechar='"',
                escapechar='"',
                delimiter=_delimiter(path),
            )
        )
        counted = rows.aggregate("count(*) AS n", names).aggregate("min(n)").fetchall()
    smallest = counted[0][0] if counted else None
    return None if smallest is None else int(smallest)


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix == ".tsv" else ","
