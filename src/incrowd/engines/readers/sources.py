"""Sources: a file, a folder, a table in a database or a frame becomes rows that an engine can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.core.table import DEFAULTS, Rows, SourceOptions
from incrowd.engines.columns import require
from incrowd.engines.postgres import address_of, is_postgres
from incrowd.engines.readers.plain import plain_batch
from incrowd.engines.readers.spelling import UNCLEANED, ColumnCleaner
from incrowd.engines.regular_file import open_regular
from incrowd.engines.statistics_files import READERS
from incrowd.engines.worker import count_file, lift_limits
from incrowd.errors import InvalidParameter, SourceChanged, SourceUnreadable

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.engines.readers.reader import SourceReader
    from incrowd.engines.readers.remote import Spool

FORMATS = ("csv", "parquet", "arrow", "excel", "statistics", "sqlite", "duckdb")
PACKED = (".gz", ".bz2", ".zst", ".lz4")
ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), "arrow"),
    **dict.fromkeys((".xlsx", ".xlsm"), "excel"),
    **dict.fromkeys(READERS, "statistics"),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db", ".gpkg"), "sqlite"),
    **dict.fromkeys((".duckdb", ".ddb"), "duckdb"),
}
_MARKS = ((0, b"PAR1", "parquet"), (0, b"ARROW1", "arrow"), (0, b"SQLite format 3\0", "sqlite"), (8, b"DUCK", "duckdb"))
_INSTEAD = {
    ".xls": "Save it as .xlsx or CSV.",
    ".ods": "Save it as .xlsx or CSV.",
    ".json": "Write it as CSV or Parquet.",
    ".rds": "Write it as CSV or Parquet.",
    ".zip": "Unpack it first.",
}


def find_format(path: Path, declared: str | None) -> str:
    """Return the format of an existing file or folder: as declared, by its first bytes, or by its ending.

    >>> find_format(Path("anything"), "csv")
    'csv'
    """
    if declared is not None:
        if declared not in FORMATS:
            raise InvalidParameter(f"format {declared!r} is not known. Known are: {', '.join(FORMATS)}.")
        return declared
    if path.is_dir():
        return "parquet"
    with open_regular(path, through_link=True) as file:
        start = file.read(16)
    marked = next((kind for at, mark, kind in _MARKS if start[at:].startswith(mark)), None)
    ending = ending_of(path.name)
    if marked is not None:
        return marked
    if ending in ENDINGS:
        return ENDINGS[ending]
    advice = _INSTEAD.get(ending, f"If you know it, write format: one of {', '.join(FORMATS)}.")
    raise SourceUnreadable(f"{path} has no format that is read here. {advice}")


def ending_of(name: str, packed: tuple[str, ...] = PACKED) -> str:
    """Return the ending of a name without that of its compression, if it is one of `packed`.

    >>> ending_of("Visits.CSV.gz")
    '.csv'
    """
    name = name.lower()
    compression = next((ending for ending in packed if name.endswith(ending)), "")
    return Path(name.removesuffix(compression)).suffix


def parquet_files(folder: Path) -> tuple[Path, ...]:
    """Return the Parquet files of a folder, sorted by name, hidden ones left out."""
    files = sorted(file for file in folder.rglob("*.parquet") if not _hidden(file.relative_to(folder)))
    if not files:
        raise SourceUnreadable(f"the folder {folder} holds no *.parquet file. Name the file, or the right folder.")
    if not all(file.is_file() for file in files):
        raise SourceUnreadable(f"the folder {folder} contains a device, a pipe or a folder named like a Parquet file.")
    return tuple(files)


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


_SPELLING = {"decimal", "thousands", "dates", "nulls", "totals", "header", "header_row"}
_KINDS = {
    "csv": ("a text file", {"delimiter", "encoding", "quote", "names", *_SPELLING}),
    "parquet": ("Parquet", set[str]()),
    "arrow": ("an Arrow file", set[str]()),
    "excel": ("a workbook", {"sheet", *_SPELLING}),
    "statistics": ("a file of Stata, SPSS or SAS", {"labels", "encoding", "catalog"}),
    "sqlite": ("an SQLite file", {"table", "query"}),
    "duckdb": ("a DuckDB file", {"table", "query"}),
    "postgresql": ("a PostgreSQL database", {"table", "query"}),
    "frame": ("a frame in memory", set[str]()),
    "spark table": ("a table of Spark", {"table"}),
    "spark orc": ("ORC", set[str]()),
    "spark json": ("JSON", set[str]()),
}
"""The kinds of sources in words, and the options that apply to each."""


def check_applies(options: SourceOptions, kind: str) -> None:
    """Refuse an option that would be ignored.

    >>> check_applies(SourceOptions(sheet="2024"), "csv")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: the option sheet means nothing for a text file. Leave it out.
    """
    words, applicable = _KINDS[kind]
    for field in fields(options):
        declared = getattr(options, field.name) != field.default
        if declared and field.name not in {"format", "types", "clean", "guesses", *applicable}:
            raise InvalidParameter(f"the option {field.name} means nothing for {words}. Leave it out.")


def with_part(options: SourceOptions, kind: str, part: str) -> SourceOptions:
    """Return the options with the sheet or table that an address `path::part` names.

    >>> with_part(SourceOptions(), "sqlite", "visits").table
    'visits'
    """
    name = "sheet" if kind == "excel" else "table"
    if getattr(options, name) not in {None, part}:
        raise InvalidParameter(f"the address and the option {name} differ. Use one of them.")
    return replace(options, sheet=part) if kind == "excel" else replace(options, table=part)


_SMALL = 1 << 20  # bytes: a file so small is digested rather than trusted by its date
_CLEANING = ("csv", "excel")
"""The formats whose readers clean cells before they read numbers in the source's spelling."""


