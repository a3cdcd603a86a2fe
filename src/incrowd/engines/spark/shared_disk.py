"""Shared disk: Parquet files that tasks read themselves, by the reader of the local engine, and not through Java.

Spark would decode each row in Java and hand it to Python.  Where every machine has the files under the same path, as
Spark asks of such paths anyway, a task opens them itself and gets dictionary codes.  Files of other kinds of columns
than plain text, numbers, truth values and days, or in folders that name columns, are left to Spark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
from pyarrow import parquet as pq

from incrowd.engines.readers.columnar import ERRORS, read_parquet
from incrowd.engines.readers.plain import plain_batch
from incrowd.engines.readers.reader import attempt, distinct, muffled
from incrowd.engines.spark.origins import ParquetFiles
from incrowd.engines.spark.places import CHANGED, FilePieces, Piece, Positions
from incrowd.engines.spark.rows import Slice
from incrowd.engines.spark.task import collect, explained, is_remote, map_partitions
from incrowd.errors import SourceChanged, SourceUnreadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_FILES = 10_000  # whose footers the driver reads, about a millisecond each
_TASKS_PER_CORE = 3  # so that one slow task does not keep all others waiting


@dataclass(frozen=True)
class Portion:
    """Some row groups of a file, and the number of their first row in it."""

    path: str
    stamp: int
    size: int
    groups: tuple[int, ...] = ()
    start: int = 0
    rows: int = 0


@dataclass(frozen=True)
class SharedFiles:
    """Reads the portions of a task; a file that changed since it was listed is refused."""

    columns: tuple[str, ...]
    pieces: FilePieces
    tasks: tuple[tuple[Portion, ...], ...] = field(repr=False)

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
        for portion in portions_of(self.tasks, batches):
            first = self.pieces.start(portion.stamp, portion.start + portion.rows) + portion.start
            what = f"{Path(portion.path).name} is a broken Parquet file."
            stored = read_parquet(_same_size(portion), self.columns, portion.groups)
            for batch in muffled(stored, ERRORS, what):
                yield Slice(plain_batch(batch), Positions(np.arange(first, first + batch.num_rows)))
                first += batch.num_rows


@dataclass(frozen=True)
class FileDigests:
    """Hashes the bytes of whole files."""

    tasks: tuple[tuple[Portion, ...], ...] = field(repr=False)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for portion in portions_of(self.tasks, batches):
            with _same_size(portion).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256")
            yield pa.record_batch({"digest": [digest.hexdigest()]})


def portions_of(tasks: Sequence[Sequence[Portion]], batches: Iterator[pa.RecordBatch]) -> Iterator[Portion]:
    """Return the portions of a partition, which holds the numbers of its tasks."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from tasks[number]


def _same_size(portion: Portion) -> Path:
    """Return the path of a file on this machine, which may have a copy of another age; its length is the same."""
    path = Path(portion.path)
    try:
        size = path.stat().st_size
    except OSError:
        raise SourceUnreadable(
            f"a worker does not find {path.name}: a path must mean the same on every machine of the cluster."
        ) from None
    if size != portion.size:
        raise SourceChanged(CHANGED)
    return path


def stamp_of(path: Path) -> int:
    """Return a number computed from path, size and time of the last change of a file."""
    status = path.stat()
    content = f"{path}\n{status.st_size}\n{status.st_mtime_ns}".encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big", signed=True)


