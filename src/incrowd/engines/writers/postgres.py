"""A table in PostgreSQL: loaded, read back and compared in one transaction; it appears completely or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

from incrowd.engines.columns import quote
from incrowd.engines.postgres import Address, address_of, answers, connect, explained, is_postgres, run, transact
from incrowd.engines.writers.files import bare, pieces
from incrowd.errors import GuaranteeBroken, IncrowdError, InvalidParameter, OutputUnavailable

_PIECE = 1 << 16  # rows compared at a time
_TAKEN = """
SELECT coalesce({schema}, current_schema()), to_regclass({name}) IS NOT NULL,
has_schema_privilege(coalesce({schema}, current_schema()), 'CREATE')
"""
Rows = Callable[[], pa.RecordBatchReader]
"""Returns the rows of a release from the first, each time it is called."""


def check_table(table: str, columns: Sequence[str] = ()) -> None:
    """Raise, before anything is charged, if a table cannot be created there: nothing is ever overwritten.

    With `columns` a table of these names is created on trial, in a transaction that is rolled back.

    >>> check_table("clinic.sqlite::visits")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: a table is written to PostgreSQL: postgresql://USER@HOST/DATABASE::TABLE.
    """
    address, name = _named(table)

    def work(connection: Any) -> None:
        place = _free(connection, address, name)
        if columns:
            _try(connection, address, place, columns)

    transact(address, (), work, partial(_unavailable, address))


@contextmanager
def load_table(rows: Rows, table: str, note: str) -> Iterator[None]:
    """Load rows into a new table that appears when the block ends without an error.

    The table is created, filled by COPY, read back row by row and compared with `rows`, all in one transaction: nobody
    else sees it before the commit, and any failure undoes it.  `note` becomes the table's comment.
    """
    address, name = _named(table)
    trouble = partial(_unavailable, address)
    with ExitStack() as stack:
        connection = explained(lambda: stack.enter_context(connect(address)), trouble)
        explained(lambda: _fill(connection, _free(connection, address, name), rows, note), trouble)
        yield
        explained(connection.commit, partial(_uncommitted, address))


def _try(connection: Any, address: Address, place: tuple[str, str], columns: Sequence[str]) -> None:
    full = ".".join(quote(part) for part in place)
    run(connection, f"CREATE TABLE {full} ({', '.join(f'{quote(name)} text' for name in columns)})")
    with connection.cursor() as cursor:
        made = cursor.adbc_execute_schema(f"SELECT * FROM {full}").names  # noqa: S608 - quoted
    for name, cut in zip(columns, made, strict=True):
        if name != cut:
            raise OutputUnavailable(f"{address.public} would shorten the name of column {name}. Choose a shorter one.")


def _fill(connection: Any, place: tuple[str, str], rows: Rows, note: str) -> None:
    schema, table = place
    full = f"{quote(schema)}.{quote(table)}"
    with connection.cursor() as cursor:
        cursor.adbc_ingest(table, _plain(rows()), mode="create", db_schema_name=schema)
        cursor.execute(f"SELECT * FROM {full} ORDER BY ctid")  # noqa: S608 - quoted
        if not _same(_plain(rows()), cursor.fetch_record_batch()):
            raise GuaranteeBroken(
                "the rows in the database are not the released rows. This is a fault in the software: please report it."
            )
    run(connection, f"COMMENT ON TABLE {full} IS {_text(note)}")


def _free(connection: Any, address: Address, name: tuple[str | None, str]) -> tuple[str, str]:
    """Return schema and table if a table can be created there."""
    schema, table = name
    full = ".".join(quote(part) for part in name if part is not None)
    query = _TAKEN.format(schema="NULL" if schema is None else _text(schema), name=_text(full))
    ((existing, taken, allowed),) = answers(connection, query)
    if existing is None:
        raise OutputUnavailable(f"{address.public} has no schema for a table. Name one: ::SCHEMA.TABLE.")
    if taken:
        raise OutputUnavailable(f"{address.public} has a table {table}, and nothing is overwritten. Choose a new name.")
    if not allowed:
        raise OutputUnavailable(
            f"{address.public} does not let this user create tables in {existing}. Ask for the right."
        )
    return str(existing), table


def _same(expected: pa.RecordBatchReader, stored: pa.RecordBatchReader) -> bool:
    """Whether two streams hold the same rows in the same order, compared piece by piece."""
    if stored.schema.names != expected.schema.names:
        return False
    theirs = pieces(stored, _PIECE)
    for piece in pieces(expected, _PIECE):
        other = next(theirs, None)
        if other is None or other.num_rows != piece.num_rows or not _cast(other, piece.schema).equals(piece):
            return False
    return next(theirs, None) is None


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [column.cast(field.type) for column, field in zip(table.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _plain(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the rows with values instead of dictionary codes."""
    types = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in bare(rows.schema).types]
    schema = pa.schema(list(zip(rows.schema.names, types, strict=True)))
    batches = (
        pa.RecordBatch.from_arrays([_decoded(array) for array in batch.columns], schema=schema) for batch in rows
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def _decoded(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _named(table: str) -> tuple[Address, tuple[str | None, str]]:
    if not is_postgres(table):
        raise InvalidParameter("a table is written to PostgreSQL: postgresql://USER@HOST/DATABASE::TABLE.")
    address = address_of(table)
    if not address.part:
        raise InvalidParameter(f"the address names no table. Write {address.public}::TABLE, or ::SCHEMA.TABLE.")
    schema, _, name = address.part.rpartition(".")
    return address, (schema or None, name)


def _text(value: str) -> str:
    """Return a text as SQL writes it; backslashes stand for themselves."""
    return "'" + value.replace("'", "''") + "'"


def _unavailable(address: Address, words: str) -> IncrowdError:
    return OutputUnavailable(f"{address.public} {words} No table appeared.")


def _uncommitted(address: Address, words: str) -> IncrowdError:
    return OutputUnavailable(
        f"{address.public} {words} The folder of the release is complete. Check whether the table appeared; if not, "
        "load the data file into it."
    )