@dataclass(frozen=True)
class Stamp:
    """A file as it was when it was opened."""

    path: Path
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Return the stamp of a file, without reading it."""
        status = path.stat()
        return cls(path, status.st_size, status.st_mtime_ns)

    def check(self) -> None:
        """Raise if the file changed since."""
        if not self.path.exists() or Stamp.of(self.path) != self:
            raise SourceChanged(f"{self.path} changed while it was in use. Start again when nobody writes to it.")


@dataclass(frozen=True)
class Source:
    """Rows in a file, a database or a frame: opened, then read in the same order as often as needed.

    A file that changes between two passes is refused: the position of a row must keep meaning the same row.
    """

    reader: SourceReader
    format: str
    address: str | None
    """Where the rows are, in one canonical form; None for a frame."""
    stamps: tuple[Stamp, ...] = ()
    cleaned: ColumnCleaner = UNCLEANED
    """Rewrites cells of formats that do not do so themselves, as text files and workbooks do."""
    version: str = ""
    """The version of a copied source."""
    held: object = None
    """What a copy lives by: it ends with it."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.reader.names

    @property
    def rows(self) -> int | None:
        return self.reader.rows

    @property
    def settings(self) -> Mapping[str, str]:
        pinned = {"version": self.version} if self.version else {}
        return {"format": self.format, **pinned, **self.reader.settings}

    @property
    def notes(self) -> tuple[str, ...]:
        return self.reader.notes

    @property
    def small(self) -> bool:
        """Whether the rows come from files of at most a megabyte; false for sources of unknown size."""
        return bool(self.stamps) and sum(stamp.size for stamp in self.stamps) <= _SMALL

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        require(self.names, columns)
        self.check_unchanged()
        return self._read(self.reader.read, columns)

    def coded_batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Return the same rows; columns of text are dictionaries where the file is read so in less time."""
        require(self.names, columns)
        self.check_unchanged()
        return self._read(getattr(self.reader, "coded", self.reader.read), columns)

    def _read(
        self, read: Callable[[Sequence[str]], Iterator[pa.RecordBatch]], columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        try:
            for batch in read(columns):
                plain = batch if self.format == "csv" else plain_batch(batch)  # delimited text is plain already
                yield plain if self.format in _CLEANING else self.cleaned(plain)
        except OSError:  # of a compressed file that was cut off; its text may hold data
            raise SourceUnreadable(
                f"{self.address or 'the source'} cannot be read to its end: it is damaged."
            ) from None
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Raise if a file changed since it was opened."""
        for stamp in self.stamps:
            stamp.check()


