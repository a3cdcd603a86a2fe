"""Encoding: rows become codes, and the codes of a row one key; each dictionary of a batch is encoded once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.domain import Type
from incrowd.core.keys import Codes, Keys, Layout
from incrowd.core.reading import as_dictionary, is_wide, read
from incrowd.core.recoding import LEFT_OUT, Classes, Recoding
from incrowd.core.schema import Schema
from incrowd.engines.unnamed_file import UnnamedFile

if TYPE_CHECKING:
    from incrowd.engines.fingerprints import RowFingerprints

_RESERVED = 2  # the codes of values outside the domain and of missing values
_MANY = 16  # marks for each that comes: more of them are slower to hash again than to look up one by one


class Codebook:
    """Provisional codes in order of appearance; `classes` gives the final ones, in the order of the values.

    >>> from incrowd.core.schema import Column
    >>> book = Codebook(Recoding(Column("zip"), 0))
    >>> book.codes(pa.array(["021", "945", "021"])).tolist(), book.codes(pa.array(["100", "945"])).tolist()
    ([2, 3, 2], [4, 3])
    """

    other = 0
    missing = 1

    def __init__(self, recoding: Recoding) -> None:
        self._recoding = recoding
        storage = recoding.column.domain.storage
        self._plain = pa.int32() if storage == pa.date32() else storage  # days are numbered: no object for each
        self._marks = pa.array([], self._plain)
        self._places: dict[object, int] | None = None
        """The place of each mark, once there are many more marks than come at a time; Arrow hashes all each time."""

    def __len__(self) -> int:
        return len(self._marks if self._places is None else self._places) + _RESERVED

    def codes(self, marks: pa.Array) -> Codes:
        """Return the code of each mark; a new mark gets a new code.  Arrow would tell -0.0 from 0.0: one number here.

        >>> from incrowd.core.domain import Numbers, Type
        >>> from incrowd.core.schema import Column
        >>> book = Codebook(Recoding(Column("cost", Numbers(type=Type.DECIMAL)), 0))
        >>> book.codes(pa.array([0.0, -0.0, 1.5])).tolist()
        [2, 2, 3]
        """
        coded = (pc.add(marks, 0.0) if pa.types.is_floating(marks.type) else marks).dictionary_encode()
        plain = pc.cast(coded.dictionary, self._plain)
        if self._places is None and len(self._marks) > _MANY * len(plain):
            self._places = {mark: place for place, mark in enumerate(self._marks.to_pylist())}
        codes = self._extended(plain) if self._places is None else self._placed(plain.to_pylist(), self._places)
        result: Codes = (codes + np.int32(_RESERVED))[coded.indices.to_numpy(zero_copy_only=False)]
        return result

    def _extended(self, marks: pa.Array) -> Codes:
        places = pc.index_in(marks, value_set=self._marks)
        fresh = np.flatnonzero(places.is_null().to_numpy(zero_copy_only=False))
        codes: Codes = pc.fill_null(places, 0).to_numpy(zero_copy_only=False).astype(np.int32)
        codes[fresh] = np.arange(len(self._marks), len(self._marks) + len(fresh))
        if len(fresh):
            self._marks = pa.concat_arrays([self._marks, marks.take(pa.array(fresh))])
        return codes

    @staticmethod
    def _placed(marks: list[object], places: dict[object, int]) -> Codes:
        return np.array([places.setdefault(mark, len(places)) for mark in marks], np.int32)

    def classes(self) -> tuple[Classes, Codes]:
        """Return the classes in the order of their marks, and the final code of each provisional one."""
        marks = self._marks if self._places is None else pa.array(self._places, self._plain)
        order = pc.array_sort_indices(marks).to_numpy()
        final = np.empty(len(self), np.int32)
        final[order + _RESERVED] = np.arange(len(order))
        final[[self.other, self.missing]] = len(order), len(order) + 1
        ordered = pc.cast(marks.take(pa.array(order)), self._recoding.column.domain.storage)
        return Classes(self._recoding, ordered, has_other=True, has_missing=True), final


class Encoder:
    """The codes of the rows of one table, batch by batch; it caches dictionaries and the classes of open levels."""

    def __init__(self, cells: Cells) -> None:
        self._columns = [_Column(recoding) for recoding in cells.recodings]

    @property
    def sizes(self) -> tuple[int, ...]:
        """For each column a strict upper bound of its codes; it may grow from batch to batch, in few steps."""
        return tuple(column.size for column in self._columns)

    def codes(self, batch: pa.RecordBatch, chosen: NDArray[np.intp] | None) -> list[Codes]:
        """Return for each column the codes of the chosen rows, without the rows that the recoding leaves out."""
        codes = [column.codes(batch, chosen) for column in self._columns]
        dropping = [column for column, c in zip(codes, self._columns, strict=True) if c.recoding.column.may_drop]
        if not dropping:
            return codes
        retained = np.flatnonzero(np.logical_and.reduce([column >= 0 for column in dropping]))
        return codes if len(retained) == len(codes[0]) else [column[retained] for column in codes]

    def codes_of_all(self, batch: pa.RecordBatch) -> list[Codes]:
        """Return for each column the codes of all rows, −1 where a row is left out."""
        return [column.codes(batch, None) for column in self._columns]

    def classes(self) -> list[tuple[Classes, Codes | None]]:
        """Return for each column its classes, and the final code of each code where that changes."""
        return [column.classes() for column in self._columns]


class _Column:
    """One column's codes; a file repeats a dictionary from batch to batch, so its codes are cached."""

    def __init__(self, recoding: Recoding) -> None:
        self.recoding = recoding
        self._book = Codebook(recoding) if recoding.classes is None else None
        self._dictionary: pa.Array | None = None
        self._codes: Codes = np.zeros(0, np.int32)

    @property
    def size(self) -> int:
        if self.recoding.classes is not None:
            return len(self.recoding.classes)
        room = 64
        while room < len(self._book or ()):
            room *= 4
        return room

    def codes(self, batch: pa.RecordBatch, chosen: NDArray[np.intp] | None) -> Codes:
        if not self.recoding.needs_rows:
            return np.zeros(len(batch) if chosen is None else len(chosen), np.int32)
        array = batch.column(self.recoding.column.name)
        if chosen is not None and not pa.types.is_dictionary(array.type):
            array, chosen = array.take(pa.array(chosen)), None
        values, indices = as_dictionary(array)
        if indices is None:
            return self.recoding.codes_of(values, self._book)[:-1]
        return np.take(self._dictionary_codes(values), indices if chosen is None else indices[chosen])

    def _dictionary_codes(self, dictionary: pa.Array) -> Codes:
        if self._dictionary is None or not self._dictionary.equals(dictionary):
            self._codes = self.recoding.codes_of(dictionary, self._book)
            self._dictionary = dictionary
        return self._codes

    def classes(self) -> tuple[Classes, Codes | None]:
        if self.recoding.classes is not None:
            return self.recoding.classes, None
        return (self._book or Codebook(self.recoding)).classes()


