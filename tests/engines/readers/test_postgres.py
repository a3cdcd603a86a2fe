"""PostgreSQL as a source: one snapshot, one order, exact values, and errors that show neither values nor passwords."""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import NullPool, create_engine, text

from incrowd.core.table import SourceOptions
from incrowd.engines.fingerprints import content_digest
from incrowd.engines.postgres import address_of, answers
from incrowd.engines.readers import postgres as reader
from incrowd.engines.readers.postgres import PostgresRows
from incrowd.engines.readers.sources import Source, open_source
from incrowd.errors import IncrowdError, InvalidParameter, PackageMissing, SourceInvalid, SourceUnreadable
from tests.postgres import database

PEOPLE = """
CREATE TABLE people (id integer PRIMARY KEY, zip text, age integer, share float8);
INSERT INTO people VALUES (3, '01234', 41, 0.5), (1, 'NO', NULL, 2.0), (2, 'é', 7, NULL);
CREATE VIEW adults AS SELECT zip, age FROM people WHERE age > 18;
"""
Run = Callable[[str], None]


@pytest.fixture
def run(postgres: str) -> Run:
    """Run statements in the test's own schema."""
    engine = create_engine(postgres.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)

    def work(statements: str) -> None:
        with engine.begin() as connection:
            for statement in filter(str.strip, statements.split(";")):
                connection.execute(text(statement))

    return work


@pytest.fixture
def base(postgres: str, run: Run) -> str:
    run(PEOPLE)
    return postgres


def rows_of(source: Source, *columns: str) -> list[list[object]]:
    return [list(row.values()) for batch in source.batches(columns or source.names) for row in batch.to_pylist()]


def asked(base: str, query: str) -> Source:
    return open_source(base, SourceOptions(query=query))


def schema_of(base: str) -> str:
    return base.rpartition("%3D")[2]


@pytest.mark.postgres
def test_a_table_is_named_in_the_address_or_by_option_with_or_without_its_schema(base: str) -> None:
    source = open_source(f"{base}::people")
    assert source.names == ("id", "zip", "age", "share")
    assert source.rows == 3
    assert source.format == "postgresql"
    schema = schema_of(base)
    assert source.settings["table"] == f"{schema}.people"
    for again in (open_source(f"{base}::{schema}.people"), open_source(base, SourceOptions(table="people"))):
        assert rows_of(again) == rows_of(source)
        assert again.address == source.address


@pytest.mark.postgres
def test_the_address_is_the_same_for_every_way_to_write_it_and_holds_no_user(base: str) -> None:
    source = open_source(f"{base}::people")
    assert source.address is not None
    assert source.address.endswith(f":5432/postgres::{schema_of(base)}.people")
    assert "incrowd@" not in source.address


@pytest.mark.postgres
def test_only_the_columns_asked_for_come_and_missing_is_missing(base: str) -> None:
    assert rows_of(open_source(f"{base}::people"), "age", "zip") == [[41, "01234"], [None, "NO"], [7, "é"]]


@pytest.mark.postgres
def test_asking_for_no_columns_still_counts_the_rows(base: str) -> None:
    batches = list(open_source(f"{base}::people").batches([]))
    assert sum(batch.num_rows for batch in batches) == 3
    assert all(batch.num_columns == 0 for batch in batches)


@pytest.mark.postgres
def test_views_and_queries_are_read_and_the_only_table_needs_no_name(base: str, run: Run) -> None:
    assert rows_of(open_source(f"{base}::adults")) == [["01234", 41]]
    assert rows_of(asked(base, "SELECT zip FROM people WHERE age > 18 -- adults")) == [["01234"]]
    with pytest.raises(InvalidParameter, match="several tables"):
        open_source(base)
    with pytest.raises(SourceUnreadable, match=r"no table poeple. Did you mean people\?"):
        open_source(f"{base}::poeple")


@pytest.mark.postgres
def test_a_query_with_chance_in_it_gives_the_same_rows_in_every_pass(base: str) -> None:
    source = asked(base, "SELECT random() AS r FROM generate_series(1, 100)")
    assert rows_of(source) == rows_of(source)


@pytest.mark.postgres
def test_what_others_write_meanwhile_is_not_seen(base: str, run: Run) -> None:
    source = open_source(f"{base}::people")
    before = rows_of(source)
    run("INSERT INTO people VALUES (4, '99', 1, 1); UPDATE people SET age = 0; DELETE FROM people WHERE id = 3")
    assert rows_of(source) == before
    assert len(rows_of(open_source(f"{base}::people"))) == 3