@dataclass(frozen=True, eq=False)
class SharedParquet(ParquetFiles):
    """Parquet files under a path that driver and workers share."""

    session: SparkSession
    root: Path
    paths: tuple[Path, ...]
    sizes: tuple[int, ...]
    schema: pa.Schema
    groups: tuple[tuple[int, ...], ...] = field(repr=False)
    """The rows of each row group of each file."""
    listed: tuple[int, ...] = field(repr=False)
    """The stamps of the files when their footers were read."""

    @property
    def names(self) -> tuple[str, ...]:
        return distinct(self.schema.names)

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        return dict(zip(self.schema.names, self.schema.types, strict=True))

    @cached_property
    def pieces(self) -> FilePieces:
        """The files with their numbers of rows, from their footers."""
        files = zip(self.listed, self.paths, self.groups, strict=True)
        return FilePieces.of([Piece(stamp, path.as_uri(), sum(groups)) for stamp, path, groups in files])

    def stamps(self) -> frozenset[int]:
        return frozenset(map(stamp_of, _listed(self.root)))

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, SharedFiles]:  # type: ignore[override]
        """Return a row for each task, and what it reads."""
        tasks = self._shared_out(list(self._portions()))
        return self._numbers(tasks), SharedFiles(tuple(columns), self.pieces, tasks)

    def digest(self) -> bytes:
        """Return 32 bytes for the bytes of the files, in whatever order and under whatever names."""
        paths = _listed(self.root)  # those that came since are in the digest, too
        sizes = [path.stat().st_size for path in paths]
        tasks = self._shared_out(
            [Portion(str(path), 0, size, rows=size) for path, size in zip(paths, sizes, strict=True)]
        )
        digests = collect(map_partitions(self._numbers(tasks), FileDigests(tasks), "digest string"))
        hexadecimal = sorted(digests.column("digest").to_pylist())
        if len(hexadecimal) != len(paths):
            raise SourceChanged(CHANGED)
        return hashlib.sha256(f"files {hexadecimal}".encode()).digest()

    def _portions(self) -> Iterator[Portion]:
        for path, stamp, size, groups in zip(self.paths, self.listed, self.sizes, self.groups, strict=True):
            start = 0
            for number, rows in enumerate(groups):
                yield Portion(str(path), stamp, size, (number,), start, rows)
                start += rows

    def _shared_out(self, portions: Sequence[Portion]) -> tuple[tuple[Portion, ...], ...]:
        """Deal portions out to tasks in their order, about as many rows to each."""
        with explained():
            cores = self.session.sparkContext.defaultParallelism
        most = max(1, min(len(portions), _TASKS_PER_CORE * cores))
        total, done = max(1, sum(portion.rows for portion in portions)), 0
        tasks: list[list[Portion]] = [[] for _ in range(most)]
        for portion in portions:
            tasks[min(most - 1, done * most // total)].append(portion)
            done += portion.rows
        return tuple(tuple(task) for task in tasks if task) or ((),)

    def _numbers(self, tasks: Sequence[object]) -> DataFrame:
        with explained():
            return self.session.range(0, len(tasks), 1, len(tasks))


def shared_parquet(session: SparkSession, files: ParquetFiles, place: str) -> SharedParquet | None:
    """Return the files at a place as tasks read them; None where Spark should read them."""
    root = Path(place)
    if is_remote(session) or "://" in place or not root.exists():
        return None
    try:
        paths = _listed(root)
    except OSError:
        return None
    if not 0 < len(paths) <= _MOST_FILES or any(path.suffix != ".parquet" for path in paths):
        return None
    if any("=" in part for path in paths for part in path.relative_to(root).parts[:-1]):
        return None
    stamps, sizes = tuple(map(stamp_of, paths)), tuple(path.stat().st_size for path in paths)
    footers = [attempt(partial(pq.read_metadata, path), ERRORS, f"{path.name} is no Parquet file.") for path in paths]
    schemas = [footer.schema.to_arrow_schema().remove_metadata() for footer in footers]
    if any(schema != schemas[0] for schema in schemas[1:]) or not all(map(_is_plain, schemas[0].types)):
        return None
    groups = tuple(tuple(footer.row_group(at).num_rows for at in range(footer.num_row_groups)) for footer in footers)
    plain = pa.schema([(name, _stored(kind)) for name, kind in zip(schemas[0].names, schemas[0].types, strict=True)])
    return SharedParquet(files.load, session, root, paths, sizes, plain, groups, stamps)


def _listed(root: Path) -> tuple[Path, ...]:
    """Return the files at a place that Spark would read, sorted: what is hidden is none, nor what is in it."""
    if root.is_file():
        return (root,)
    files = ((path, path.relative_to(root).parts) for path in sorted(root.rglob("*")) if path.is_file())
    return tuple(path for path, parts in files if not any(part.startswith((".", "_")) for part in parts))


def _is_plain(kind: pa.DataType) -> bool:
    """Whether a column is read alike by Spark and Arrow.

    >>> [_is_plain(kind) for kind in (pa.string(), pa.int32(), pa.uint64(), pa.timestamp("us"), pa.date32())]
    [True, True, False, False, True]
    """
    stored = _stored(kind)
    numbers = kinds.is_signed_integer(stored) or stored in (pa.float32(), pa.float64())
    return stored in (pa.string(), pa.bool_(), pa.date32()) or numbers


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a column, however a file codes them."""
    values = kind.value_type if kinds.is_dictionary(kind) else kind
    return pa.string() if values == pa.large_string() else values
