from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.table import SourceOptions
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, LedgerUnavailable, SourceUnreadable
from incrowd.workflows.policy.ledger import record_look
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.policy.rows import open_release, open_rows
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.policies import PEOPLE, changed, people, with_ledger, written


def verbs(address: str) -> list[str]:
    return [entry.body["verb"] for entry in Ledger.open(address).entries() if entry.kind == "look"]


def test_without_a_policy_there_is_nothing_to_write_into() -> None:
    assert record_look(None, "check") is False


def test_a_look_makes_no_ledger_that_nobody_named(tmp_path: Path) -> None:
    policy = load_policy(written(PEOPLE, tmp_path))
    assert record_look(policy, "check") is False
    assert [path.name for path in tmp_path.iterdir()] == ["policy.yaml"]


def test_a_look_is_written_into_the_ledger_that_a_release_made(tmp_path: Path) -> None:
    policy = load_policy(written(PEOPLE, tmp_path))
    release_to(people(), policy, Destination(tmp_path / "out"))
    assert record_look(policy, "check")
    assert record_look(policy, "assess")
    assert verbs(policy.ledger_address) == ["check", "assess"]


def test_a_ledger_that_the_policy_names_is_made_for_a_look(address: str, tmp_path: Path) -> None:
    policy = load_policy(written(changed(PEOPLE, ledger=address), tmp_path))
    assert record_look(policy, "profile")
    assert record_look(policy, "profile")
    assert verbs(policy.ledger_address) == ["profile", "profile"]


def test_a_release_still_works_after_a_look(tmp_path: Path) -> None:
    policy = load_policy(written(with_ledger(PEOPLE, tmp_path), tmp_path))
    record_look(policy, "check")
    release_to(people(), policy, Destination(tmp_path / "out"))
    assert Ledger.open(policy.ledger_address).check().ok


def test_a_ledger_that_cannot_be_written_stops_the_look(tmp_path: Path) -> None:
    (tmp_path / ".incrowd").mkdir()
    (tmp_path / ".incrowd" / "ledger.sqlite").write_bytes(b"no ledger at all, but long enough to be looked at" * 99)
    policy = load_policy(written(PEOPLE, tmp_path))
    with pytest.raises(LedgerUnavailable):
        record_look(policy, "check")


def test_the_policy_says_where_its_rows_are(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sex;age;zip\nF;1;NA\n", encoding="utf-8")
    source = {"path": "people.csv", "delimiter": ";", "nulls": ["NA"]}
    policy = load_policy(written(changed(PEOPLE, source=source), tmp_path))
    assert next(iter(open_rows(None, policy).batches(["zip"]))).to_pylist() == [{"zip": None}]


def test_how_the_policy_reads_holds_for_another_file_of_the_same_kind_only(tmp_path: Path) -> None:
    for name in ("people.csv", "later.csv"):
        (tmp_path / name).write_text("sex;age;zip\nF;1;NA\n", encoding="utf-8")
    pq.write_table(pa.table({"sex": ["F"]}), tmp_path / "people.parquet")
    source = {"path": "people.csv", "delimiter": ";", "nulls": ["NA"]}
    policy = load_policy(written(changed(PEOPLE, source=source), tmp_path))
    later = open_rows(str(tmp_path / "later.csv"), policy)
    assert next(iter(later.batches(["zip"]))).to_pylist() == [{"zip": None}]
    assert open_rows(str(tmp_path / "people.parquet"), policy).names == ("sex",)


def test_spellings_of_missing_values_can_be_told(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,zip\nNA,1\n,2\n", encoding="utf-8")
    rows = open_rows(str(tmp_path / "people.csv"), None, SourceOptions(nulls=("", "NA")))
    assert next(iter(rows.batches(["age"]))).column(0).null_count == 2


def test_the_folder_of_a_release_is_opened_as_its_data(tmp_path: Path) -> None:
    policy = load_policy(written(PEOPLE, tmp_path))
    release_to(people(), policy, Destination(tmp_path / "out", "csv"))
    for opened in (open_rows(str(tmp_path / "out"), policy), open_release(tmp_path / "out")):
        assert opened.names == ("sex", "age", "zip")
    assert open_release(tmp_path / "out" / "data.csv").names == open_source(tmp_path / "out" / "data.csv").names


def test_a_folder_without_exactly_one_data_file_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="no data file"):
        open_release(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n1\n", encoding="utf-8")
    with pytest.raises(SourceUnreadable, match="2 data files"):
        open_release(tmp_path)


def test_no_data_at_all_is_said() -> None:
    with pytest.raises(InvalidParameter, match="no data"):
        open_rows(None, None)
