"""Sandbox: a DuckDB that holds public facts alone, sees no file and no network, and answers SELECTs about them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.engines.columns import quote
from incrowd.errors import InvalidParameter, QueryRefused

if TYPE_CHECKING:
    import duckdb

_SECONDS = 5.0
_MOST_ROWS = 100_000
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "512MB",
    "max_temp_directory_size": "0KB",
    "threads": "1",
}


@dataclass(frozen=True, eq=False)
class Sandbox:
    """Tables of public facts; any thread may ask.

    >>> box = Sandbox.of({"t": pa.table({"x": [1, 2]})})
    >>> box.run("SELECT MAX(x) AS s FROM t").to_pydict()
    {'s': [2]}
    >>> box.run("SELECT * FROM read_text('/etc/hostname')")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: this cannot be computed on public tables: ...
    """

    base: duckdb.DuckDBPyConnection
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table], macros: Iterable[str] = ()) -> Sandbox:
        """Make a sandbox of tables, by their names, and of macros in SQL."""
        import duckdb

        base = duckdb.connect(":memory:", config=_CONFIG)
        for name, table in tables.items():
            base.register("arriving", table)
            base.execute(f"CREATE TABLE {quote(name)} AS SELECT * FROM arriving")  # noqa: S608 (a quoted name)
            base.unregister("arriving")
        for macro in macros:
            base.execute(macro)
        base.execute("SET lock_configuration = true")
        return cls(base)

    def run(self, sql: str) -> pa.Table:
        """Return the result of one SELECT, which was read and checked before; it ends after a few seconds."""
        import duckdb

        with self.lock:
            cursor = self.base.cursor()
        with cursor:
            timer = threading.Timer(_SECONDS, cursor.interrupt)
            timer.daemon = True
            timer.start()
            try:
                table: pa.Table = cursor.sql(sql).to_arrow_table()
            except duckdb.InterruptException:
                raise QueryRefused("this query about public tables takes too long: ask for less.") from None
            except duckdb.Error:
                raise InvalidParameter(
                    "this cannot be computed on public tables: look at names, types and functions."
                ) from None
            finally:
                timer.cancel()
        if len(table) > _MOST_ROWS:
            raise QueryRefused(f"a reply has at most {_MOST_ROWS:,} rows: add LIMIT.")
        return table
