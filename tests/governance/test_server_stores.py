from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.errors import LedgerUnavailable
from incrowd.governance.access_list import AccessList
from incrowd.governance.audit import Event, find_audit_log, open_stores


def test_the_log_is_made_once_and_found_again_on_every_database(address: str) -> None:
    access = AccessList.create(address)
    assert find_audit_log(access, address) is None
    books = open_stores(address)
    books.audit.write(Event("query", "answered"))
    again = open_stores(address)
    assert again.audit.counts() == {("query", "answered"): 1}
    assert again.access.check().ok


def test_a_server_does_not_start_before_anybody_was_admitted(address: str) -> None:
    with pytest.raises(LedgerUnavailable, match="incrowd access grant"):
        open_stores(address)


def test_a_log_that_was_lost_or_exchanged_is_not_made_again(sqlite: str, tmp_path: Path) -> None:
    AccessList.create(sqlite)
    open_stores(sqlite)
    log = tmp_path / ".incrowd" / "ledger.audit.sqlite"
    log.unlink()
    with pytest.raises(LedgerUnavailable, match="restore it"):
        open_stores(sqlite)
    other = f"sqlite:///{tmp_path}/other/ledger.sqlite"
    AccessList.create(other)
    open_stores(other)
    (tmp_path / "other" / "ledger.audit.sqlite").rename(log)
    with pytest.raises(LedgerUnavailable, match="restore that one"):
        open_stores(sqlite)
