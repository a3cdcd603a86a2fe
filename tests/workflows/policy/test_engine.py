"""The engine in a policy: where it runs, which is no part of what it guarantees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow.parquet import write_table

from incrowd.cli.main import main
from incrowd.engines.settings import Local, Settings, Spark
from incrowd.errors import InvalidParameter, SourceUnreadable
from incrowd.workflows.policy.file import json_schema
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.policy.rows import open_rows, settings_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.policies import PEOPLE, changed, people, with_ledger

CLUSTER = {"spark": {"master": "spark://driver:7077", "config": {"spark.executor.cores": 2}, "id": "visit"}}


@pytest.mark.parametrize(
    ("written", "engine"),
    [
        (None, Local()),
        ("local", Local()),
        ("spark", Spark()),
        (CLUSTER, Spark("spark://driver:7077", config={"spark.executor.cores": "2"}, id="visit")),
        ({"spark": {"remote": "sc://gate:15002"}}, Spark(remote="sc://gate:15002")),
    ],
)
def test_a_policy_says_where_it_runs(written: Any, engine: Settings) -> None:
    assert load_policy(changed(PEOPLE, engine=written)).engine == engine


def test_where_it_runs_is_no_part_of_the_hash() -> None:
    here, there = load_policy(PEOPLE), load_policy(changed(PEOPLE, engine=CLUSTER))
    assert here.hash == there.hash
    assert here.hash != load_policy(changed(PEOPLE, release__rate="1/3", engine=CLUSTER)).hash


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("flink", "Input should be 'local' or 'spark'"),
        ({"spark": {"mastr": "yarn"}}, "'mastr' is not known here. Did you mean 'master'?"),
        ({"flink": {}}, "'flink' is not known here. Allowed here: spark."),
        ({"spark": {"master": "yarn", "remote": "sc://gate"}}, "not both"),
        ({"spark": {"config": {"spark.hadoop.fs.s3a.secret.key": "hush"}}}, "set it in the spark-defaults.conf"),
    ],
)
def test_an_engine_that_means_nothing_is_refused(written: Any, said: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        load_policy(changed(PEOPLE, engine=written))
    assert said in str(caught.value)
    assert "hush" not in str(caught.value)


def test_the_published_schema_knows_the_engine() -> None:
    assert {"spark"} == set(json_schema()["$defs"]["EngineSection"]["properties"])


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("s3a://bucket/visits", "s3a://bucket/visits"),
        ("::sales.visits", "::sales.visits"),
        ({"table": "sales.visits"}, "::sales.visits"),
        ({"path": "hdfs://name/visits", "format": "parquet"}, "hdfs://name/visits"),
    ],
)
def test_an_address_is_not_taken_for_a_path(source: Any, address: str) -> None:
    policy = load_policy(changed(PEOPLE, source=source))
    assert policy.source == address
    with pytest.raises((SourceUnreadable, InvalidParameter)):
        open_rows(None, policy)


def test_a_source_is_somewhere() -> None:
    with pytest.raises(InvalidParameter, match="needs a path, or the name of a table"):
        load_policy(changed(PEOPLE, source={"format": "csv"}))


def test_a_release_is_looked_at_here_even_under_a_policy_with_a_cluster(tmp_path: Path) -> None:
    here = load_policy(with_ledger(PEOPLE, tmp_path))
    release_to(people(), here, Destination(tmp_path / "out"))
    there = load_policy(changed(PEOPLE, engine=CLUSTER))
    assert settings_of(there, str(tmp_path / "out"), None, None, None) == Local()
    assert settings_of(there, None, None, None, None) == there.engine
    assert settings_of(there, str(tmp_path / "out"), "spark", None, None) == Spark()


def test_what_ran_where_is_told_to_the_holder_alone(tmp_path: Path) -> None:
    published = release_to(people(), with_ledger(PEOPLE, tmp_path), Destination(tmp_path / "out"))
    inside = json.loads((published.internal / "internal.json").read_text(encoding="utf-8"))
    assert inside["worked on"] == {"engine": "local"}
    assert "worked on" not in published.release.certificate.to_text()


@pytest.mark.parametrize(
    "line",
    [
        "attack out --policy policy.yaml",
        "attack --attack audit --policy policy.yaml",
        "hierarchy check --policy policy.yaml",
    ],
)
def test_what_is_read_here_is_said_before_a_source_on_a_cluster_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(people(), Path("people.parquet"))
    plain = changed(with_ledger(PEOPLE, tmp_path), source="people.parquet")
    release_to("people.parquet", plain, Destination(Path("out")))
    Path("policy.yaml").write_text(json.dumps(plain | {"engine": CLUSTER}))
    Path("people.parquet").write_text("nothing that can be read")
    assert main(line.split()) == 2
    assert "Nothing was read" in " ".join(capsys.readouterr().err.split())
