"""Files of Stata, SPSS and SAS: labels or codes, and what they call missing."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pyreadstat
import pytest

from incrowd.core.table import SourceOptions
from incrowd.engines import statistics_files
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, SourceUnreadable

pd = import_module("pandas")  # its types live in a package of their own

FRAME = pd.DataFrame(
    {
        "sex": [1.0, 2.0, None, 9.0],
        "zip": ["01234", "NO", "", "é"],
        "age": [41.0, 7.5, None, 1.0],
        "born": pd.to_datetime(["2024-02-29", None, "1999-12-31", "2000-01-01"]).date,
    }
)
LABELS = {"sex": {1: "male", 2: "female"}}
WRITERS: dict[str, Any] = {
    ".dta": pyreadstat.write_dta,
    ".sav": pyreadstat.write_sav,
    ".por": pyreadstat.write_por,
    ".xpt": pyreadstat.write_xport,
}


def write(path: Path) -> Path:
    labels = {} if path.suffix in {".xpt", ".por"} else {"variable_value_labels": LABELS}
    WRITERS[path.suffix](FRAME.drop(columns="born").head(3) if path.suffix == ".por" else FRAME, str(path), **labels)
    return path


def columns(path: Path, *names: str, **options: Any) -> dict[str, list[object]]:
    result: dict[str, list[object]] = {name: [] for name in names}
    for batch in open_source(path, SourceOptions(**options)).batches(names):
        for name in names:
            result[name] += batch.column(name).to_pylist()
    return result


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_labels_stand_for_codes_and_a_code_without_label_for_itself(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"t{ending}")
    assert columns(path, "sex")["sex"] == ["male", "female", None, "9"]
    assert open_source(path).notes == ("labels instead of codes in: sex",)
    assert open_source(path).settings == {"format": "statistics", "values": "labels"}


@pytest.mark.parametrize("ending", [".dta", ".sav", ".xpt"])
def test_codes_are_had_on_request_and_text_and_dates_stay_what_they_are(tmp_path: Path, ending: str) -> None:
    options = {} if ending == ".xpt" else {"labels": False}
    result = columns(write(tmp_path / f"t{ending}"), "born", "zip", "age", "sex", **options)
    assert result["sex"] == [1.0, 2.0, None, 9.0]
    assert result["zip"] == ["01234", "NO", None, "é"]
    assert result["age"] == [41.0, 7.5, None, 1.0]
    assert [None if day is None else str(day)[:10] for day in result["born"]] == [
        "2024-02-29",
        None,
        "1999-12-31",
        "2000-01-01",
    ]


def test_portable_files_of_spss_are_read(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "t.por"))
    assert {name.lower() for name in source.names} == {"sex", "zip", "age"}
    assert sum(batch.num_rows for batch in source.batches(source.names)) == 3


@pytest.mark.parametrize("ending", [".dta", ".sav", ".xpt"])
@pytest.mark.parametrize("piece", [1, 2, 3, 4, 5])
def test_pieces_make_no_difference(tmp_path: Path, ending: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / f"t{ending}")
    whole = columns(path, "zip", "age")
    monkeypatch.setattr(statistics_files, "BATCH_ROWS", piece)
    assert columns(path, "zip", "age") == whole
    assert sum(batch.num_rows for batch in open_source(path).batches([])) == 4


def test_the_length_is_known_where_the_format_tells(tmp_path: Path) -> None:
    assert open_source(write(tmp_path / "t.dta")).rows == 4
    assert open_source(write(tmp_path / "t.xpt")).rows is None


def test_a_catalog_of_labels_goes_with_sas_files_only(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="catalog of labels belongs to a SAS file"):
        open_source(write(tmp_path / "t.dta"), SourceOptions(catalog=tmp_path / "labels.sas7bcat"))


def test_a_catalog_and_an_encoding_reach_the_sas_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}

    class About:
        column_names = ("sex",)
        number_rows = 0
        variable_value_labels = LABELS

    def reader(path: str, **options: object) -> tuple[None, type[About]]:
        seen.update(options, path=path)
        return None, About

    monkeypatch.setattr(pyreadstat, "read_sas7bdat", reader)
    path = tmp_path / "t.sas7bdat"
    path.touch()
    source = open_source(path, SourceOptions(catalog=tmp_path / "labels.sas7bcat", encoding="cp1252"))
    assert source.names == ("sex",)
    assert seen["catalog_file"] == str(tmp_path / "labels.sas7bcat")
    assert seen["encoding"] == source.settings["encoding"] == "cp1252"


@pytest.mark.parametrize("ending", [".dta", ".sav", ".sas7bdat", ".xpt", ".por"])
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    path.write_text("secret,1\n")
    with pytest.raises(SourceUnreadable, match="is not a readable") as caught:
        open_source(path)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
