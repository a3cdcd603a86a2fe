"""The smallest class of a written table: how often its rarest tuple occurs, read from the file and nothing else."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

_MEMORY = "256MB"


def smallest_class(path: Path, columns: tuple[str, ...]) -> int | None:
    """Return how often the rarest tuple over `columns` occurs in a Parquet, CSV or TSV file; None if there are no rows.

    Groups are counted by another engine than the one that made them, and out of core, so memory stays bounded.
    """
    import duckdb

    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    with TemporaryDirectory() as scratch:
        settings: dict[str, str | bool | int | float | list[str]] = {"memory_limit": _MEMORY, "temp_directory": scratch}
        with duckdb.connect(config=settings) as connection:
            rows = (
                connection.read_parquet(str(path))
                if path.suffix == ".parquet"
                else connection.read_csv(
                    str(path), header=True, all_varchar=True, delimiter="\t" if path.suffix == ".tsv" else ","
                )
            )
            counted = rows.aggregate("count(*) AS n", names) if columns else rows.aggregate("count(*) AS n")
            found = counted.aggregate("min(n)").fetchall()
    smallest = found[0][0] if found else None
    return None if not smallest else int(smallest)
