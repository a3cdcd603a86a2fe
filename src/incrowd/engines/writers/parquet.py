"""Parquet files that hold the released values and nothing else; the same values give the same bytes."""

from __future__ import annotations

from pathlib import Path

from pyarrow import parquet as pq

from incrowd.engines.writers.rebuilt import Released, bare, pieces, rebuild

ROW_GROUP = 1 << 20


def write_parquet(data: Released, path: Path) -> None:
    """Write the data; row groups, dictionaries and statistics are made anew from its values.

    No metadata of other programs, no stored Arrow schema, no time and no path gets into the file.  Values in a
    dictionary are sorted, so that the order of codes tells nothing about the order of the input.

    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow as pa
    >>> with TemporaryDirectory() as folder:
    ...     write_parquet(pa.table({"zip": ["01234"]}, metadata={"note": "internal"}), Path(folder, "t.parquet"))
    ...     pq.read_metadata(Path(folder, "t.parquet")).metadata is None
    True
    """
    schema = bare(data.schema)
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1, store_schema=False) as file:
        for piece in pieces(data, ROW_GROUP):
            file.write_table(rebuild(piece).cast(schema), row_group_size=ROW_GROUP)
