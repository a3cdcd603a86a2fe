"""Ways in which a release once said more than it should; each must stay closed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.loss import Syntactic
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.tables import release
from tests.plans import steps_json
from tests.texts import broken_texts

SEXES = ["F", "M"] * 300
SAFE: dict[str, Any] = {"method": "safe", "rate": "0.5", "epsilon": 1, "delta": "1e-6"}


def policy(folder: Path, columns: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "incrowd": 1,
        "dataset": {"name": "people", **changes.pop("dataset", {})},
        "columns": columns,
        "release": {
            "method": "safe",
            "rate": "0.5",
            "epsilon": 1,
            "delta": "1e-6",
            **changes.pop("release", {}),
        },
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
        **changes,
    }


def test_nothing_published_contains_what_keys_the_marks_of_a_source(tmp_path: Path) -> None:
    """Else whoever knows all rows but one could try the last one against a copy of the ledger, or a certificate."""
    asked = policy(tmp_path, {"sex": {"categories": ["F", "M"]}})
    certificate = release(pa.table({"sex": SEXES}), asked).certificate
    ledger = Ledger.open(asked["ledger"])
    assert len(ledger.secret) == 32
    assert ledger.secret.hex() not in certificate.to_text()
    other = {**asked, "ledger": f"sqlite:///{tmp_path}/elsewhere/ledger.sqlite"}
    release(pa.table({"sex": SEXES}), other)
    books = [json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.rglob("sources.json")]
    keys = {book["key"] for book in books}
    marks = [next(iter(known.values()))["contents"][0] for book in books for known in book["ledgers"].values()]
    assert len(keys) == len(set(marks)) == len(marks) == 2
    for secret in (*keys, *marks):
        assert secret not in certificate.to_text()
        assert all(secret not in str(entry.body) for entry in ledger.entries())


@pytest.mark.parametrize(
    "column",
    [
        {"categories": ["F", "M"], "derived": "rows"},
        {"categories": ["F", "M"], "derived": "rows", "hierarchy": {"groups": [2]}},
        {"derived": "rows", "hierarchy": {"tree": {"all": ["F", "M"]}}},
        {"hierarchy": {"tree": {"all": ["F", "M"]}, "derived": "rows"}},
        {"categories": ["F", "M"], "derived": "rows", "hierarchy": {"prefix": [1]}},
        {"categories": ["F", "M"], "derived": "rows", "public": "law", "hierarchy": {"groups": [2], "derived": "rows"}},
    ],
)
def test_whatever_was_drafted_from_rows_voids_the_guarantee(tmp_path: Path, column: dict[str, Any]) -> None:
    loaded = load_policy(policy(tmp_path, {"sex": column}))
    assert loaded.schema.drafted == ("sex",)
    assert isinstance(loaded.method.plan(loaded.schema).guarantee.loss, Syntactic)
    step = next(step for step in steps_json(loaded.method, loaded.schema) if step["step"] == "recode")
    assert step["columns"][0]["provenance"] == {"derived": True}


def test_each_drafted_part_needs_its_own_source(tmp_path: Path) -> None:
    column = {
        "categories": ["F", "M"],
        "derived": "rows",
        "public": "the civil code",
        "hierarchy": {"groups": [2], "derived": "rows", "public": "our handbook"},
    }
    assert load_policy(policy(tmp_path, {"sex": column})).schema.drafted == ()


def test_pseudonyms_are_not_in_the_order_of_the_names_behind_them(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(range(32)))
    names = [f"hospital {letter}" for letter in "ABCDEFGH"]
    site = {"role": "identifier", "categories": names, "hierarchy": {"pseudonym": str(tmp_path / "key")}}
    released = release(pa.table({"site": names * 200}), policy(tmp_path, {"site": site}))
    found = released.result.to_arrow()["site"].to_pylist()
    assert found == sorted(found)


def test_crowds_of_rows_are_not_called_crowds_of_people(tmp_path: Path) -> None:
    columns = {"id": {"role": "identifier"}, "sex": {"categories": ["F", "M"]}}
    unit = {"unit": {"column": "id", "max_rows": 3}}
    table = pa.table({"id": [f"p{number // 3}" for number in range(3 * len(SEXES))], "sex": 3 * SEXES})
    certificate = release(table, policy(tmp_path, columns, dataset=unit)).certificate
    claim = next(claim for claim in certificate.claims if claim.kind == "k-anonymity")
    assert claim.parameters["people"] == -(-claim.parameters["k"] // 3)
    smallest = int(certificate.evidence["smallest class"])
    assert float(certificate.evidence["prosecutor"]) == pytest.approx(3 / smallest, abs=1e-6)


def test_at_rate_1_several_rows_are_refused_also_where_domains_were_drafted(tmp_path: Path) -> None:
    columns = {"id": {"role": "identifier"}, "sex": {"categories": ["F", "M"], "derived": "rows"}}
    asked = policy(tmp_path, columns, dataset={"unit": {"column": "id", "max_rows": 3}})
    asked["release"] = {"method": "safe", "rate": 1, "k": 20}
    asked["budget"] = {"unbounded": "a test"}
    with pytest.raises(InvalidParameter, match="several rows"):
        release(pa.table({"id": ["a"] * 600, "sex": SEXES}), asked)


def test_a_separate_budget_is_said_on_the_certificate(tmp_path: Path) -> None:
    columns = {"sex": {"categories": ["F", "M"]}}
    table = pa.table({"sex": SEXES})
    release(table, policy(tmp_path, columns))
    again = policy(tmp_path, columns, dataset={"name": "again", "separate": "other people since June"})
    certificate = release(table, again).certificate
    assert certificate.dataset.separate == "other people since June"


def test_text_that_is_not_unicode_is_missing(tmp_path: Path) -> None:
    broken = broken_texts(b"\xff\xfe", b"ab")
    pq.write_table(pa.table({"zip": pa.concat_arrays([broken] * 400)}), tmp_path / "zips.parquet")
    asked = policy(tmp_path, {"zip": {"hierarchy": {"prefix": [1]}}}, release={"levels": {"zip": 1}})
    released = release(tmp_path / "zips.parquet", asked).result.to_arrow()
    assert set(released["zip"].to_pylist()) == {None, "a"}


def test_days_with_a_time_of_day_are_read_as_days(tmp_path: Path) -> None:
    days = pa.array([259212345, -1] * 300, pa.int64()).cast(pa.date64(), safe=False)
    asked = policy(
        tmp_path,
        {"day": {"type": "date", "bounds": ["1969-01-01", "1970-12-31"], "hierarchy": {"dates": ["month"]}}},
        release={"levels": {"day": 1}},
    )
    released = release(pa.table({"day": days}), asked)
    assert sorted(set(released.result.to_arrow()["day"].to_pylist())) == ["1969-12", "1970-01"]