def open_source(source: object, options: SourceOptions = DEFAULTS) -> Source:
    r"""Open a path (as text or `Path`; `path::name` for a table or sheet in it) or a frame, without reading its rows.

    A query of a database is run, and a table of a server copied, once and now: a second pass could see other rows.

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
    place, part = _split(source)
    path = place.path
    failure = None
    try:
        kind = find_format(path, options.format)
        options = with_part(options, kind, part) if part else options
        check_applies(options, kind)
        stamps = tuple(map(Stamp.of, _files(path, kind)))
        for stamp in stamps:
            count_file(stamp.path, stamp.size)
        reader = open_reader(kind, path, options)
    except OSError as error:
        failure = error.strerror or "the operating system gives no reason"
    if failure is not None:
        raise SourceUnreadable(f"{path} cannot be read: {failure}.")
    inner = options.sheet or options.table or options.query
    address = place.address and place.address + (f"::{inner}" if inner else "")
    return Source(reader, kind, address, stamps, ColumnCleaner.of(options), place.version, place.held)


@dataclass(frozen=True, eq=False)
class SourcePlace:
    """Where rows are opened: a path here, the address that they have, and of a copy its version and what holds it.

    A signed address is not remembered: `address` is None.
    """

    path: Path
    address: str | None
    version: str = ""
    held: object = None


def place_of(text: str) -> SourcePlace:
    """Return where a source without a part is opened; what is not a file of this machine is copied first."""
    from incrowd.engines.readers.remote import PATTERN, copied, from_file_address, is_remote, matched, public_source

    if is_remote(text):
        spool = copied(text)
        address = None if text == "-" or public_source(text) != text else text
        return SourcePlace(spool.path, address, spool.version, spool.held)
    text = from_file_address(text)
    if "://" in text:
        scheme = text.partition("://")[0]
        raise SourceUnreadable(
            f"{scheme} addresses are not read here. Pass a file, or an address of s3, gs, az, https or postgresql; or "
            "use the Spark engine."
        )
    path = Path(text).expanduser()
    if PATTERN.search(text) and not path.exists():
        spool = matched(str(path))
        return SourcePlace(spool.path, path.absolute().as_posix(), held=spool.held)
    path = _existing(path)
    spool_of_table = _table_in(path) if path.is_dir() else None
    if spool_of_table is not None:
        return SourcePlace(spool_of_table.path, path.resolve().as_posix(), spool_of_table.version, spool_of_table.held)
    return SourcePlace(path, path.resolve().as_posix())


def _table_in(folder: Path) -> Spool | None:
    """Return a copy of the Delta or Iceberg table in a folder: its files also hold rows that were deleted."""
    from incrowd.engines.readers.remote import table_of

    table = table_of(str(folder), lambda name: (folder / name).exists())
    return None if table is None else table[1]()


def _split(source: str | Path) -> tuple[SourcePlace, str | None]:
    text = str(source)
    path, mark, part = text.rpartition("::")
    if mark and not Path(text).exists():
        return place_of(path), part
    return place_of(text), None


def _existing(path: Path) -> Path:
    if not path.exists():
        raise SourceUnreadable(f"{path} does not exist. Check the path; it is relative to {Path.cwd()}.")
    if not path.is_file() and not path.is_dir():
        raise SourceUnreadable(
            f"{path} is a stream or device, and rows are read more than once. Save it to a file first."
        )
    return path


def _files(path: Path, kind: str) -> tuple[Path, ...]:
    """Return the files that the rows come from."""
    if path.is_dir():
        return parquet_files(path)
    log = path.with_name(path.name + "-wal")
    return (path, log) if kind == "sqlite" and log.exists() else (path,)


def _open_frame(frame: object, options: SourceOptions) -> Source:
    from incrowd.engines.readers.columnar import open_frame

    check_applies(options, "frame")
    return Source(open_frame(frame), "frame", None, cleaned=ColumnCleaner.of(options))


def _open_postgres(text: str, options: SourceOptions) -> Source:
    from incrowd.engines.readers.databases import RowSelection
    from incrowd.engines.readers.postgres import open_postgres

    address = address_of(text)
    if options.format is not None:
        raise InvalidParameter("the format of a PostgreSQL address is known. Leave the option format out.")
    options = with_part(options, "postgresql", address.part) if address.part else options
    check_applies(options, "postgresql")
    lift_limits()
    reader = open_postgres(address, RowSelection(options.table, options.query))
    return Source(reader, "postgresql", reader.place, cleaned=ColumnCleaner.of(options))


def open_reader(kind: str, path: Path, options: SourceOptions) -> SourceReader:
    """Open a file of this format (one of `FORMATS`); a reader's package is imported only if a source needs it."""
    if kind == "csv":
        from incrowd.engines.readers.delimited import open_delimited

        return open_delimited(path, options)
    if kind == "excel":
        from incrowd.engines.readers.excel import open_excel

        return open_excel(path, options)
    if kind == "statistics":
        from incrowd.engines.statistics_files import Coding, open_statistics

        return open_statistics(path, Coding(options.labels, options.encoding, options.catalog))
    if kind in {"sqlite", "duckdb"}:
        from incrowd.engines.readers.databases import RowSelection, open_duckdb, open_sqlite

        return (open_sqlite if kind == "sqlite" else open_duckdb)(path, RowSelection(options.table, options.query))
    from incrowd.engines.readers.columnar import open_arrow, open_parquet

    return (open_arrow if kind == "arrow" else open_parquet)(path)


def coded_batches(rows: Rows, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read columns; those of text are dictionaries where the rows come straight from a file that is read so faster."""
    return rows.coded_batches(columns) if isinstance(rows, Source) else rows.batches(columns)
