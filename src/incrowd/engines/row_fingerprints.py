"""RowMarks: what rows hold, as keyed numbers of constant size, by which their holder recognizes them again.

Under a secret key each row becomes 128 bits that only its typed values decide.  Summed over the rows they are a hash of
the multiset: order, format, compression and encoding do not matter.  The rows with the smallest bits, and the people
with the smallest, are samples by which the overlap with other rows is estimated.  Marks are kept in a file of the
holder's and go nowhere else; whoever has the file with its key could test whether somebody is in the sample.

Marks are compared over years: a value's bits must never change.
"""

from __future__ import annotations

import hashlib
import hmac
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.core.fingerprints import BottomK, SourceFingerprint
from incrowd.core.hashing import Bits, value_bits
from incrowd.core.reading import as_dictionary, canonical, read
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Engine, Rows
from incrowd.engines.readers.plain import is_list
from incrowd.errors import SourceInvalid

_WORDS = 2


def marked_columns(schema: Schema) -> tuple[str, ...]:
    """Return the columns that are read for marks: those of which something may leave, and the one that tells people.

    >>> marked_columns(Schema((Column("age", type=Type.INTEGER), Column("zip"))))
    ('age', 'zip')
    """
    people = (schema.unit.column,) if schema.unit.column is not None else ()
    return tuple(dict.fromkeys((*(column.name for column in schema.released), *people)))


def marks_of(engine: Engine, rows: Rows, schema: Schema, key: bytes) -> SourceFingerprint:
    """Return the marks of rows, read once where they are; values that cannot be read count as missing."""
    found = None
    with suppress(UnicodeError, pa.ArrowException):  # the error's own text holds a piece of the source
        found = engine.learn(rows, marked_columns(schema), partial(RowFingerprints, schema, key))
    if found is None:
        raise SourceInvalid("the source holds text that is not valid Unicode; nothing was released or charged.")
    return found.marks()


