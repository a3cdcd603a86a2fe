"""Asked: what answers questions to rows, wherever they are; what it is held to, and rows in their declared types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from incrowd.core.coins import Sample
from incrowd.core.domain import Categories, Type
from incrowd.core.reading import as_dictionary, read
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Rows

if TYPE_CHECKING:
    from incrowd.core.table import Opened, PersonFilter, Progress

FAILED = "the rows could not be read to their end: the source is damaged, or changed in the meantime."
SLOW = "the question took longer than it may. Ask for less at once: fewer groups, fewer joins."


@dataclass(frozen=True)
class Limits:
    """What one question may take: seconds, memory for all at once, and threads (None: all there are).

    Where it is `timed`, whoever asks can measure how long it takes: no question may read rows of a person beyond those
    that take part, for their number is bounded by nothing.
    """

    seconds: float = 600.0
    memory: str = "4GB"
    threads: int | None = None
    timed: bool = False


@dataclass(frozen=True)
class StoredTable:
    """One table: rows that were opened, what is declared about them, and who is told how many have been loaded.

    `ready` is a tree over the table as it is, which makes the rows that questions read: an engine that can runs it once
    and holds its result under the name `ready_name`.
    """

    source: Opened
    schema: Schema
    progress: Progress | None = None
    ready: exp.Query | None = None


PERSON_COLUMN = "_person"
"""The column of rows that are ready, or take part in a question, that tells people apart."""


def ready_name(table: str) -> str:
    """Return the name under which an engine holds the rows of a table as questions read them.

    >>> ready_name("people")
    'people, ready'
    """
    return f"{table}, ready"


@dataclass(frozen=True)
class SampledTable:
    """A secret sample of the rows of one table, which takes the table's place in a question."""

    table: str
    sample: Sample


class QueryTables(Protocol):
    """Tables that can be asked by SQL trees, from many threads; the same trees have the same answers everywhere."""

    def require(self, query: exp.Query, *, sampled: bool = False) -> None:
        """Raise QuestionRefused if this place does not answer such a query; it hangs on the tree, never on rows.

        It is asked before anything is charged.
        """

    def admitting(self, admitted: Mapping[str, PersonFilter]) -> QueryTables:
        """Return the same tables, of which some show the rows of admitted people alone, by a semi-join on their ids.

        Ids come to this process, which decides on them; all that goes back is which of them take part.
        """

    def load(self, queries: Sequence[exp.Query]) -> None:
        """Read once what these queries will read, and raise SourceUnreadable if that fails: before anything is charged.

        All declared columns of a table are read, also those that no query names: whether reading fails must not
        depend on what is asked.
        """

    def check(self) -> None:
        """Raise if a source is no longer what it was, or could not be read before; it reads no row."""

    def collect(self, query: exp.Query, drawn: SampledTable | None = None) -> pa.Table:
        """Run a query over the tables and return its rows; whatever goes wrong below is told in words without data."""

    def collect_together(self, queries: Sequence[exp.Query], drawn: SampledTable | None = None) -> tuple[pa.Table, ...]:
        """Run queries over one state of the tables, and over one sample if one was drawn: the passes of one question.

        All of it together is held to the limits.
        """


def asked_tables(query: exp.Query, declared: Collection[str]) -> list[str]:
    """Return the tables that a tree reads; it is a mistake of ours if it reads anything else.

    No files, no functions that return tables, no commands.

    >>> from sqlglot import select
    >>> asked_tables(select("COUNT(*)").from_(exp.to_table("people")), {"people", "wards"})
    ['people']
    """
    named, local = set[str](), set[str]()
    for node in query.find_all(exp.Table, exp.CTE):
        if isinstance(node, exp.CTE):
            local.add(node.alias)
        elif isinstance(node.this, exp.Identifier) and node.args.get("db") is None:
            named.add(node.name)
        else:
            raise AssertionError("a question reads declared tables only")
    if not named <= {*declared, *local}:
        raise AssertionError("a question reads declared tables only")
    return sorted(named.intersection(declared))


