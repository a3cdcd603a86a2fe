"""Formats: what a file is, by its first bytes or else by its ending; and which options apply to it."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from incrowd.core.table import SourceOptions
from incrowd.engines.readers.statistics import READERS
from incrowd.errors import InvalidParameter, SourceUnreadable

FORMATS = ("csv", "parquet", "arrow", "excel", "statistics", "sqlite", "duckdb")
PACKED = (".gz", ".bz2", ".zst", ".lz4")
_ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), "arrow"),
    **dict.fromkeys((".xlsx", ".xlsm"), "excel"),
    **dict.fromkeys(READERS, "statistics"),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db", ".gpkg"), "sqlite"),
    **dict.fromkeys((".duckdb", ".ddb"), "duckdb"),
}
_MARKS = (
    (0, b"PAR1", "parquet"),
    (0, b"ARROW1", "arrow"),
    (0, b"SQLite format 3\0", "sqlite"),
    (8, b"DUCK", "duckdb"),
)
_INSTEAD = {
    ".xls": "Save it as .xlsx or CSV.",
    ".ods": "Save it as .xlsx or CSV.",
    ".json": "Write it as CSV or Parquet.",
    ".rds": "Write it as CSV or Parquet.",
    ".zip": "Unpack it first.",
}


def find_format(path: Path, told: str | None) -> str:
    """Return the format of an existing file or folder: as told, by its first bytes, or by its ending.

    >>> find_format(Path("anything"), "csv")
    'csv'
    """
    if told is not None:
        if told not in FORMATS:
            raise InvalidParameter(f"format {told!r} is not known. Known are: {', '.join(FORMATS)}.")
        return told
    if path.is_dir():
        return "parquet"
    with path.open("rb") as file:
        start = file.read(16)
    marked = next((kind for at, mark, kind in _MARKS if start[at:].startswith(mark)), None)
    ending = _ending(path)
    if marked is not None:
        return marked
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    advice = _INSTEAD.get(ending, f"If you know it, say format: one of {', '.join(FORMATS)}.")
    raise SourceUnreadable(f"{path} is of no format that is read here. {advice}")


def _ending(path: Path) -> str:
    name = path.name.lower()
    packed = next((ending for ending in PACKED if name.endswith(ending)), "")
    return Path(name.removesuffix(packed)).suffix


def parquet_files(folder: Path) -> tuple[Path, ...]:
    """Return the Parquet files of a folder, sorted by name, hidden ones left out."""
    found = sorted(each for each in folder.rglob("*.parquet") if not _hidden(each.relative_to(folder)))
    if not found:
        raise SourceUnreadable(f"the folder {folder} holds no *.parquet file. Name the file, or the right folder.")
    for each in found:
        if any("=" in part for part in each.relative_to(folder).parts[:-1]):
            raise SourceUnreadable(
                f"the folder {folder} keeps a column in the names of its subfolders, which would be lost. Write the "
                "table again without partitions."
            )
    return tuple(found)


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


_SPELLING = {"decimal", "thousands", "dates", "nulls", "header", "header_row"}
_APPLY = {
    "csv": {"delimiter", "encoding", "quote", "names", *_SPELLING},
    "parquet": set[str](),
    "arrow": set[str](),
    "excel": {"sheet", *_SPELLING},
    "statistics": {"labels", "encoding", "catalog"},
    "sqlite": {"table", "query"},
    "duckdb": {"table", "query"},
    "postgresql": {"table", "query"},
    "frame": set[str](),
    "spark table": {"table"},
    "spark orc": set[str](),
    "spark json": set[str](),
}
_CALLED = {
    "csv": "a text file",
    "parquet": "Parquet",
    "arrow": "an Arrow file",
    "excel": "a workbook",
    "statistics": "a file of Stata, SPSS or SAS",
    "sqlite": "an SQLite file",
    "duckdb": "a DuckDB file",
    "postgresql": "a PostgreSQL database",
    "frame": "a frame in memory",
    "spark table": "a table of Spark",
    "spark orc": "ORC",
    "spark json": "JSON",
}


def check_applies(options: SourceOptions, kind: str) -> None:
    """Refuse an option that would be ignored.

    >>> check_applies(SourceOptions(sheet="2024"), "csv")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: the option sheet means nothing for a text file. Leave it out.
    """
    for field in fields(options):
        told = getattr(options, field.name) != field.default
        if told and field.name not in {"format", "types", "guesses"} and field.name not in _APPLY[kind]:
            raise InvalidParameter(f"the option {field.name} means nothing for {_CALLED[kind]}. Leave it out.")


def with_part(options: SourceOptions, kind: str, part: str) -> SourceOptions:
    """Return the options with the sheet or table that an address `path::part` names.

    >>> with_part(SourceOptions(), "sqlite", "visits").table
    'visits'
    """
    name = "sheet" if kind == "excel" else "table"
    if getattr(options, name) not in {None, part}:
        raise InvalidParameter(f"the address and the option {name} name different ones. Give one of them.")
    return replace(options, sheet=part) if kind == "excel" else replace(options, table=part)
