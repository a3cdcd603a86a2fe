"""Sources: a file, a folder, a table in a database or a frame becomes rows that an engine can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.core.table import DEFAULTS, SourceOptions
from incrowd.engines.columns import require
from incrowd.engines.postgres import address_of, is_postgres
from incrowd.engines.readers.formats import check_applies, find_format, parquet_files, with_part
from incrowd.engines.readers.plain import plain_batch
from incrowd.errors import InvalidParameter, SourceChanged, SourceUnreadable

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.engines.readers.reader import SourceReader


_SMALL = 1 << 20


@dataclass(frozen=True)
class Stamp:
    """A file as it was when it was opened."""

    path: Path
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Look at the file, not into it."""
        found = path.stat()
        return cls(path, found.st_size, found.st_mtime_ns)


@dataclass(frozen=True)
class Source:
    """Rows in a file, a database or a frame: opened, not read, and read again in the same order as often as needed.

    A file that changes between two passes is refused: the position of a row must keep meaning the same row.
    """

    reader: SourceReader
    format: str
    address: str | None
    """Where the rows are, the same for every way to write it; None for a frame."""
    stamps: tuple[Stamp, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""
        return self.reader.names

    @property
    def rows(self) -> int | None:
        """How many rows there are, or None if only reading them would tell."""
        return self.reader.rows

    @property
    def settings(self) -> Mapping[str, str]:
        """How the source is read, as told or found; for the record."""
        return {"format": self.format, **self.reader.settings}

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found rather than told, in words for the data holder."""
        return self.reader.notes

    @property
    def small(self) -> bool:
        """Whether the rows come from files of at most a megabyte; that of other sources is not known."""
        return bool(self.stamps) and sum(stamp.size for stamp in self.stamps) <= _SMALL

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read these columns and no others, from the first row on."""
        require(self.names, columns)
        self.check_unchanged()
        return self._read(columns)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self.reader.read(columns):
            yield batch if self.format == "csv" else plain_batch(batch)  # delimited text is plain, and decoded
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Raise if a file is no longer what it was when it was opened."""
        for stamp in self.stamps:
            if not stamp.path.exists() or Stamp.of(stamp.path) != stamp:
                raise SourceChanged(f"{stamp.path} changed while it was in use. Start again when nobody writes to it.")


def open_source(source: object, options: SourceOptions = DEFAULTS) -> Source:
    r"""Open a path (as text or `Path`; `path::name` for a table or sheet in it) or a frame, without reading its rows.

    A query of a database is run, and a table of a server copied, once and here: their rows could not be had again.

    >>> import pyarrow as pa
    >>> source = open_source(pa.table({"zip": ["01234", "NO"]}))
    >>> source.names, source.rows, source.format
    (('zip',), 2, 'frame')
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("zip;age\n01234;41\n")
    ...     [batch.to_pylist() for batch in open_source(path).batches(["age", "zip"])]
    [[{'age': '41', 'zip': '01234'}]]
    """
    if not isinstance(source, (str, Path)):
        return _open_frame(source, options)
    if isinstance(source, str) and is_postgres(source):
        return _open_postgres(source, options)
    path, part = _split(source)
    failure = None
    try:
        kind = find_format(path, options.format)
        options = with_part(options, kind, part) if part else options
        check_applies(options, kind)
        stamps = tuple(Stamp.of(each) for each in _files(path, kind))
        reader = open_reader(kind, path, options)
    except OSError as error:
        failure = error.strerror or "the operating system does not say why"
    if failure is not None:
        raise SourceUnreadable(f"{path} cannot be read: {failure}.")
    inner = options.sheet or options.table or options.query
    return Source(reader, kind, path.resolve().as_posix() + (f"::{inner}" if inner else ""), stamps)


def _split(source: str | Path) -> tuple[Path, str | None]:
    text = str(source)
    path, mark, part = text.rpartition("::")
    if mark and not Path(text).exists():
        return _existing(path), part
    return _existing(text), None


def _existing(text: str) -> Path:
    if "://" in text:
        scheme = text.partition("://")[0]
        raise SourceUnreadable(
            f"{scheme} addresses are not read here. Give the path of a file or postgresql://…, or use the Spark engine."
        )
    path = Path(text).expanduser()
    if not path.exists():
        raise SourceUnreadable(f"{path} does not exist. Check the path; it is taken from {Path.cwd()}.")
    if not path.is_file() and not path.is_dir():
        raise SourceUnreadable(
            f"{path} is a stream or device, and rows are read more than once. Save it to a file first."
        )
    return path


def _files(path: Path, kind: str) -> tuple[Path, ...]:
    """Return the files the rows come from."""
    if path.is_dir():
        return parquet_files(path)
    log = path.with_name(path.name + "-wal")
    return (path, log) if kind == "sqlite" and log.exists() else (path,)


def _open_frame(frame: object, options: SourceOptions) -> Source:
    from incrowd.engines.readers.frames import open_frame

    check_applies(options, "frame")
    return Source(open_frame(frame), "frame", None)


def _open_postgres(text: str, options: SourceOptions) -> Source:
    from incrowd.engines.readers.postgres import open_postgres
    from incrowd.engines.readers.selection import RowSelection

    address = address_of(text)
    if options.format is not None:
        raise InvalidParameter("an address of PostgreSQL says what it is. Leave the option format out.")
    options = with_part(options, "postgresql", address.part) if address.part else options
    check_applies(options, "postgresql")
    reader = open_postgres(address, RowSelection(options.table, options.query))
    return Source(reader, "postgresql", reader.place)


def open_reader(kind: str, path: Path, options: SourceOptions) -> SourceReader:
    """Open a file of this format (one of `formats.FORMATS`)."""
    return _OPEN[kind](path, options)


def _open_csv(path: Path, options: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.delimited import open_delimited
    from incrowd.engines.readers.dialect import DialectOptions

    return open_delimited(path, DialectOptions.of(options, path), options.nulls)


def _open_excel(path: Path, options: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.excel import open_excel

    return open_excel(path, options)


def _open_statistics(path: Path, options: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.statistics import Coding, open_statistics

    return open_statistics(path, Coding(options.labels, options.encoding, options.catalog))


def _open_sqlite(path: Path, options: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.databases import open_sqlite
    from incrowd.engines.readers.selection import RowSelection

    return open_sqlite(path, RowSelection(options.table, options.query))


def _open_duckdb(path: Path, options: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.databases import open_duckdb
    from incrowd.engines.readers.selection import RowSelection

    return open_duckdb(path, RowSelection(options.table, options.query))


def _open_parquet(path: Path, _: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.columnar import open_parquet

    return open_parquet(path)


def _open_arrow(path: Path, _: SourceOptions) -> SourceReader:
    from incrowd.engines.readers.columnar import open_arrow

    return open_arrow(path)


_OPEN: dict[str, Callable[[Path, SourceOptions], SourceReader]] = {
    "csv": _open_csv,
    "parquet": _open_parquet,
    "arrow": _open_arrow,
    "excel": _open_excel,
    "statistics": _open_statistics,
    "sqlite": _open_sqlite,
    "duckdb": _open_duckdb,
}
