"""The system catalog: what tools ask of `pg_catalog` and `information_schema`, answered from declarations.

No row of a person is read, and nobody sees who else is connected.  A sandbox computes the answers; it holds the tables
of the catalog and public tables alone, and only functions on a list reach it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from incrowd.engines.sql.sandbox import Sandbox
from incrowd.errors import QueryRefused, UnknownTable
from incrowd.queries.declarations import DeclarationAnswer
from incrowd.queries.language.reading import QUIET
from incrowd.queries.language.spellings import array_texts
from incrowd.workflows.query.system_tables import (
    DATABASE,
    EMPTY,
    SCHEMA,
    SERVER_VERSION,
    SHAPES,
    catalog_tables,
    stored_name,
)

_LONGEST = 60_000
_MACROS = {
    "format_type": ("t, m", "(SELECT formatted FROM incrowd_types WHERE oid = t)"),
    "to_regtype": ("t", "(SELECT oid FROM pg_type WHERE typname = t)"),
    "regclass_oid": ("t", ("(SELECT oid FROM pg_class WHERE relname = replace(replace(replace(t, 'public.', ''), "
                     "'pg_catalog.', ''), '\"', '') LIMIT 1)")),
    "regclass_name": ("t", "(SELECT relname FROM pg_class WHERE oid = t)"),
    "regtype_name": ("t", "(SELECT formatted FROM incrowd_types WHERE oid = t)"),
    "obj_description": ("o, c", "(SELECT description FROM pg_description WHERE objoid = o AND objsubid = 0)"),
    "shobj_description": ("o, c", "CAST(NULL AS VARCHAR)"),
    "col_description": ("o, n", "(SELECT description FROM pg_description WHERE objoid = o AND objsubid = n)"),
    "pg_get_userbyid": ("o", "'incrowd'"),
    "pg_encoding_to_char": ("e", "'UTF8'"),
    "array_upper": ("a, d", "len(a)"),
    "array_to_string": ("a, s", "array_to_string(a, s)"),
    "quote_ident": ("t", "'\"' || t || '\"'"),
    "pg_size_pretty": ("s", "'0 bytes'"),
    "version": ("", f"'PostgreSQL {SERVER_VERSION} (incrowd)'"),
    "current_schemas": ("b", f"['pg_catalog', '{SCHEMA}']"),
    "pg_is_in_recovery": ("", "false"),
    "pg_my_temp_schema": ("", "0"),
    "pg_is_other_temp_schema": ("o", "false"),
    "pg_backend_pid": ("", "0"),
    "inet_server_addr": ("", "CAST(NULL AS VARCHAR)"),
    "pg_postmaster_start_time": ("", "CAST(NULL AS VARCHAR)"),
    "current_setting": ("t", "(SELECT setting FROM pg_settings WHERE name = lower(t))"),
}  # fmt: skip
_ALWAYS = ("pg_table_is_visible", "pg_type_is_visible", "pg_function_is_visible", "pg_collation_is_visible",
           "has_schema_privilege", "has_table_privilege", "has_database_privilege",
           "pg_relation_is_publishable")  # fmt: skip
_NULLS = ("json_build_object", "pg_get_expr", "pg_get_constraintdef", "pg_get_indexdef",
          "pg_get_function_arguments", "pg_get_ruledef",
          "pg_get_function_result", "pg_get_serial_sequence", "pg_get_statisticsobjdef_columns", "pg_get_viewdef",
          "pg_table_size", "pg_total_relation_size", "pg_relation_size", "pg_database_size",
          "pg_tablespace_location")  # fmt: skip
_SYSTEM = ("pg_catalog", "information_schema")
_FORBIDDEN = (exp.ReadCSV, exp.ReadParquet, exp.Insert, exp.Create, exp.Drop, exp.Command, exp.Copy, exp.Into)


@dataclass(frozen=True)
class Visitor:
    """Who asks: the name of the user, and the number of the connection."""

    name: str
    process: int = 0


@dataclass(frozen=True, eq=False)
class SystemCatalog:
    """The system catalog of some declared tables, and the public tables with their rows."""

    sandbox: Sandbox
    public: frozenset[str]

    @classmethod
    def of(cls, described: Mapping[str, Any], public: Mapping[str, pa.Table] | None = None) -> SystemCatalog:
        """Return the catalog of what a query service tells of its tables; `public` holds rows that anyone may see."""
        tables = catalog_tables(described)
        public = {name.casefold(): table for name, table in (public or {}).items()}
        return cls(Sandbox.of(public | tables, _macros()), frozenset(public) - tables.keys())

    def answer(self, sql: str, visitor: Visitor) -> pa.Table | None:
        """Answer a statement about the catalog and public tables; None where it reads anything else."""
        tree = self.tree(sql)
        if tree is None:
            return None
        if _has_no_rows(tree):
            names = [_name(column) for column in tree.selects]
            return pa.Table.from_arrays([pa.array([], pa.string()) for _ in names], names)
        result = self.sandbox.run(_translated(tree, visitor).sql(dialect="duckdb"))
        return result if tree.is_star else result.rename_columns([_name(column) for column in tree.selects])

    def tree(self, sql: str) -> exp.Query | None:
        """Return the tree of a statement about the catalog and public tables; None where it reads anything else."""
        if len(sql) > _LONGEST:
            return None
        try:
            with QUIET.silent():
                trees = [tree for tree in sqlglot.parse(sql, read="postgres") if tree is not None]
        except (sqlglot.errors.SqlglotError, RecursionError):
            return None
        return tree if len(trees) == 1 and isinstance(tree := trees[0], exp.Query) and self._knows(tree) else None

    def _knows(self, tree: exp.Query) -> bool:
        """Tell whether a tree reads the catalog and public tables alone; refuse what it would do beside that."""
        tables = _tables(tree)
        for table in tables:
            if table.db.lower() in _SYSTEM and _catalog_name(table) not in SHAPES:
                raise UnknownTable(f"the catalog has no table {table.db}.{table.name} here.")
        if not all(_catalog_name(table) in SHAPES or self._is_public(table) for table in tables):
            return False
        if tree.find(*_FORBIDDEN) is not None:
            raise QueryRefused("this server only reads: write SELECT.")
        for call in tree.find_all(exp.Anonymous):
            name = call.name.lower()
            if name not in _MACROS and name not in (*_ALWAYS, *_NULLS, *_PLAIN):
                if not tables:
                    return False
                raise QueryRefused(f"{name} is not computed on public tables: use functions of standard SQL.")
        return bool(tables) or tree.find(exp.Column) is None or tree.find(exp.Values) is not None

    def _is_public(self, table: exp.Table) -> bool:
        return table.name.casefold() in self.public and table.db.lower() in ("", SCHEMA, "main")


_PLAIN = ("date_part", "generate_subscripts", "_pg_expandarray", "strftime")


def _name(column: exp.Expr) -> str:
    """Return what PostgreSQL calls a column of a result."""
    match column:
        case exp.Dot():
            return _name(column.expression)
        case exp.Paren() | exp.Cast() if isinstance(column.this, exp.Column | exp.Func):
            return _name(column.this)
        case exp.CurrentVersion() | exp.CurrentUser() | exp.CurrentSchema() | exp.CurrentDatabase():
            return str(column.sql_name()).lower().replace("current_version", "version")
        case exp.Anonymous():
            return str(column.name.lower())
        case exp.Func() if not isinstance(column, exp.Binary | exp.Cast | exp.Connector):
            return str(column.sql_name()).lower()
    return str(column.alias_or_name) if isinstance(column, exp.Alias | exp.Column) else "?column?"


def _tables(tree: exp.Query) -> list[exp.Table]:
    """Return the tables that a tree reads, without its own common table expressions and functions."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    return [table for table in tables if table.db or table.name.lower() not in own]


