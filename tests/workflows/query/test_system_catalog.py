"""The system catalog: what a statement about declarations reaches, and what it does not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incrowd.errors import QueryRefused
from incrowd.workflows.query.system_catalog import SystemCatalog, Visitor

VISITOR = Visitor("ann", 3)


@pytest.fixture(scope="module")
def catalog() -> SystemCatalog:
    column = {"name": "age", "type": "integer", "description": None}
    people = {"name": "people", "columns": [column], "public": False, "description": None}
    return SystemCatalog.of({"tables": [people]}, {"wards": pa.table({"ward": ["A", "B"]})})


@pytest.mark.parametrize(
    "called",
    [
        "duckdb_settings()",
        "query('SELECT value FROM duckdb_settings()')",
        "json_execute_serialized_sql('{}')",
        "read_text('/etc/hostname')",
        "duckdb_logs()",
    ],
)
@pytest.mark.parametrize("table", ["pg_class", "wards"])
def test_no_function_but_those_of_the_list_is_reached_beside_a_table(
    catalog: SystemCatalog, table: str, called: str
) -> None:
    with pytest.raises(QueryRefused, match="is not computed on public tables"):
        catalog.answer(f"SELECT * FROM {table}, {called}", VISITOR)
    with pytest.raises(QueryRefused, match="is not computed on public tables"):
        catalog.answer(f"SELECT write_log('x') FROM {table}", VISITOR)


def test_private_tables_and_files_are_left_to_others(catalog: SystemCatalog) -> None:
    for sql in (
        "SELECT age FROM people",
        "SELECT * FROM wards WHERE ward IN (SELECT age FROM people)",
        "WITH people AS (SELECT 1) SELECT * FROM public.people, wards",
        'SELECT * FROM "/etc/hostname", wards',
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM wards; SELECT 1",
    ):
        assert catalog.answer(sql, VISITOR) is None, sql
    answer = catalog.answer(
        "SELECT w.ward, c.relname FROM wards AS w, pg_class AS c WHERE c.relname = 'people'", VISITOR
    )
    assert answer is not None
    assert answer.num_rows == 2


def test_what_dbt_asks_for_its_documentation_is_answered(catalog: SystemCatalog) -> None:
    answer = catalog.answer(
        "SELECT sch.nspname, tbl.relname, col.attname, pg_get_userbyid(tbl.relowner) FROM pg_catalog.pg_namespace sch "
        "JOIN pg_catalog.pg_class tbl ON tbl.relnamespace = sch.oid JOIN pg_catalog.pg_attribute col ON "
        "col.attrelid = tbl.oid WHERE NOT pg_is_other_temp_schema(sch.oid) AND tbl.relpersistence IN ('p', 'u') AND "
        "tbl.relname = 'people' AND col.attnum > 0 AND NOT col.attisdropped ORDER BY col.attnum",
        VISITOR,
    )
    assert answer is not None
    assert [row["attname"] for row in answer.to_pylist()] == ["age"]
