"""Row keys: what a count will need of each row, kept while the rows are validated, so that they are parsed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from incrowd.core.cells import Cells
from incrowd.core.domain import Type
from incrowd.core.keys import Keys, Layout
from incrowd.core.reading import as_dictionary, read
from incrowd.core.recoding import LEFT_OUT
from incrowd.core.schema import Schema
from incrowd.engines.local.encoding import Encoder
from incrowd.engines.unnamed_file import UnnamedFile

if TYPE_CHECKING:
    from incrowd.core.table import Rows
    from incrowd.engines.row_fingerprints import RowFingerprints

IN_MEMORY = 1 << 27
"""So many bytes of keys stay in memory; the rest goes to a file without a name."""
_SMALL = 2**31


@dataclass(frozen=True)
class _Piece:
    """The keys of the rows of one batch, in memory or, in the order of the pieces, in the file."""

    layout: Layout
    rows: int
    kind: np.dtype[np.signedinteger]
    keys: Keys | None


class RowKeys:
    """The key of every row in the cells that a plan counts, 4 or 8 bytes each; −1 for a row that is left out.

    Each key is made from its row alone.  Before a charge none is counted or compared with another: they only wait.

    >>> from incrowd.core.schema import Column
    >>> keys = RowKeys(Cells.of(Schema((Column("zip"),)), {}))
    >>> keys.add(pa.record_batch({"zip": ["021", "945", "021"]}))
    >>> [piece.tolist() for _, piece in keys.pieces()]
    [[2, 3, 2]]
    """

    def __init__(self, cells: Cells, in_memory: int = IN_MEMORY) -> None:
        self.cells, self.encoder = cells, Encoder(cells)
        self.complete = True
        self._room = in_memory
        self._pieces: list[_Piece] = []
        self._file: UnnamedFile | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep the keys of some rows, unless keys have become longer than 8 bytes."""
        if not self.complete:
            return
        codes = self.encoder.codes_of_all(batch)
        layout = Layout(self.encoder.sizes)
        if len(layout.words) > 1:
            self._forget()
            return
        keys = layout.pack([np.maximum(column, 0) for column in codes])
        keys[np.logical_or.reduce([column < 0 for column in codes])] = LEFT_OUT
        self._keep(layout, keys.astype(np.int32) if layout.size < _SMALL else keys)

    def pieces(self) -> Iterator[tuple[Layout, Keys]]:
        """Return the keys of all rows in their order, in pieces, each with its layout."""
        if self._file is not None:
            self._file.seek(0)
        for piece in self._pieces:
            yield piece.layout, self._read(piece) if piece.keys is None else piece.keys

    def _keep(self, layout: Layout, keys: Keys) -> None:
        self._room -= keys.nbytes
        if self._room < 0:
            self._file = UnnamedFile() if self._file is None else self._file
            self._file.write(keys.data.cast("B"))
        self._pieces.append(_Piece(layout, len(keys), keys.dtype, None if self._room < 0 else keys))

    def _read(self, piece: _Piece) -> Keys:
        if self._file is None:
            raise AssertionError("a piece that is not in memory was written")
        content, size = bytearray(), piece.rows * piece.kind.itemsize
        while len(content) < size:
            content += self._file.read(size - len(content))
        return np.frombuffer(content, piece.kind)

    def _forget(self) -> None:
        self.complete, self._pieces, self._file = False, [], None


@dataclass(frozen=True)
class KeyedRows:
    """Rows that are dear to read, with the keys that their validation keeps of them."""

    source: Rows
    keys: RowKeys

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""
        return self.source.names

    @property
    def rows(self) -> int | None:
        """How many rows there are, or None if only reading them would tell."""
        return self.source.rows

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read these columns from the source."""
        return self.source.batches(columns)


@dataclass(frozen=True)
class MarksAndKeys:
    """What is gathered of rows that can be read: their marks, and where a plan says what it will count, their keys.

    Values are taken as their declared types once, for both.
    """

    schema: Schema
    marks: RowFingerprints
    keys: RowKeys

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(dict.fromkeys((*self.marks.columns, *self.keys.cells.reads)))

    def add(self, batch: pa.RecordBatch) -> None:
        """Learn from some rows."""
        typed = [self._typed(name, array) for name, array in zip(batch.schema.names, batch.columns, strict=True)]
        rows = pa.RecordBatch.from_arrays(typed, names=batch.schema.names)
        self.marks.add(rows)
        self.keys.add(rows)

    def _typed(self, name: str, array: pa.Array) -> pa.Array:
        kind = self.schema[name].type
        if kind is Type.TEXT or not _is_text(array.type):
            return array
        values, indices = as_dictionary(array)
        places = pa.array(indices, pa.int32(), mask=indices == len(values))
        return pa.DictionaryArray.from_arrays(places, read(values, kind).values)


def encoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with each column of text as a dictionary, which whoever looks at values looks at once.

    >>> encoded(pa.record_batch({"zip": ["021", "021"]})).column("zip").dictionary.to_pylist()
    ['021']
    """
    arrays = [array.dictionary_encode() if pa.types.is_string(array.type) else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names) if arrays else batch


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))
