"""How the tables of a release are named, and where they are looked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.errors import InvalidParameter
from incrowd.verifier.files import names_of, placed, tables_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.verify.verify import verify
from tests.contract.examples import POLICIES, rows
from tests.policies import with_ledger


def test_one_table_is_called_data_and_several_are_numbered() -> None:
    assert names_of(1, "parquet") == ("data.parquet",)
    assert names_of(3, "tsv") == ("data.1.tsv", "data.2.tsv", "data.3.tsv")


LABELS = [{"categories": ["", "flu"]}, {"hierarchy": {"tree": {"": ["flu"], "rest": ["gout"]}}}]


@pytest.mark.parametrize("column", LABELS)
@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_an_empty_text_is_refused_before_the_charge_where_it_would_look_like_nothing(
    tmp_path: Path, form: str, column: dict[str, Any]
) -> None:
    """Read back, both would be missing: the file would show other classes than the certificate."""
    policy = {
        "incrowd": 1,
        "dataset": {"name": "visits"},
        "columns": {"ill": {"role": "quasi", **column}},
        "release": {"method": "cell-suppression", "k": 2},
        "budget": {"unbounded": "a test"},
    }
    (tmp_path / "policy.yaml").write_text(json.dumps(policy))
    table = pa.table({"ill": ["", "flu", None] * 2})
    with pytest.raises(InvalidParameter, match="looks like a missing value"):
        release_to(table, tmp_path / "policy.yaml", Destination(tmp_path / "out", form))
    assert not (tmp_path / ".incrowd" / "ledger.sqlite").exists()
    made = release_to(table, tmp_path / "policy.yaml", Destination(tmp_path / "out"))
    assert verify(made.folder).passed


@pytest.mark.parametrize(("method", "tables"), [("safe", 1), ("slicing", 2)])
def test_the_steps_tell_how_many_there_are(method: str, tables: int, tmp_path: Path) -> None:
    policy = with_ledger(POLICIES[method]["k solved"], tmp_path)
    certificate = release_to(rows(), policy, Destination(tmp_path / "out", "csv")).release.certificate
    assert [file.name for file in tables_of(certificate)] == list(names_of(tables, "csv"))
    assert [path.name for path in placed(certificate, tmp_path, None)] == list(names_of(tables, "csv"))
    assert placed(release(rows(), with_ledger(policy, tmp_path / "b")).certificate, tmp_path, None) == ()
