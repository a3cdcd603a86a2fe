"""A hospital that may be asked about: its catalog, and tables of DuckDB with the worst values there can be."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

from incrowd.core.domain import Categories, Dates, Numbers, Provenance, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.engines.sql.engine import longest_text
from incrowd.queries.query import Catalog, Relation

COLUMNS = (
    Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 99))),
    Column("cost", type=Type.DECIMAL, hierarchy=Flat(Numbers(0, 1000, Type.DECIMAL))),
    Column("ward", hierarchy=Flat(Categories(("heart", "lung")))),
    Column("day", type=Type.DATE, hierarchy=Flat(Dates("2024-01-01", "2025-12-31"))),
    Column("smoker", type=Type.BOOLEAN),
    Column("note"),
    Column("code", type=Type.INTEGER),
)
STRICT = (
    Column("score", type=Type.INTEGER, hierarchy=Flat(Numbers(1, 5)), outside=Outside.DROP, missing=Missing.DROP),
    Column("grade", type=Type.INTEGER, hierarchy=Flat(Categories(("1", "2", "3"))), missing="2"),
    Column("rate", type=Type.DECIMAL, hierarchy=Flat(Numbers(-1, 1, Type.DECIMAL)), outside=Outside.OTHER),
    Column("kind", hierarchy=Flat(Categories(("x", "y"))), outside=Outside.DROP),
    Column("seen", type=Type.DATE),
    Column("name", Role.IDENTIFIER),
    Column("drafted", hierarchy=Flat(Categories(("p",), Provenance(derived=True)))),
)
_PATIENT = Column("patient", Role.IDENTIFIER, Type.INTEGER)


def people(adjacency: Adjacency = Adjacency.ADD_REMOVE, max_rows: int = 2) -> Unit:
    """Patients, each with so many rows at most."""
    return Unit(Kind.PERSON, adjacency, column="patient", max_rows=max_rows)


CATALOG = Catalog(
    (
        Relation("visits", Schema((_PATIENT, *COLUMNS), people()), dataset="visits"),
        Relation("tests", Schema((_PATIENT, *STRICT), people(max_rows=3)), dataset="tests"),
        Relation("rows", Schema(COLUMNS), dataset="rows"),
        Relation("swapped", Schema((_PATIENT, *COLUMNS), people(Adjacency.REPLACE)), dataset="swapped"),
        Relation(
            "wards",
            Schema((Column("ward"), Column("floor", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 3))))),
            most={frozenset({"ward"}): 1},
        ),
        Relation("doctors", Schema((Column("ward"), Column("doctor"))), most={frozenset({"ward"}): 2}),
    )
)

TYPES = {
    Type.INTEGER: "BIGINT",
    Type.DECIMAL: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.BOOLEAN: "BOOLEAN",
}
WORST: dict[Type, tuple[Any, ...]] = {
    Type.INTEGER: (None, 0, 1, 7, 10, 42, 99, 100, -5, 2**63 - 1, -(2**63)),
    Type.DECIMAL: (None, 0.0, -0.0, 0.1, 0.5, 999.9, 1000.0, 1e300, -1e300, 5e-324, "nan", "inf", "-inf"),
    Type.TEXT: (
        None,
        "heart",
        "lung",
        "other",
        "",
        "x",
        "5",
        "1e400",
        "nan",
        "2024-02-30",
        "2024-02-29",
        "é%_\\'",
        "a" * 3000,
    ),
    Type.DATE: (
        None,
        "2024-01-01",
        "2024-02-29",
        "2025-12-31",
        "1900-01-01",
        "infinity",
        "-infinity",
        "0044-03-15 (BC)",
    ),
    Type.BOOLEAN: (None, True, False),
}
PUBLIC: dict[str, Iterable[Sequence[Any]]] = {
    "wards": [("heart", 1), ("lung", 2), ("lung", 3), (None, 0), ("other", 9)],
    "doctors": [("heart", "A"), ("heart", "B"), ("heart", "C"), ("lung", "D"), (None, "E")],
}


def opened(tables: dict[str, Iterable[Sequence[Any]]]) -> duckdb.DuckDBPyConnection:
    """Return a connection that holds the public tables and these."""
    connection = duckdb.connect()
    for relation in CATALOG.relations:
        columns = [f'"{column.name}" {TYPES[column.type]}' for column in relation.schema.columns]
        connection.execute(f'CREATE TABLE "{relation.name}" ({", ".join(columns)})')
    for name, rows in (PUBLIC | tables).items():
        fill(connection, name, rows)
    return connection


def fill(connection: duckdb.DuckDBPyConnection, name: str, rows: Iterable[Sequence[Any]]) -> None:
    """Let a table hold exactly these rows, texts as far as an engine reads them."""
    connection.execute(f'DELETE FROM "{name}"')
    schema = CATALOG[name].schema
    read = {column.name: longest_text(column, schema) for column in schema.columns}
    texts = {name: limit.sql("CAST(? AS VARCHAR)") for name, limit in read.items() if limit is not None}
    casts = ", ".join(texts.get(column.name, f"CAST(? AS {TYPES[column.type]})") for column in schema.columns)
    values = [list(row) for row in rows]
    if values:
        together = ", ".join([f"({casts})"] * len(values))
        connection.execute(f'INSERT INTO "{name}" VALUES {together}', list(itertools.chain(*values)))


def hostile(name: str, people_ids: Sequence[int | None] = (1, 1, 1, 2, None)) -> list[tuple[Any, ...]]:
    """Return rows in which every column takes every bad value, of a few people."""
    schema = CATALOG[name].schema
    rows = []
    for place in range(26):
        row = []
        for shift, column in enumerate(schema.columns):
            values = WORST[column.type]
            row.append(
                people_ids[place % len(people_ids)]
                if column.name == "patient"
                else values[(place + shift) % len(values)]
            )
        rows.append(tuple(row))
    return rows
