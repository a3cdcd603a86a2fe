"""Fingerprint: a keyed hash of a source, by which its owner, and nobody else, can tell that it is the same again."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyarrow import compute as pc

from incrowd.engines.readers.frames import Frame
from incrowd.engines.readers.plain import is_list, plain
from incrowd.errors import InvalidParameter, SourceUnreadable

if TYPE_CHECKING:
    from incrowd.engines.readers.postgres import PostgresRows
    from incrowd.engines.readers.sources import Source

_BLOCK = 1 << 20
_ROWS = 1 << 16


def content_digest(source: Source) -> bytes:
    """Return the SHA-256 of the bytes of the source's files, or of the values of a frame; never shown to anyone.

    What was copied from a server is the copy's bytes.

    A file is recognized under any name.  A frame's digest depends on its names, types and values, not on how its
    memory is cut into pieces.
    """
    digest = hashlib.sha256()
    if isinstance(source.reader, Frame):
        _add_table(digest, source.reader.table)
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
    """Return a commitment to a content digest: without the key, 32 secret random bytes, nobody can test a guess.

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
        for start in range(0, len(column), _ROWS):
            chunks = column.slice(start, _ROWS).chunks
            array = pa.concat_arrays([_dense(chunk, name) for chunk in chunks])
            _add_text(digest, f"{array.type} {len(array)}")
            digest.update(array.is_valid().cast(pa.uint8()).to_numpy().tobytes())
            _add_values(digest, array.drop_null())


def _add_values(digest: hashlib._Hash, array: pa.Array) -> None:
    """Add the values themselves; text as lengths and bytes, anything else as the numbers it is stored as."""
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
    except SourceUnreadable:  # nested values: never released, but part of what the frame is
        array = _written(array)
    if is_list(array.type):
        array = _written(array)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _written(array: pa.Array) -> pa.Array:
    return pa.array([None if value is None else repr(value) for value in array.to_pylist()], pa.string())


def _add_text(digest: hashlib._Hash, text: str) -> None:
    coded = text.encode()
    digest.update(len(coded).to_bytes(8, "little") + coded)