def crowded_people(table: str, column: str, most: int) -> exp.Query:
    """Return the tree that counts the `people` of a table who have more rows than so many.

    >>> crowded_people("visits", "id", 3).named_selects
    ['people']
    """
    person = exp.column(exp.to_identifier(column, quoted=True))
    owned = (
        exp.select(person)
        .from_(exp.Table(this=exp.to_identifier(table, quoted=True)))
        .where(person.copy().is_(exp.null()).not_())
        .group_by(person.copy())
        .having(exp.Count(this=exp.Star()) > most)
    )
    return exp.select(exp.alias_(exp.Count(this=exp.Star()), "people")).from_(owned.subquery("owned"))


SQL_TYPES = {
    Type.INTEGER: "BIGINT",
    Type.DECIMAL: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.BOOLEAN: "BOOLEAN",
}


def storage(kind: Type) -> pa.DataType:
    """Return the Arrow type in which values of a declared type are asked about.

    >>> storage(Type.BOOLEAN)
    DataType(bool)
    """
    return pa.bool_() if kind is Type.BOOLEAN else kind.storage


def fields(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of typed rows."""
    return pa.schema([(column.name, storage(column.type)) for column in columns])


def typed_batches(rows: Rows, schema: Schema, sample: Sample | None = None) -> Iterator[pa.RecordBatch]:
    """Read all declared columns, each value as its declared type; what is missing or cannot be read is null.

    With a sample, only the rows in it: a row's coin hangs on its position in the source.
    """
    columns, start = schema.columns, 0
    for batch in rows.batches(schema.names):
        stop = start + batch.num_rows
        chosen = batch if sample is None else batch.filter(pa.array(sample.at(start, stop)))
        start = stop
        typed = typed_arrays(chosen, [column.type for column in columns])
        values = [_short(array, longest_text(each, schema)) for array, each in zip(typed, columns, strict=True)]
        yield pa.RecordBatch.from_arrays(values, schema=fields(columns))


@dataclass(frozen=True)
class TextLimit:
    """How many characters of a text are read; where the text tells people apart, a longer one tells nobody.

    Cut texts of two people could be one.
    """

    most: int
    whole: bool

    def sql(self, text: str) -> str:
        """Return the SQL that reads a text so, the same on every engine.

        >>> TextLimit(9, whole=False).sql("x")
        'LEFT(x, 9)'
        """
        return (
            f"CASE WHEN LENGTH({text}) <= {self.most} THEN {text} END" if self.whole else f"LEFT({text}, {self.most})"
        )


def longest_text(column: Column, schema: Schema) -> TextLimit | None:
    """Return how much is read of the texts of a column; of listed ones all, they are compared with the list."""
    if column.type is not Type.TEXT or isinstance(column.domain, Categories):
        return None
    return TextLimit(column.max_length, schema.unit.column == column.name)


def _short(array: pa.Array, limit: TextLimit | None) -> pa.Array:
    if limit is None:
        return array
    if limit.whole:
        return pc.if_else(pc.less_equal(pc.utf8_length(array), limit.most), array, pa.scalar(None, array.type))
    return pc.utf8_slice_codeunits(array, 0, limit.most)


def typed_arrays(batch: pa.RecordBatch, kinds: Sequence[Type]) -> list[pa.Array]:
    """Return the columns of a batch, each in the storage of its declared type.

    >>> typed_arrays(pa.record_batch({"age": ["41", "none"]}), [Type.INTEGER])[0].to_pylist()
    [41, None]
    """
    return [_typed(array, kind) for array, kind in zip(batch.columns, kinds, strict=True)]


def _typed(array: pa.Array, kind: Type) -> pa.Array:
    values, indices = as_dictionary(array)
    stored = read(values, kind).values
    if kind is Type.BOOLEAN:
        stored = pc.equal(stored, "true")
    whole = stored if indices is None else stored.take(pa.array(indices, mask=indices == len(values)))
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
