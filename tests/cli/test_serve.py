from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from incrowd.web.app import VARIABLE, application
from tests.cli.running import Runner

POLICY = {
    "incrowd": 1,
    "dataset": {"name": "births"},
    "source": "births.csv",
    "columns": {"age": {"type": "integer", "bounds": [0, 100]}},
    "queries": {"table": "births"},
    "budget": {"epsilon": 1},
}
GRANT = "access grant ann --why project --who officer --json"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """What uvicorn was told instead of serving."""
    (tmp_path / "births.csv").write_text("age\n30\n40\n")
    (tmp_path / "policy.yaml").write_text(json.dumps(POLICY))
    found: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr("uvicorn.run", lambda served, **config: found.append((served, config)))
    monkeypatch.setenv(VARIABLE, "")
    return found


def test_one_worker_serves_in_this_process_and_keeps_requests_out_of_foreign_logs(
    run: Runner, calls: list[tuple[Any, dict[str, Any]]]
) -> None:
    run(GRANT)
    told = run("serve --policy policy.yaml --port 8123 --json").json
    assert (told["address"], told["workers"]) == ("http://127.0.0.1:8123", 1)
    ((served, config),) = calls
    assert isinstance(served, FastAPI)
    assert (config["host"], config["access_log"], config["server_header"]) == ("127.0.0.1", False, False)
    served.state.close()


def test_many_workers_find_their_order_in_the_environment(
    run: Runner, calls: list[tuple[Any, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))  # a worker hides pandas from its process
    run(GRANT)
    assert run("serve --policy policy.yaml --workers 3 --reply-interval 2 --https --json").json["workers"] == 3
    ((served, config),) = calls
    assert (served, config["factory"], config["workers"]) == ("incrowd.web.app:application", True, 3)
    worker = application()
    settings = worker.state.services.settings
    assert (settings.pace, settings.cookie) == (2.0, "__Host-incrowd")
    worker.state.close()


def test_a_server_that_nobody_may_ask_does_not_start(run: Runner, calls: list[tuple[Any, dict[str, Any]]]) -> None:
    outcome = run("serve --policy policy.yaml --json")
    assert (outcome.code, calls) == (2, [])
    assert "incrowd access grant" in outcome.err


@pytest.mark.parametrize(("options", "believed"), [("", False), ("--https", True)])
def test_only_a_declared_proxy_is_believed_where_requests_come_from(
    run: Runner, calls: list[tuple[Any, dict[str, Any]]], options: str, believed: bool
) -> None:
    run(GRANT)
    run(f"serve --policy policy.yaml --json {options}")
    ((served, config),) = calls
    assert (config["proxy_headers"], config["ws"]) == (believed, "none")
    served.state.close()
