"""Opening a source: which format it is, where it is, what may be told about it, and what is said when it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from incrowd.core.table import SourceOptions
from incrowd.engines.columns import require
from incrowd.engines.readers.reader import package
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, PackageMissing, SourceChanged, SourceUnreadable, UnknownColumn


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("age,zip\n41,01234\n")
    return path


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match=r"nowhere\.csv does not exist"):
        open_source(tmp_path / "nowhere.csv")


def test_an_unknown_ending_is_refused_with_the_formats_that_are_read(tmp_path: Path) -> None:
    path = tmp_path / "data.xyz"
    path.write_text("a,b\n")
    with pytest.raises(SourceUnreadable, match="csv, parquet"):
        open_source(path)
    assert open_source(path, SourceOptions(format="csv")).names == ("a", "b")


def test_a_relative_of_a_known_format_gets_advice(tmp_path: Path) -> None:
    path = tmp_path / "data.xls"
    path.write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(SourceUnreadable, match=r"Save it as \.xlsx"):
        open_source(path)


def test_an_unknown_format_is_refused(table: Path) -> None:
    with pytest.raises(InvalidParameter, match="'yaml' is not known"):
        open_source(table, SourceOptions(format="yaml"))


def test_the_first_bytes_are_believed_before_the_ending(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    pq.write_table(pa.table({"a": ["x"]}), path)
    assert open_source(path).format == "parquet"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_the_right_to_read_is_named(table: Path) -> None:
    table.chmod(0)
    with pytest.raises(SourceUnreadable, match="Permission denied"):
        open_source(table)


def test_a_stream_is_refused_since_it_could_be_read_only_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    with pytest.raises(SourceUnreadable, match="more than once"):
        open_source(path)


def test_addresses_of_servers_are_not_taken_for_paths() -> None:
    with pytest.raises(SourceUnreadable, match="mysql addresses"):
        open_source("mysql://host/clinic")


def test_an_address_is_the_same_however_the_path_is_written(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table.parent)
    link = table.with_name("link.csv")
    link.symlink_to(table)
    (table.parent / "x").mkdir()
    addresses = {
        open_source(item).address for item in ("people.csv", "./x/../people.csv", str(table), table, "link.csv")
    }
    assert addresses == {table.resolve().as_posix()}


def test_an_option_that_would_be_ignored_is_refused(table: Path) -> None:
    with pytest.raises(InvalidParameter, match="sheet means nothing for a text file"):
        open_source(table, SourceOptions(sheet="2024"))
    with pytest.raises(InvalidParameter, match="table means nothing for a text file"):
        open_source(f"{table}::people")


def test_the_settings_tell_how_the_source_is_read(table: Path) -> None:
    assert open_source(table).settings == {
        "format": "csv",
        "delimiter": ",",
        "encoding": "utf-8",
        "quote": '"',
        "header": "yes",
        "nulls": "''",
    }


def test_a_file_that_changes_between_two_passes_is_refused(table: Path) -> None:
    source = open_source(table)
    assert sum(batch.num_rows for batch in source.batches(["age"])) == 1
    table.write_text("age,zip\n41,01234\n42,01235\n")
    with pytest.raises(SourceChanged, match="changed while it was in use"):
        source.batches(["age"])


def test_a_file_that_changes_during_a_pass_is_refused(table: Path) -> None:
    source = open_source(table)
    batches = source.batches(["age"])
    next(batches)
    table.write_text("age,zip\n41,01234\n42,01235\n")
    with pytest.raises(SourceChanged):
        list(batches)


def test_a_column_that_is_not_there_is_refused_before_a_row_is_read(table: Path) -> None:
    with pytest.raises(UnknownColumn, match=r"there is no column Zip\. Did you mean zip\?"):
        open_source(table).batches(["age", "Zip"])


@pytest.mark.parametrize("typo", ["postal code", "Postal_Code ", "postal-cod", "POSTAL_CODE"])
def test_a_misspelled_column_is_recognized(typo: str) -> None:
    with pytest.raises(UnknownColumn, match=r"Did you mean postal_code\?"):
        require(["age", "postal_code"], [typo])


def test_the_columns_are_listed_when_the_header_is_surely_a_header() -> None:
    with pytest.raises(UnknownColumn, match=r"there is no column diagnosis\. The columns are: age, zip\."):
        require(["age", "zip"], ["age", "diagnosis"])


def test_a_line_that_may_hold_values_is_never_listed() -> None:
    with pytest.raises(UnknownColumn) as caught:
        require(["Miller", "41", "02134"], ["name", "age", "zip"])
    assert "does its first line name the columns" in str(caught.value)
    assert not any(value in str(caught.value) for value in ("Miller", "41", "02134"))


def test_a_wrong_delimiter_is_guessed_from_the_header() -> None:
    with pytest.raises(UnknownColumn, match="a single column with a semicolon in its name"):
        require(["name;age;zip"], ["name", "age"])


def test_several_missing_columns_are_named_together() -> None:
    with pytest.raises(UnknownColumn, match="there are no columns b, c"):
        require(["a"], ["a", "b", "c", "b"])


def test_a_missing_package_names_the_extra() -> None:
    with pytest.raises(PackageMissing, match=r"pip install 'incrowd\[formats\]'"):
        package("a_package_nobody_has", "files of nobody")


def test_no_heavy_package_is_loaded_before_it_is_needed(table: Path) -> None:
    heavy = ("pandas", "polars", "duckdb", "openpyxl", "pyreadstat", "sqlite3")
    code = (
        "import sys; from incrowd.engines.readers.sources import open_source;"
        f"list(open_source({str(table)!r}).batches(['age']));"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
