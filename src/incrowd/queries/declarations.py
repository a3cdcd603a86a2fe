"""Declarations: SHOW TABLES, DESCRIBE and the information schema, which other tools ask before they ask anything else.

They are about what a policy declares, so they read no row and cost nothing.  Whatever else is said in them is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from incrowd.errors import InvalidParameter, QueryRefused

if TYPE_CHECKING:
    from sqlglot import exp

SCHEMA = "main"
"""The schema that declared tables are in, for tools that ask for one."""
PERSON_NOTE = "join key: count it by COUNT(DISTINCT), or join by it"
"""What is said of the column that identifies people, instead of its domain."""
_INFORMATION = "information_schema"
_SHOW = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)
_DESCRIBE = re.compile(
    r"\s*(?:describe|desc|show\s+columns\s+(?:from|in))\s+(?:\"(?P<quoted>[^\"]+)\"|(?P<plain>\w+))\s*;?\s*",
    re.IGNORECASE,
)
_NO_ROWS = re.compile(
    r"\s*select\s+\*\s+from\s+(?:\"?main\"?\.)?(?:\"(?P<quoted>[^\"]+)\"|(?P<plain>\w+))\s+"
    r"(?:where\s+(?:1\s*=\s*0|false)|limit\s+0)\s*;?\s*",
    re.IGNORECASE,
)
"""How tools ask which columns a table has: for rows that no table can have."""
_SIMPLE = (
    "Select", "From", "Table", "Identifier", "Column", "Star", "Literal", "Alias", "TableAlias", "Where", "And", "Or",
    "Not", "Paren", "EQ", "NEQ", "In", "Like", "Is", "Null", "Lower", "Upper", "Order", "Ordered", "Limit", "Distinct",
    "Count", "Boolean",
)  # fmt: skip
_MOST_NODES = 400  # a declaration is read at every start; a longer one is a query, not a declaration
_TYPES = {"text": "VARCHAR", "integer": "BIGINT", "decimal": "DOUBLE", "date": "DATE", "boolean": "BOOLEAN"}
_VERSION = 1


@dataclass(frozen=True)
class DeclarationAnswer:
    """A table about declarations, in the form of an answer: exact, certified by nobody, for nothing."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    types: tuple[str, ...] = ()
    """The types of the columns, where they are not seen by what the rows hold."""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form of a reply."""
        types = self.types or ["integer" if _whole(values) else "text" for values in self._columns()]
        columns = [
            {"name": name, "type": kind, "values": list(values)}
            for name, kind, values in zip(self.names, types, self._columns(), strict=True)
        ]
        answer = {"answer": _VERSION, "confidence": "0.95", "columns": columns, "note": "as declared; no row was read"}
        nothing = {"epsilon": "0", "delta": "0"}
        return {"answer": answer, "cost": nothing, "left": {}, "certificate": {}, "repeated": False}

    def _columns(self) -> Sequence[tuple[Any, ...]]:
        return list(zip(*self.rows, strict=True)) if self.rows else [() for _ in self.names]


def may_be_declaration(sql: str) -> bool:
    """Tell at a glance whether a statement could be about declarations.

    >>> may_be_declaration("show tables"), may_be_declaration("SELECT COUNT(*) FROM births")
    (True, False)
    """
    mentions = _INFORMATION in sql.lower() or sql.lstrip()[:4].lower() in ("show", "desc")
    return mentions or _NO_ROWS.fullmatch(sql) is not None


def declaration_answer(sql: str, described: Mapping[str, Any]) -> DeclarationAnswer | None:
    """Answer a statement about declarations, or return None where it is a query about rows.

    `described` is what a query service tells of its tables.

    >>> ages = {"name": "age", "type": "integer", "bounds": ["0", "99"]}
    >>> tables = {"tables": [{"name": "births", "public": False, "columns": [ages]}]}
    >>> declaration_answer("SHOW TABLES", tables).rows
    (('births',),)
    >>> declaration_answer("SELECT column_name FROM information_schema.columns", tables).rows
    (('age',),)
    >>> declaration_answer("SELECT * FROM births WHERE 1=0", tables).names
    ('age',)
    >>> declaration_answer("SELECT COUNT(*) FROM births", tables)
    """
    if not may_be_declaration(sql):
        return None
    if _SHOW.fullmatch(sql):
        return DeclarationAnswer(("name",), tuple((table["name"],) for table in described["tables"]))
    named = _DESCRIBE.fullmatch(sql)
    if named:
        return _described(_table(named, described))
    if empty := _NO_ROWS.fullmatch(sql):
        return _without_rows(_table(empty, described))
    if _INFORMATION not in sql.lower():
        raise QueryRefused("of declarations there are SHOW TABLES, DESCRIBE table and the information schema.")
    return _selected(sql, described)


_FALSE = re.compile(r"where\s+\(*\s*(?:1\s*=\s*0|0\s*=\s*1|false)\b|limit\s+0\b", re.IGNORECASE)


def rowless_query(sql: str) -> exp.Select | None:
    """Return a query that can have no row (LIMIT 0, WHERE FALSE), without that clause; None where it can have some.

    >>> rowless_query("SELECT sex, COUNT(*) FROM births GROUP BY sex LIMIT 0").sql()
    'SELECT sex, COUNT(*) FROM births GROUP BY sex'
    >>> rowless_query("SELECT COUNT(*) FROM births WHERE 1 = 0")  # one row, which says 0
    """
    if _FALSE.search(sql) is None:
        return None
    from sqlglot import exp

    from incrowd.queries.language.reading import read_query

    tree = read_query(sql)
    if not isinstance(tree, exp.Select):
        return None
    limit, where = tree.args.get("limit"), tree.args.get("where")
    if limit is not None and limit.expression.sql() == "0":
        tree.set("limit", None)
        return tree
    constant = "" if where is None else where.this.unnest().sql().replace(" ", "")
    if constant not in ("1=0", "0=1", "FALSE") or (not tree.args.get("group") and tree.find(exp.AggFunc)):
        return None
    tree.set("where", None)
    return tree


def declared_columns(tree: exp.Select, described: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | None:
    """Return the columns of a SELECT that shows those of one table as they are; None where it shows anything else.

    >>> from sqlglot import parse_one
    >>> births = {"name": "births", "columns": [{"name": "sex", "type": "text"}, {"name": "age", "type": "integer"}]}
    >>> declared_columns(parse_one("SELECT age AS a FROM (SELECT * FROM births) AS t"), {"tables": [births]})
    (('a', 'integer'),)
    """
    from sqlglot import exp

    origin = tree.args.get("from_")
    if origin is None or any(tree.args.get(part) for part in ("joins", "group", "having", "with_", "qualify")):
        return None
    source: exp.Expr = origin.this
    inner: tuple[tuple[str, str], ...] | None = None
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
        inner = declared_columns(source.this, described)
    elif isinstance(source, exp.Table):
        tables = [table for table in described["tables"] if table["name"].lower() == source.name.lower()]
        inner = tuple((column["name"], column["type"]) for column in all_columns(tables[0])) if tables else None
    if inner is None or tree.is_star:
        return inner
    types = {name.lower(): kind for name, kind in inner}
    bare = [column.unalias() for column in tree.expressions]
    if not all(isinstance(column, exp.Column) and column.name.lower() in types for column in bare):
        return None
    names = [column.alias_or_name for column in tree.expressions]
    return tuple((name, types[column.name.lower()]) for name, column in zip(names, bare, strict=True))


def all_columns(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the columns of a described table, the person column first: it joins tables and counts people."""
    person = table.get("person")
    names = {column["name"] for column in table["columns"]}
    first = [{"name": person, "type": "text"}] if person is not None and person not in names else []
    return [*first, *table["columns"]]


