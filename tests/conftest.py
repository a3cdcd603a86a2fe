from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

from incrowd.core.table import Engine
from tests import chance, spark
from tests.postgres import binaries, schema, server

# Speed is measured in bench/, beside a peer: a test that fails because a machine is busy tells nothing.
# The same examples are tried at every run, so few of them do; a fresh seed tries others, and more.
settings.register_profile(
    "incrowd",
    deadline=None,
    max_examples=100 if chance.FRESH else 50,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not chance.FRESH,
)
settings.register_profile("quick", settings.get_profile("incrowd"), max_examples=20)
settings.load_profile("incrowd")


signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so do its children

MARKS = {
    "spark_engine": "spark",
    "spark_cluster": "spark",
    "spark_connect": "spark",
    "postgres_server": "postgres",
    "tests/browser": "browser",
    "tests/docs": "docs",
    "tests/audit": "long",
    "tests/journeys": "long",
    "tests/statistics": "long",
}
"""What marks a test: a fixture it uses, or the folder it is in."""

LONG = frozenset(
    line.partition("[")[0] for line in (Path(__file__).parent / "long.txt").read_text(encoding="utf-8").splitlines()
)
"""The tests that `scripts/long` found to take long; a case that is listed stands for its whole test."""

FIRST = ("spark", "long", "browser", "docs")
"""What takes longest is started first, so that no process is left with it at the end."""


class Doctests:
    """Looks for examples in files that have some: going through all others took a tenth of the collection."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Collect a file, its doctests only where it shows a prompt."""
        found = yield
        if file_path.suffix == ".py" and b">>>" not in file_path.read_bytes():
            return [collector for collector in found if not isinstance(collector, DoctestModule)]
        return found


def pytest_configure(config: pytest.Config) -> None:
    """Apply to `src`, too, what a file of hooks in `tests` applies to tests alone."""
    config.pluginmanager.register(Doctests())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what they need, and bring them into the order in which they are started."""
    folders, turns = dict[str, set[str]](), dict[str, int]()
    for item in items:
        file = _file(item)
        for named in (folders.setdefault(file, _folders(file)) | {*getattr(item, "fixturenames", ())}) & MARKS.keys():
            item.add_marker(MARKS[named])
        if item.nodeid.partition("[")[0] in LONG:
            item.add_marker("long")
        marks = {mark.name for mark in item.iter_markers()}
        if "spark" in marks and "spark" not in item.nodeid:
            raise pytest.UsageError(
                f"{item.nodeid} needs Spark: say so in its name, because one process runs all those."
            )
        turns[file] = min([turns.get(file, len(FIRST)), *(turn for turn, name in enumerate(FIRST) if name in marks)])
    items.sort(key=lambda item: turns[_file(item)])  # a file stays together, and what its tests share is made once


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _folders(file: str) -> set[str]:
    return {"/".join(file.split("/")[:depth]) for depth in (1, 2)}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let the chance of a test and of the fixtures made for it hang on its name."""
    with chance.settled(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is collected out of the search for garbage: going through it took a fifth of a run."""
    gc.disable()
    found = yield
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()
    return found


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give each file to one process, and all of Spark to one: its Java starts once, and so do fixtures of a module."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.scheduling import ByFile

    return ByFile(config, log)


@pytest.fixture
def heard() -> Iterator[None]:
    """The end of a terminal is heard, also by a suite that is to outlive its own."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


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
    with schema(postgres_server) as address:
        yield address


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The address of a SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path}/.incrowd/ledger.sqlite"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request: pytest.FixtureRequest) -> str:
    """An address on SQLite, then one on PostgreSQL."""
    return str(request.getfixturevalue(request.param))


def _shared(factory: pytest.TempPathFactory) -> Path:
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """A cluster on a busy machine may be slow: no test fails because of that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("incrowd.engines.spark.workers.PATIENCE", 1000.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def frozen() -> Iterator[None]:
    """A server that stops within this process leaves what was collected where it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "unfreeze", lambda: None)
        yield


def _require_spark() -> None:
    reason = spark.missing()
    if reason is not None and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def spark_engine() -> Iterator[Engine]:
    """Spark in this process, on two threads; one process of a run has it."""
    _require_spark()
    from incrowd.engines.settings import Spark
    from incrowd.engines.spark.engine import spark_engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", spark.JAVA)
        with spark_engine(Spark(master=spark.MASTER, config=spark.CONFIG)) as engine:
            yield engine


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone cluster of a master and two workers for the whole run."""
    _require_spark()
    with spark.cluster(_shared(tmp_path_factory)) as address:
        yield address


@pytest.fixture(scope="session")
def spark_connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server for the whole run."""
    _require_spark()
    with spark.connect_server(_shared(tmp_path_factory)) as address:
        yield address
