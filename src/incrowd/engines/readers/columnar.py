"""Parquet and Arrow files: only the wanted columns, dictionary codes as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc
from pyarrow import parquet as pq

from incrowd.engines.readers.formats import parquet_files
from incrowd.engines.readers.reader import BATCH_ROWS, distinct, muffled
from incrowd.errors import SourceUnreadable

_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class Parquet:
    """One Parquet file, or the files of a folder one after the other, sorted by name."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    rows: int | None
    types: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def settings(self) -> Mapping[str, str]:
        """Nothing to choose."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """How many files there are."""
        return (f"{len(self.paths)} Parquet files, read in the order of their names",) if len(self.paths) > 1 else ()

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read column chunks in small pieces: memory does not grow with the row groups."""
        for path in self.paths:
            yield from muffled(
                _parquet(path, columns), (pa.ArrowException, OSError), f"{path} is a broken Parquet file."
            )


def open_parquet(path: Path) -> Parquet:
    """Open a Parquet file, or a folder of them; only the footers are read."""
    paths = parquet_files(path) if path.is_dir() else (path,)
    footers = [_footer(each) for each in paths]
    names = distinct(_schema(footers[0]).names)
    for each, footer in zip(paths, footers, strict=True):
        if sorted(_schema(footer).names) != sorted(names):
            raise SourceUnreadable(
                f"{each} has other columns than {paths[0]}. Files in one folder need the same columns."
            )
    return Parquet(paths, names, sum(footer.num_rows for footer in footers), _types(footers))


def _types(footers: Sequence[pq.FileMetaData]) -> dict[str, pa.DataType]:
    """Return the type of each column that has the same one in all files."""
    first, *others = [dict(zip(schema.names, schema.types, strict=True)) for schema in map(_schema, footers)]
    return {name: kind for name, kind in first.items() if all(other.get(name) == kind for other in others)}


def _schema(footer: pq.FileMetaData) -> pa.Schema:
    return footer.schema.to_arrow_schema()


def _footer(path: Path) -> pq.FileMetaData:
    failed = False
    try:
        return pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        failed = True
    if failed:
        raise SourceUnreadable(f"{path} is not a Parquet file, or it is broken or encrypted. Write it again.")
    return None


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    coded = _coded(pq.read_metadata(path), columns)
    with pq.ParquetFile(path, read_dictionary=coded, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns), use_pandas_metadata=False):
            yield batch.select(list(columns))


def _coded(footer: pq.FileMetaData, columns: Sequence[str]) -> list[str]:
    """Return the columns of text whose values are stored as dictionary codes throughout.

    A writer gives up on a dictionary that outgrows 1 MiB and stores text, of at least 4 bytes a value (its length);
    codes take less than 3.  To build a dictionary out of stored text would take longer than to read it, and as much
    memory as the row group.
    """
    chunks: dict[str, list[pq.ColumnChunkMetaData]] = {}
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for index in range(row_group.num_columns):
            chunk = row_group.column(index)
            chunks.setdefault(chunk.path_in_schema, []).append(chunk)
    return [
        name
        for name in columns
        if all(
            chunk.physical_type == "BYTE_ARRAY"
            and chunk.has_dictionary_page
            and chunk.total_uncompressed_size <= 3 * chunk.num_values + (1 << 20)
            for chunk in chunks.get(name, [])
        )
        and name in chunks
    ]


@dataclass(frozen=True)
class Arrow:
    """An Arrow file (also called Feather) or a stored Arrow stream."""

    path: Path
    names: tuple[str, ...]
    stream: bool
    types: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def rows(self) -> int | None:
        """Unknown before the file has been read."""
        return None

    @property
    def settings(self) -> Mapping[str, str]:
        """Nothing to choose."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing was guessed."""
        return ()

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Map the file into memory and read the wanted columns of one batch at a time."""
        errors = (pa.ArrowException, OSError)
        return muffled(self._batches(columns), errors, f"{self.path} is a broken Arrow file.")

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(self.path)) as file:
            yield from stored_batches(file, self.names, columns, stream=self.stream)


def stored_batches(
    file: pa.NativeFile, names: Sequence[str], columns: Sequence[str], *, stream: bool
) -> Iterator[pa.RecordBatch]:
    """Read the wanted columns of an Arrow file or stream with columns of these names, one batch at a time."""
    wanted = sorted(names.index(name) for name in columns)
    options = ipc.IpcReadOptions(included_fields=wanted or [0])
    for batch in _pieces(file, options, stream=stream):
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.select(list(columns)).slice(start, BATCH_ROWS)


def open_arrow(path: Path) -> Arrow:
    """Open an Arrow file or stream; only its schema is read."""
    failed = False
    try:
        with pa.memory_map(str(path)) as file:
            stream = file.read(6) != b"ARROW1"
            file.seek(0)
            schema = (ipc.open_stream if stream else ipc.open_file)(file).schema
    except (pa.ArrowException, OSError):
        failed = True
    if failed:
        raise SourceUnreadable(f"{path} is not an Arrow file, or it is broken. Write it again.")
    return Arrow(path, distinct(schema.names), stream, dict(zip(schema.names, schema.types, strict=True)))


def _pieces(file: pa.NativeFile, options: ipc.IpcReadOptions, *, stream: bool) -> Iterator[pa.RecordBatch]:
    if stream:
        yield from ipc.open_stream(file, options=options)
        return
    reader = ipc.open_file(file, options=options)
    for index in range(reader.num_record_batches):
        yield reader.get_batch(index)
