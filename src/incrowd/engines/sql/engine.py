"""QueryTables: tables that answer SQL trees, on any engine; their limits, typed rows, and the lineage of columns."""

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

FAILED = "the rows could not be read to their end: the source is damaged, or changed meanwhile."
SLOW = "the query exceeded its time limit. Ask for less at once: fewer groups, fewer joins."


@dataclass(frozen=True)
class Limits:
    """What one query may use: seconds, memory for all queries together, and threads (None: all).

    Where it is `timed`, an analyst can measure its duration: then no query may read rows of a person beyond those that
    take part, since their number is unbounded.
    """

    seconds: float = 600.0
    memory: str = "4GB"
    threads: int | None = None
    timed: bool = False


@dataclass(frozen=True)
class StoredTable:
    """One table: opened rows, their schema, and a callback for the progress of loading.

    `ready` is a tree over the table that computes the rows which queries read.  An engine that can runs it once and
    stores the result under the name `ready_name`.  So it does with `by_period`, for queries of some periods alone.
    """

    source: Opened
    schema: Schema
    progress: Progress | None = None
    ready: exp.Query | None = None
    by_period: exp.Query | None = None

    def forms(self, name: str) -> dict[str, exp.Query]:
        """Return the trees whose results are stored, by the names under which they are."""
        trees = {ready_name(name): self.ready, by_period_name(name): self.by_period}
        return {form: tree for form, tree in trees.items() if tree is not None}


PERSON_COLUMN = "_person"
"""The person ID column of rows that are ready, or take part in a query."""


def ready_name(table: str) -> str:
    """Return the name under which an engine stores the rows of a table as queries read them.

    >>> ready_name("people")
    'people, ready'
    """
    return f"{table}, ready"


def by_period_name(table: str) -> str:
    """Return the name under which an engine stores the rows of each person and period that can take part in a query.

    >>> by_period_name("people")
    'people, by period'
    """
    return f"{table}, by period"


@dataclass(frozen=True)
class SampledTable:
    """A secret sample of the rows of one table, which replaces the table in a query."""

    table: str
    sample: Sample


class QueryTables(Protocol):
    """Tables that answer SQL trees, from many threads; the same tree has the same answer on every engine."""

    def require(self, query: exp.Query, *, sampled: bool = False) -> None:
        """Raise QueryRefused, before anything is charged, if this engine does not answer such a query.

        That depends on the tree, never on rows.
        """

    def admitting(self, admitted: Mapping[str, PersonFilter]) -> QueryTables:
        """Return the same tables, some with the rows of admitted people only, by a semi-join on their ids.

        Ids come to this process, which decides; it sends back only which of them take part.
        """

    def load(self, queries: Sequence[exp.Query]) -> None:
        """Read once, before anything is charged, what these queries will read; raise SourceUnreadable if that fails.

        All declared columns of a table are read, also those that no query names: whether reading fails must not depend
        on the query.
        """

    def check(self) -> None:
        """Raise if a source changed or could not be read before; no row is read."""

    def collect(self, query: exp.Query, sample: SampledTable | None = None) -> pa.Table:
        """Run a query over the tables and return its rows; errors hold no data."""
        return self.collect_together([query], sample)[0]

    def collect_together(
        self, queries: Sequence[exp.Query], sample: SampledTable | None = None
    ) -> tuple[pa.Table, ...]:
        """Run queries over one state of the tables, and over one sample if there is one: the passes of one query.

        The limits apply to all of them together.
        """


def tables_read(query: exp.Query, declared: Collection[str]) -> list[str]:
    """Return the tables that a tree reads; it is our bug if it reads a file, a table function or anything else.

    >>> from sqlglot import select
    >>> tables_read(select("COUNT(*)").from_(exp.to_table("people")), {"people", "wards"})
    ['people']
    """
    named, local = set[str](), set[str]()
    for node in query.find_all(exp.Table, exp.CTE):
        if isinstance(node, exp.CTE):
            local.add(node.alias)
        elif isinstance(node.this, exp.Identifier) and node.args.get("db") is None:
            named.add(node.name)
        else:
            raise AssertionError("a query reads declared tables only")
    if not named <= {*declared, *local}:
        raise AssertionError("a query reads declared tables only")
    return sorted(named.intersection(declared))


