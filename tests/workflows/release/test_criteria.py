"""Every criterion from policy to verified file: what the file shows is counted again, what it cannot is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from incrowd.errors import GuaranteeBroken, InvalidParameter
from incrowd.methods.anonymity.full_domain import FullDomain
from incrowd.verifier.check import Verdict
from incrowd.workflows.policy.file import json_schema
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.verify.verification import Verification
from incrowd.workflows.verify.verify import verify
from tests.contract.forging import caught, fitting, placed
from tests.policies import changed, people, with_ledger, written

ILL = {"role": "sensitive", "hierarchy": {"tree": {"lungs": ["flu", "cough"], "none": ["healthy"]}}}
GRADE = {"role": "sensitive", "categories": ["low", "mid", "high"]}
EVERYTHING: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "patients"},
    "columns": {
        "sex": {"categories": ["F", "M"]},
        "age": {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10, 50]}},
        "ill": ILL,
        "grade": GRADE,
        "pay": {"role": "sensitive", "type": "integer", "bounds": [0, 9]},
    },
    "release": {
        "method": "full-domain",
        "k": 5,
        "l": 2,
        "sensitive": {
            "ill": {
                "recursive": {"c": 4, "l": 2}, "t": "0.3", "distance": "hierarchical", "harmless": ["healthy"],
            },
            "grade": {"t": "0.4", "distance": "ordered", "beta": 2, "enhanced_beta": 2, "disclosure": 3},
            "pay": {"entropy_l": 2, "t": "0.3"},
        },
        "average_risk": "1/10",
        "unique": {"share": "1/100", "people": 10000},
    },
    "budget": {"unbounded": "an invented table"},
}  # fmt: skip
SUPPRESSED = changed(
    EVERYTHING,
    release__suppression="1/20",
    release__population={"file": "people.csv", "k": 10, "presence": {"most": "0.6"}},
)
MONDRIAN = changed(EVERYTHING, release__method="mondrian", release__average_risk=None, release__unique=None)


def rows(number: int = 600) -> pa.Table:
    table = people(number).drop_columns(["zip"])
    return (
        table.append_column("ill", pa.array([["flu", "healthy", "cough"][n * 7 % 3] for n in range(number)]))
        .append_column("grade", pa.array([["low", "mid", "high"][n * 5 % 11 % 3] for n in range(number)]))
        .append_column("pay", pa.array([None if n % 90 == 0 else str(n * 13 % 10) for n in range(number)]))
    )


def published(policy: dict[str, Any], folder: Path, form: str = "parquet") -> Path:
    pyarrow.csv.write_csv(people(3000, seed=8), folder / "people.csv")
    loaded = load_policy(written(with_ledger(policy, folder), folder))
    release_to(rows(), loaded, Destination(folder / "out", form))
    return folder / "out"


def by(found: Verification, outcome: Verdict) -> set[str]:
    return {each.about for each in found.findings if each.verdict is outcome}


@pytest.mark.parametrize("policy", [EVERYTHING, MONDRIAN], ids=["full-domain", "mondrian"])
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_what_is_published_in_full_is_verified_in_full(policy: dict[str, Any], form: str, tmp_path: Path) -> None:
    found = verify(published(policy, tmp_path, form))
    assert by(found, Verdict.FAILED) == set()
    assert found.complete
    shown = by(found, Verdict.PASSED)
    for about in (
        "distinct l-diversity of ill", "recursive (c,l)-diversity of ill", "t-closeness of ill", "t-closeness of grade",
        "β-likeness of grade", "enhanced β-likeness of grade", "δ-disclosure privacy of grade",
        "entropy l-diversity of pay", "t-closeness of pay",
    ):  # fmt: skip
        assert f"{about} in the file" in shown
    if policy is EVERYTHING:
        assert {"average risk in the file", "population uniqueness in the file"} <= shown


def test_where_rows_were_left_out_what_the_file_cannot_show_is_unknown_and_not_passed(tmp_path: Path) -> None:
    found = verify(published(SUPPRESSED, tmp_path))
    assert by(found, Verdict.FAILED) == set()
    assert not found.complete
    unknown = by(found, Verdict.UNKNOWN)
    assert {"k-map in the file", "δ-presence in the file"} <= unknown
    assert "distinct l-diversity of ill in the file" in by(found, Verdict.PASSED)


def test_a_released_table_in_memory_is_held_against_its_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(release(rows(), with_ledger(EVERYTHING, tmp_path)).result) > 0
    real = FullDomain.generalized
    careless = FullDomain(1, lowest={"age": 1})
    monkeypatch.setattr(
        FullDomain, "generalized", lambda _, counts, schema, people=None: real(careless, counts, schema, people)
    )
    strict = changed(EVERYTHING, release__k=1, release__average_risk="1/100")
    with pytest.raises(GuaranteeBroken):
        release(rows(), with_ledger(strict, tmp_path))


def forged(folder: Path, path: str, value: Any) -> str | None:
    """Change one place of a certificate, with an id that fits, and return what it alone shows to be wrong."""
    plain = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    way = tuple(int(step) if step.isdigit() else step for step in path.split("/"))
    return caught(fitting(placed(plain, way, value)))


def test_every_number_of_every_claim_is_held_against_steps_and_guarantee(tmp_path: Path) -> None:
    folder = published(SUPPRESSED, tmp_path)
    plain = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    kinds = set()
    for place, claim in enumerate(plain["claims"]):
        kinds.add(claim["kind"])
        for name, value in claim["parameters"].items():
            other = {int: 7, str: "1/7", list: ["flu"]}[type(value)]
            assert forged(folder, f"claims/{place}/parameters/{name}", other), (claim["kind"], name)
        assert forged(folder, f"claims/{place}/parameters/extra", 1)
        assert forged(folder, f"claims/{place}/kind", "k-anonymity" if place else "k-map")
    assert len(kinds) == 12


def test_a_population_must_be_there_with_every_quasi_identifier(tmp_path: Path) -> None:
    policy = with_ledger(SUPPRESSED, tmp_path)
    with pytest.raises(InvalidParameter, match=r"population file people\.csv is not there"):
        load_policy(written(policy, tmp_path))
    pyarrow.csv.write_csv(people(10).drop_columns(["age"]), tmp_path / "people.csv")
    with pytest.raises(InvalidParameter, match=r"people\.csv has no column 'age'"):
        load_policy(written(policy, tmp_path))


def test_the_hash_of_a_policy_covers_its_population(tmp_path: Path) -> None:
    policy = written(with_ledger(SUPPRESSED, tmp_path), tmp_path)
    hashes = set()
    for seed in (1, 2):
        pyarrow.csv.write_csv(people(10, seed=seed), tmp_path / "people.csv")
        hashes.add(load_policy(policy).hash)
    assert len(hashes) == 2


def test_no_folder_of_the_machine_is_in_the_certificate(tmp_path: Path) -> None:
    text = (published(SUPPRESSED, tmp_path) / "certificate.json").read_text(encoding="utf-8")
    assert "people.csv" in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize(
    ("sensitive", "told"),
    [
        ({"ill": {"l": 2}, "illl": {"l": 2}}, r"policy\.yaml, line \d+: there is no column 'illl'.*'ill'"),
        ({"ill": {"recursiv": {"c": 2, "l": 2}}}, r"policy\.yaml, line \d+: 'recursiv' is not known here.*'recursive'"),
        ({"ill": {"recursive": {"c": 2}}}, r"line \d+: sensitive\.ill\.recursive\.l is missing"),
        ({"ill": {"t": "far"}}, r"line \d+: sensitive\.ill\.t: "),
        ({"ill": {"t": 1, "distance": "far"}}, r"line \d+: sensitive\.ill\.distance: "),
        ({"ill": {"beta": 0}}, r"policy\.yaml: beta must be above 0"),
    ],
)
def test_mistakes_in_the_demands_on_a_column_are_shown_where_they_are(
    tmp_path: Path, sensitive: dict[str, Any], told: str
) -> None:
    policy = changed(EVERYTHING, release__sensitive=sensitive)
    with pytest.raises(InvalidParameter, match=told):
        load_policy(written(policy, tmp_path))


def test_the_published_schema_knows_every_key() -> None:
    known = json_schema()["$defs"]
    assert set(known["SensitiveSection"]["properties"]) == {
        "l", "entropy_l", "recursive", "t", "distance", "beta", "enhanced_beta", "disclosure",
        "present_disclosure", "harmless",
    }  # fmt: skip
    assert set(known["PopulationSection"]["properties"]) == {"file", "k", "presence"}
    assert known["PopulationSection"]["required"] == ["file"]
