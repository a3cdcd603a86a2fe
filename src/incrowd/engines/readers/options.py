"""Options of a source, held against its kind: none is ignored."""

from __future__ import annotations

from dataclasses import fields, replace

from incrowd.core.table import SourceOptions
from incrowd.errors import InvalidParameter

_APPLY = {
    "csv": {"delimiter", "encoding", "quote", "header", "names", "nulls"},
    "parquet": set[str](),
    "arrow": set[str](),
    "excel": {"sheet", "header", "nulls"},
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
        if told and field.name != "format" and field.name not in _APPLY[kind]:
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
