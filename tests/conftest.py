from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.postgres import binaries, server

_NUMBERS = count()


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one PostgreSQL server for the whole run, also when several processes run the tests."""
    if binaries() is None:
        reason = "no PostgreSQL server is installed: initdb was not found"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    base = tmp_path_factory.getbasetemp()
    with server(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) as address:
        yield address


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    """The address of a schema of PostgreSQL that this test has for itself."""
    from sqlalchemy import NullPool, create_engine, text

    engine = create_engine(postgres_server.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    schema = f"test_{os.getpid()}_{next(_NUMBERS)}"
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    yield f"{postgres_server}&options=-csearch_path%3D{schema}"
    with engine.begin() as connection:
        connection.execute(text(f"DROP SCHEMA {schema} CASCADE"))


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The address of a SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path}/.incrowd/ledger.sqlite"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request: pytest.FixtureRequest) -> str:
    """An address on SQLite, then one on PostgreSQL."""
    return str(request.getfixturevalue(request.param))
