"""The main job, as somebody with a fresh clone does it: in a folder of his own, by the installed command."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.hospital.population import DIAGNOSES, ETHNICITIES, PROCEDURES, SCHEMA, discharges, write
from incrowd.core.hierarchy.tree import parse_arx
from incrowd.workflows.policy.policy import load_policy

HOSPITAL = Path(__file__).resolve().parents[2] / "examples" / "hospital"
COLUMNS = ["age", "sex", "zip", "ethnicity", "discharged", "diagnosis", "procedure", "charge"]


def incrowd(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "incrowd", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example in it and a release of it in `out`."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(HOSPITAL, folder / "hospital", ignore=shutil.ignore_patterns(".incrowd", "__pycache__"))
    done = incrowd(
        folder, "release", "hospital/discharges.csv", "--policy", "hospital/policy.yaml", "--out", "out",
        "--format", "csv",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def released(clone: Path) -> Iterator[tuple[str, ...]]:
    with (clone / "out" / "data.spreadsheet.csv").open(newline="", encoding="utf-8") as file:
        yield from map(tuple, csv.reader(file))


def test_the_files_are_there_and_only_what_may_be_published(clone: Path) -> None:
    assert {path.name for path in (clone / "out").iterdir()} == {
        "data.spreadsheet.csv",
        "certificate.json",
        "report.html",
    }
    assert {path.name for path in (clone / "hospital" / ".incrowd").iterdir()} == {
        ".sources.lock",
        "ledger.sqlite",
        "ledgers.json",
        "sources.json",
        "internal",
    }


def test_the_output_is_k_anonymous_by_an_independent_count_and_most_rows_survive(clone: Path) -> None:
    header, *rows = released(clone)
    assert list(header) == COLUMNS
    counted = Counter(rows)
    assert min(counted.values()) >= 35
    assert len(rows) > 5000  # of about 10,000 in the sample; fewer with a chance of 10^(−26), by all tuples of the file
    assert len(rows) < 10_500  # seven standard deviations of the sample's size


def test_no_patient_no_place_and_no_day_is_published(clone: Path) -> None:
    content = (clone / "out" / "data.spreadsheet.csv").read_text(encoding="utf-8")
    report = (clone / "out" / "report.html").read_text(encoding="utf-8")
    with (HOSPITAL / "discharges.csv").open(newline="", encoding="utf-8") as file:
        people = list(csv.DictReader(file))
    for person in people[:2000]:
        assert person["patient"] not in content
        assert person["patient"] not in report
        assert person["discharged"] not in content
    assert {row[2] for row in released(clone)} == {"zip", "*"}


def test_the_certificate_is_verified_with_the_ledger(clone: Path) -> None:
    done = incrowd(clone, "verify", "out", "--ledger", "sqlite:///hospital/.incrowd/ledger.sqlite", "--json")
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)["findings"]
    assert {finding["about"] for finding in findings if finding["verdict"] == "passed"} >= {
        "file data.spreadsheet.csv",
        "claim: approximate differential privacy",
        "claim: zero-knowledge with respect to random sampling",
        "claim: crowd-blending",
        "claim: k-anonymity",
        "crowds in the file",
        "steps",
        "accounting",
        "ledger",
    }


def test_the_guarantee_is_that_of_the_readme(clone: Path) -> None:
    certificate = json.loads((clone / "out" / "certificate.json").read_text())
    private = certificate["claims"][0]
    assert private["parameters"]["k"] == 35
    assert 0.98 < float(private["parameters"]["epsilon"]) < 0.99
    assert private["unit"] == {
        "kind": "person",
        "adjacency": "add-remove",
        "column": "patient",
        "max_rows": 1,
        "more": "drop",
    }
    readme = (HOSPITAL / "README.md").read_text(encoding="utf-8")
    assert "(0.99, 1e-6)-differential privacy" in readme
    assert "crowds of at least 35" in readme


def test_a_second_release_is_refused(clone: Path) -> None:
    done = incrowd(clone, "release", "--policy", "hospital/policy.yaml", "--out", "again")
    assert done.returncode == 1
    assert "remains" in done.stderr
    assert not (clone / "again").exists()


def test_the_committed_sample_is_what_the_generator_makes(tmp_path: Path) -> None:
    write(20_000, tmp_path / "discharges.csv")
    assert (tmp_path / "discharges.csv").read_bytes() == (HOSPITAL / "discharges.csv").read_bytes()
    assert (HOSPITAL / "discharges.csv").stat().st_size < 2_000_000


def test_the_population_is_the_same_however_it_is_cut_and_written(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    write(3000, tmp_path / "discharges.parquet")
    table = pq.read_table(tmp_path / "discharges.parquet")
    assert table.schema == SCHEMA
    assert table.equals(pa.Table.from_batches(discharges(3000), schema=SCHEMA))
    assert len(set(table["patient"].to_pylist())) == 3000


def test_every_value_of_the_sample_is_declared() -> None:
    schema = load_policy(HOSPITAL / "policy.yaml").schema
    with (HOSPITAL / "discharges.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for column in schema.released:
        values = {row[column.name] for row in rows}
        assert not {value for value in values if column.hierarchy.generalize(value, 0) is None}, column.name
    assert {row["ethnicity"] for row in rows} == set(ETHNICITIES)
    assert {row["procedure"] for row in rows} <= set(PROCEDURES)


def test_the_hierarchy_of_diagnoses_is_in_arx_format_and_complete() -> None:
    text = (HOSPITAL / "diagnosis.csv").read_text(encoding="utf-8")
    parsed = parse_arx(text)
    assert parsed.text() == text
    assert [row[0] for row in parsed.rows] == [item.code for item in DIAGNOSES]
    assert {row[-1] for row in parsed.rows} == {"*"}
    assert parsed.hierarchy().height == 3
