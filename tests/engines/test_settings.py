"""Where rows are worked on: what a policy says, and what a caller says on top."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import SourceOptions
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.settings import Local, Settings, Spark, describe, engine_of, open_table, override
from incrowd.errors import InvalidParameter, UnknownColumn

CLUSTER = Spark("spark://driver:7077", config={"spark.executor.memory": "4g"}, id="visit")


@pytest.mark.parametrize(
    ("declared", "result"),
    [
        ((None, None, None), CLUSTER),
        (("spark", None, None), CLUSTER),
        (("local", None, None), Local()),
        ((None, "yarn", None), Spark("yarn", config=CLUSTER.config, id="visit")),
        (("spark", None, "sc://gate:15002"), Spark(remote="sc://gate:15002", config=CLUSTER.config, id="visit")),
    ],
)
def test_a_caller_overrides_where_and_keeps_the_rest(
    declared: tuple[str | None, str | None, str | None], result: Settings
) -> None:
    assert override(CLUSTER, *declared) == result


def test_naming_spark_alone_means_spark_in_this_machine() -> None:
    assert override(Local(), "spark", None, None) == Spark()


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (("duckdb", None, None), "no engine 'duckdb'. Choose local or spark"),
        (("local", "yarn", None), "neither master nor remote"),
        ((None, "yarn", "sc://gate"), "not both"),
        ((None, None, "gate:15002"), "such as sc://host:15002"),
    ],
)
def test_what_contradicts_itself_is_refused(declared: tuple[str | None, str | None, str | None], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        override(Local(), *declared)


@pytest.mark.parametrize("name", ["spark.hadoop.fs.s3a.secret.key", "spark.ssl.keyPassword", "spark.authToken"])
def test_a_secret_does_not_belong_into_a_policy(name: str) -> None:
    with pytest.raises(InvalidParameter, match=r"spark-defaults\.conf") as caught:
        Spark(config={name: "hush"})
    assert "hush" not in str(caught.value)


def test_a_token_does_not_belong_into_an_address() -> None:
    with pytest.raises(InvalidParameter, match="SPARK_CONNECT_AUTHENTICATE_TOKEN") as caught:
        Spark(remote="sc://gate:15002/;use_ssl=true;token=hush")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("master", ["foo://bar", "driver:7077", "spark://", "", "local-"])
def test_what_is_no_master_is_refused_before_java_starts(master: str) -> None:
    with pytest.raises(InvalidParameter, match=r"spark://HOST:PORT, yarn, k8s://ADDRESS, or local\[4\]"):
        Spark(master=master)


@pytest.mark.parametrize("master", ["spark://a:7077,b:7077", "yarn", "k8s://https://a:6443", "local", "local[*,3]"])
def test_masters_of_every_kind_are_taken(master: str) -> None:
    assert Spark(master=master).master == master


def test_a_cluster_is_not_named_twice() -> None:
    with pytest.raises(InvalidParameter, match=r"spark\.master is set by master"):
        Spark(config={"spark.master": "yarn"})


def test_the_record_says_where_and_nothing_that_was_not_told() -> None:
    assert describe(Local()) == {"engine": "local"}
    assert describe(Spark(remote="sc://gate")) == {"engine": "spark", "remote": "sc://gate"}


def test_the_local_engine_needs_no_start() -> None:
    with engine_of(Local()) as engine:
        assert engine == LocalEngine()


SCHEMA = Schema((Column("id", Role.IDENTIFIER), Column("zip", Role.QUASI)))


def test_files_and_frames_are_read_in_this_process(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("id:zip\n1:01234\n")
    for table in (
        open_table(path, SCHEMA, SourceOptions(delimiter=":")),
        open_table(pa.table({"id": ["1"], "zip": ["01234"]}), SCHEMA),
    ):
        assert table.engine == LocalEngine()
        assert table.schema == SCHEMA
        assert [batch.to_pylist() for batch in table.rows.batches(["zip"])] == [[{"zip": "01234"}]]


def test_a_declared_column_that_is_not_there_is_refused_at_once() -> None:
    with pytest.raises(UnknownColumn, match=r"no column zip\. Did you mean zip1\?"):
        open_table(pa.table({"id": ["1"], "zip1": ["01234"]}), SCHEMA)
