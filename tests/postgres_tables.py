"""Tables in PostgreSQL for tests: made from Arrow, and asked on a connection of its own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlalchemy import NullPool, create_engine, text


def load(address: str, name: str, table: pa.Table) -> str:
    """Make a table, in place of one of that name, in the schema of the address; return the address of the table."""
    import adbc_driver_postgresql.dbapi as adbc

    with adbc.connect(address) as connection:
        with connection.cursor() as cursor:
            cursor.adbc_ingest(name, table, mode="replace")
        connection.commit()
    return f"{address}::{name}"


def ask(address: str, statement: str) -> list[tuple[Any, ...]]:
    """Run one statement, commit, and return its rows: what everybody else sees."""
    engine = create_engine(address.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.begin() as connection:
        found = connection.execute(text(statement))
        return [tuple(row) for row in found] if found.returns_rows else []
