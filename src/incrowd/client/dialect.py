"""Dialect: a server in SQLAlchemy, and so in pandas, Polars, notebooks and dashboards.

    incrowd+https://:TOKEN@host:8000/?epsilon=0.1&delta=1e-6&intervals=true

Every statement is a query that costs the ε (and δ) of the address; a repeated one costs the dataset nothing.  What
SQLAlchemy asks about tables is answered from their declarations, for nothing.  There is nothing to commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlunsplit

from sqlalchemy import types
from sqlalchemy.engine import URL
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import IsolationLevel, ReflectedPrimaryKeyConstraint, ReflectedTableComment
from sqlalchemy.exc import ArgumentError, NoSuchTableError

from incrowd.client import dbapi

_TYPES: dict[str, type[types.TypeEngine[Any]]] = {
    "text": types.String,
    "integer": types.BigInteger,
    "decimal": types.Float,
    "date": types.Date,
    "boolean": types.Boolean,
}
_SCHEMA = "main"
"""The schema that tables are in, for tools that ask for one; the server's information schema calls it the same."""
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


def _none(*_arguments: Any, **_more: Any) -> list[Any]:
    """Return an empty list."""
    return []


class IncrowdDialect(DefaultDialect):
    """Queries to a server over plain HTTP: on this machine, or where `insecure=true` says that the way is safe."""

    name = "incrowd"
    driver = "http"
    scheme = "http"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = False
    div_is_floordiv = False
    supports_sane_rowcount = False
    supports_alter = False
    supports_schemas = False
    postfetch_lastrowid = False
    default_schema_name = _SCHEMA
    default_isolation_level: IsolationLevel = "AUTOCOMMIT"

    @classmethod
    def import_dbapi(cls) -> Any:
        """Return the driver."""
        return dbapi

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Read the address of the server, the token and the price of every statement from a URL."""
        options = {name: value for name, value in url.query.items() if isinstance(value, str)}
        unknown = set(url.query) - {"epsilon", "delta", "intervals", "insecure"}
        token = url.password or url.username
        if unknown or len(options) < len(url.query) or url.host is None or token is None or "epsilon" not in options:
            raise ArgumentError(
                "an address looks like incrowd+https://:TOKEN@host:8000/?epsilon=0.1, with delta, intervals and "
                "insecure if need be, each once."
            )
        host = f"[{url.host}]" if ":" in url.host else url.host
        place = host if url.port is None else f"{host}:{url.port}"
        address = urlunsplit((self.scheme, place, url.database or "", "", ""))
        flags = {name: _flag(options.get(name, "false")) for name in ("intervals", "insecure")}
        return [address, token, options["epsilon"], options.get("delta")], flags

    def initialize(self, connection: Any) -> None:
        """Ask nothing: a server has one schema and no transactions."""

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Look whether the server answers; it costs nothing."""
        dbapi_connection.tables()
        return True

    def get_isolation_level_values(self, dbapi_conn: Any) -> list[IsolationLevel]:
        return ["AUTOCOMMIT"]

    def get_isolation_level(self, dbapi_connection: Any) -> IsolationLevel:
        return "AUTOCOMMIT"

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        """Leave it: every statement stands alone."""

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        """Return the one schema."""
        return [_SCHEMA]

    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the tables that may be asked about."""
        return [table["name"] for table in _tables(connection, schema)]

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        """Tell whether a table may be asked about."""
        return table_name in self.get_table_names(connection, schema)

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        """Return the columns of a table, as declared; the person ID column joins tables and counts people."""
        for table in _tables(connection, schema):
            if table["name"] == table_name:
                person = table.get("person")
                named = person is not None and all(column["name"] != person for column in table["columns"])
                first = [{"name": person, "type": "text"}] if named else []
                return [_column(column, person) for column in (*first, *table["columns"])]
        raise NoSuchTableError(table_name)

    def get_table_comment(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedTableComment:
        """Return whom a table protects."""
        for table in _tables(connection, schema):
            if table["name"] == table_name:
                unit = table.get("unit")
                return {"text": None if unit is None else f"private: every statement is charged, for {unit}"}
        raise NoSuchTableError(table_name)

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        return {"constrained_columns": [], "name": None}

    get_view_names: Any = _none
    get_foreign_keys: Any = _none
    get_indexes: Any = _none
    get_unique_constraints: Any = _none
    get_check_constraints: Any = _none


class SecureIncrowdDialect(IncrowdDialect):
    """Queries to a server over HTTPS."""

    driver = scheme = "https"
    supports_statement_cache = True


def _flag(text: str) -> bool:
    try:
        return _TRUTH[text.lower()]
    except KeyError:
        raise ArgumentError("intervals and insecure are true or false.") from None


def _tables(connection: Any, schema: str | None) -> list[dict[str, Any]]:
    if schema not in (None, _SCHEMA):
        return []
    return list(connection.connection.driver_connection.tables())


def _column(column: Mapping[str, Any], person: str | None) -> dict[str, Any]:
    kind = _TYPES.get(column["type"], types.String)
    comment = "join key: count it by COUNT(DISTINCT), or join by it" if column["name"] == person else None
    return {"name": column["name"], "type": kind(), "nullable": True, "default": None, "comment": comment}
