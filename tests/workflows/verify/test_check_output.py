"""What a file shows beside its counts is held against its certificate: evidence, order, notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from incrowd.errors import InvalidParameter
from incrowd.workflows.verify.verify import verify
from tests.released import Folder, failed, problems, rehash, release_into


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("shown") / "release", "parquet")


@pytest.fixture
def copy(made: Folder, tmp_path: Path) -> Folder:
    return made.copied(tmp_path / "copy")


def replaced(folder: Folder, table: pa.Table) -> None:
    """Write another table under the certified name, and make the certificate's hash fit."""
    file = folder.out / "data.parquet"
    pq.write_table(table, file, store_schema=table.schema.metadata is not None)
    rehash(folder.out, "data.parquet")


def test_rows_in_another_order_fail(copy: Folder) -> None:
    table = pq.read_table(copy.out / "data.parquet")
    replaced(copy, table.take([*range(1, len(table)), 0]))
    assert failed(verify(copy.out)) == ["order of the rows", "report"]


def test_notes_beside_the_table_fail(copy: Folder) -> None:
    table = pq.read_table(copy.out / "data.parquet")
    replaced(copy, table.replace_schema_metadata({"note": "who is in it"}))
    assert failed(verify(copy.out)) == ["metadata of the file", "report"]


def test_the_same_table_written_again_shows_the_same_and_is_not_the_one_that_the_report_names(copy: Folder) -> None:
    replaced(copy, pq.read_table(copy.out / "data.parquet"))
    assert failed(verify(copy.out)) == ["report"]


@pytest.mark.parametrize("name", ["rows", "classes", "prosecutor", "marketer"])
@pytest.mark.parametrize("value", ["0", None])
def test_evidence_that_is_not_what_the_file_shows_fails(copy: Folder, name: str, value: Any) -> None:
    copy.tamper(("evidence", name), lambda _: value)
    assert "evidence" in failed(verify(copy.out))


def test_evidence_that_was_made_up_fails(copy: Folder) -> None:
    copy.tamper(("evidence",), lambda told: {**told, "reviewed by": "everyone"})
    assert failed(verify(copy.out)) == ["free text"]
    copy.tamper(("evidence", "reviewed by"), lambda _: 7)
    assert "evidence" in failed(verify(copy.out))


def test_a_signature_that_is_no_object_fails(copy: Folder) -> None:
    copy.tamper(("signature",), lambda _: "signed")
    with pytest.raises(InvalidParameter):
        verify(copy.out)


def test_steps_that_are_not_known_are_not_called_verified(copy: Folder) -> None:
    copy.forge(("steps",), lambda steps: [*steps, {"step": "polish", "sentence": "The rows are polished."}])
    assert problems(copy.out)
