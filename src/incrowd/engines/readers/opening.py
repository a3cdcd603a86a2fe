"""Opening: each format by the reader that knows it, which is loaded only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.engines.readers.question import RowSelection

if TYPE_CHECKING:
    from incrowd.core.table import SourceOptions
    from incrowd.engines.readers.reader import SourceReader


def open_reader(kind: str, path: Path, options: SourceOptions) -> SourceReader:
    """Open a file of this format (one of `formats.FORMATS`)."""
    return _OPEN[kind](path, options)


def _open_csv(path: Path, options: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.delimited import open_delimited
    from incrowd.engines.readers.dialect import DialectOptions

    tabbed = options.delimiter is None and ".tsv" in path.suffixes
    delimiter = "\t" if tabbed else options.delimiter
    wanted = DialectOptions(delimiter, options.encoding, options.quote, options.header, options.names)
    return open_delimited(path, wanted, options.nulls)


def _open_excel(path: Path, options: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.excel import open_excel

    return open_excel(path, options.sheet, header=options.header, nulls=options.nulls)


def _open_statistics(path: Path, options: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.statistics import Coding, open_statistics

    return open_statistics(path, Coding(options.labels, options.encoding, options.catalog))


def _open_sqlite(path: Path, options: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.sqlite import open_sqlite

    return open_sqlite(path, RowSelection(options.table, options.query))


def _open_duckdb(path: Path, options: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.duck import open_duckdb

    return open_duckdb(path, RowSelection(options.table, options.query))


def _open_parquet(path: Path, _: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.columnar import open_parquet

    return open_parquet(path)


def _open_arrow(path: Path, _: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.columnar import open_arrow

    return open_arrow(path)


_OPEN: dict[str, Callable[[Path, SourceOptions], SourceReader]] = {
    "csv": _open_csv,
    "parquet": _open_parquet,
    "arrow": _open_arrow,
    "excel": _open_excel,
    "statistics": _open_statistics,
    "sqlite": _open_sqlite,
    "duckdb": _open_duckdb,
}
