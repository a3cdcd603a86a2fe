from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.plan import Plan
from incrowd.core.steps.suppression import Suppress
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import BudgetExceeded, IncrowdError, InvalidParameter, OutputUnavailable, Refused
from incrowd.methods.anonymity.safe import Safe
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from tests.policies import PEOPLE, changed, people, tuples, with_ledger, written
from tests.statistics.alarm import FALSE_ALARM, stray


def charges(folder: Path) -> int:
    """How many charges the ledger of a folder holds; none if there is no ledger."""
    found = next((path for path in folder.rglob("ledger.sqlite")), None)
    if found is None:
        return 0
    return sum(entry.kind == "charge" for entry in Ledger.open(f"sqlite:///{found}").entries())


def test_two_hundred_of_the_people_and_more_are_released() -> None:
    """So many survive the secret sample and suppression, but for a false alarm; single tuples need not."""
    loaded = load_policy(PEOPLE)
    assert isinstance(loaded.method, Safe)
    engine = LocalEngine()
    crowds = engine.count(engine.open(people()), loaded.method.cells(loaded.schema)).counts
    assert stray([(int(rows), 0.5) for rows in crowds], 201, 600, k=21) < FALSE_ALARM


def test_a_frame_becomes_a_release_with_its_certificate(tmp_path: Path) -> None:
    released = release(people(), with_ledger(PEOPLE, tmp_path))
    found = tuples(released.result.to_arrow())
    assert found
    assert min(found.values()) >= 21
    assert set(found) <= {(s, a, z) for s in "FM" for a in ("< 50", ">= 50") for z in ("02", "94")}
    assert released.certificate.evidence["rows"] == sum(found.values()) == len(released.result)
    assert released.certificate.evidence["smallest class"] == min(found.values())
    assert charges(tmp_path) == 1


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "csv", "parquet"])
def test_every_way_to_bring_the_rows_gives_the_same_guarantee(tmp_path: Path, kind: str) -> None:
    table = people()
    brought: object = table
    if kind == "pandas":
        brought = table.to_pandas()
    elif kind == "polars":
        import polars as pl

        brought = pl.DataFrame(table)
    elif kind == "csv":
        brought = tmp_path / "people.csv"
        pyarrow.csv.write_csv(table, brought)
    elif kind == "parquet":
        brought = tmp_path / "people.parquet"
        pq.write_table(table, brought)
    certificate = release(brought, with_ledger(PEOPLE, tmp_path)).certificate
    assert certificate.claims[0].parameters["k"] == 21
    assert certificate.evidence["rows"] > 200


def test_a_first_release_needs_no_budget_and_a_second_one_is_a_decision(tmp_path: Path) -> None:
    policy = with_ledger(PEOPLE, tmp_path)
    release(people(), policy)
    with pytest.raises(BudgetExceeded, match="incrowd ledger grant"):
        release(people(), policy)
    ledger = Ledger.open(policy["ledger"])
    ledger.grant("people", Budget.of(1, "1e-4"), "the board", "the yearly report")
    accounting = release(people(), policy).certificate.accounting
    assert accounting.releases == 2
    assert Fraction(accounting.total.delta) == Fraction(2, 10**4)


def test_a_policy_whose_budget_differs_from_the_ledgers_is_refused(tmp_path: Path) -> None:
    release(people(), with_ledger(PEOPLE, tmp_path, budget={"epsilon": 5, "delta": "1e-3"}))
    with pytest.raises(Refused, match="differs from the one in the ledger"):
        release(people(), with_ledger(PEOPLE, tmp_path, budget={"epsilon": 50, "delta": "1e-3"}))
    assert charges(tmp_path) == 1


def test_the_same_rows_under_another_name_get_no_fresh_budget(tmp_path: Path) -> None:
    release(people(), with_ledger(PEOPLE, tmp_path))
    other = with_ledger(PEOPLE, tmp_path, dataset__name="others")
    with pytest.raises(Refused, match="are those of dataset people"):
        release(people(), other)
    with pytest.raises(Refused, match="are those of dataset people"):
        release(people().to_pandas(), other)
    with pytest.raises(BudgetExceeded):
        release(people(), changed(other, dataset__same_people_as="people"))
    assert charges(tmp_path) == 1
    release(people(), changed(other, dataset__name="twins", dataset__separate="people of another country"))


def test_the_same_file_under_another_name_is_known_by_its_content_and_by_its_place(tmp_path: Path) -> None:
    one, copy = tmp_path / "one.csv", tmp_path / "copy.csv"
    pyarrow.csv.write_csv(people(), one)
    copy.write_bytes(one.read_bytes())
    release(one, with_ledger(PEOPLE, tmp_path))
    other = with_ledger(PEOPLE, tmp_path, dataset__name="others")
    for again in (one, copy):
        with pytest.raises(Refused, match="are those of dataset people"):
            release(again, other)
    pyarrow.csv.write_csv(people(seed=8), one)
    with pytest.raises(Refused, match="are those of dataset people"):
        release(one, other)
    pyarrow.csv.write_csv(people(seed=9), copy)
    release(copy, other)


