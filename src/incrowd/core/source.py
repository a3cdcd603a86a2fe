"""Source: how the rows of an address or a frame are to be read, where their bytes alone do not tell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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

IN_ENGINE = "::"
"""An address that starts like this names a table of the engine's own catalog: `::sales.visits`."""
