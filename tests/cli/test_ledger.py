from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.running import Runner

NEW = "ledger grant births --new --epsilon 3 --delta 1e-7 --why first --who owner"


def test_a_new_dataset_has_the_budget_that_was_granted(run: Runner, tmp_path: Path) -> None:
    found = run(f"{NEW} --json").json
    assert found["left"] == {"epsilon": "3", "delta": "0.0000001"}
    assert found["unit"] == {"kind": "row", "adjacency": "add-remove"}
    assert (tmp_path / ".incrowd" / "ledger.sqlite").is_file()


def test_grants_add_up(run: Runner) -> None:
    run(NEW)
    assert run("ledger grant births --epsilon 0.5 --why more --json").json["budget"]["epsilon"] == "3.5"


def test_making_a_dataset_twice_is_refused_and_grants_nothing(run: Runner) -> None:
    run(NEW)
    outcome = run(NEW)
    assert outcome.code == 2
    assert "leave out --new" in outcome.err
    assert run("ledger show --json").json["datasets"][0]["budget"]["epsilon"] == "3"


def test_people_can_be_the_unit(run: Runner) -> None:
    found = run(f"{NEW} --person mother_id --max-rows 3 --replace --json").json
    assert found["unit"] == {"kind": "person", "adjacency": "replace-one", "column": "mother_id", "max_rows": 3}


def test_an_analyst_can_be_allowed_a_part(run: Runner) -> None:
    run(NEW)
    run("ledger grant births --analyst ann --epsilon 0.2 --until 2099-12-31 --why project")
    assert run("ledger show --json").json["analysts"][0]["allowance"]["epsilon"] == "0.2"
    assert "until 2099-12-31" in " ".join(run("ledger show").out.split())


def test_who_and_why_are_kept(run: Runner) -> None:
    run(NEW)
    entries = run("ledger show --entries --json").json["entries"]
    assert [entry["kind"] for entry in entries] == ["created", "register", "grant"]
    assert (entries[-1]["body"]["who"], entries[-1]["body"]["why"]) == ("owner", "first")


def test_a_closed_dataset_gets_no_more(run: Runner) -> None:
    run(NEW)
    assert run("ledger close births --why over --json").json["closed"] == "closed"
    assert run("ledger grant births --epsilon 1 --why more").code == 1


def test_retiring_records_that_the_data_was_destroyed(run: Runner) -> None:
    run(NEW)
    assert run("ledger close births --why over --retire --json").json["closed"] == "retired"


def test_check_passes_on_an_honest_ledger(run: Runner) -> None:
    run(NEW)
    found = run("ledger check --json").json
    assert found["ok"]
    assert found["entries"] == 3


def test_check_finds_a_changed_entry_and_exits_with_1(run: Runner, tmp_path: Path) -> None:
    run(NEW)
    tamper(tmp_path, "UPDATE ledger_entries SET body = replace(body, '\"3\"', '\"9\"')")
    outcome = run("ledger check --json")
    assert outcome.code == 1
    assert not outcome.json["ok"]
    assert outcome.json["bad"] == 3
    assert "NOT in order" in run("ledger check").out


def test_check_against_a_certificate_finds_a_cut_off_tail(run: Runner, tmp_path: Path) -> None:
    run(NEW)
    early = (tmp_path / ".incrowd" / "ledger.sqlite").read_bytes()
    run("ledger grant births --epsilon 1 --why more")
    anchor = run("ledger check --json").json["head"]
    (tmp_path / "anchor.json").write_text(json.dumps(anchor), encoding="utf-8")
    assert run("ledger check --against anchor.json").code == 0
    (tmp_path / ".incrowd" / "ledger.sqlite").write_bytes(early)
    assert run("ledger check").code == 0
    assert run("ledger check --against anchor.json").code == 1


@pytest.mark.parametrize("line", ["show", "check", "grant births --epsilon 1 --why x", "close births --why x"])
def test_a_missing_ledger_is_an_error_and_not_made(run: Runner, tmp_path: Path, line: str) -> None:
    outcome = run(f"ledger {line}")
    assert outcome.code == 2
    assert "no ledger exists" in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("grant births --why x", "nothing to grant"),
        ("grant births --epsilon 1", "--why"),
        ("grant births --epsilon 1 --why ' '", "give a reason with --why"),
        ("grant births --epsilon -1 --why x", "negative"),
        ("grant births --epsilon 1 --until 2030-01-01 --why x", "--until belongs"),
        ("grant births --analyst ann --epsilon 1 --until soon --why x", "2030-12-31"),
        ("grant births --analyst ann --unbounded x --epsilon 1 --why x", "budget"),
        ("grant births --person id --epsilon 1 --why x", "declared once"),
        ("grant births --new --analyst ann --epsilon 1 --why x", "first"),
        ("grant other --epsilon 1 --why x", "has no dataset called"),
        ("grant other --new --epsilon 1 --delta 2 --why x", "delta"),
        ("close other --why x", "has no dataset called"),
        ("show --ledger mysql://here", "sqlite:///FILE"),
        ("check --against nothing.json", "cannot be read"),
    ],
)
def test_bad_input_of_ledger_is_one_clear_message_and_exit_2(run: Runner, line: str, says: str) -> None:
    run(NEW)
    before = run("ledger check --json").json["head"]
    outcome = run(f"ledger {line}")
    assert (outcome.code, outcome.out) == (2, "")
    assert says in outcome.err
    assert run("ledger check --json").json["head"] == before


def test_the_ledger_can_be_named_by_a_variable(run: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("INCROWD_LEDGER", f"sqlite:///{tmp_path}/books/one.sqlite")
    assert run(NEW).code == 0
    assert (tmp_path / "books" / "one.sqlite").is_file()


def test_a_ledger_that_is_no_ledger_is_bad_input(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "notes.sqlite").write_text("not a database at all, by any means", encoding="utf-8")
    outcome = run("ledger show --ledger sqlite:///notes.sqlite")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1


def tamper(folder: Path, statement: str) -> None:
    with sqlite3.connect(folder / ".incrowd" / "ledger.sqlite") as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
    connection.close()


def test_a_policy_makes_its_dataset_known_before_anything_is_charged(run: Runner, tmp_path: Path) -> None:
    content = {
        "incrowd": 1,
        "dataset": {"name": "births"},
        "columns": {"sex": {"categories": ["f", "m"]}},
        "queries": {},
        "budget": {"epsilon": 2},
        "ledger": f"sqlite:///{tmp_path}/own.sqlite",
    }
    (tmp_path / "policy.yaml").write_text(json.dumps(content))
    grant = f"--analyst ann --epsilon 0.2 --why project --policy {tmp_path}/policy.yaml"
    for _ in range(2):
        run(f"ledger grant births {grant}")
    told = run(f"ledger show --ledger sqlite:///{tmp_path}/own.sqlite --json").json
    assert told["analysts"][0]["allowance"]["epsilon"] == "0.2"
    assert run(f"ledger grant deaths {grant}").code == 2
    assert run(f"ledger grant births --new {grant}").code == 2
