"""Real clients of PostgreSQL connect, reflect, ask and cancel; the service behind is that of HTTP."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import shutil
import signal
import subprocess
import threading
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import cast

import pandas as pd
import polars as pl
import psycopg
import pytest
import sqlalchemy as sa

from incrowd.errors import BudgetExceeded, Infeasible, QueryRefused, UnknownColumn, UnknownTable
from incrowd.governance.grant import AccessRole
from incrowd.queries.declarations import DeclarationAnswer
from incrowd.web import replies
from incrowd.web.postgres.door import complaint_of
from incrowd.web.postgres.server import PostgresServer, PostgresSettings, _Connection
from incrowd.web.postgres.session import Session
from incrowd.web.settings import Settings
from incrowd.workflows.query.system_catalog import Visitor
from tests.ports import free_port
from tests.tls import self_signed
from tests.web.serving import OFFICER, SECRET, Server, listening, server

SQL = "SELECT sex, COUNT(*) AS n FROM births GROUP BY sex"
PACE = 0.3
JARS = Path("/usr/share/java/postgresql.jar")
ODBC = next(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"), Path("/usr/lib/odbc/psqlodbcw.so"))
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return server(tmp_path_factory.mktemp("door"), Settings(pace=PACE, threads=2, rate=100_000))


@pytest.fixture(scope="module")
def door(here: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresSettings]:
    folder = tmp_path_factory.mktemp("s")
    certificate, key = map(str, self_signed(folder))
    where = PostgresSettings(free_port(), socket=str(folder), certificate=certificate, key=key)
    here.client.application.state.postgres = where
    with listening(here.client.application):
        yield where


@pytest.fixture(scope="module")
def token(here: Server) -> str:
    return here.token(AccessRole.ANALYST).token


@pytest.fixture(scope="module")
def address(door: PostgresSettings, token: str) -> str:
    return f"postgresql://ann:{token}@127.0.0.1:{door.port}/x?options=-c%20incrowd.epsilon%3D0.1"


@pytest.fixture(scope="module")
def engine(address: str) -> sa.Engine:
    return sa.create_engine(address.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool)


@dataclass
class _Way:
    """Tells of a connection what asyncio's writer tells."""

    facts: dict[str, object]

    def get_extra_info(self, name: str) -> object:
        return self.facts[name]


def _needed(*parts: Path | str) -> None:
    missing = [str(part) for part in parts if not (shutil.which(part) if isinstance(part, str) else part.exists())]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"not installed: {', '.join(missing)}")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def _ran(*command: str | Path, **more: str) -> str:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=120, env=dict(os.environ) | more, check=False
    )
    return done.stdout + done.stderr


def test_psql_describes_tables_and_asks(door: PostgresSettings, address: str) -> None:
    _needed("psql")
    told = _ran(
        "psql", address, "-c", r"\d", "-c", r"\d+ births", "-c", r"\l", "-c", "SHOW incrowd.remaining", "-c", SQL
    )
    assert "public | births | table" in told
    assert "one of f, m" in told
    assert "f   | 42" in told
    assert "NOTICE:  cost: epsilon 1" in told
    refused = _ran(
        "psql", address, "-c", "DROP TABLE births", "-c", r"\set VERBOSITY verbose", "-c", "SELECT budget FROM births"
    )
    assert "ERROR:  this server only reads\nHINT:  Write SELECT." in refused
    assert "ERROR:  53400: this costs epsilon 2; 1 of the budget of 3 remains." in refused
    by_socket = _ran(
        "psql", "-h", door.socket or "", "-p", str(door.port), "-U", "nobody", "x", "-c", "SELECT 1", PGPASSWORD="ic_x"
    )
    assert "the user or the token is wrong" in by_socket


