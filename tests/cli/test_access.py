from __future__ import annotations

import io
from pathlib import Path

import pytest

from incrowd.errors import AccessDenied
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessRole
from tests.cli.running import Runner

GRANT = "access grant ann --dataset births --days 30 --why project --who officer"


def book(folder: Path) -> AccessList:
    return AccessList.open(f"sqlite:///{folder}/.incrowd/ledger.sqlite")


def test_a_token_is_shown_once_and_works(run: Runner, tmp_path: Path) -> None:
    made = run(f"{GRANT} --json").json
    grant = book(tmp_path).grant_of(made["token"])
    assert (grant.holder.name, grant.holder.role, grant.holder.datasets) == ("ann", AccessRole.ANALYST, ("births",))
    listed = run("access list --json")
    assert [(each["holder"], each["state"]) for each in listed.json["tokens"]] == [("ann", "works")]
    assert made["token"] not in listed.out + run("access list").out


def test_people_see_the_token_and_that_it_is_shown_once(run: Runner) -> None:
    shown = run(GRANT).out
    assert "ic_" in shown
    assert "once" in shown


def test_rotating_gives_a_new_token_and_ends_the_old_one(run: Runner, tmp_path: Path) -> None:
    old = run(f"{GRANT} --json").json
    new = run(f"access rotate {old['grant']['id']} --why leaked --json").json
    assert book(tmp_path).grant_of(new["token"]).id == old["grant"]["id"]
    with pytest.raises(AccessDenied):
        book(tmp_path).grant_of(old["token"])


def test_revoking_ends_one_token_or_everything_of_somebody(run: Runner, tmp_path: Path) -> None:
    tokens = [run(f"{GRANT} --json").json for _ in range(3)]
    assert run(f"access revoke {tokens[0]['grant']['id']} --why left --json").json["revoked"] == [
        tokens[0]["grant"]["id"]
    ]
    assert len(run("access revoke --name ann --why left --json").json["revoked"]) == 2
    assert run("access list --json").json["tokens"] == []
    assert {each["state"] for each in run("access list --ended --json").json["tokens"]} == {"revoked"}
    assert run("access check --json").json["access"]["ok"]


def test_a_password_is_read_from_standard_input(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
    assert run("access password ann --role owner --why first --json").json["role"] == "owner"
    access = book(tmp_path)
    from datetime import timedelta

    assert access.login("ann", "correct horse battery", access.now() + timedelta(hours=1)).grant.session


@pytest.mark.parametrize(
    "line",
    [
        "access grant ann --role king --why x",
        "access grant ann --days 0 --why x",
        "access grant ann --days 400 --why x",
        "access grant ann --days many --why x",
        "access grant ann --why ' '",
        "access grant '' --why x",
        "access revoke --why x",
        "access revoke 1 --name ann --why x",
        "access revoke nothing --why x",
        "access rotate nothing --why x",
        "access revoke --name nobody --why x",
        "serve",
        "serve --policy nowhere.yaml",
        "serve --policy nowhere.yaml --reply-interval -1",
        "serve --policy nowhere.yaml --tls-key key.pem",
        "serve --policy nowhere.yaml --workers 0",
    ],
)
def test_bad_input_is_explained(run: Runner, line: str) -> None:
    run(GRANT)
    outcome = run(f"{line} --json")
    assert outcome.code == 2
    assert outcome.out == ""


def test_a_changed_book_is_found(run: Runner, tmp_path: Path) -> None:
    from sqlalchemy import text

    from tests.ledgers import tampering

    run(GRANT)
    chain = book(tmp_path).chain
    with tampering(chain) as connection:
        entries = chain.database.tables.entries
        connection.execute(text(f"UPDATE {entries} SET at = '2020-01-01T00:00:00Z' WHERE sequence = 2"))
    outcome = run("access check --json")
    assert outcome.code == 1
    assert not outcome.json["access"]["ok"]
