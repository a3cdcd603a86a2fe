"""Opening on a cluster: an address, the name of a table or a frame of Spark becomes rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from incrowd.core.table import IN_ENGINE
from incrowd.engines.postgres import is_postgres
from incrowd.engines.readers.formats import check_applies
from incrowd.engines.spark.failures import explained
from incrowd.engines.spark.origins import ParquetFiles, open_table, open_texts
from incrowd.engines.spark.rows import SparkRows
from incrowd.errors import InvalidParameter, SourceUnreadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from incrowd.core.table import SourceOptions

_ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".orc": "orc",
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
}
_FORMATS = ("parquet", "csv", "orc", "json", "table")
_TABLE = re.compile(r"[\w`]+(\.[\w`]+){0,2}")
_WILD = re.compile(r"[]\[{}*?\\]")
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy")


def open_rows(session: SparkSession, source: object, options: SourceOptions, id_column: str | None) -> SparkRows:
    """Open a path or URI, the name of a table, or a frame of Spark; no row is read but the first lines of text."""
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
            frame = session.table(options.table or address)
            return SparkRows(
                open_table(frame, id_column), options.table or address, {"format": "table"}, _told(id_column)
            )
    return _open_files(session, _place(address), kind, options, id_column)


def kind_of(address: str, told: str | None) -> str:
    """Return what lies at an address: as told, by its ending, or the name of a table; a folder holds Parquet files.

    >>> kind_of("s3a://bucket/visits", None), kind_of("visits.csv.gz", None), kind_of("::hospital.visits", None)
    ('parquet', 'csv', 'table')
    """
    if address.startswith("::"):
        return "table"
    if told is not None:
        if told not in _FORMATS:
            raise InvalidParameter(f"the Spark engine reads {', '.join(_FORMATS)}, not {told!r}. Use the local engine.")
        return told
    name = address.lower().rstrip("/")
    packed = next((ending for ending in _PACKED if name.endswith(ending)), "")
    ending = Path(name.removesuffix(packed)).suffix
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if "/" not in address and _TABLE.fullmatch(address) and not Path(address).exists():
        return "table"
    if ending and Path(address).is_file():
        raise SourceUnreadable(
            f"{address} is of no format that the Spark engine reads: {', '.join(_FORMATS)}. Say format, or use the "
            "local engine."
        )
    return "parquet"


def _open_files(
    session: SparkSession, place: str, kind: str, options: SourceOptions, id_column: str | None
) -> SparkRows:
    if kind in {"csv", "parquet"} and id_column is not None:
        raise InvalidParameter("files have an order by which rows are told apart: leave the id column out.")
    with explained():
        load = partial(_reader(session, kind).load, _spelled(place))
        if kind == "csv":
            texts = open_texts(load, options)
            return SparkRows(texts, place, {"format": "csv", **texts.first.settings}, texts.first.notes)
        if kind == "parquet":
            return SparkRows(_parquet(load), place, {"format": "parquet"}, counted=True)
        return SparkRows(open_table(load(), id_column), place, {"format": kind}, _told(id_column))


def _reader(session: SparkSession, kind: str) -> DataFrameReader:
    """Return a reader that passes over nothing: a broken file, line or value is an error."""
    reader = session.read.option("ignoreCorruptFiles", "false").option("ignoreMissingFiles", "false")
    if kind == "json":
        reader = reader.option("primitivesAsString", "true").option("mode", "FAILFAST")
    return reader.format("binaryFile" if kind == "csv" else kind)


def _parquet(load: Callable[[], DataFrame]) -> ParquetFiles:
    files = ParquetFiles(load)
    if not files.names:
        raise SourceUnreadable("the Parquet files at this address have no columns. Is this the right folder?")
    return files


def _open_frame(frame: object, options: SourceOptions, id_column: str | None) -> SparkRows:
    from pyspark.sql import DataFrame

    check_applies(options, "frame")
    if not isinstance(frame, DataFrame):
        raise SourceUnreadable(
            f"a {type(frame).__name__} is nothing that Spark reads: give an address, a table's name or its frame."
        )
    with explained():
        zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
        moments = [name for name, kind in frame.dtypes if kind == "timestamp"]
        if moments and zone not in {"UTC", "Etc/UTC", "Z", "GMT"}:
            raise InvalidParameter(
                f"column {moments[0]} holds moments, whose day depends on the session's time zone. Set "
                "spark.sql.session.timeZone to UTC."
            )
        _require_distinct(frame)
        return SparkRows(open_table(frame, id_column), None, {"format": "frame"}, _told(id_column))


def _require_distinct(frame: DataFrame) -> None:
    """Raise if the frame's own session could not tell two of its columns apart."""
    alike = len({name.lower() for name in frame.columns}) < len(frame.columns)
    if alike and frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        raise InvalidParameter(
            "two columns of this frame have the same name but for upper and lower case, which its session takes for "
            "one. Give one of them another name, or set spark.sql.caseSensitive to true."
        )


def _told(id_column: str | None) -> tuple[str, ...]:
    return (f"rows are told apart by the column {id_column}",) if id_column is not None else ()


def _place(address: str) -> str:
    """Return where a source is, as the local engine writes it: an absolute path of this machine, else the address.

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
        raise SourceUnreadable(f"{path} does not exist. Check the path; it is taken from {Path.cwd()}.")
    return path.resolve().as_posix()


def _spelled(place: str) -> str:
    r"""Return how Spark wants a place to be written: it decodes nothing, and takes some characters for wildcards.

    >>> print(_spelled("/data/my visits [1]"), _spelled("s3a://bucket/visits/*.parquet"))
    file:///data/my visits \[1\] s3a://bucket/visits/*.parquet
    """
    return place if "://" in place else "file://" + _WILD.sub(r"\\\g<0>", place)