IN_MEMORY = 1 << 27
"""Bytes of keys that stay in memory; the rest goes to a file without a name."""
_INT32 = 2**31  # keys below it need half of the memory


@dataclass(frozen=True)
class _Piece:
    """The keys of the rows of one batch, in memory or (None) in the file, in the order of the pieces."""

    layout: Layout
    rows: int
    kind: np.dtype[np.signedinteger]
    keys: Keys | None


class RowKeys:
    """The key of every row in the cells that a plan counts, 4 or 8 bytes each; −1 for a row that is left out.

    A key depends on its row alone.  Before a charge no key is counted or compared with another.

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

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return self.cells.reads

    def add(self, batch: pa.RecordBatch) -> None:
        """Store the keys of some rows, unless keys have become longer than 8 bytes."""
        if not self.complete:
            return
        codes = self.encoder.codes_of_all(batch)
        layout = Layout(self.encoder.sizes)
        if len(layout.words) > 1:
            self.complete, self._pieces, self._file = False, [], None
            return
        keys = layout.pack([np.maximum(column, 0) for column in codes])
        keys[np.logical_or.reduce([column < 0 for column in codes])] = LEFT_OUT
        self._store(layout, keys.astype(np.int32) if layout.size < _INT32 else keys)

    def pieces(self) -> Iterator[tuple[Layout, Keys]]:
        """Return the keys of all rows in their order, in pieces with their layouts."""
        if self._file is not None:
            self._file.seek(0)
        for piece in self._pieces:
            yield piece.layout, self._read(piece) if piece.keys is None else piece.keys

    def _store(self, layout: Layout, keys: Keys) -> None:
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


class RowGatherer(Protocol):
    """What is gathered from rows while they are validated: keys that a plan will count, or the ends of edges."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Take some rows."""


@dataclass(frozen=True)
class MarksAndKeys:
    """Gathers the fingerprints of rows and what they are read for besides; values are read as declared types once."""

    schema: Schema
    marks: RowFingerprints
    keys: RowGatherer

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return tuple(dict.fromkeys((*self.marks.columns, *self.keys.columns)))

    def add(self, batch: pa.RecordBatch) -> None:
        """Add some rows to both."""
        typed = [self._typed(name, array) for name, array in zip(batch.schema.names, batch.columns, strict=True)]
        rows = pa.RecordBatch.from_arrays(typed, names=batch.schema.names)
        self.marks.add(rows)
        self.keys.add(rows)

    def _typed(self, name: str, array: pa.Array) -> pa.Array:
        kind = self.schema[name].type
        if kind is Type.TEXT or not _is_text(array.type):
            return array
        coded = array.dictionary_encode()
        return pa.DictionaryArray.from_arrays(coded.indices, read(coded.dictionary, kind).values)


class TextEncoder:
    """Encodes text for later passes, so that they read each value once; but not where nearly each row has its own.

    >>> encoder, rows = TextEncoder(), pa.record_batch({"zip": ["021", "021", "021", "945"], "id": list("abcd")})
    >>> [str(encoder(rows).schema.types[1]) for _ in range(2)]
    ['dictionary<values=string, indices=int32, ordered=0>', 'string']
    """

    def __init__(self) -> None:
        self._wide: set[str] = set()

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with columns of text as dictionaries."""
        arrays = []
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            if pa.types.is_string(array.type) and name not in self._wide:
                array = array.dictionary_encode()  # noqa: PLW2901
                if is_wide(array.dictionary, len(array)):
                    self._wide.add(name)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names) if arrays else batch


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))
