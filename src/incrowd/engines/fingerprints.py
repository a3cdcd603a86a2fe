"""Fingerprints: how a data holder recognizes the same source, or the same rows, again.

A source has a digest of its bytes.  Rows have keyed numbers of constant size: under a secret key each row becomes 128
bits that depend on its typed values alone.  Their sum over the rows is a hash of the multiset: order, format,
compression and encoding do not matter.  The rows with the smallest bits, and the people with the smallest, are samples
that estimate the overlap with other rows.  Fingerprints stay in a file of the data holder; with that file and its key
one could test whether a person is in the sample.

Fingerprints are compared over years: the bits of a value must never change.
"""

from __future__ import annotations

import hashlib
import hmac
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute as pc

from incrowd.core.domain import Type
from incrowd.core.fingerprints import Bits, BottomK, SourceFingerprint, value_bits
from incrowd.core.reading import as_dictionary, canonical, is_wide, read
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Engine, Rows
from incrowd.engines.readers.plain import is_list, plain
from incrowd.errors import InvalidParameter, SourceInvalid, SourceUnreadable

if TYPE_CHECKING:
    from incrowd.engines.readers.columnar import Frame
    from incrowd.engines.readers.postgres import PostgresRows
    from incrowd.engines.readers.sources import Source

_BLOCK = 1 << 20  # bytes read at a time
_DIGEST_ROWS = 1 << 16  # rows digested at a time


def content_digest(source: Source) -> bytes:
    """Return the SHA-256 of the bytes of the source's files, or of the values of a frame; it stays secret.

    Of a PostgreSQL table it is the digest of the local copy.  A file has the same digest under any name.  The digest of
    a frame depends on its names, types and values, not on how its memory is cut into pieces.
    """
    digest = hashlib.sha256()
    if source.format == "frame":
        _add_table(digest, cast("Frame", source.reader).table)
    elif source.format == "postgresql":
        copy = cast("PostgresRows", source.reader).content
        _add_text(digest, f"file {copy.size}")
        digest.update(copy)
    else:
        source.check_unchanged()
        for stamp in source.stamps:
            _add_file(digest, stamp.path)
        source.check_unchanged()
    return digest.digest()


def keyed_digest(content: bytes, key: bytes) -> str:
    """Return a commitment to a content digest: without the key, 32 secret random bytes, no guess can be tested.

    >>> from incrowd.engines.readers.sources import open_source
    >>> content = content_digest(open_source(pa.table({"zip": ["01234"]})))
    >>> keyed_digest(content, bytes(32)) == keyed_digest(content, bytes(32)), keyed_digest(content, bytes(32))[:12]
    (True, 'hmac-sha256:')
    """
    if len(key) < 32:
        raise InvalidParameter("the key of a fingerprint must have at least 32 random bytes.")
    return f"hmac-sha256:{hmac.new(key, content, hashlib.sha256).hexdigest()}"


def fingerprint(source: Source, key: bytes) -> str:
    """Return the keyed fingerprint of a source."""
    return keyed_digest(content_digest(source), key)


def _add_file(digest: hashlib._Hash, path: Path) -> None:
    _add_text(digest, f"file {path.stat().st_size}")
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)


def _add_table(digest: hashlib._Hash, table: pa.Table) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        _add_text(digest, f"column {name}")
        for start in range(0, len(column), _DIGEST_ROWS):
            chunks = column.slice(start, _DIGEST_ROWS).chunks
            array = pa.concat_arrays([_dense(chunk, name) for chunk in chunks])
            _add_text(digest, f"{array.type} {len(array)}")
            digest.update(array.is_valid().cast(pa.uint8()).to_numpy().tobytes())
            _add_values(digest, array.drop_null())


def _add_values(digest: hashlib._Hash, array: pa.Array) -> None:
    """Add the values: text as lengths and bytes, anything else as the numbers in which it is stored."""
    if pa.types.is_string(array.type):
        digest.update(pc.binary_length(array).to_numpy(zero_copy_only=False).tobytes())
        digest.update("".join(array.to_pylist()).encode())
    elif pa.types.is_boolean(array.type):
        digest.update(array.cast(pa.uint8()).to_numpy().tobytes())
    elif not pa.types.is_null(array.type):
        width = array.type.bit_width // 8
        raw = array.buffers()[1]
        digest.update(raw[array.offset * width : (array.offset + len(array)) * width] if raw else b"")


def _dense(array: pa.Array, name: str) -> pa.Array:
    try:
        array = plain(array, name)
    except SourceUnreadable:  # nested values are never released, but part of the frame
        array = _written(array)
    if is_list(array.type):
        array = _written(array)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _written(array: pa.Array) -> pa.Array:
    return pa.array([None if value is None else repr(value) for value in array.to_pylist()], pa.string())


def _add_text(digest: hashlib._Hash, text: str) -> None:
    coded = text.encode()
    digest.update(len(coded).to_bytes(8, "little") + coded)


_WORDS = 2  # two sums of 64 bits: a fingerprint of 128 bits