@pytest.fixture
def slow(here: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A query that ends once somebody has canceled it."""
    cancel = Session.cancel

    def canceled(session: Session) -> None:
        cancel(session)
        here.queries.go.set()

    monkeypatch.setattr(Session, "cancel", canceled)
    yield "SELECT sex, COUNT(*) AS slow FROM births GROUP BY sex"
    here.queries.go.clear()


def _until_begun(here: Server, before: int) -> None:
    while len(here.queries.begun) == before:
        time.sleep(0.005)


def test_psql_describes_results_and_lists_databases(address: str) -> None:
    _needed("psql")
    listed = _ran("psql", address, "-c", r"\l+", "-c", r"\db", "-c", r"\d pg_class")
    assert listed.count("pg_default") == 2
    described = subprocess.run(
        ["psql", "-X", address], input=f"{SQL} \\gdesc\nSELECT * FROM pg_catalog.pg_nix;\n",
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "n      | bigint" in described.stdout
    assert "the catalog has no table pg_catalog.pg_nix here" in described.stderr


def test_psql_cancels(address: str, here: Server, slow: str) -> None:
    _needed("psql")
    before = len(here.queries.begun)
    psql = subprocess.Popen(["psql", "-X", address, "-c", slow], stderr=subprocess.PIPE)
    _until_begun(here, before)
    psql.send_signal(signal.SIGINT)
    assert b"canceling statement due to user request; its cost is not refunded" in psql.communicate(timeout=60)[1]


def test_answers_before_an_error_are_sent(address: str) -> None:
    _needed("psql")
    told = _ran("psql", "-X", address, "-c", f"{SQL}; SELECT * FROM nowhere")
    assert "f   | 42" in told
    assert "there is no such table" in told


@pytest.mark.parametrize("mode", ["disable", "verify-full"])
def test_connections_are_encrypted_where_clients_wish(door: PostgresSettings, address: str, mode: str) -> None:
    way = f"&sslmode={mode}&sslrootcert={door.certificate}&hostaddr=127.0.0.1"
    with psycopg.connect(address.replace("@127.0.0.1", "@localhost") + way) as connection:
        assert connection.pgconn.ssl_in_use == (mode != "disable")
        assert connection.execute(SQL).fetchone() is not None


@pytest.mark.parametrize(
    ("peer", "own", "encrypted", "safe"),
    [
        (("127.0.0.1", 5), ("127.0.0.1", 6), False, True),
        (("10.0.0.7", 5), ("10.0.0.1", 6), False, False),
        (("10.0.0.7", 5), ("10.0.0.1", 6), True, True),
        (("::1", 5, 0, 0), ("::1", 6, 0, 0), False, True),
        ("", "/tmp/.s.PGSQL.5432", False, True),
    ],
)
def test_a_token_is_not_asked_for_where_it_could_be_read_on_the_way(
    peer: object, own: object, encrypted: bool, safe: bool
) -> None:
    facts = {"peername": peer, "sockname": own, "ssl_object": object() if encrypted else None}
    connection = _Connection(
        cast("PostgresServer", None), cast("StreamReader", None), cast("StreamWriter", _Way(facts))
    )
    assert connection._is_safe(connection._place()) is safe


def test_settings_of_a_transaction_end_with_it(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET LOCAL incrowd.epsilon = 0.9")  # outside of a transaction it does nothing
        with connection.transaction():
            connection.execute("SET LOCAL incrowd.epsilon = 0.5")
            connection.execute("SET incrowd.delta = 1e-9")
            assert connection.execute("SHOW incrowd.epsilon").fetchone() == ("0.5",)
        assert connection.execute("SHOW incrowd.epsilon").fetchone() == ("0.1",)
        assert connection.execute("SHOW incrowd.delta").fetchone() == ("1e-9",)
        connection.execute("SET TIME ZONE 'Europe/Berlin'")
        assert connection.execute("SHOW timezone").fetchone() == ("Europe/Berlin",)


def test_psycopg_asks_with_parameters_of_every_type_in_text_and_binary(address: str, here: Server) -> None:
    values = (7, "web", dt.date(2025, 2, 1), Decimal("0.5"), True, None, 1.5)
    with psycopg.connect(address) as connection:
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            marks = ", ".join("%s" for _ in values)
            rows = cursor.execute(f"{SQL} HAVING ({marks}) IS NOT NULL", values).fetchall()
            assert rows == [("f", 42, dt.date(2020, 2, 29)), ("m", 7, None), (None, 0, dt.date(1999, 12, 31))]
    assert "(7, 'web', CAST('2025-02-01' AS DATE), 0.5, TRUE, NULL, 1.5)" in here.queries.asked[-1].sql
    assert str(here.queries.asked[-1].terms.epsilon) == "1/10"


def test_lists_of_texts_are_parameters_of_queries_and_of_the_catalog(address: str, here: Server) -> None:
    with psycopg.connect(address) as connection:
        listed = connection.execute(
            "SELECT relname FROM pg_class WHERE relname = ANY(%s)", (["births", 'Köln, "Mitte"'],)
        ).fetchall()
        assert listed == [("births",)]
        connection.execute(f"{SQL} HAVING sex = ANY(%s)", (["f", "x y"],))
    assert here.queries.asked[-1].sql.endswith("""HAVING sex = ANY('{f,"x y"}')""")


def test_psycopg_prepares_describes_and_goes_on_after_an_error(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for _ in range(2):
            rows = connection.execute(f"{SQL} HAVING COUNT(*) > %s", (1,), prepare=True).fetchall()
            assert len(rows) == 3
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            connection.execute("LISTEN x")
        with pytest.raises(psycopg.errors.UndefinedObject):
            connection.execute("SET nix = 1")
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.execute("SET incrowd.intervals = on")
        names = [column.name for column in connection.execute(SQL).description or ()]
        assert names == ["sex", "n", "n_low", "n_high", "last"]
        connection.execute("SET incrowd.epsilon = ''")
        with pytest.raises(psycopg.Error, match="no price is set"):
            connection.execute(SQL)
        for end in ("RESET incrowd.epsilon", "RESET ALL", "DISCARD ALL"):
            connection.execute("SET incrowd.epsilon = 0.7")
            connection.execute(end)
            assert connection.execute("SHOW incrowd.epsilon").fetchone() == ("0.1",)


def test_a_failed_transaction_ends_before_the_next_statement(address: str) -> None:
    with psycopg.connect(address) as connection:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("INSERT INTO births VALUES (1)")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_psycopg_asks_asynchronously_and_in_pipelines(address: str) -> None:
    async def asked() -> list[object]:
        async with await psycopg.AsyncConnection.connect(address) as connection, connection.pipeline():
            first, second = await connection.execute(SQL), await connection.execute("SELECT 1")
            return [len(await first.fetchall()), await second.fetchone()]

    assert asyncio.run(asked()) == [3, (1,)]


def test_a_canceled_query_is_charged_and_its_error_comes_at_the_paced_time(address: str, here: Server) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        before, begun = len(here.queries.shown), time.monotonic()
        timer = threading.Timer(PACE / 10, connection.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="not refunded"):
            connection.execute(f"{SQL} HAVING COUNT(*) > 99")
        assert time.monotonic() - begun >= PACE  # else cancelling were a stopwatch
        timer.join()
        assert len(here.queries.shown) == before + 1
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("word", ["source", "crash"])
def test_what_could_depend_on_rows_has_one_state_and_shows_no_row(address: str, word: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection, pytest.raises(psycopg.Error) as raised:
        connection.execute(f"SELECT {word} FROM births")
    assert raised.value.sqlstate == "58000"
    assert SECRET not in str(raised.value)


def test_declarations_are_free_and_reach_no_engine(address: str, here: Server) -> None:
    before = len(here.queries.asked)
    with psycopg.connect(address, autocommit=True) as connection:
        for sql in ("SELECT * FROM births LIMIT 0", "SELECT sex FROM (SELECT * FROM births) AS t WHERE 0=1"):
            cursor = connection.execute(sql)
            assert next(column.name for column in cursor.description or ()) == "sex"
            assert cursor.fetchall() == []
        plan = connection.execute(f"EXPLAIN ANALYZE {SQL}").fetchall()
        assert ("No row was read and nothing was charged.",) in plan
        activity = connection.execute("SELECT usename FROM pg_stat_activity").fetchall()
        assert activity == [("ann",)]
        sizes = connection.execute("SELECT DISTINCT reltuples, relpages FROM pg_class WHERE relkind = 'r'").fetchall()
        assert sizes == [(-1.0, 0)]
    assert len(here.queries.asked) == before


def test_a_task_that_is_canceled_cancels_its_query(address: str, here: Server, slow: str) -> None:
    async def asked() -> object:
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
            before = len(here.queries.begun)
            task = asyncio.create_task(connection.execute(slow))
            await asyncio.to_thread(_until_begun, here, before)
            task.cancel()  # psycopg asks the server to cancel, and waits for its error
            with pytest.raises((asyncio.CancelledError, psycopg.errors.QueryCanceled)):
                await task
            return await (await connection.execute("SELECT 1")).fetchone()

    assert asyncio.run(asked()) == (1,)


def test_sqlalchemy_and_pandas_cancel(engine: sa.Engine, here: Server, slow: str) -> None:
    with engine.connect() as connection:
        driver, before = connection.connection.driver_connection, len(here.queries.begun)
        assert driver is not None

        def cancel() -> None:
            _until_begun(here, before)
            driver.cancel_safe()

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(pd.errors.DatabaseError, match="not refunded"):
            pd.read_sql(slow, connection)
        thread.join()


def test_sqlalchemy_reflects_every_table_and_asks(engine: sa.Engine, here: Server) -> None:
    inspector = sa.inspect(engine)
    assert inspector.get_table_names() == ["births", "deaths"]
    assert inspector.get_pk_constraint("births")["constrained_columns"] == []
    assert not any([inspector.get_foreign_keys("births"), inspector.get_indexes("births")])
    assert "private: every statement is charged" in (inspector.get_table_comment("births")["text"] or "")
    metadata = sa.MetaData()
    metadata.reflect(engine)
    births = metadata.tables["births"]
    kinds = [type(column.type).__name__ for column in births.columns]
    assert dict(zip(births.columns.keys(), kinds, strict=True)) == {"sex": "TEXT", "age": "BIGINT", "born": "DATE"}
    counted = sa.select(births.c.sex, sa.func.count().label("n")).where(births.c.age > 5).group_by(births.c.sex)
    with engine.connect() as connection:
        assert connection.execute(counted).all()[0].n == 42
    assert "births.age > CAST(5 AS BIGINT)" in here.queries.asked[-1].sql


def test_pandas_and_polars_read(engine: sa.Engine, address: str) -> None:
    assert pd.read_sql(SQL, engine)["n"].tolist() == [42, 7, 0]
    with engine.connect() as connection:
        assert pl.read_database(SQL, connection)["n"].to_list() == [42, 7, 0]
    with psycopg.connect(address) as plain:
        assert pl.read_database(SQL, plain).schema["n"] == pl.Int64


def test_jdbc_reads_metadata_asks_and_cancels(door: PostgresSettings, token: str) -> None:
    _needed("javac", JARS)
    told = _ran("java", "-cp", JARS, HERE / "Jdbc.java", f"jdbc:postgresql://127.0.0.1:{door.port}/x", "ann", token)
    assert told.splitlines() == ["3 2 3 0 0 0 0", *["f 42 2020-02-29"] * 6, "42601", "57014", "3"]


def test_r_reads_by_rpostgresql_dbplyr_and_odbc(door: PostgresSettings, token: str) -> None:
    _needed("Rscript", ODBC)
    told = _ran("Rscript", HERE / "tables.R", str(door.port), token, str(ODBC))
    assert "postgresql births deaths" in told, told
    assert "dbplyr sex age born" in told
    assert "counted 42 7 0" in told
    assert "odbc births deaths" in told
    assert "odbc counted 42 7 0" in told


def test_a_client_that_leaves_in_the_middle_is_charged_and_disturbs_nobody(
    address: str, here: Server, slow: str
) -> None:
    _needed("psql")
    before, noted = len(here.queries.begun), len(here.events())
    client = subprocess.Popen(["psql", "-X", address, "-c", slow])
    _until_begun(here, before)
    client.kill()
    client.wait()
    here.queries.go.set()
    with psycopg.connect(address) as connection:
        assert connection.execute(SQL).fetchone() is not None
    while len(here.events()) < noted + 2:
        time.sleep(0.005)
    assert here.events()[noted:] == [("query", "answered")] * 2


def test_a_token_of_somebody_else_or_a_revoked_one_opens_nothing(address: str, here: Server) -> None:
    with pytest.raises(psycopg.OperationalError, match="the user or the token is wrong"):
        psycopg.connect(address.replace("//ann:", "//bob:"))
    issued = here.token(AccessRole.ANALYST, "eve")
    changed = address.replace("//ann:", "//eve:").replace(address.split(":")[2].partition("@")[0], issued.token)
    with psycopg.connect(changed, autocommit=True) as connection:
        here.books.access.revoke(issued.grant.id, OFFICER)
        with pytest.raises(psycopg.Error) as raised:
            connection.execute(SQL)
    assert raised.value.sqlstate == "28000"


def test_the_audit_log_holds_what_the_door_answered(address: str, here: Server) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SQL)
    assert here.events()[-1] == ("query", "answered")


def test_long_statements_about_public_tables_delay_nobody_else(
    address: str, here: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued, begun, go, served = here.token(AccessRole.ANALYST, "eve"), threading.Semaphore(0), threading.Event(), []
    answer = here.queries.public_answer

    def slow(sql: str, visitor: Visitor) -> DeclarationAnswer | None:
        if visitor.name == "eve":
            served.append(sql)
            begun.release()
            assert go.wait(60)
        return answer(sql, visitor)

    monkeypatch.setattr(here.queries, "public_answer", slow)
    hers = address.replace("//ann:", "//eve:").replace(address.split(":")[2].partition("@")[0], issued.token)

    def flood() -> None:
        with psycopg.connect(hers, autocommit=True) as connection:
            connection.execute("SELECT 1")

    threads = [threading.Thread(target=flood) for _ in range(6)]
    for thread in threads:
        thread.start()
    assert begun.acquire(timeout=60)
    with psycopg.connect(address, autocommit=True) as connection:
        assert connection.execute("SELECT 2").fetchone() == (2,)
    assert len(served) == 1  # the others of the same user wait, and hold no thread
    go.set()
    for thread in threads:
        thread.join()
    assert len(served) == 6


@pytest.mark.parametrize(
    ("problem", "state", "text", "hint"),
    [
        (UnknownTable("there is no table 'x'. There are: a, b."), "42P01", "there is no table 'x'", "There are: a, b."),
        (UnknownColumn("no column 'x'. Did you mean 'y'?"), "42703", "no column 'x'", "Did you mean 'y'?"),
        (BudgetExceeded("0.1 remains. Ask for more: grant."), "53400", "0.1 remains", "Ask for more: grant."),
        (
            QueryRefused("rows are not released: ask for COUNT(*)."),
            "0A000",
            "rows are not released",
            "Ask for COUNT(*).",
        ),
        (Infeasible("no k: x"), "42601", "no k", "X"),
        (ValueError("line 7: Meyer"), "58000", "the server could not do this", None),
    ],
)
def test_errors_have_states_and_say_apart_what_to_do(
    problem: Exception, state: str, text: str, hint: str | None
) -> None:
    complaint = complaint_of(replies.refusal(problem))
    assert (complaint.state, complaint.text) == (state, text)
    assert hint is None or complaint.hint == hint
    assert "Meyer" not in complaint.hint
