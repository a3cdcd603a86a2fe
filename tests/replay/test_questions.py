"""The actual loss of every form of question is within its guarantee."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from tests.queries.language.hospital import opened
from tests.replay import batches, golden, groups
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


@pytest.mark.parametrize("name", batches.BATCHES)
def test_no_batch_of_queries_loses_more_than_the_guarantee_or_less_than_it_did(
    name: str, connection: duckdb.DuckDBPyConnection
) -> None:
    golden.check(f"batch, {name}", batches.parts(name, connection))


@pytest.mark.parametrize("sql", groups.OPEN)
def test_a_group_of_one_unit_alone_is_shown_with_a_chance_of_delta_at_most(
    sql: str, connection: duckdb.DuckDBPyConnection
) -> None:
    golden.check(f"unknown groups, {sql}", groups.parts(sql, connection))
