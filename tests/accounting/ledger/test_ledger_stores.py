from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.cli.main import main
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter, LedgerCorrupted, LedgerMoved, LedgerUnavailable, Refused
from incrowd.governance.access_list import AccessList
from incrowd.governance.audit import Audit, Event
from incrowd.governance.grant import AccessDecision, AccessRole, User
from incrowd.store.chain import Chain
from incrowd.store.move import _fill, move
from incrowd.workflows.policy.ledger_stores import BESIDE, MovedLedger, move_ledger, renew_ledger
from incrowd.workflows.query import answers, classical
from tests.ledgers import create, pure, reopen, tampering


def charged(address: str, spent: int = 2) -> Ledger:
    ledger = create(address)
    ledger.register(Declaration("geburten", Unit(), Budget.of(3)))
    ledger.conclude(ledger.charge(pure(spent), "geburten", release="tafel 1"), "ab" * 32)
    return ledger


def moved(source: str, target: str, **options: Any) -> MovedLedger:
    return move_ledger(source, target, "ann", "new server", **options)


def elsewhere(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/carried/ledger.sqlite"


def test_a_moved_ledger_has_every_entry_with_its_hash_and_goes_on_at_the_new_place(sqlite: str, tmp_path: Path) -> None:
    old = charged(sqlite)
    before = [(entry.anchor, entry.body) for entry in old.entries()]
    moved(sqlite, elsewhere(tmp_path))
    new = reopen(elsewhere(tmp_path))
    assert [(entry.anchor, entry.body) for entry in new.entries()][: len(before)] == before
    assert new.check(*(anchor for anchor, _ in before)).ok
    assert new.charge(pure(1), "geburten", release="tafel 2").sequence == len(before) + 3
    with pytest.raises(Refused):
        new.charge(pure(1), "geburten", release="tafel 3")


@pytest.mark.postgres
def test_a_ledger_moves_into_postgresql_and_out_of_it(sqlite: str, postgres: str, tmp_path: Path) -> None:
    before = [entry.anchor for entry in charged(sqlite).entries()]
    token_for_ann(AccessList.create(sqlite))
    assert moved(sqlite, postgres).stores == ("access",)
    assert reopen(postgres).check(*before).ok
    reopen(postgres).charge(pure("1/2"), "geburten", release="tafel 2")
    assert AccessList.open(postgres).check().ok
    assert moved(postgres, elsewhere(tmp_path), unfinished=True).stores == ("access",)
    assert reopen(elsewhere(tmp_path)).check(*before).ok
    left = reopen(elsewhere(tmp_path)).standing("geburten").left
    assert left is not None
    assert str(left.epsilon) == "0.5"
    with pytest.raises(LedgerMoved):
        reopen(postgres).charge(pure("1/2"), "geburten", release="tafel 3")


def by() -> AccessDecision:
    return AccessDecision("officer", "project")


def token_for_ann(access: AccessList) -> str:
    return access.grant(User("ann", AccessRole.ANALYST), access.now() + timedelta(days=90), by()).token


def test_the_old_place_takes_no_entry_of_any_kind_not_even_a_refusal(sqlite: str, tmp_path: Path) -> None:
    opened = charged(sqlite)
    entry = next(entry for entry in opened.entries() if entry.kind == "charge")
    moved(sqlite, elsewhere(tmp_path))
    attempts: list[Callable[[Ledger], object]] = [
        lambda ledger: ledger.charge(pure(9), "geburten", release="tafel 2"),
        lambda ledger: ledger.look("geburten", "plan"),
        lambda ledger: ledger.conclude(entry, None),
        lambda ledger: ledger.preview({"geburten": pure(1)}),
        lambda ledger: ledger.close("geburten", "ann", "over"),
    ]
    for ledger in (opened, reopen(sqlite)):
        end = ledger.chain.head()
        for attempt in attempts:
            with pytest.raises(LedgerMoved, match="carried"):
                attempt(ledger)
        assert ledger.chain.head() == end
        assert ledger.check().ok


def test_all_stores_beside_a_ledger_move_with_it_and_close(sqlite: str, tmp_path: Path) -> None:
    charged(sqlite)
    access, _ = AccessList.create(sqlite), Audit.create(sqlite)
    token = token_for_ann(access)
    assert moved(sqlite, elsewhere(tmp_path)).stores == ("audit", "access")
    assert AccessList.open(elsewhere(tmp_path)).grant_of(token).holder.name == "ann"
    with pytest.raises(LedgerMoved):
        access.revoke(access.grant_of(token).id, by())


def test_the_stores_beside_a_ledger_are_those_that_move() -> None:
    from incrowd.governance import access_list, audit

    assert set(BESIDE) == {module._NAME for module in (access_list, audit, answers, classical)}


@pytest.mark.parametrize("done", ["nothing", "departure", "all"])
def test_a_move_that_was_cut_short_is_finished_by_the_same_call(
    sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: str
) -> None:
    charged(sqlite)
    target = elsewhere(tmp_path)
    with monkeypatch.context() as patch:
        if done == "departure":
            patch.setattr("incrowd.store.move._fill", interrupted)
            with pytest.raises(KeyboardInterrupt):
                moved(sqlite, target)
            with pytest.raises(LedgerMoved):
                reopen(sqlite).look("geburten", "plan")
            with pytest.raises(LedgerMoved, match="Finish that move"):
                moved(sqlite, f"sqlite:///{tmp_path}/other/ledger.sqlite", unfinished=True)
    if done == "all":
        moved(sqlite, target)
    moved(sqlite, target, unfinished=done == "departure")
    assert [entry.kind for entry in reopen(target).entries()][-2:] == ["moved", "arrived"]


def test_what_was_charged_at_the_new_place_is_not_forgotten_by_moving_once_more(sqlite: str, tmp_path: Path) -> None:
    charged(sqlite)
    moved(sqlite, elsewhere(tmp_path))
    reopen(elsewhere(tmp_path)).charge(pure(1), "geburten", release="tafel 2")
    shutil.rmtree(tmp_path / "carried")
    with pytest.raises(Refused, match=r"there is none at .*carried.* would forget them"):
        moved(sqlite, elsewhere(tmp_path))
    assert not (tmp_path / "carried").exists()


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_copy_that_is_not_whole_never_appears(sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    charged(sqlite)

    def torn(chain: Chain, *rest: Any) -> None:
        _fill(chain, *rest)
        raise LedgerUnavailable("the disk is full.")

    monkeypatch.setattr("incrowd.store.move._fill", torn)
    with pytest.raises(LedgerUnavailable, match="full"):
        moved(sqlite, elsewhere(tmp_path))
    assert not list((tmp_path / "carried").glob("*ledger*"))


def test_what_stands_at_the_new_place_is_never_replaced(sqlite: str, tmp_path: Path) -> None:
    charged(sqlite)
    charged(elsewhere(tmp_path))
    with pytest.raises(InvalidParameter, match="already"):
        moved(sqlite, elsewhere(tmp_path))
    assert reopen(sqlite).moved_to() is None


def test_another_ledger_at_the_place_of_the_moved_one_is_found_out(sqlite: str, tmp_path: Path) -> None:
    charged(sqlite)
    moved(sqlite, elsewhere(tmp_path))
    (tmp_path / "carried" / "ledger.sqlite").unlink()
    charged(elsewhere(tmp_path))
    with pytest.raises(LedgerMoved, match="another ledger"):
        move(reopen(sqlite).chain, elsewhere(tmp_path), elsewhere(tmp_path), {})


def test_charges_that_are_not_concluded_hold_a_move_back(sqlite: str, tmp_path: Path) -> None:
    charged(sqlite, spent=1).charge(pure(1), "geburten", release="tafel 2")
    with pytest.raises(Refused, match="1 charges are not concluded"):
        moved(sqlite, elsewhere(tmp_path))
    moved(sqlite, elsewhere(tmp_path), unfinished=True)
    assert [lost.concluded for lost in reopen(elsewhere(tmp_path)).unfinished()] == [False]


def test_a_damaged_ledger_stays_where_it_is(sqlite: str, tmp_path: Path) -> None:
    with tampering(charged(sqlite).chain) as connection:
        connection.execute(text("UPDATE ledger_entries SET body = replace(body, '3', '9') WHERE sequence = 2"))
    with pytest.raises(LedgerUnavailable):
        moved(sqlite, elsewhere(tmp_path))
    assert not (tmp_path / "carried").exists()


@pytest.mark.parametrize("kind", ["arrived", "note"])
def test_check_finds_entries_that_a_move_does_not_allow(sqlite: str, tmp_path: Path, kind: str) -> None:
    old = charged(sqlite)
    if kind == "arrived":  # without a departure before it
        old.chain.transact(lambda writer: writer.append("arrived", {}, {}))
    else:  # an entry after the departure, by a program that does not ask
        old.chain.transact(lambda writer: [writer.append(name, {"to": "x"}, {}) for name in ("moved", "look")])
    assert "does not follow from a move" in str(old.check().finding)


def test_fingerprints_of_rows_go_along_and_those_of_others_stay(sqlite: str, tmp_path: Path) -> None:
    charged(sqlite)
    (tmp_path / ".incrowd" / "sources.json").write_text("{}", encoding="utf-8")
    (tmp_path / "carried").mkdir()
    (tmp_path / "carried" / "sources.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InvalidParameter, match="another ledger"):
        moved(sqlite, elsewhere(tmp_path))
    (tmp_path / "carried" / "sources.json").unlink()
    assert moved(sqlite, elsewhere(tmp_path)).fingerprints
    assert (tmp_path / "carried" / "sources.json").stat().st_mode & 0o777 == 0o600


def test_a_damaged_copy_is_reported(sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    charged(sqlite)

    def other(chain: Chain, target: Any, connection: Any, body: Any) -> None:
        _fill(chain, target, connection, body)
        connection.execute("DROP TRIGGER ledger_entries_update")
        connection.execute("UPDATE ledger_entries SET at = '2020-01-01T00:00:00Z' WHERE sequence = 2")

    monkeypatch.setattr("incrowd.store.move._fill", other)
    with pytest.raises(LedgerCorrupted, match="not copied as it is"):
        moved(sqlite, elsewhere(tmp_path))


def test_new_secrets_are_for_the_ledger_and_its_stores_and_no_log_shows_one(
    sqlite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, audit = charged(sqlite), Audit.create(sqlite)
    before = [entry.anchor for entry in ledger.entries()]
    assert renew_ledger(sqlite, "ann", "a backup was lost") == ("ledger", "audit")
    audit.write(Event("query", "refused", "ann"))
    assert [event["action"] for event in audit.read(1, 9)] == ["log renewed", "query"]
    assert "secret" not in str(audit.read(1, 9))
    assert reopen(sqlite).check(*before).ok
    assert audit.check().ok
    assert main(["ledger", "show", "--entries", "--json", "--ledger", sqlite]) == 0
    printed = json.loads(capsys.readouterr().out)["entries"]
    assert "renewed" in [entry["kind"] for entry in printed]
    assert not [entry for entry in printed if "secret" in entry["body"]]
