from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from incrowd.governance.audit import Event, open_stores
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


def test_the_console_shows_who_asked_what_what_remains_and_why_queries_were_refused(
    run: Runner, calls: list[tuple[Any, dict[str, Any]]], tmp_path: Path
) -> None:
    address = f"sqlite:///{tmp_path}/.incrowd/ledger.sqlite"
    token = run(GRANT).json["grant"]["id"]
    run("query 'SELECT COUNT(*) AS n FROM births' --policy policy.yaml --epsilon 0.25 --json")
    audit = open_stores(address).audit
    audit.write(
        Event("query", "answered", "ann", token, {"epsilon": "0.25", "question": "a fingerprint"}),
        Event("query", "refused", "ann", token, {"kind": "QueryRefused"}),
        Event("query", "refused", "ann", token, {"kind": "BudgetExceeded"}),
        Event("query", "refused", "bob", token, {"kind": "QueryRefused"}),
        Event("login", "denied"),
    )
    usage = run("serve --policy policy.yaml --console --json").json
    assert usage["datasets"] == [
        {"dataset": "births", "epsilon_spent": "0.25", "epsilon_left": "0.75", "delta_left": "0"}
    ]
    assert [(user["name"], user["role"], user["answered"], user["refused"]) for user in usage["users"]] == [
        ("ann", "analyst", 1, 2),
        ("bob", "no token", 0, 1),
    ]
    assert usage["users"][0]["tokens"] == [token]
    (paid,) = usage["queries"]
    assert (paid["analyst"], paid["epsilon"], paid["queries"]) == (
        "everyone",
        "0.25",
        ["SELECT COUNT(*) AS n FROM births"],
    )
    assert len(paid["at"]) == len("2025-01-01T00:00"), "to the minute: two of them give no duration"
    assert usage["reasons"] == [{"reason": "QueryRefused", "times": 2}, {"reason": "BudgetExceeded", "times": 1}]
    assert usage["requests"] == 4
    shown = run("serve --policy policy.yaml --console").out
    assert f"incrowd access revoke {token}" in shown
    assert not calls, "the console serves nothing"
    assert run("serve --console").code == 2