def _catalog_name(table: exp.Table) -> str:
    name, schema = table.name.lower(), table.db.lower()
    return f"{schema}.{name}" if schema == "information_schema" else name if schema in ("", "pg_catalog") else ""


def _translated(tree: exp.Query, visitor: Visitor) -> exp.Query:
    """Return a tree for the sandbox: names, casts and functions of PostgreSQL in its words."""
    result = tree.copy()
    for rule in (_plainer, lambda node: _node(node, visitor)):
        for node in reversed(list(result.walk())):  # from the leaves to the root, which stays what it is
            new = rule(node)
            if new is not node:
                node.replace(new)
    return result


def _plainer(node: exp.Expr) -> exp.Expr:
    """Leave the schema of functions and types away, and collations."""
    match node:
        case exp.Dot() if isinstance(call := node.expression, exp.Func):
            return call
        case exp.Collate():
            inner: exp.Expr = node.this
            return inner
        case exp.Operator():
            return exp.RegexpLike(this=node.this, expression=node.expression)
        case exp.Table() if isinstance(node.this, exp.Func):
            node.set("db", None)
    return node


def _has_no_rows(query: exp.Expr) -> bool:
    """Tell whether a query reads a table that has no row, so that it has none either."""
    if not isinstance(query, exp.Select) or (query.find(exp.AggFunc) is not None and not query.args.get("group")):
        return False
    origin, joins = query.args.get("from_"), query.args.get("joins") or ()
    inner = [join.this for join in joins if not join.side] + ([] if origin is None else [origin.this])
    outer = any(join.side in ("RIGHT", "FULL") for join in joins)
    return not outer and any(
        _catalog_name(source) in EMPTY if isinstance(source, exp.Table) else _has_no_rows(source.this)
        for source in inner
        if isinstance(source, exp.Table | exp.Subquery)
    )


