from __future__ import annotations

import json
from pathlib import Path

from tests.cli.hospital import policy
from tests.cli.running import Runner


def test_the_published_schema_names_every_section(run: Runner) -> None:
    outcome = run("policy schema")
    assert outcome.code == 0
    assert {"incrowd", "dataset", "columns", "release"} <= set(json.loads(outcome.out)["properties"])
    assert outcome.out.count("\n") > 20
    assert run("policy schema --json").json == json.loads(outcome.out)


def test_a_policy_is_read_back_as_it_was_understood(run: Runner, tmp_path: Path) -> None:
    policy(tmp_path)
    found = run("policy check policy.yaml --json").json
    assert found["dataset"] == "patients"
    assert found["columns"][1] == {
        "name": "age",
        "role": "quasi",
        "type": "integer",
        "rule": "intervals of 50",
        "level": 1,
        "of": 2,
    }
    shown = run("policy check policy.yaml").out
    assert "not released" in shown
    assert "level 1 of 2" in shown


def test_a_policy_for_queries_alone_is_a_policy(run: Runner, tmp_path: Path) -> None:
    plain = {"incrowd": 1, "dataset": {"name": "wards"}, "columns": {"ward": {"categories": ["a", "b"]}}}
    (tmp_path / "p.yaml").write_text(json.dumps(plain | {"queries": {}, "budget": {"epsilon": 1}}), encoding="utf-8")
    assert run("policy check p.yaml --json").json["method"] is None
    assert "for queries" in run("policy check p.yaml").out
    (tmp_path / "p.yaml").write_text(json.dumps(plain), encoding="utf-8")
    assert "release is missing" in run("policy check p.yaml").err


def test_a_wrong_policy_is_bad_input_with_its_line(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("incrowd: 1\ndataset: {nme: x}\ncolumns: {}\nrelease: {}\n", encoding="utf-8")
    outcome = run("policy check p.yaml")
    assert outcome.code == 2
    assert "line 2" in outcome.err


def test_free_text_that_would_be_released_is_found_without_data(run: Runner, tmp_path: Path) -> None:
    policy(tmp_path, columns={"note": {"role": "quasi"}}, release={"method": "safe", "rate": "1", "k": 5})
    outcome = run("policy check policy.yaml")
    assert outcome.code == 2
    assert "free text" in outcome.err