def _table(named: re.Match[str], described: Mapping[str, Any]) -> Mapping[str, Any]:
    name = (named["quoted"] or named["plain"]).lower()
    match: Mapping[str, Any] | None = next(
        (table for table in described["tables"] if table["name"].lower() == name), None
    )
    if match is None:
        raise InvalidParameter("there is no such table: SHOW TABLES lists those that may be asked about.")
    return match


def _described(table: Mapping[str, Any]) -> DeclarationAnswer:
    person = table.get("person")
    rows = tuple(
        (column["name"], column["type"], PERSON_NOTE if column["name"] == person else _domain(column))
        for column in all_columns(table)
    )
    return DeclarationAnswer(("column_name", "column_type", "domain"), rows)


def _without_rows(table: Mapping[str, Any]) -> DeclarationAnswer:
    """Return the columns of a table, and none of its rows: whatever these hold, none of them is asked for."""
    columns = all_columns(table)
    return DeclarationAnswer(
        tuple(column["name"] for column in columns), (), tuple(column["type"] for column in columns)
    )


def _domain(column: Mapping[str, Any]) -> str:
    if "values" in column:
        more = f", and {column['more']} more" if column.get("more") else ""
        return ", ".join(map(str, column["values"])) + more
    low, high = column.get("bounds") or (None, None)
    return "" if low is None and high is None else f"{low} to {high}"


def _selected(sql: str, described: Mapping[str, Any]) -> DeclarationAnswer | None:
    """Answer a simple SELECT from one table of the information schema."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.executor import execute

    from incrowd.queries.language.reading import read

    tree = read(sql)
    tables = list(tree.find_all(exp.Table))
    about = [table for table in tables if table.db.lower() == _INFORMATION]
    if not about:
        return None
    if len(tables) > 1 or not _is_simple(tree):
        raise QueryRefused("query one table at a time: SELECT column_name FROM information_schema.columns WHERE ….")
    content = {"tables": _tables(described), "columns": _columns(described)}.get(about[0].name.lower())
    if content is None:
        raise QueryRefused("the information schema has the tables information_schema.tables and .columns here.")
    about[0].set("db", None)
    about[0].set("catalog", None)
    try:
        result = execute(tree, tables={about[0].name: content})
    except (SqlglotError, TypeError, KeyError, ValueError):
        raise InvalidParameter("the information schema has no such column, or it cannot be asked like that.") from None
    return DeclarationAnswer(tuple(result.columns), tuple(tuple(row) for row in result.rows))


def _is_simple(tree: exp.Select) -> bool:
    nodes = [type(node).__name__ for node in tree.walk()]
    return len(nodes) <= _MOST_NODES and set(nodes) <= set(_SIMPLE)


def _tables(described: Mapping[str, Any]) -> list[dict[str, Any]]:
    kinds = {True: "BASE TABLE", False: "PRIVATE TABLE"}
    names = ("table_catalog", "table_schema", "table_name", "table_type")
    rows = (("incrowd", SCHEMA, table["name"], kinds[bool(table.get("public"))]) for table in described["tables"])
    return [dict(zip(names, row, strict=True)) for row in rows]


def _columns(described: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = (
        "table_catalog",
        "table_schema",
        "table_name",
        "column_name",
        "ordinal_position",
        "is_nullable",
        "data_type",
    )
    rows = (
        ("incrowd", SCHEMA, table["name"], column["name"], place, "YES", _TYPES.get(column["type"], "VARCHAR"))
        for table in described["tables"]
        for place, column in enumerate(all_columns(table), 1)
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


def _whole(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, int) and not isinstance(value, bool) for value in values)