def _node(node: exp.Expr, visitor: Visitor) -> exp.Expr:
    match node:
        case exp.Table() if _catalog_name(node) in SHAPES:
            return _table(node, visitor)
        case exp.Table() if node.db:
            return exp.Table(this=exp.to_identifier(node.name.casefold(), quoted=True), alias=node.args.get("alias"))
        case exp.Column() if node.args.get("db") is not None:
            return exp.column(node.this.copy(), node.args["table"].copy())
        case exp.Cast():
            return _cast(node)
        case exp.EQ() if (
            isinstance(node.expression, exp.Any) and (texts := array_texts(node.expression.this)) is not None
        ):
            return exp.In(this=node.this, expressions=[exp.Literal.string(text) for text in texts])
        case exp.Anonymous() if node.name.lower() == "pg_backend_pid":
            return exp.Literal.number(visitor.process)
        case exp.Anonymous() if node.name.lower() in _MACROS or node.name.lower() in (*_ALWAYS, *_NULLS):
            return _call(node)
        case exp.CurrentSchema():
            return exp.Literal.string(SCHEMA)
        case exp.CurrentCatalog() | exp.CurrentDatabase():
            return exp.Literal.string(DATABASE)
        case exp.CurrentUser() | exp.SessionUser():
            return exp.Literal.string(visitor.name)
        case exp.CurrentVersion():
            return exp.Literal.string(f"PostgreSQL {SERVER_VERSION} (incrowd)")
        case exp.CurrentSchemas():
            return exp.Anonymous(this="ic_current_schemas", expressions=[exp.true()])
    return node


def _table(node: exp.Table, visitor: Visitor) -> exp.Expr:
    name = _catalog_name(node)
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name.lower()))
    if name == "pg_stat_activity":
        own = exp.select(
            exp.alias_(exp.Literal.string(DATABASE), "datname"),
            exp.alias_(exp.Literal.number(visitor.process), "pid"),
            exp.alias_(exp.Literal.string(visitor.name), "usename"),
            *(exp.alias_(exp.Literal.string(text), column) for column, text in _ACTIVITY),
        )
        return exp.Subquery(this=own, alias=alias.copy())
    stored = stored_name(name)
    return exp.Table(this=exp.to_identifier(stored), alias=alias.copy(), joins=node.args.get("joins"))


_ACTIVITY = (("application_name", ""), ("state", "active"), ("query", ""))


def _cast(node: exp.Cast) -> exp.Expr:
    kind = node.to.sql(dialect="postgres").lower().replace('"', "")
    inner = node.this
    match kind.rpartition(".")[2]:
        case "int2[]" | "smallint[]" | "oid[]":
            return exp.cast(inner, "BIGINT[]")
        case "regclass":
            text = isinstance(inner, exp.Literal) and inner.is_string
            return exp.Anonymous(this="ic_regclass_oid" if text else "ic_regclass_name", expressions=[inner])
        case "regtype":
            text = isinstance(inner, exp.Literal) and inner.is_string
            return exp.Anonymous(this="ic_to_regtype" if text else "ic_regtype_name", expressions=[inner])
        case "oid" | "xid" | "int2" | "int4" | "smallint":
            return exp.cast(inner, "BIGINT")
        case "text" | "regproc" | "regnamespace" | "regrole" | "name" | "char" | "cstring" | "sql_identifier":
            return exp.cast(inner, "VARCHAR")
    return node


def _call(node: exp.Anonymous) -> exp.Expr:
    name = node.name.lower()
    if name in _ALWAYS:
        return exp.true()
    if name in _NULLS:
        return exp.cast(exp.null(), "VARCHAR")
    parameters = _MACROS[name][0].split(", ") if _MACROS[name][0] else []
    arguments = node.expressions[: len(parameters)]
    return exp.Anonymous(
        this=f"ic_{name}", expressions=[*arguments, *[exp.null()] * (len(parameters) - len(arguments))]
    )


def _macros() -> list[str]:
    return [f"CREATE MACRO ic_{name}({parameters}) AS {body}" for name, (parameters, body) in _MACROS.items()]


def public_rows(table: pa.Table) -> DeclarationAnswer:
    """Return a result in the form of an answer; lists are written as PostgreSQL writes arrays."""
    kinds = tuple(_kind(field.type) for field in table.schema)
    columns = [
        [_plain(value, kind) for value in column.to_pylist()] for column, kind in zip(table.columns, kinds, strict=True)
    ]
    return DeclarationAnswer(tuple(table.schema.names), tuple(zip(*columns, strict=True)), kinds)


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "decimal"
    return "date" if pa.types.is_date(kind) else "text"


def _plain(value: Any, kind: str) -> Any:
    if value is None or kind in ("boolean", "integer"):
        return value
    if kind == "decimal":
        return float(value)
    if isinstance(value, list):
        return "{" + ",".join("NULL" if item is None else str(item) for item in value) + "}"
    return str(value) if not isinstance(value, bytes) else value.hex()
