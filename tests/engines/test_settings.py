"""Where rows are worked on: what a policy says, and what a caller says on top."""

from __future__ import annotations

import pytest

from incrowd.engines.choose import engine_of
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.settings import Local, Settings, Spark, describe, override
from incrowd.errors import InvalidParameter

CLUSTER = Spark("spark://driver:7077", config={"spark.executor.memory": "4g"}, id="visit")


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ((None, None, None), CLUSTER),
        (("spark", None, None), CLUSTER),
        (("local", None, None), Local()),
        ((None, "yarn", None), Spark("yarn", config=CLUSTER.config, id="visit")),
        (("spark", None, "sc://gate:15002"), Spark(remote="sc://gate:15002", config=CLUSTER.config, id="visit")),
    ],
)
def test_a_caller_overrides_where_and_keeps_the_rest(
    told: tuple[str | None, str | None, str | None], found: Settings
) -> None:
    assert override(CLUSTER, *told) == found


def test_naming_spark_alone_means_spark_in_this_machine() -> None:
    assert override(Local(), "spark", None, None) == Spark()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (("duckdb", None, None), "no engine 'duckdb': there are local and spark"),
        (("local", "yarn", None), "neither master nor remote"),
        ((None, "yarn", "sc://gate"), "not by both"),
        ((None, None, "gate:15002"), "such as sc://host:15002"),
    ],
)
def test_what_contradicts_itself_is_refused(told: tuple[str | None, str | None, str | None], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        override(Local(), *told)


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
    with pytest.raises(InvalidParameter, match=r"spark\.master is said by master"):
        Spark(config={"spark.master": "yarn"})


def test_the_record_says_where_and_nothing_that_was_not_told() -> None:
    assert describe(Local()) == {"engine": "local"}
    assert describe(Spark(remote="sc://gate")) == {"engine": "spark", "remote": "sc://gate"}


def test_the_local_engine_needs_no_start() -> None:
    with engine_of(Local()) as engine:
        assert engine == LocalEngine()