class RowFingerprints:
    """Gathers the marks of rows, batch by batch, wherever they are; the key does not travel with what was gathered.

    >>> schema = Schema((Column("age", type=Type.INTEGER), Column("zip")))
    >>> typed, text = RowFingerprints(schema, bytes(32)), RowFingerprints(schema, bytes(32))
    >>> typed.add(pa.record_batch({"age": [41, 7], "zip": ["021", "945"]}))
    >>> text.add(pa.record_batch({"zip": ["945", "021"], "age": ["7", "041"]}))
    >>> typed.marks().content == text.marks().content
    True
    """

    def __init__(self, schema: Schema, key: bytes) -> None:
        self.columns = marked_columns(schema)
        self._hashes: _Hashes | None = _Hashes(schema, key)
        self._read = 0
        self._sums = np.zeros(_WORDS, np.uint64)
        self._rows = BottomK()
        self._people = BottomK()

    def add(self, batch: pa.RecordBatch) -> None:
        """Learn from some rows."""
        if self._hashes is None:
            raise AssertionError("marks that came from elsewhere can only be merged")
        rows, people, known = self._hashes.of(batch)
        self._read += batch.num_rows
        self._rows = self._rows.with_elements(rows[:, 0])
        if people is not None:
            self._people = self._people.with_elements(people[known, 0])
            rows = rows * (people | np.uint64(1))
        self._sums = self._sums + np.array([rows[:, place].sum() for place in range(_WORDS)], np.uint64)

    def merge(self, other: RowFingerprints) -> None:
        """Learn what was learned from other rows."""
        self._read += other._read
        self._sums = self._sums + other._sums
        self._rows = self._rows.merged(other._rows)
        self._people = self._people.merged(other._people)

    def marks(self) -> SourceFingerprint:
        """Return what is known now."""
        if self._hashes is None:
            raise AssertionError("marks that came from elsewhere can only be merged")
        content = self._hashes.closed(self._read, self._sums)
        return SourceFingerprint(content, self._rows, self._people.as_set if self._hashes.people else None)

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels: not the key, which must not lie in files that a cluster writes on its way."""
        return {**vars(self), "_hashes": None}


class _Hashes:
    """What a key makes of rows: for each 128 bits that no one without the key can tell from random ones."""

    def __init__(self, schema: Schema, key: bytes) -> None:
        self._key = key
        self._columns = [_Marked(column, _salts(key, f"column {column.name.casefold()}")) for column in schema.released]
        person = schema.unit.column
        self.people = None if person is None else _Person(schema[person], _salts(key, "person"))
        self._rows, self._people = (_Scattering(_cipher_key(key, what)) for what in ("rows", "people"))

    def of(self, batch: pa.RecordBatch) -> tuple[NDArray[np.uint64], NDArray[np.uint64] | None, NDArray[np.bool_]]:
        """Return two words for each row, and for its person, if there are people; and which rows have one."""
        total = np.zeros(batch.num_rows, np.uint64)
        for column in self._columns:
            total += column.bits(batch.column(column.name))
        rows = self._rows.words(total)
        if self.people is None:
            return rows, None, np.ones(batch.num_rows, np.bool_)
        array = batch.column(self.people.name)
        known = pc.is_valid(array).to_numpy(zero_copy_only=False)
        return rows, self._people.words(self.people.bits(array)), known

    def closed(self, rows: int, sums: NDArray[np.uint64]) -> str:
        """Return the mark of the whole multiset."""
        kinds = sorted((column.name.casefold(), str(column.kind)) for column in self._columns)
        person = None if self.people is None else "person"
        stated = repr((kinds, person, rows, sums.tolist())).encode("utf-8", "surrogatepass")
        return hmac.new(self._key, b"content " + stated, hashlib.sha256).hexdigest()


class _Scattering:
    """A secret permutation of 128-bit blocks; its room is used again, which is most of what it would cost."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._given = self._taken = np.zeros((0, _WORDS), "<u8")

    def words(self, bits: Bits) -> NDArray[np.uint64]:
        """Return two words for each element, which hold until the next call."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        if not len(bits):
            return np.zeros((0, _WORDS), np.uint64)
        if len(self._given) != len(bits):
            self._given = np.zeros((len(bits), _WORDS), "<u8")
            self._taken = np.zeros((len(bits) + 1, _WORDS), "<u8")
        self._given[:, 0] = bits
        block = Cipher(algorithms.AES(self._key), modes.ECB()).encryptor()  # noqa: S305  a permutation, not a message
        block.update_into(self._given.data.cast("B"), self._taken.data.cast("B"))
        return self._taken[: len(bits)]


class _Marked:
    """One column's part of a row's bits: a sum over columns, so that their order does not matter."""

    def __init__(self, column: Column, salts: Bits) -> None:
        self.name, self.kind, self._separator = column.name, column.type, column.separator
        self._factor, self._missing = salts[0] | np.uint64(1), salts[1]
        self._salt = int(salts[2])
        self._dictionary: pa.Array | None = None
        self._table = np.zeros(0, np.uint64)

    def bits(self, array: pa.Array) -> Bits:
        """Return the bits of each row's value as the declared type; what cannot be read counts as missing."""
        if self._separator is not None and is_list(array.type):
            array = pc.binary_join(array.cast(pa.list_(pa.string())), self._separator)
        if self._stored_as_declared(array.type):
            return self._of(array)
        values, indices = as_dictionary(array)
        if indices is None:
            return self._of(self._typed(values))
        if self._dictionary is None or not self._dictionary.equals(values):
            self._table = np.append(self._of(self._typed(values)), self._missing)
            self._dictionary = values
        return np.take(self._table, indices)

    def _stored_as_declared(self, stored: pa.DataType) -> bool:
        whole = pa.types.is_signed_integer(stored) and self.kind is Type.INTEGER
        return whole or (pa.types.is_date32(stored) and self.kind is Type.DATE)

    def _typed(self, values: pa.Array) -> pa.Array:
        return read(values, self.kind).values

    def _of(self, values: pa.Array) -> Bits:
        """Return the bits of typed values."""
        if pa.types.is_date32(values.type):
            values = values.view(pa.int32())
        if pa.types.is_integer(values.type):
            whole = pc.fill_null(values, 0) if values.null_count else values
            numbers = whole.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
            bits: Bits = numbers.view(np.uint64) * self._factor
        else:
            bits = value_bits(values, self._salt)
        if values.null_count:
            bits = np.where(pc.is_null(values).to_numpy(zero_copy_only=False), self._missing, bits)
        return bits


class _Person(_Marked):
    """The column that tells people apart, under whatever name, as text: 17 and "17" are one person."""

    def _stored_as_declared(self, stored: pa.DataType) -> bool:
        del stored
        return False

    def _typed(self, values: pa.Array) -> pa.Array:
        return canonical(read(values, self.kind).values)


def _salts(key: bytes, what: str) -> Bits:
    salts: Bits = np.frombuffer(
        hashlib.blake2b(what.encode("utf-8", "surrogatepass"), key=key, digest_size=24).digest(), "<u8"
    )
    return salts


def _cipher_key(key: bytes, what: str) -> bytes:
    return hmac.new(key, f"cipher {what}".encode(), hashlib.sha256).digest()
