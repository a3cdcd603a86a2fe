"""Opening on a cluster: an address, the name of a table or a Spark frame becomes rows."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from incrowd.core.table import IN_ENGINE
from incrowd.engines.postgres import is_postgres
from incrowd.engines.readers.sources import ENDINGS, PACKED, check_applies, ending_of
from incrowd.engines.spark.origins import ParquetFiles, open_table, open_texts
from incrowd.engines.spark.rows import SparkRows
from incrowd.engines.spark.shared_disk import shared_parquet
from incrowd.engines.spark.task import explained
from incrowd.errors import InvalidParameter, SourceUnreadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from incrowd.core.table import SourceOptions

_ENDINGS = {ending: kind for ending, kind in ENDINGS.items() if kind in {"csv", "parquet"}} | {
    ".orc": "orc",
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
}
_FORMATS = ("parquet", "csv", "orc", "json", "table")
_TABLE = re.compile(r"[\w`]+(\.[\w`]+){0,2}")
_WILD = re.compile(r"[]\[{}*?\\]")


def open_rows(session: SparkSession, source: object, options: SourceOptions, id_column: str | None) -> SparkRows:
    """Open a path or URI, the name of a table, or a Spark frame; only the first lines of a text file are read."""
    if options.clean or options.totals:
        raise InvalidParameter(
            "Spark neither cleans cells nor leaves out sums: use --engine local, or leave out clean and totals."
        )
    if not isinstance(source, str | Path):
        return _open_frame(source, options, id_column)
    if is_postgres(source):
        raise InvalidParameter("a PostgreSQL database is read by the local engine, not by Spark. Use --engine local.")
    address = str(source).removeprefix(IN_ENGINE)
    if "::" in address:
        raise InvalidParameter(
            "a table or sheet in a file is read by the local engine, not by Spark. Use --engine local."
        )
    kind = "table" if address != str(source) else kind_of(address, options.format)
    check_applies(options, f"spark {kind}" if kind in {"table", "orc", "json"} else kind)
    if kind == "table":
        with explained():
            name = options.table or address
            return _table_rows(session.table(name), id_column, name, "table")
    return _open_files(session, _place(address), kind, options, id_column)


def kind_of(address: str, declared: str | None) -> str:
    """Return the kind of source: as declared, by its ending, or a table by its name; a folder holds Parquet files.

    >>> kind_of("s3a://bucket/visits", None), kind_of("visits.csv.gz", None), kind_of("::hospital.visits", None)
    ('parquet', 'csv', 'table')
    """
    if address.startswith("::"):
        return "table"
    if declared is not None:
        if declared not in _FORMATS:
            raise InvalidParameter(
                f"the Spark engine reads {', '.join(_FORMATS)}, not {declared!r}. Use the local engine."
            )
        return declared
    ending = ending_of(address.rstrip("/"), (*PACKED, ".snappy"))
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if "/" not in address and _TABLE.fullmatch(address) and not Path(address).exists():
        return "table"
    if ending and Path(address).is_file():
        raise SourceUnreadable(
            f"{address} has no format that the Spark engine reads: {', '.join(_FORMATS)}. Declare its format, or use "
            "the local engine."
        )
    return "parquet"


def _open_files(
    session: SparkSession, place: str, kind: str, options: SourceOptions, id_column: str | None
) -> SparkRows:
    if kind in {"csv", "parquet"} and id_column is not None:
        raise InvalidParameter("rows of files are identified by their position: leave the id column out.")
    with explained():
        load = partial(_reader(session, kind).load, _spelled(place))
        if kind == "csv":
            texts = open_texts(load, options)
            return SparkRows(texts, place, {"format": "csv", **texts.first.settings}, texts.first.notes)
        if kind == "parquet":
            files = shared_parquet(session, ParquetFiles(load), place) or ParquetFiles(load)
            return SparkRows(_with_columns(files), place, {"format": "parquet"}, counted=True)
        return _table_rows(load(), id_column, place, kind)


def _reader(session: SparkSession, kind: str) -> DataFrameReader:
    """Return a reader that skips nothing: a broken file, line or value is an error."""
    reader = session.read.option("ignoreCorruptFiles", "false").option("ignoreMissingFiles", "false")
    if kind == "json":
        reader = reader.option("primitivesAsString", "true").option("mode", "FAILFAST")
    return reader.format("binaryFile" if kind == "csv" else kind)


def _with_columns(files: ParquetFiles) -> ParquetFiles:
    if not files.names:
        raise SourceUnreadable("the Parquet files at this address have no columns. Is this the right folder?")
    return files


def _open_frame(frame: object, options: SourceOptions, id_column: str | None) -> SparkRows:
    from pyspark.sql import DataFrame

    check_applies(options, "frame")
    if not isinstance(frame, DataFrame):
        raise SourceUnreadable(
            f"a {type(frame).__name__} is nothing that Spark reads. Pass an address, a table's name or a Spark frame."
        )
    with explained():
        zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
        moments = [name for name, kind in frame.dtypes if kind == "timestamp"]
        if moments and zone not in {"UTC", "Etc/UTC", "Z", "GMT"}:
            raise InvalidParameter(
                f"column {moments[0]} holds timestamps, whose day depends on the session's time zone. Set "
                "spark.sql.session.timeZone to UTC."
            )
        _require_distinct(frame)
        return _table_rows(frame, id_column, None, "frame")


def _require_distinct(frame: DataFrame) -> None:
    """Raise if the frame's own session would take two of its columns for one."""
    alike = len({name.lower() for name in frame.columns}) < len(frame.columns)
    if alike and frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        raise InvalidParameter(
            "two columns of this frame differ only in upper and lower case, which its session ignores. Rename one of "
            "them, or set spark.sql.caseSensitive to true."
        )


def _table_rows(frame: DataFrame, id_column: str | None, address: str | None, kind: str) -> SparkRows:
    notes = () if id_column is None else (f"the column {id_column} identifies rows",)
    return SparkRows(open_table(frame, id_column), address, {"format": kind}, notes)


def _place(address: str) -> str:
    """Return the address as the local engine writes it: an absolute path on this machine, else unchanged.

    >>> _place("file:///data/my%20visits"), _place("s3a://bucket/visits")
    ('/data/my visits', 's3a://bucket/visits')
    """
    parts = urlsplit(address)
    if parts.scheme == "file":
        return Path(unquote(parts.path)).as_posix()
    if "://" in address:
        return address
    path = Path(address).expanduser()
    if not path.exists():
        raise SourceUnreadable(f"{path} does not exist. Check the path; it is relative to {Path.cwd()}.")
    return path.resolve().as_posix()


def _spelled(place: str) -> str:
    r"""Return an address as Spark reads it: it decodes nothing, and takes some characters for wildcards.

    >>> print(_spelled("/data/my visits [1]"), _spelled("s3a://bucket/visits/*.parquet"))
    file:///data/my visits \[1\] s3a://bucket/visits/*.parquet
    """
    return place if "://" in place else "file://" + _WILD.sub(r"\\\g<0>", place)
