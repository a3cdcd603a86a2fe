"""Every kind of source, and how the same rows get into one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

Store = Callable[[pa.Table, Path], object]
"""Puts rows into a folder and returns what is opened there."""


def csv(table: pa.Table, folder: Path) -> Path:
    """Return a text file."""
    pyarrow.csv.write_csv(table, folder / "rows.csv")
    return folder / "rows.csv"


def parquet(table: pa.Table, folder: Path) -> Path:
    """Return one file of several row groups."""
    pq.write_table(table, folder / "rows.parquet", row_group_size=50)
    return folder / "rows.parquet"


def parquet_folder(table: pa.Table, folder: Path) -> Path:
    """Return a folder of files of different lengths, one of them empty; their names give the order."""
    whole = folder / "parts"
    whole.mkdir()
    cuts = [0, 7, 7, 130, 131, len(table)]
    for number, (start, stop) in enumerate(pairwise(cuts)):
        pq.write_table(table.slice(start, stop - start), whole / f"part-{number:05}.parquet", row_group_size=40)
    return whole


def arrow(table: pa.Table, folder: Path) -> Path:
    """Return an Arrow file."""
    pyarrow.feather.write_feather(table, folder / "rows.arrow")
    return folder / "rows.arrow"


def frame(table: pa.Table, _: Path) -> pa.Table:
    """Return the table itself."""
    return table


def duckdb(table: pa.Table, folder: Path) -> str:
    """Return a table in a DuckDB file."""
    import duckdb as database

    path = folder / "rows.duckdb"
    with database.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS FROM given")
    return f"{path}::people"


def sqlite(table: pa.Table, folder: Path) -> str:
    """Return a table in a SQLite file."""
    path = folder / "rows.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE people ({', '.join(table.column_names)})")
        marks = ", ".join("?" for _ in table.column_names)
        connection.executemany(
            f"INSERT INTO people VALUES ({marks})", [tuple(row.values()) for row in table.to_pylist()]
        )
        connection.commit()
    return f"{path}::people"


LOCAL: dict[str, Store] = {
    "frame": frame,
    "csv": csv,
    "parquet": parquet,
    "folder": parquet_folder,
    "arrow": arrow,
    "duckdb": duckdb,
    "sqlite": sqlite,
}
"""What the engine of this process reads, a server apart."""

CLUSTER: dict[str, Store] = {"folder": parquet_folder, "csv": csv}
"""What Spark reads and has an order of its own, so that positions mean the same rows everywhere."""
