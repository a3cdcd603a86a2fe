"""Columnar data: frames in memory that speak the Arrow C stream interface, Parquet files and Arrow files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import ipc
from pyarrow import parquet as pq

from incrowd.engines.readers.reader import BATCH_ROWS, NO_SETTINGS, attempt, distinct, muffled
from incrowd.engines.readers.sources import parquet_files
from incrowd.errors import SourceUnreadable

_BUFFER_BYTES = 1 << 20  # read at a time: without it each column of a row group is read whole
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
ERRORS = (pa.ArrowException, OSError)


@dataclass(frozen=True)
class Frame:
    """A table in memory; its rows are not copied where the frame's library shares them."""

    table: pa.Table
    settings, notes = NO_SETTINGS, ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        return _types(self.table.schema)

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if columns:
            yield from self.table.select(list(columns)).to_batches(max_chunksize=BATCH_ROWS)
        else:
            for start in range(0, self.table.num_rows, BATCH_ROWS):
                rows = min(BATCH_ROWS, self.table.num_rows - start)
                yield pa.record_batch({"": pa.nulls(rows)}).select([])


def open_frame(frame: object) -> Frame:
    """Open a frame as it is now; a named index of a pandas frame is a column, an unnamed one is not.

    >>> open_frame(pa.table({"zip": ["01234"]})).names
    ('zip',)
    """
    if isinstance(frame, pa.RecordBatchReader):
        raise SourceUnreadable("a RecordBatchReader can be read once, and rows are read more than once. Pass a table.")
    if not hasattr(frame, "__arrow_c_stream__") and not isinstance(frame, pa.RecordBatch):
        hint = " Call .collect() on it first." if hasattr(frame, "collect") else ""
        raise SourceUnreadable(
            f"a {type(frame).__name__} is not a readable table: pass a path, or a frame with the Arrow C stream "
            f"interface (pandas 2.2 or later, Polars, PyArrow).{hint}"
        )
    table = attempt(
        lambda: pa.Table.from_batches([frame]) if isinstance(frame, pa.RecordBatch) else pa.table(frame),
        (pa.ArrowException, ValueError, TypeError),
        "the frame cannot be read as Arrow: two columns share a name, or a column mixes types of values.",
    )
    columns = [index for index, name in enumerate(table.column_names) if not name.startswith("__index_level_")]
    distinct([table.column_names[index] for index in columns])
    return Frame(table.select(columns).replace_schema_metadata(None))


@dataclass(frozen=True)
class Parquet:
    """One Parquet file, or the files of a folder one after the other, sorted by name."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    rows: int | None
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    partitions: tuple[Mapping[str, str | None], ...] = ()
    """For each file, the values that its folders name: columns of text."""
    settings = NO_SETTINGS

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"{len(self.paths)} Parquet files, read in the order of their names",) if len(self.paths) > 1 else ()

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read column chunks in small pieces, so that memory does not grow with the row groups."""
        for at, path in enumerate(self.paths):
            values = self.partitions[at] if self.partitions else {}
            own = [name for name in columns if name not in values]
            for batch in muffled(read_parquet(path, own), ERRORS, f"{path} is a broken Parquet file."):
                yield _with_values(batch, columns, values) if values else batch


def _with_values(batch: pa.RecordBatch, columns: Sequence[str], values: Mapping[str, str | None]) -> pa.RecordBatch:
    """Return a batch with the columns that its folders name; each has one value."""
    for name in columns:
        if name in values:
            batch = batch.append_column(name, pa.repeat(pa.scalar(values[name], pa.string()), batch.num_rows))
    return batch.select(list(columns))


def _partitions(folder: Path, paths: Sequence[Path]) -> tuple[Mapping[str, str | None], ...]:
    """Return the values in the names of subfolders such as `year=2025`; nothing where there are none."""
    parts = [[part for part in path.relative_to(folder).parts[:-1] if "=" in part] for path in paths]
    values: list[dict[str, str | None]] = [
        {unquote(name): None if text == _NO_VALUE else unquote(text) for name, _, text in map(_halved, part)}
        for part in parts
    ]
    if any(list(value) != list(values[0]) for value in values):
        raise SourceUnreadable(f"the subfolders of {folder} name different columns. Write the table again.")
    return tuple(values) if values[0] else ()


def _halved(part: str) -> tuple[str, str, str]:
    return part.partition("=")