@pytest.mark.postgres
def test_rows_written_while_they_are_copied_are_not_seen(base: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of tables is read first; what is committed after that is outside the snapshot."""
    ask = answers

    def meddled(connection: Any, query: str) -> list[tuple[Any, ...]]:
        result = ask(connection, query)
        if "pg_class" in query:
            run("INSERT INTO people VALUES (9, '99', 1, 1)")
        return result

    monkeypatch.setattr(reader, "answers", meddled)
    assert open_source(f"{base}::people").rows == 3


@pytest.mark.postgres
def test_an_unchanged_table_is_recognized_by_its_content_and_a_changed_one_is_not(base: str, run: Run) -> None:
    first = content_digest(open_source(f"{base}::people"))
    assert content_digest(open_source(f"{base}::people")) == first
    run("UPDATE people SET age = 42 WHERE id = 3")
    assert content_digest(open_source(f"{base}::people")) != first


@pytest.mark.postgres
def test_the_copy_has_no_name_at_any_time(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source = open_source(f"{base}::people")
    assert isinstance(source.reader, PostgresRows)
    assert rows_of(source) == rows_of(source)
    assert list(tmp_path.iterdir()) == []


TYPES: dict[str, tuple[str, object, pa.DataType]] = {
    "boolean": ("true", True, pa.bool_()),
    "smallint": ("-7", -7, pa.int16()),
    "bigint": ("9007199254740993", 9007199254740993, pa.int64()),
    "real": ("0.5", 0.5, pa.float32()),
    "float8": ("0.1", 0.1, pa.float64()),
    "numeric": ("12345678901234567890.120", "12345678901234567890.120", pa.string()),
    "numeric(4,1)": ("1", "1.0", pa.string()),
    "text": ("01234", "01234", pa.string()),
    "varchar(9)": (" x ", " x ", pa.string()),
    "char(9)": ("ab", "ab", pa.string()),
    "date": ("2024-02-29", dt.date(2024, 2, 29), pa.date32()),
    "timestamp": ("2024-02-29 12:00", dt.datetime(2024, 2, 29, 12), pa.timestamp("us")),  # noqa: DTZ001 - no zone
    "timestamptz": (
        "2024-03-01 01:00+02",
        dt.datetime(2024, 2, 29, 23, tzinfo=dt.UTC),
        pa.timestamp("us", "UTC"),
    ),
    "time": ("12:30", "12:30:00", pa.string()),
    "interval": ("1 day", "P1D", pa.string()),
    "uuid": ("A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", pa.string()),
    "inet": ("10.0.0.1", "10.0.0.1/32", pa.string()),
    "bit(3)": ("101", "101", pa.string()),
    "oid": ("4000000000", "4000000000", pa.string()),
}


@pytest.mark.postgres
@pytest.mark.parametrize("kind", TYPES)
def test_values_come_exactly(postgres: str, kind: str) -> None:
    written, expected, stored = TYPES[kind]
    source = asked(postgres, f"SELECT '{written}'::{kind} AS a UNION ALL SELECT NULL")
    assert [row[0] for row in rows_of(source)] == [expected, None]
    assert isinstance(source.reader, PostgresRows)
    assert source.reader.types == {"a": stored}


@pytest.mark.postgres
def test_money_is_a_number_and_enumerations_and_domains_are_what_they_stand_for(postgres: str, run: Run) -> None:
    run("CREATE TYPE mood AS ENUM ('glad'); CREATE DOMAIN age AS integer; CREATE TABLE t (m mood, a age, p money)")
    run("INSERT INTO t VALUES ('glad', 41, 1234.5)")
    assert rows_of(open_source(f"{postgres}::t")) == [["glad", 41, "1234.50"]]


@pytest.mark.postgres
def test_the_only_table_of_a_database_is_read_without_being_named(postgres_server: str) -> None:
    with database(postgres_server) as address:
        engine = create_engine(address.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE t AS SELECT 1 AS a"))
        source = open_source(address)
        assert rows_of(source) == [[1]]
        assert source.notes == ("the rows were copied in one snapshot; the only table is read: t",)


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["integer[]", "json", "jsonb", "bytea", "point", "int4range", "xml", "tsvector"])
def test_a_column_without_single_values_is_named_when_it_is_asked_for_and_else_ignored(
    postgres: str, run: Run, kind: str
) -> None:
    run(f"CREATE TABLE t (a integer, b {kind}); INSERT INTO t VALUES (1, NULL)")
    source = open_source(f"{postgres}::t")
    assert source.names == ("a", "b")
    assert rows_of(source, "a") == [[1]]
    with pytest.raises(SourceUnreadable, match=r"column b is of type .* Leave it out, or write a query"):
        list(source.batches(["b"]))
    with pytest.raises(SourceUnreadable, match="none of its columns holds single values"):
        asked(postgres, "SELECT b FROM t")


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
@pytest.mark.parametrize("value", ["infinity", "-infinity"])
def test_an_infinite_time_is_found_before_anything_is_charged(postgres: str, kind: str, value: str) -> None:
    with pytest.raises(SourceInvalid, match="row 3, column a: an infinite time"):
        asked(
            postgres, f"VALUES (NULL), ('2024-01-01'::{kind}), ('{value}')".join(["SELECT column1 AS a FROM (", ") v"])
        )


@pytest.mark.postgres
@pytest.mark.parametrize("value", ["0044-03-15 BC", "0001-01-01", "9999-12-31"])
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_old_and_far_times_are_not_mistaken_for_infinite_ones(postgres: str, kind: str, value: str) -> None:
    (batch,) = asked(postgres, f"SELECT '{value}'::{kind} AS a, '{value}'::date - '1970-01-01'::date AS days").batches(
        ["a", "days"]
    )
    days = batch["a"].cast(pa.date32()).cast(pa.int32())
    assert days.to_pylist() == batch["days"].to_pylist()


@pytest.mark.postgres
@pytest.mark.parametrize(
    "query",
    [
        "SELEC 1",
        "SELECT nothing FROM people",
        "DELETE FROM people",
        "WITH gone AS (DELETE FROM people RETURNING id) SELECT * FROM gone",
        "SELECT 1 AS a) AS asked; COMMIT; DELETE FROM people; --",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT 1 / (id - 3) FROM people",
        "SELECT zip::integer FROM people",
        "SELECT 1 AS a, 2 AS a",
    ],
)
def test_a_query_that_does_not_run_or_would_change_something_is_refused_and_shows_nothing(
    base: str, query: str
) -> None:
    with pytest.raises(SourceUnreadable) as caught:
        asked(base, query)
    assert caught.value.__context__ is None
    assert caught.value.exit_code == 2
    for secret in ("NO", "01234", "é"):
        assert secret not in str(caught.value)
    assert len(rows_of(open_source(f"{base}::people"))) == 3


@pytest.mark.postgres
def test_a_function_that_writes_is_refused(base: str, run: Run) -> None:
    run(
        "CREATE FUNCTION sly() RETURNS integer LANGUAGE sql AS "
        "'INSERT INTO people VALUES (7, NULL, NULL, NULL) RETURNING id'"
    )
    with pytest.raises(SourceUnreadable, match=r"rows are only read here|broke off"):
        asked(base, "SELECT sly()")
    assert open_source(f"{base}::people").rows == 3


@pytest.mark.postgres
def test_what_a_read_only_transaction_lets_pass_is_undone(base: str) -> None:
    made = "SELECT lo_create(424242)"  # older servers count large objects as no write
    with suppress(SourceUnreadable):
        asked(base, made)
    assert rows_of(asked(base, "SELECT count(*) FROM pg_largeobject_metadata WHERE oid = 424242")) == [[0]]


@pytest.mark.postgres
def test_a_connection_lost_in_mid_stream_is_told_and_leaves_no_copy(
    base: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SourceUnreadable, match="broke off") as caught:
        asked(
            base,
            "SELECT i, CASE WHEN i = 900000 THEN pg_terminate_backend(pg_backend_pid()) END AS x "
            "FROM generate_series(1, 1000000) AS i",
        )
    assert caught.value.__context__ is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.postgres
def test_a_full_disk_here_is_told(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reader, "spool", full)
    with pytest.raises(SourceUnreadable, match=r"could not be copied: No space left on device.*TMPDIR"):
        open_source(f"{base}::people")


@pytest.mark.postgres
def test_a_table_of_another_owner_is_closed(base: str, run: Run) -> None:
    run(f"DROP ROLE IF EXISTS clerk; CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA {schema_of(base)} TO clerk")
    with pytest.raises(SourceUnreadable, match="does not permit this user to do it"):
        open_source(f"{base.replace('incrowd@', 'clerk@')}::people")


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (("incrowd@", "ghost@"), "does not admit this user"),
        (("/postgres?", "/nowhere?"), "does not admit this user"),
        (("host=", "host=/nowhere"), "cannot be reached"),
    ],
)
def test_a_server_that_is_not_there_or_says_no_is_told(base: str, change: tuple[str, str], match: str) -> None:
    with pytest.raises(SourceUnreadable, match=match) as caught:
        open_source(f"{base.replace(*change)}::people")
    assert caught.value.__context__ is None


LOADED = "SELECT CAST(pg_conf_load_time() AS text) AS at"


@pytest.fixture
def locked(base: str, run: Run) -> str:
    """The address for a user whom the server asks for a password."""
    schema = schema_of(base)
    run("DROP ROLE IF EXISTS locked")
    run(f"CREATE ROLE locked LOGIN PASSWORD 'r1ght'; GRANT USAGE ON SCHEMA {schema} TO locked")
    run(f"GRANT SELECT ON {schema}.people TO locked")
    ((rules,),) = rows_of(asked(base, "SELECT current_setting('hba_file')"))
    run(f"COPY (VALUES ('local all locked scram-sha-256'), ('local all all trust')) TO '{rules}'")
    before = rows_of(asked(base, LOADED))
    run("SELECT pg_reload_conf()")
    while rows_of(asked(base, LOADED)) == before:  # whoever connects now may still be let in by the rules of before
        time.sleep(0.05)
    return f"{base.replace('incrowd@', 'locked@')}::people"


@pytest.mark.postgres
def test_passwords_come_from_the_environment_or_from_a_file_and_are_never_shown(
    locked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    monkeypatch.setenv("PGPASSWORD", "wr0ng")
    with pytest.raises(SourceUnreadable, match=r"does not admit this user.*PGPASSWORD") as caught:
        open_source(locked)
    assert "wr0ng" not in str(caught.value)
    monkeypatch.setenv("PGPASSWORD", "r1ght")
    assert len(rows_of(open_source(locked))) == 3
    monkeypatch.delenv("PGPASSWORD")
    with pytest.raises(SourceUnreadable, match="does not admit this user"):
        open_source(locked)
    (tmp_path / "pgpass").write_text("*:*:*:locked:r1ght\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    source = open_source(locked)
    assert len(rows_of(source)) == 3
    assert "r1ght" not in repr(source)


def test_an_unreachable_port_is_told() -> None:
    with pytest.raises(SourceUnreadable, match=r"postgresql://me@127.0.0.1:1/db cannot be reached"):
        open_source("postgresql://me@127.0.0.1:1/db::people")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:s3cret@host/db::people",
        "postgresql://me@host/db?password=s3cret",
        "postgres://:s3cret@host/db",
        "postgresql://host/db?user=me&password=s3cret::people",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(InvalidParameter, match="must not hold a password") as caught:
        open_source(address)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text_", "uri", "part"),
    [
        ("postgresql://h/d::t", "postgresql://h/d", "t"),
        ("postgresql://me@h:5433/d?sslmode=require::s.t", "postgresql://me@h:5433/d?sslmode=require", "s.t"),
        ("postgresql://[::1]/d::t", "postgresql://[::1]/d", "t"),
        ("postgresql://[::1]/d", "postgresql://[::1]/d", None),
        ("postgresql://[::1]", "postgresql://[::1]", None),
        ("postgresql:///d::t", "postgresql:///d", "t"),
        ("postgresql://h::t", "postgresql://h", "t"),
    ],
)
def test_an_address_is_taken_apart(text_: str, uri: str, part: str | None) -> None:
    result = address_of(text_)
    assert (result.uri, result.part) == (uri, part)


def test_options_that_mean_nothing_are_refused() -> None:
    for options in (SourceOptions(sheet="a"), SourceOptions(delimiter=";"), SourceOptions(format="csv")):
        with pytest.raises(InvalidParameter, match="eave"):
            open_source("postgresql://me@127.0.0.1:1/db::people", options)
    with pytest.raises(InvalidParameter, match="not both"):
        open_source("postgresql://me@127.0.0.1:1/db::people", SourceOptions(query="SELECT 1"))


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(PackageMissing, match=r"pip install 'incrowd\[postgres\]'"):
        open_source("postgresql://me@127.0.0.1:1/db::people")


def test_every_error_here_is_bad_input() -> None:
    assert {SourceUnreadable.exit_code, SourceInvalid.exit_code, IncrowdError.exit_code} == {2}
