"""SQLAlchemy, and through it pandas and Polars, ask a server; what tools ask about tables costs nothing."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchTableError, ProgrammingError

from incrowd.governance.grant import AccessRole
from tests.web.serving import Server, listening, server

SQL = "SELECT sex, COUNT(*) AS n FROM births GROUP BY sex"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return server(tmp_path_factory.mktemp("dialect"))


@pytest.fixture(scope="module")
def address(here: Server) -> Iterator[str]:
    with listening(here.client.application) as served:
        token = here.token(AccessRole.ANALYST).token
        yield served.replace("http://", f"incrowd+http://:{token}@") + "/?epsilon=0.1"


@pytest.fixture(scope="module")
def engine(address: str) -> sa.Engine:
    return sa.create_engine(address)


def test_pandas_and_polars_read_through_an_engine(engine: sa.Engine) -> None:
    assert pd.read_sql(SQL, engine)["n"].tolist() == [42, 7, 0]
    with engine.connect() as connection:
        assert pl.read_database(SQL, connection)["n"].to_list() == [42, 7, 0]


def test_a_statement_is_a_question_with_bound_values_at_the_price_of_the_address(
    engine: sa.Engine, here: Server
) -> None:
    births = sa.table("births", sa.column("sex"), sa.column("age"))
    counted = sa.select(births.c.sex, sa.func.count().label("n")).where(births.c.age > -5).group_by(births.c.sex)
    with engine.connect() as connection:
        rows = connection.execute(counted).all()
    assert rows[0].n == 42
    assert rows[0].last == dt.date(2020, 2, 29)
    asked = here.queries.asked[-1]
    assert "births.age > (-5)" in asked.sql or "births.age > -5" in asked.sql
    assert str(asked.terms.epsilon) == "1/10"


def test_intervals_are_columns_where_they_are_wished(address: str) -> None:
    with sa.create_engine(f"{address}&intervals=true").connect() as connection:
        row = connection.execute(sa.text(SQL)).first()
    assert row is not None
    assert (row.n_low, row.n_high) == (40.0, 44.0)


def test_sqlalchemys_own_suite_passes_as_far_as_it_makes_no_tables(address: str) -> None:
    """Its plugin takes over a whole run of pytest, so it gets one of its own."""
    folder = Path(__file__).parent / "sqlalchemy_suite"
    options = ("--rootdir", ".", "--confcutdir", ".", "-c", "setup.cfg", "suite.py", "--dburi", address)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 40


def test_a_quotient_of_whole_numbers_is_rounded_down_where_that_is_asked(engine: sa.Engine) -> None:
    numbers = sa.select(sa.literal(-15) // 10, sa.literal(15) / 10)
    with engine.connect() as connection:
        assert connection.execute(numbers).one() == (-2, 1.5)


def test_what_dashboards_ask_about_tables_is_answered_for_nothing(engine: sa.Engine, here: Server) -> None:
    asked = len(here.queries.asked)
    looked = sa.inspect(engine)
    assert looked.get_schema_names() == ["main"]
    assert looked.get_table_names() == looked.get_table_names("main") == ["births", "deaths"]
    assert looked.get_table_names("other") == looked.get_view_names() == []
    assert looked.has_table("births")
    assert not looked.has_table("nothing")
    columns = {each["name"]: each["type"] for each in looked.get_columns("births")}
    assert isinstance(columns["age"], sa.BigInteger)
    assert isinstance(columns["born"], sa.Date)
    assert looked.get_pk_constraint("births")["constrained_columns"] == []
    assert not looked.get_foreign_keys("births")
    assert not looked.get_indexes("births")
    assert not looked.get_unique_constraints("births")
    assert not looked.get_check_constraints("births")
    assert "charged" in (looked.get_table_comment("births")["text"] or "")
    with pytest.raises(NoSuchTableError):
        looked.get_columns("nothing")
    reflected = sa.Table("births", sa.MetaData(), autoload_with=engine)
    assert [each.name for each in reflected.columns] == ["sex", "age", "born"]
    with engine.connect() as connection:
        assert connection.execute(sa.text("SHOW TABLES")).scalars().all() == ["births", "deaths"]
        described = connection.execute(sa.text("DESCRIBE births")).all()
        assert [row.column_name for row in described] == ["sex", "age", "born"]
        found = connection.execute(
            sa.text("SELECT column_name FROM information_schema.columns WHERE table_name = :name"), {"name": "deaths"}
        )
        assert found.scalars().all() == ["sex", "age", "born"]
        connection.commit()
        connection.rollback()
    assert len(here.queries.asked) == asked


def test_a_notebook_magic_asks_in_one_connection_that_stays_open(engine: sa.Engine, here: Server) -> None:
    """The calls of JupySQL: autocommit, text with bound names, columns of a table without rows, and the end."""
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    result = connection.execute(sa.text("SELECT sex, COUNT(*) AS n FROM births WHERE age > :least"), {"least": 64})
    assert (list(result.keys()), result.returns_rows) == (["sex", "n", "last"], True)
    assert [row.n for row in result.fetchmany(size=2)] == [42, 7]
    assert here.queries.asked[-1].sql.endswith("age > 64")
    asked = len(here.queries.asked)
    empty = connection.execute(sa.text("SELECT * FROM births WHERE 1=0"))
    assert (list(empty.keys()), empty.fetchall()) == (["sex", "age", "born"], [])
    with pytest.raises(ProgrammingError, match="no such table"):
        connection.execute(sa.text("SELECT * FROM nowhere WHERE 1=0"))
    assert sa.inspect(connection).get_columns("births", None)[1]["name"] == "age"
    assert len(here.queries.asked) == asked
    connection.close()
    engine.dispose()


def test_a_refusal_is_an_error_of_the_standard(engine: sa.Engine) -> None:
    with engine.connect() as connection, pytest.raises(ProgrammingError, match="no such table"):
        connection.execute(sa.text("SELECT COUNT(*) FROM nowhere"))


@pytest.mark.parametrize(
    "wrong",
    [
        "incrowd+http://:ic_x@localhost:1/",
        "incrowd+http://localhost:1/?epsilon=1",
        "incrowd+http://:ic_x@localhost:1/?epsilon=1&epsilon=2",
        "incrowd+http://:ic_x@localhost:1/?epsilon=1&colour=red",
        "incrowd+http://:ic_x@localhost:1/?epsilon=1&intervals=perhaps",
    ],
)
def test_an_address_that_leaves_something_open_is_refused(wrong: str) -> None:
    with pytest.raises(ArgumentError):
        sa.create_engine(wrong).connect()


def test_a_token_is_not_sent_in_the_clear_and_not_shown() -> None:
    far = sa.create_engine("incrowd+http://:ic_secret@example.org/?epsilon=1")
    with pytest.raises(Exception, match="unencrypted"):
        far.connect()
    assert "ic_secret" not in repr(far)
    assert sa.create_engine("incrowd+https://:ic_secret@example.org/?epsilon=1").dialect.driver == "https"