def open_parquet(path: Path) -> Parquet:
    """Open a Parquet file, or a folder of them; only the footers are read."""
    paths = parquet_files(path) if path.is_dir() else (path,)
    partitions = _partitions(path, paths) if path.is_dir() else ()
    footers = [
        attempt(
            partial(pq.read_metadata, file),
            ERRORS,
            f"{file} is not a Parquet file, or it is broken or encrypted. Write it again.",
        )
        for file in paths
    ]
    schemas = [footer.schema.to_arrow_schema() for footer in footers]
    names = distinct(schemas[0].names)
    for file, schema in zip(paths, schemas, strict=True):
        if sorted(schema.names) != sorted(names):
            raise SourceUnreadable(
                f"{file} has other columns than {paths[0]}. Files in one folder need the same columns."
            )
    named_by_folders = tuple(partitions[0]) if partitions else ()
    if set(names) & set(named_by_folders):
        raise SourceUnreadable(f"a column of {path} is in its files and in the names of its subfolders: leave one out.")
    first, *others = map(_types, schemas)
    same = {name: kind for name, kind in first.items() if all(_alike(kind, other.get(name)) for other in others)}
    mixed = {name: _zoned([file[name] for file in (first, *others)]) for name in first.keys() - same.keys()}
    same |= {name: kind for name, kind in mixed.items() if kind is not None}
    rows = sum(footer.num_rows for footer in footers)
    return Parquet(paths, (*names, *named_by_folders), rows, same, partitions)


def _alike(kind: pa.DataType, other: pa.DataType | None) -> bool:
    """Whether values of two types are read alike: moments may be more precise in one."""
    if other is not None and pa.types.is_timestamp(kind) and pa.types.is_timestamp(other):
        return bool(kind.tz == other.tz)
    return bool(kind == other)


def _zoned(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return a type with a time zone, one other than UTC if there is one: the days of some files depend on it."""
    zoned = [kind for kind in kinds if pa.types.is_timestamp(kind) and kind.tz is not None]
    return next((kind for kind in zoned if kind.tz != "UTC"), zoned[0] if zoned else None)


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return dict(zip(schema.names, schema.types, strict=True))


def read_parquet(path: Path, columns: Sequence[str], groups: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
    """Read columns of a Parquet file, or of some of its row groups."""
    coded = _coded(pq.read_metadata(path), columns)
    with pq.ParquetFile(path, read_dictionary=coded, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
        chosen = None if groups is None else list(groups)
        for batch in file.iter_batches(
            batch_size=BATCH_ROWS, row_groups=chosen, columns=list(columns), use_pandas_metadata=False
        ):
            yield batch.select(list(columns))


def _coded(footer: pq.FileMetaData, columns: Sequence[str]) -> list[str]:
    """Return the columns of text whose values are stored as dictionary codes throughout.

    A writer gives up on a dictionary above 1 MiB and stores text, of at least 4 bytes a value (its length); codes take
    less than 3.  Building a dictionary from stored text would take longer than reading it, and as much memory as the
    row group.
    """
    names, text = set[str](), set[str]()
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            names.add(chunk.path_in_schema)
            codes = chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page
            if not codes or chunk.total_uncompressed_size > 3 * chunk.num_values + (1 << 20):
                text.add(chunk.path_in_schema)
    return [name for name in columns if name in names - text]


@dataclass(frozen=True)
class Arrow:
    """An Arrow file (also called Feather) or a stored Arrow stream."""

    path: Path
    names: tuple[str, ...]
    stream: bool
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    rows, settings, notes = None, NO_SETTINGS, ()

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Map the file into memory and read the columns of one batch at a time."""
        return muffled(self._batches(columns), ERRORS, f"{self.path} is a broken Arrow file.")

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(self.path)) as file:
            yield from stored_batches(file, self.names, columns, stream=self.stream)


def stored_batches(
    file: pa.NativeFile, names: Sequence[str], columns: Sequence[str], *, stream: bool
) -> Iterator[pa.RecordBatch]:
    """Read some columns of an Arrow file or stream with columns of these names, one batch at a time."""
    places = sorted(names.index(name) for name in columns)
    options = ipc.IpcReadOptions(included_fields=places or [0])
    for batch in _pieces(file, options, stream=stream):
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.select(list(columns)).slice(start, BATCH_ROWS)


def open_arrow(path: Path) -> Arrow:
    """Open an Arrow file or stream; only its schema is read."""

    def head() -> tuple[bool, pa.Schema]:
        with pa.memory_map(str(path)) as file:
            stream = file.read(6) != b"ARROW1"
            file.seek(0)
            return stream, (ipc.open_stream if stream else ipc.open_file)(file).schema

    stream, schema = attempt(head, ERRORS, f"{path} is not an Arrow file, or it is broken. Write it again.")
    return Arrow(path, distinct(schema.names), stream, _types(schema))


def _pieces(file: pa.NativeFile, options: ipc.IpcReadOptions, *, stream: bool) -> Iterator[pa.RecordBatch]:
    if stream:
        yield from ipc.open_stream(file, options=options)
        return
    reader = ipc.open_file(file, options=options)
    for index in range(reader.num_record_batches):
        yield reader.get_batch(index)
