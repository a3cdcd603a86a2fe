"""Files: how published tables are named, and what can be read off them without an engine."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def columns_of(file: Path) -> tuple[str, ...]:
    """Return the columns of a published file, in order."""
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        return tuple(pq.read_schema(file).names)
    with file.open(encoding="utf-8", newline="") as text:
        return tuple(next(csv.reader(text, delimiter=_delimiter(file)), []))


def values_of(file: Path, column: str) -> Iterator[Any]:
    """Return the values of one column of a published file, some of them perhaps once only."""
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(columns=[column]):
                yield from batch.column(0).unique().to_pylist()
        return
    with file.open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text, delimiter=_delimiter(file)):
            yield row[column]


def _delimiter(file: Path) -> str:
    return "\t" if file.suffix == ".tsv" else ","
