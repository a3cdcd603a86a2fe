"""PostgreSQL as a sink: a whole table or none, never in place of another, and exactly the rows of the release."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from incrowd.engines.postgres import address_of, connect, run
from incrowd.engines.writers import postgres as writer
from incrowd.engines.writers.postgres import check_table, load_table
from incrowd.errors import GuaranteeBroken, InvalidParameter, OutputUnavailable
from tests import postgres_tables

ROWS = pa.table(
    {
        "zip": pa.array(["01", "01", None, "it's"]).dictionary_encode(),
        "count": pa.array([1, 2, 3, 2**62]),
        "weight": pa.array([0.1, 2.0, 2.0, None]),
        "adult": pa.array([True, None, False, True]),
        "day": pa.array([dt.date(2024, 2, 29)] * 4),
    }
)
Ask = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture
def ask(postgres: str) -> Ask:
    """Ask what others see."""
    return partial(postgres_tables.ask, postgres)


def reader() -> pa.RecordBatchReader:
    return ROWS.to_reader(max_chunksize=3)


def tables(ask: Ask) -> set[object]:
    return {name for (name,) in ask("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")}


@pytest.mark.postgres
def test_a_table_appears_at_the_end_with_every_row_and_a_comment(postgres: str, ask: Ask) -> None:
    with load_table(reader, f"{postgres}::released", "incrowd release 'abc'"):
        assert tables(ask) == set()
    assert tables(ask) == {"released"}
    assert ask("SELECT * FROM released ORDER BY count") == [tuple(row.values()) for row in ROWS.to_pylist()]
    assert ask("SELECT obj_description('released'::regclass)") == [("incrowd release 'abc'",)]


@pytest.mark.postgres
def test_an_empty_release_makes_an_empty_table(postgres: str, ask: Ask) -> None:
    with load_table(ROWS.slice(0, 0).to_reader, f"{postgres}::released", "none"):
        pass
    assert ask("SELECT count(*) FROM released") == [(0,)]


@pytest.mark.postgres
def test_names_are_quoted_and_a_schema_can_be_named(postgres: str, ask: Ask) -> None:
    schema = postgres.rpartition("%3D")[2]
    with load_table(reader, f'{postgres}::{schema}.Odd "name', "x"):
        pass
    assert tables(ask) == {'Odd "name'}


@pytest.mark.postgres
def test_whatever_fails_inside_leaves_no_table(postgres: str, ask: Ask) -> None:
    with pytest.raises(KeyboardInterrupt), load_table(reader, f"{postgres}::released", "x"):
        raise KeyboardInterrupt
    assert tables(ask) == set()


@pytest.mark.postgres
def test_nothing_is_overwritten(postgres: str, ask: Ask) -> None:
    ask("CREATE TABLE released (a integer)")
    ask("CREATE VIEW seen AS SELECT 1 AS a")
    for name in ("released", "seen"):
        with pytest.raises(OutputUnavailable, match="nothing is overwritten"):
            check_table(f"{postgres}::{name}")
        with (
            pytest.raises(OutputUnavailable, match="nothing is overwritten"),
            load_table(reader, f"{postgres}::{name}", ""),
        ):
            pass
    assert ask("SELECT count(*) FROM released") == [(0,)]


@pytest.mark.postgres
def test_of_two_that_make_the_same_table_at_once_one_wins(postgres: str, ask: Ask) -> None:
    other = f"{postgres}%20-clock_timeout%3D200::released"
    with (
        load_table(reader, f"{postgres}::released", "first"),
        pytest.raises(OutputUnavailable, match="No table appeared"),
        load_table(reader, other, "second"),
    ):
        pass
    assert ask("SELECT obj_description('released'::regclass)") == [("first",)]


@pytest.mark.postgres
def test_rows_that_came_out_differently_are_found_before_the_table_appears(
    postgres: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in (ROWS.slice(1), ROWS.slice(0, 3), pa.concat_tables([ROWS, ROWS]), ROWS.take([1, 0, 2, 3])):
        streams = [reader(), wrong.to_reader()]
        with (
            pytest.raises(GuaranteeBroken, match="not the released rows"),
            load_table(streams.pop, f"{postgres}::released", "x"),
        ):
            pass
    assert tables(ask) == set()


@pytest.mark.postgres
def test_more_rows_than_a_piece_are_compared_to_the_end(
    postgres: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PIECE", 2)
    with load_table(reader, f"{postgres}::released", "x"):
        pass
    streams = [reader(), ROWS.take([0, 1, 2, 2]).to_reader()]
    with pytest.raises(GuaranteeBroken), load_table(streams.pop, f"{postgres}::again", "x"):
        pass
    assert tables(ask) == {"released"}


@pytest.mark.postgres
def test_a_connection_lost_before_the_commit_is_told_and_leaves_no_table(postgres: str, ask: Ask) -> None:
    note = f"lost in {postgres.rpartition('%3D')[2]}"
    with (
        pytest.raises(OutputUnavailable, match="Check whether the table appeared"),
        load_table(reader, f"{postgres}::t", note),
    ):
        ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COMMENT%{note}%'")
    assert tables(ask) == set()


@pytest.mark.postgres
def test_a_place_without_schema_or_right_is_refused_before_the_charge(postgres: str, ask: Ask) -> None:
    schema = postgres.rpartition("%3D")[2]
    with pytest.raises(OutputUnavailable, match="no such schema"):
        check_table(f"{postgres}::nowhere.released")
    with pytest.raises(OutputUnavailable, match="no schema for a table"):
        check_table(f"{postgres.replace(schema, 'nowhere')}::released")
    ask("DROP ROLE IF EXISTS reader_only")
    ask("CREATE ROLE reader_only LOGIN")
    ask(f"GRANT USAGE ON SCHEMA {schema} TO reader_only")
    with pytest.raises(OutputUnavailable, match="does not let this user create tables"):
        check_table(f"{postgres.replace('incrowd@', 'reader_only@')}::released")
    check_table(f"{postgres}::released")
    assert tables(ask) == set()


@pytest.mark.postgres
def test_a_connection_that_nobody_commits_changes_nothing(postgres: str, ask: Ask) -> None:
    with connect(address_of(postgres)) as connection:
        run(connection, "CREATE TABLE t (a integer)")
    assert tables(ask) == set()


def test_addresses_that_name_no_table_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="names no table"):
        check_table("postgresql://me@host/db")
    with pytest.raises(InvalidParameter, match="must not hold a password"):
        check_table("postgresql://me:s3cret@host/db::t")
    with pytest.raises(OutputUnavailable, match="cannot be reached"):
        check_table("postgresql://me@127.0.0.1:1/db::t")


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("name", "columns", "gist"),
    [
        ("released", ["zip", "ctid"], "Give the column another name"),
        ("released", ["x" * 70], "would shorten the name of column x+"),
        ("released", ["zip", "zip"], "Give the column another name"),
        ("taken", ["zip"], "has a type of that name"),
    ],
)
def test_columns_that_a_server_cannot_hold_are_found_before_the_charge(
    postgres: str, ask: Ask, name: str, columns: list[str], gist: str
) -> None:
    ask("CREATE DOMAIN taken AS integer")
    with pytest.raises(OutputUnavailable, match=gist):
        check_table(f"{postgres}::{name}", columns)
    check_table(f"{postgres}::released", ["zip", "count", 'odd "name'])
    assert tables(ask) == set()
