"""The actual loss of every form of question is within its guarantee."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from tests.queries.language.hospital import opened
from tests.replay import golden
from tests.replay.questions import STATEMENTS, parts


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with opened({}) as base:
        yield base


@pytest.mark.parametrize("sql", STATEMENTS)
def test_no_answer_loses_more_than_the_guarantee_or_less_than_it_did(
    sql: str, connection: duckdb.DuckDBPyConnection
) -> None:
    golden.check(f"question, {sql}", parts(sql, connection))
