from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from incrowd.client import dbapi
from incrowd.governance.grant import AccessRole
from tests.web.serving import Server, listening, server

SQL = "SELECT sex, COUNT(*) AS n FROM births GROUP BY sex"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return server(tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def connection(here: Server) -> Iterator[dbapi.Connection]:
    with listening(here.client.application) as address:
        yield dbapi.connect(address, here.token(AccessRole.ANALYST).token, epsilon="0.1")


def test_pandas_reads_an_answer(connection: dbapi.Connection) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas tests itself with SQLAlchemy only
        frame = pd.read_sql(SQL, connection)
    assert frame["n"].tolist() == [42, 7, 0]


def test_polars_reads_an_answer(connection: dbapi.Connection) -> None:
    frame = pl.read_database(SQL, connection)
    assert frame.columns == ["sex", "n", "last"]
    assert frame["n"].to_list() == [42, 7, 0]


def test_a_cursor_tells_columns_rows_and_the_whole_reply(connection: dbapi.Connection) -> None:
    with connection.cursor() as cursor:
        assert (cursor.description, cursor.rowcount) == (None, -1)
        cursor.execute(SQL)
        assert cursor.description is not None
        assert [each[:2] for each in cursor.description] == [("sex", "text"), ("n", "integer"), ("last", "date")]
        assert cursor.rowcount == 3
        assert cursor.fetchone() == ("f", 42, dt.date(2020, 2, 29))
        assert cursor.fetchmany(1) == [("m", 7, None)]
        assert list(cursor) == [(None, 0, dt.date(1999, 12, 31))]
        assert cursor.fetchone() is None
        assert cursor.reply is not None
        assert cursor.reply.cost["epsilon"] == "1"
    with pytest.raises(dbapi.InterfaceError):
        cursor.fetchall()


def test_parameters_become_literals(here: Server, connection: dbapi.Connection) -> None:
    connection.cursor().execute("SELECT COUNT(*) FROM births WHERE name = ?", ["O'Neill"])
    assert here.queries.asked[-1].sql == "SELECT COUNT(*) FROM births WHERE name = 'O''Neill'"


def test_errors_are_those_of_the_standard(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.DatabaseError, match="1 of the budget"):
        cursor.execute("births over budget")
    with pytest.raises(dbapi.ProgrammingError, match="no such table"):
        cursor.execute("nothing")
    with pytest.raises(dbapi.OperationalError):
        cursor.execute("births crash")
    with pytest.raises(dbapi.ProgrammingError, match="one parameter for each question mark: 1, not 0"):
        cursor.execute("births ?")
    with pytest.raises(dbapi.ProgrammingError, match="one parameter for each question mark: 0, not 1"):
        cursor.execute("births", [1])
    with pytest.raises(dbapi.NotSupportedError):
        cursor.executemany(SQL, [[1]])


def test_a_closed_connection_asks_nothing(here: Server) -> None:
    connection = dbapi.connect("http://localhost:1", "ic_x", epsilon=1)
    connection.commit()
    connection.rollback()
    connection.close()
    with pytest.raises(dbapi.InterfaceError):
        connection.cursor()


@pytest.mark.parametrize("value", [float("nan"), np.float64("nan"), pd.NaT, Decimal("NaN"), float("inf"), b"x", [1]])
def test_what_is_no_value_is_refused_before_anything_is_sent(
    here: Server, connection: dbapi.Connection, value: object
) -> None:
    asked = len(here.queries.asked)
    with pytest.raises(dbapi.ProgrammingError, match="parameter"):
        connection.cursor().execute("SELECT COUNT(*) FROM births WHERE age = ?", [value])
    assert len(here.queries.asked) == asked


def test_pandas_passes_parameters_on(here: Server, connection: dbapi.Connection) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas tests itself with SQLAlchemy only
        pd.read_sql("SELECT COUNT(*) FROM births WHERE age > -?", connection, params=(np.int64(-5),))
    assert here.queries.asked[-1].sql == "SELECT COUNT(*) FROM births WHERE age > -(-5)"


def test_polars_reads_numbers_with_a_point_and_an_estimate(connection: dbapi.Connection) -> None:
    kinds = {name: code for name, code, *_ in connection.cursor().execute(SQL).description or ()}
    assert set(kinds.values()) <= dbapi.STRING | dbapi.NUMBER | dbapi.DATETIME
    estimate = pl.read_database(f"EXPLAIN PRIVACY {SQL}", connection)
    assert estimate["estimate"].to_list()[0] == "costs epsilon 1/10, delta 0"