def test_another_unit_for_a_known_dataset_is_refused(tmp_path: Path) -> None:
    release(people(), with_ledger(PEOPLE, tmp_path))
    with pytest.raises(IncrowdError, match="one unit of privacy"):
        release(people(), with_ledger(PEOPLE, tmp_path, dataset__unit={"adjacency": "replace-one"}))


def test_the_commitment_to_the_same_rows_is_never_the_same(tmp_path: Path) -> None:
    policy = with_ledger(PEOPLE, tmp_path, budget={"epsilon": 5, "delta": "1e-2"})
    commitments = {release(people(), policy).certificate.dataset.commitment for _ in range(3)}
    assert len(commitments) == 3


def test_weights_are_one_over_the_rate_and_belong_to_no_tuple(tmp_path: Path) -> None:
    released = release(people(), with_ledger(PEOPLE, tmp_path, release__weights=True))
    table = released.result.to_arrow()
    assert table.column_names[-1] == "weight"
    assert set(table["weight"].to_pylist()) == {2.0}
    assert "weight" not in released.certificate.schema.released


def test_weights_beside_a_column_of_that_name_are_refused_before_the_charge(tmp_path: Path) -> None:
    policy = with_ledger(
        PEOPLE,
        tmp_path,
        release__weights=True,
        columns__weight={"type": "integer", "bounds": [0, 200]},
        release__levels={"age": 2, "zip": 1, "weight": 1},
    )
    table = people().append_column("weight", pa.array(["70"] * 600))
    with pytest.raises(InvalidParameter, match="'weight' is released already"):
        release(table, policy)
    assert charges(tmp_path) == 0


def test_nothing_kept_is_a_valid_release(tmp_path: Path) -> None:
    released = release(people(10), with_ledger(PEOPLE, tmp_path))
    assert len(released.result) == 0
    assert released.result.to_arrow().column_names == ["sex", "age", "zip"]
    assert released.certificate.evidence == {"rows": 0, "classes": 0}


@pytest.mark.parametrize("form", ["parquet", "csv", "tsv"])
def test_files_appear_together_and_what_is_internal_stays_apart(tmp_path: Path, form: str) -> None:
    source = tmp_path / "secret-place.csv"
    pyarrow.csv.write_csv(people(), source)
    published = release_to(source, written(PEOPLE, tmp_path), Destination(tmp_path / "out", form))
    assert {path.name for path in published.folder.iterdir()} == {f"data.{form}", "certificate.json", "report.html"}
    assert published.internal.is_relative_to(tmp_path / ".incrowd")
    inside = json.loads((published.internal / "internal.json").read_text())
    assert inside["source"] == str(source)
    assert inside["certificate"] == published.release.certificate.id
    for path in published.folder.iterdir():
        content = path.read_bytes()
        assert b"secret-place" not in content
        assert inside["commitment key"].encode() not in content


def test_a_folder_that_is_not_empty_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(OutputUnavailable, match="is not empty"):
        release_to(people(), written(PEOPLE, tmp_path), Destination(tmp_path / "out"))
    assert charges(tmp_path) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    "content", [None, b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_key_that_cannot_sign_costs_nothing(tmp_path: Path, content: bytes | None) -> None:
    key = tmp_path / "key.pem"
    if content is not None:
        key.write_bytes(content)
    with pytest.raises(InvalidParameter, match=r"key\.pem"):
        release_to(people(), written(PEOPLE, tmp_path), Destination(tmp_path / "out", key=key))
    assert charges(tmp_path) == 0
    assert not (tmp_path / "out").exists()


def test_a_format_that_is_not_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="parquet, csv, tsv"):
        Destination(tmp_path / "out", "xlsx")


def test_what_the_certificate_will_say_is_worked_out_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Any:
        raise InvalidParameter("no claim")

    for told, name in ((Plan, "claims"), (Suppress, "sentence")):
        with monkeypatch.context() as patch:
            patch.setattr(told, name, property(fail))
            with pytest.raises(InvalidParameter, match="no claim"):
                release(people(), with_ledger(PEOPLE, tmp_path))
    assert charges(tmp_path) == 0


def test_without_data_the_policys_source_is_read_and_without_that_it_is_asked_for(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    policy = written(changed(PEOPLE, source="people.csv"), tmp_path)
    assert len(release(None, policy).result) > 200
    with pytest.raises(InvalidParameter, match="no data: name a file"):
        release(None, with_ledger(PEOPLE, tmp_path))


def test_how_the_source_is_read_is_told_by_the_policy(tmp_path: Path) -> None:
    table = people()
    (tmp_path / "people.txt").write_text(
        "\n".join("|".join(row.values()) for row in table.to_pylist()) + "\n", encoding="utf-16"
    )
    source = {"path": "people.txt", "format": "csv", "delimiter": "|", "encoding": "utf-16", "header": False}
    source["names"] = ["sex", "age", "zip"]
    assert len(release(None, written(changed(PEOPLE, source=source), tmp_path)).result) > 200


def test_progress_is_told_in_rows(tmp_path: Path) -> None:
    told = list[tuple[int, int | None]]()
    pq.write_table(people(), tmp_path / "people.parquet")
    release_to(
        tmp_path / "people.parquet",
        written(PEOPLE, tmp_path),
        Destination(tmp_path / "out"),
        lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (600, 600)
