from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from incrowd.errors import AccessDenied, InvalidParameter
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessDecision, AccessRole, Permission, User, fingerprint, rights
from tests.ledgers import tampering

OFFICER = AccessDecision("data protection officer", "a test")
ANN = User("ann", AccessRole.ANALYST, ("births",))
START = datetime(2030, 1, 1, tzinfo=UTC)


def at(access: AccessList, moment: datetime) -> AccessList:
    return AccessList(replace(access.chain, clock=lambda: moment))


@pytest.fixture
def access(sqlite: str) -> AccessList:
    return at(AccessList.create(sqlite), START)


def test_a_token_speaks_for_its_holder_until_its_end_on_every_database(address: str) -> None:
    access = at(AccessList.create(address), START)
    issued = access.grant(ANN, START + timedelta(days=1), OFFICER)
    assert access.grant_of(issued.token) == issued.grant
    assert at(access, START + timedelta(hours=23)).grant_of(issued.token).holder == ANN
    with pytest.raises(AccessDenied):
        at(access, START + timedelta(days=1)).grant_of(issued.token)
    assert AccessList.open(address).check().ok


def test_what_is_known_of_a_token_is_forgotten_by_all_once_the_book_changes(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incrowd.store.sqlite_sessions._TICK", 0)
    access, other = at(AccessList.create(address), START), at(AccessList.open(address), START)
    issued = access.grant(ANN, START + timedelta(days=1), OFFICER)
    assert access.at_hand(issued.token) is None, "nobody asked yet"
    assert access.grant_of(issued.token) == issued.grant
    at_hand = access.at_hand(issued.token)
    assert at_hand == (issued.grant if address.startswith("sqlite") else None)
    assert at(access, START + timedelta(days=1)).at_hand(issued.token) is None, "it is past its end"
    with pytest.raises(AccessDenied):
        at(access, START + timedelta(days=1)).grant_of(issued.token)
    other.revoke(issued.grant.id, OFFICER)
    assert access.at_hand(issued.token) is None
    with pytest.raises(AccessDenied):
        access.grant_of(issued.token)
    assert (access.at_hand("guess"), access.at_hand(issued.token)) == (None, None)


def test_neither_a_token_nor_a_password_is_in_the_file(sqlite: str, tmp_path: Path) -> None:
    access = AccessList.create(sqlite)
    issued = access.grant(ANN, access.now() + timedelta(days=1), OFFICER)
    access.set_password(ANN, "correct horse battery", OFFICER)
    stored = (tmp_path / ".incrowd" / "ledger.access.sqlite").read_bytes()
    assert issued.token.removeprefix("ic_").encode() not in stored
    assert b"correct horse" not in stored
    assert (fingerprint(issued.token) or "").encode() in stored


def test_a_rotated_token_keeps_its_id_and_the_old_one_stops_working(access: AccessList) -> None:
    old = access.grant(ANN, START + timedelta(days=1), OFFICER)
    new = access.rotate(old.grant.id, START + timedelta(days=2), OFFICER)
    assert new.grant.id == old.grant.id
    assert access.grant_of(new.token).until == START + timedelta(days=2)
    with pytest.raises(AccessDenied):
        access.grant_of(old.token)


def test_a_revoked_token_is_neither_used_nor_rotated_again(access: AccessList) -> None:
    issued = access.grant(ANN, START + timedelta(days=1), OFFICER)
    assert access.revoke(issued.grant.id, OFFICER).revoked
    with pytest.raises(AccessDenied):
        access.grant_of(issued.token)
    with pytest.raises(InvalidParameter, match="grant a new one"):
        access.rotate(issued.grant.id, START + timedelta(days=2), OFFICER)


def test_who_is_dismissed_loses_tokens_sessions_and_password(access: AccessList) -> None:
    end = START + timedelta(days=1)
    access.set_password(ANN, "correct horse battery", OFFICER)
    issued = [access.grant(ANN, end, OFFICER), access.login("ann", "correct horse battery", end)]
    other = access.grant(User("bob", AccessRole.ANALYST), end, OFFICER)
    assert len(access.dismiss("ann", OFFICER)) == 2
    for each in issued:
        with pytest.raises(AccessDenied):
            access.grant_of(each.token)
    with pytest.raises(AccessDenied):
        access.login("ann", "correct horse battery", end)
    assert access.grant_of(other.token).holder.name == "bob"
    with pytest.raises(InvalidParameter):
        access.dismiss("ann", OFFICER)
    assert access.check().ok


def test_a_new_password_replaces_the_old_one_and_its_role(access: AccessList) -> None:
    end = START + timedelta(days=1)
    access.set_password(ANN, "correct horse battery", OFFICER)
    access.set_password(User("ann", AccessRole.CURATOR), "another horse battery", OFFICER)
    with pytest.raises(AccessDenied):
        access.login("ann", "correct horse battery", end)
    assert access.login("ann", "another horse battery", end).grant.holder.role is AccessRole.CURATOR


@pytest.mark.parametrize("days", [-1, 0, 367])
def test_a_token_ends_within_a_year(access: AccessList, days: int) -> None:
    with pytest.raises(InvalidParameter, match="366 days"):
        access.grant(ANN, START + timedelta(days=days), OFFICER)


@pytest.mark.parametrize("name", ["", " ann", "ann\n", "a" * 65, "ann;", "_ann", "-"])
def test_a_holder_has_a_plain_name(name: str) -> None:
    with pytest.raises(InvalidParameter):
        User(name, AccessRole.ANALYST)


def test_a_holder_covers_only_what_is_his() -> None:
    everything, some = User("o", AccessRole.OWNER), User("p", AccessRole.OWNER, ("a", "b"))
    assert everything.covers(some)
    assert not some.covers(everything)
    assert some.covers(User("q", AccessRole.ANALYST, ("b",)))
    assert not some.covers(User("q", AccessRole.ANALYST, ("b", "c")))


def test_a_token_that_never_was_is_unknown(access: AccessList) -> None:
    for guess in ("", "ic_" + "A" * 43, "x" * 10_000, "ic_" + "é" * 43):
        with pytest.raises(AccessDenied):
            access.grant_of(guess)


def test_duties_are_separate() -> None:
    assert not any({Permission.ADMIT, Permission.AUDIT} <= rights(role) for role in AccessRole)
    assert not any({Permission.ASK, Permission.AUDIT} <= rights(role) for role in AccessRole)
    assert [role for role in AccessRole if Permission.ADMIT in rights(role)] == [AccessRole.OWNER]


def test_a_forged_role_is_found(sqlite: str) -> None:
    access = AccessList.create(sqlite)
    access.grant(ANN, access.now() + timedelta(days=1), OFFICER)
    with tampering(access.chain) as connection:
        entries = access.chain.database.tables.entries
        body = connection.execute(text(f"SELECT body FROM {entries} WHERE kind = 'granted'")).scalar_one()
        forged = body.replace('"role":"analyst"', '"role":"owner"')
        assert forged != body
        connection.execute(text(f"UPDATE {entries} SET body = :body WHERE kind = 'granted'"), {"body": forged})
    assert not access.check().ok


def test_a_token_that_ended_stays_ended_when_the_clock_goes_back(sqlite: str) -> None:
    access = AccessList.create(sqlite)
    moments = [access.now() + timedelta(days=days) for days in (0, 3, 1)]
    moved = AccessList(replace(access.chain, clock=lambda: moments[0]))
    issued = moved.grant(
        User("ann", AccessRole.ANALYST), moments[0] + timedelta(days=2), AccessDecision("officer", "test")
    )
    assert moved.grant_of(issued.token).holder.name == "ann"
    moments.pop(0)
    moved.grant(User("bob", AccessRole.ANALYST), moments[0] + timedelta(days=2), AccessDecision("officer", "test"))
    moments.pop(0)
    with pytest.raises(AccessDenied):
        moved.grant_of(issued.token)