def crowded_people(table: str, column: str, most: int) -> exp.Query:
    """Return the tree that counts the `people` of a table who have more than `most` rows.

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
    """Return the Arrow type in which values of a declared type are queried.

    >>> storage(Type.BOOLEAN)
    DataType(bool)
    """
    return pa.bool_() if kind is Type.BOOLEAN else kind.storage


def fields(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of typed rows."""
    return pa.schema([(column.name, storage(column.type)) for column in columns])


def typed_batches(rows: Rows, schema: Schema, sample: Sample | None = None) -> Iterator[pa.RecordBatch]:
    """Read all declared columns, each value as its declared type; missing and unreadable values are null.

    With a sample, only its rows: a row's coin depends on its position in the source.
    """
    columns, start = schema.columns, 0
    for batch in rows.batches(schema.names):
        stop = start + batch.num_rows
        chosen = batch if sample is None else batch.filter(pa.array(sample.at(start, stop)))
        start = stop
        typed = typed_arrays(chosen, [column.type for column in columns])
        values = [_short(array, longest_text(column, schema)) for array, column in zip(typed, columns, strict=True)]
        yield pa.RecordBatch.from_arrays(values, schema=fields(columns))


@dataclass(frozen=True)
class TextLimit:
    """How many characters of a text are read; in a person ID column (`whole`) a longer text is missing.

    Otherwise the texts of two people, cut short, could be equal.
    """

    most: int
    whole: bool

    def sql(self, text: str) -> str:
        """Return the SQL that applies the limit, the same on every engine.

        >>> TextLimit(9, whole=False).sql("x")
        'LEFT(x, 9)'
        """
        return (
            f"CASE WHEN LENGTH({text}) <= {self.most} THEN {text} END" if self.whole else f"LEFT({text}, {self.most})"
        )


def longest_text(column: Column, schema: Schema) -> TextLimit | None:
    """Return the limit of a column's texts; listed texts have none, since they are compared with the list."""
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


def sources_of(select: exp.Select) -> dict[str, exp.Table | exp.Subquery]:
    """Return what a query selects from, by the names that its columns use; nothing if it is more complex.

    >>> from sqlglot import parse_one
    >>> list(sources_of(parse_one("SELECT 1 FROM people AS p JOIN (SELECT 1) AS q ON TRUE")))
    ['p', 'q']
    """
    first, joins = select.args.get("from_"), select.args.get("joins") or ()
    if first is None or select.args.get("with_") or any(join.args.get("method") for join in joins):
        return {}
    sources = [first.this, *(join.this for join in joins)]
    named = {
        source.alias_or_name: source
        for source in sources
        if isinstance(source, exp.Table | exp.Subquery) and not source.alias_column_names
    }
    return named if len(named) == len(sources) else {}


def source_of(select: exp.Select, column: exp.Column) -> exp.Table | exp.Subquery | None:
    """Return what a column is selected from; a column without a table comes from the only source."""
    sources = sources_of(select)
    if not column.table and len(sources) == 1:
        return next(iter(sources.values()))
    return sources.get(column.table)


def selected(select: exp.Select, name: str) -> exp.Expr | None:
    """Return the expression of a query's column; a column that `*` passes on is itself.

    >>> from sqlglot import parse_one
    >>> selected(parse_one("SELECT *, a AS b"), "b").sql(), selected(parse_one("SELECT *, a AS b"), "c").sql()
    ('a', '"c"')
    """
    star = False
    for column in select.expressions:
        if column.is_star:
            if type(column) is not exp.Star or any(column.args.values()):
                return None
            star = True
        elif column.alias_or_name == name:
            expression: exp.Expr = column.unalias()
            return expression
    return exp.column(name, quoted=True) if star else None


def is_stored(query: exp.Expr, name: str) -> bool:
    """Whether a column of a query is a column of a table, with the same values and type.

    >>> from sqlglot import parse_one
    >>> query = parse_one("SELECT q.x AS y, q.z FROM (SELECT *, x + 1 AS z FROM people) AS q")
    >>> is_stored(query, "y"), is_stored(query, "z")
    (True, False)
    """
    column = selected(query, name) if isinstance(query, exp.Select) else None
    if not isinstance(query, exp.Select) or not isinstance(column, exp.Column):
        return False
    source = source_of(query, column)
    return isinstance(source, exp.Table) or (source is not None and is_stored(source.this, column.name))
