"""How the tables of a release are named, and where they are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.workflows.files import names_of, paths_of, placed, tables_of
from incrowd.workflows.protect import release
from tests.contract.examples import POLICIES, rows
from tests.policies import with_ledger


def test_one_table_is_called_data_and_several_are_numbered() -> None:
    assert names_of(1, "parquet") == ("data.parquet",)
    assert names_of(3, "tsv") == ("data.1.tsv", "data.2.tsv", "data.3.tsv")


@pytest.mark.parametrize(("method", "tables"), [("safe", 1), ("slicing", 2)])
def test_the_steps_tell_how_many_there_are(method: str, tables: int, tmp_path: Path) -> None:
    certificate = release(rows(), with_ledger(POLICIES[method]["k solved"], tmp_path)).certificate
    first = tmp_path / names_of(tables, "csv")[0]
    assert tables_of(certificate) == tables
    assert [path.name for path in paths_of(certificate, first)] == list(names_of(tables, "csv"))
    assert placed(certificate, tmp_path, None) == ()
