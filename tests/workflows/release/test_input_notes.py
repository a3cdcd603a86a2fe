"""What the data holder is told of rows that take no part, and of files for spreadsheets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.errors import InvalidParameter
from incrowd.workflows.coarsen.method import Coarser, coarsen
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import written

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "visits"},
    "columns": {"ill": {"categories": ["=1+1", "'=1+1", "flu"]}, "sex": {"categories": ["F", "M"]}},
    "budget": {"unbounded": "a test"},
}
METHODS: tuple[dict[str, Any], ...] = (
    {"method": "safe", "rate": 1, "k": 3},
    {"method": "suppressed-histogram", "rate": 1, "k": 3},
)
ROWS = pa.table({"ill": ["=1+1", "'=1+1", "flu", "flu"] * 5, "sex": ["F"] * 20})


def test_rows_without_a_person_are_counted_for_the_data_holder(tmp_path: Path) -> None:
    dataset = {"name": "visits", "unit": {"column": "patient"}}
    columns = {**POLICY["columns"], "patient": {"role": "identifier"}}
    policy = written({**POLICY, "dataset": dataset, "columns": columns, "release": METHODS[0]}, tmp_path)
    patients = [None, None, *map(str, range(18))]
    found = release_to(ROWS.append_column("patient", pa.array(patients)), policy, Destination(tmp_path / "out"))
    assert "left out: 2 rows without a value in 'patient', the person ID column" in found.notes
    assert "2 rows without" not in (tmp_path / "out" / "certificate.json").read_text()
    assert "2 rows without" not in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("release", METHODS, ids=lambda release: str(release["method"]))
@pytest.mark.parametrize("form", ["spreadsheet.csv", "spreadsheet.tsv"])
def test_a_file_for_spreadsheets_holds_no_formula_and_verifies(
    release: dict[str, Any], form: str, tmp_path: Path
) -> None:
    policy = written({**POLICY, "release": release}, tmp_path)
    release_to(ROWS, policy, Destination(tmp_path / "out", form))
    lines = (tmp_path / "out" / f"data.{form}").read_text().splitlines()
    assert not any(line.lstrip('"').startswith("=") for line in lines)
    assert any(line.startswith("'=1+1") for line in lines)
    assert any(line.startswith("''=1+1") for line in lines)
    assert verify(tmp_path / "out").passed
    coarsen(tmp_path / "out", load_policy(policy), Coarser(columns=("ill",)), tmp_path / "coarse")
    assert (tmp_path / "coarse" / f"data.{form}").is_file()
    assert verify(tmp_path / "coarse", parent=tmp_path / "out").passed


def test_without_the_option_text_is_what_was_released(tmp_path: Path) -> None:
    policy = written({**POLICY, "release": METHODS[0]}, tmp_path)
    release_to(ROWS, policy, Destination(tmp_path / "out", "csv"))
    assert "\n=1+1,F\n" in (tmp_path / "out" / "data.csv").read_text()


def test_a_parquet_file_is_not_for_spreadsheets(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="parquet, csv, tsv"):
        Destination(tmp_path / "out", "spreadsheet.parquet")


SPREAD = pa.table({"ill": ["flu"] * 3 + ["=1+1", "'=1+1"] * 50, "sex": ["M"] * 3 + ["F"] * 100})


@pytest.mark.parametrize(
    ("release", "declared", "budget", "said"),
    [
        ({"rate": 1, "k": 60}, {}, {"unbounded": "a test"}, "0 rows of about 103"),
        ({"rate": 1, "k": 3}, {}, {"unbounded": "a test"}, None),
        ({"rate": "1/2", "epsilon": 1, "delta": "1e-4"}, {"rows": 500_000}, {"epsilon": 1, "delta": "1e-4"}, "250,000"),
        ({"rate": "1/2", "epsilon": 1, "delta": "1e-4"}, {}, {"epsilon": 1, "delta": "1e-4"}, None),
    ],
)
def test_a_release_that_kept_almost_nothing_says_so_by_what_may_be_said(
    release: dict[str, Any], declared: dict[str, Any], budget: dict[str, Any], said: str | None, tmp_path: Path
) -> None:
    """How many rows the source has is said only where no ε protects that number."""
    dataset = {"name": "visits", **declared}
    content = {**POLICY, "dataset": dataset, "release": {"method": "safe", **release}, "budget": budget}
    notes = " ".join(release_to(SPREAD, written(content, tmp_path), Destination(tmp_path / "out")).notes)
    assert ("almost nothing is left" in notes) == (said is not None)
    assert said is None or said in notes
