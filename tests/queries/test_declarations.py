"""What tools ask about tables is answered from declarations, and nothing else gets through that door."""

from __future__ import annotations

from typing import Any

import pytest

from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.declarations import declaration_answer

TABLES: dict[str, Any] = {
    "tables": [
        {
            "name": "births",
            "public": False,
            "columns": [
                {"name": "age", "type": "integer", "bounds": ["0", "99"]},
                {"name": "sex", "type": "text", "values": ["f", "m"], "more": 3},
                {"name": "note", "type": "text"},
            ],
        },
        {"name": "Zip codes", "public": True, "columns": []},
    ]
}


def rows(sql: str) -> list[tuple[Any, ...]]:
    found = declaration_answer(sql, TABLES)
    assert found is not None
    return list(found.rows)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("show tables;", [("births",), ("Zip codes",)]),
        ('DESC "Zip codes"', []),
        (
            "DESCRIBE Births",
            [("age", "integer", "0 to 99"), ("sex", "text", "f, m, and 3 more"), ("note", "text", "")],
        ),
        ("SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'", [("Zip codes",)]),
        ("SELECT COUNT(*) AS n FROM INFORMATION_SCHEMA.COLUMNS WHERE table_name IN ('births', 'x')", [(3,)]),
        (
            (
                "SELECT column_name, ordinal_position FROM information_schema.columns "
                "WHERE table_schema = 'main' AND NOT column_name LIKE 'n%' ORDER BY ordinal_position DESC LIMIT 1"
            ),
            [("sex", 2)],
        ),
    ],
)
def test_declarations_are_told(sql: str, expected: list[tuple[Any, ...]]) -> None:
    assert rows(sql) == expected


@pytest.mark.parametrize(
    "sql", ["SELECT COUNT(*) FROM births", "SELECT COUNT(*) FROM births WHERE sex = 'show tables'"]
)
def test_a_question_about_rows_is_none_about_declarations(sql: str) -> None:
    assert declaration_answer(sql, TABLES) is None
    assert declaration_answer(f"{sql} -- information_schema", TABLES) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT REPEAT('a', 1000000000) FROM information_schema.tables",
        "SELECT * FROM information_schema.tables a, information_schema.tables b",
        "SELECT * FROM information_schema.tables WHERE table_name IN (SELECT name FROM births)",
        "SELECT * FROM information_schema.tables JOIN births ON TRUE",
        "SELECT * FROM information_schema.routines",
        "SELECT read_text('/etc/passwd') FROM information_schema.tables",
        "SHOW GRANTS",
        "DESCRIBE SELECT COUNT(*) FROM births",
        "DROP TABLE information_schema.tables",
        "SELECT 1 FROM information_schema.tables; SELECT 2",
    ],
)
def test_nothing_else_is_computed_for_nothing(sql: str) -> None:
    with pytest.raises(QueryRefused):
        declaration_answer(sql, TABLES)


@pytest.mark.parametrize("sql", ["DESCRIBE nothing", "SELECT nothing FROM information_schema.tables"])
def test_what_is_not_there_is_said(sql: str) -> None:
    with pytest.raises(InvalidParameter, match="no such"):
        declaration_answer(sql, TABLES)


def test_an_answer_has_the_form_of_any_other_and_costs_nothing() -> None:
    found = declaration_answer("SELECT * FROM information_schema.columns WHERE table_name = 'none'", TABLES)
    assert found is not None
    plain = found.to_json()
    assert [each["values"] for each in plain["answer"]["columns"]] == [[]] * 7
    assert plain["cost"] == {"epsilon": "0", "delta": "0"}
    assert plain["certificate"] == {}


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM births WHERE 1=0", 'select * from main."births" where FALSE;', "SELECT *\nFROM Births LIMIT 0"],
)
def test_rows_that_no_table_can_have_tell_the_columns_and_their_types(sql: str) -> None:
    found = declaration_answer(sql, TABLES)
    assert found is not None
    columns = found.to_json()["answer"]["columns"]
    assert [(each["name"], each["type"], each["values"]) for each in columns] == [
        ("age", "integer", []),
        ("sex", "text", []),
        ("note", "text", []),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM births WHERE 1=0 OR age > 3",
        "SELECT * FROM births WHERE 1=1",
        "SELECT * FROM births LIMIT 00 OFFSET 1",
        "SELECT * FROM births, deaths WHERE 1=0",
        "SELECT age FROM births WHERE 1=0",
        "SELECT * FROM births WHERE 1=0; SELECT COUNT(*) FROM births",
    ],
)
def test_what_only_looks_like_it_is_a_question_about_rows(sql: str) -> None:
    assert declaration_answer(sql, TABLES) is None
