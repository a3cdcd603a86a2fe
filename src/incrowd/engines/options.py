"""Options of a source: how it is to be read, where its bytes alone do not tell."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class SourceOptions:
    r"""How a source is to be read; what is left out is found out, the same way every time, or has a safe default.

    `format`: one of csv, parquet, arrow, excel, statistics, sqlite, duckdb; by default the file's first bytes and its
    ending tell.  For text: `delimiter`, `encoding`, `quote` (empty: nothing is quoted), `header`, `names` (of the
    columns, where there is no header), `nulls` (how a missing value is spelled).  For Excel: `sheet`, `header`,
    `nulls`.  For databases: `table` or `query`.  For statistics files: `labels` (or codes), `encoding`, `catalog` (of
    labels, for SAS).
    """

    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    quote: str = '"'
    header: bool = True
    names: tuple[str, ...] | None = None
    nulls: tuple[str, ...] = ("",)
    sheet: str | None = None
    table: str | None = None
    query: str | None = None
    labels: bool = True
    catalog: Path | None = None


DEFAULTS = SourceOptions()
_APPLY = {
    "csv": {"delimiter", "encoding", "quote", "header", "names", "nulls"},
    "parquet": set[str](),
    "arrow": set[str](),
    "excel": {"sheet", "header", "nulls"},
    "statistics": {"labels", "encoding", "catalog"},
    "sqlite": {"table", "query"},
    "duckdb": {"table", "query"},
    "frame": set[str](),
}
_CALLED = {
    "csv": "a text file",
    "parquet": "Parquet",
    "arrow": "an Arrow file",
    "excel": "a workbook",
    "statistics": "a file of Stata, SPSS or SAS",
    "sqlite": "an SQLite file",
    "duckdb": "a DuckDB file",
    "frame": "a frame in memory",
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

    >>> with_part(DEFAULTS, "sqlite", "visits").table
    'visits'
    """
    name = "sheet" if kind == "excel" else "table"
    if getattr(options, name) not in {None, part}:
        raise InvalidParameter(f"the address and the option {name} name different ones. Give one of them.")
    return replace(options, sheet=part) if kind == "excel" else replace(options, table=part)