def marked_columns(schema: Schema) -> tuple[str, ...]:
    """Return the columns of a fingerprint: those that may be released, and the person ID column.

    >>> marked_columns(Schema((Column("age", type=Type.INTEGER), Column("zip"))))
    ('age', 'zip')
    """
    people = (schema.unit.column,) if schema.unit.column is not None else ()
    return tuple(dict.fromkeys((*(column.name for column in schema.released), *people)))


def marks_of(engine: Engine, rows: Rows, schema: Schema, key: bytes) -> SourceFingerprint:
    """Return the fingerprint of rows, read once by their engine; values that cannot be read count as missing."""
    gathered = None
    with suppress(UnicodeError, pa.ArrowException):  # the error's own text holds a piece of the source
        gathered = engine.learn(rows, marked_columns(schema), partial(RowFingerprints, schema, key))
    if gathered is None:
        raise SourceInvalid("the source holds text that is not valid Unicode; nothing was released or charged.")
    return gathered.marks()


class RowFingerprints:
    """Gathers the fingerprint of rows, batch by batch, on any engine; the key is not pickled with it.

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
        rows, people, valid = self._keyed.of(batch)
        self._read += batch.num_rows
        self._rows = self._rows.with_elements(rows[:, 0])
        if people is not None:
            self._people = self._people.with_elements(people[valid, 0])
            rows = rows * (people | np.uint64(1))
        self._sums = self._sums + np.array([rows[:, place].sum() for place in range(_WORDS)], np.uint64)

    def merge(self, other: RowFingerprints) -> None:
        self._read += other._read
        self._sums = self._sums + other._sums
        self._rows = self._rows.merged(other._rows)
        self._people = self._people.merged(other._people)

    def marks(self) -> SourceFingerprint:
        """Return the fingerprint of all rows so far."""
        content = self._keyed.closed(self._read, self._sums)
        return SourceFingerprint(content, self._rows, self._people.as_set if self._keyed.people else None)

    @property
    def _keyed(self) -> _Hashes:
        if self._hashes is None:
            raise AssertionError("fingerprints that were unpickled have no key and can only be merged")
        return self._hashes

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the key, which must not lie in files that a cluster writes."""
        return {**vars(self), "_hashes": None}


class _Hashes:
    """The keyed hash of rows: 128 bits each, which nobody without the key can distinguish from random ones."""

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
        valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
        return rows, self._people.words(self.people.bits(array)), valid

    def closed(self, rows: int, sums: NDArray[np.uint64]) -> str:
        """Return the fingerprint of the whole multiset."""
        kinds = sorted((column.name.casefold(), str(column.kind)) for column in self._columns)
        person = None if self.people is None else "person"
        stated = repr((kinds, person, rows, sums.tolist())).encode("utf-8", "surrogatepass")
        return hmac.new(self._key, b"content " + stated, hashlib.sha256).hexdigest()


class _Scattering:
    """A secret permutation of 128-bit blocks; its buffers are reused, since allocating them would dominate the cost."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._input = self._output = np.zeros((0, _WORDS), "<u8")

    def words(self, bits: Bits) -> NDArray[np.uint64]:
        """Return two words for each element, which are valid until the next call."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        if not len(bits):
            return np.zeros((0, _WORDS), np.uint64)
        if len(self._input) != len(bits):
            self._input = np.zeros((len(bits), _WORDS), "<u8")
            self._output = np.zeros((len(bits) + 1, _WORDS), "<u8")
        self._input[:, 0] = bits
        block = Cipher(algorithms.AES(self._key), modes.ECB()).encryptor()  # noqa: S305  a permutation, not a message
        block.update_into(self._input.data.cast("B"), self._output.data.cast("B"))
        return self._output[: len(bits)]


class _Marked:
    """One column's part of a row's bits: a sum over columns, so that their order does not matter."""

    def __init__(self, column: Column, salts: Bits) -> None:
        self.name, self.kind, self._separator = column.name, column.type, column.separator
        self._factor, self._missing = salts[0] | np.uint64(1), salts[1]
        self._salt = int(salts[2])
        self._dictionary: pa.Array | None = None
        self._table = np.zeros(0, np.uint64)
        self._wide = False
        """Whether nearly each row had a value of its own so far: then values are hashed as they come."""

    def bits(self, array: pa.Array) -> Bits:
        """Return the bits of each row's value as the declared type; an unreadable value counts as missing."""
        if self._separator is not None and is_list(array.type):
            array = pc.binary_join(array.cast(pa.list_(pa.string())), self._separator)
        if self._stored_as_declared(array.type):
            return self._of(array)
        if self._wide and pa.types.is_string(array.type):
            return self._of(self._typed(array))
        values, indices = as_dictionary(array)
        if indices is None:
            return self._of(self._typed(values))
        self._wide = is_wide(values, len(array))
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
    """The person ID column, under any name, as text: 17 and "17" are one person."""

    def _stored_as_declared(self, stored: pa.DataType) -> bool:
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
