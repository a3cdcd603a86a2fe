"""The recount tells every two different tuples apart, whatever they look like."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from incrowd.engines.local import smallest_class
from incrowd.engines.writers.sinks import write_table

ALIKE = [
    None, "", "NA", "N/A", "#N/A", "null", "NULL", "nan", "NaN", "None", "0", "00", "0.0", "1e0", "1", " 1", "1 ",
    "true", "True", "2020-01-01", "2020-01-01 ", "a,b", 'a"b', "a\nb", "a\tb", "é", "e\u0301", "\u200b",
]  # fmt: skip


@pytest.mark.parametrize("form", ["parquet", "csv", "tsv"])
@pytest.mark.parametrize(
    ("small", "rare"), [(True, value) for value in ALIKE] + [(False, value) for value in ALIKE[:4]], ids=repr
)
def test_a_value_that_occurs_once_is_found_among_those_that_look_like_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, small: bool, rare: str | None
) -> None:
    monkeypatch.setattr(smallest_class, "_SMALL_ROWS", 1 << 30 if small else -1)
    monkeypatch.setattr(smallest_class, "_SMALL_TEXT", 1 << 30 if small else -1)
    file = tmp_path / f"data.{form}"
    values = [value for value in ALIKE if value != rare] * 3
    write_table(pa.table({"sex": ["F"] * len(values), "note": pa.array(values, pa.string())}), file)
    assert smallest_class.smallest_class(file, ("sex", "note")) == 3
    write_table(pa.table({"sex": ["F"] * (len(values) + 1), "note": pa.array([*values, rare], pa.string())}), file)
    assert smallest_class.smallest_class(file, ("sex", "note")) == 1


@pytest.mark.parametrize("form", ["parquet", "csv", "tsv"])
@pytest.mark.parametrize("small", [True, False], ids=["in memory", "out of core"])
def test_a_file_without_rows_has_no_class_that_is_too_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, small: bool
) -> None:
    monkeypatch.setattr(smallest_class, "_SMALL_ROWS", 1 << 30 if small else -1)
    monkeypatch.setattr(smallest_class, "_SMALL_TEXT", 1 << 30 if small else -1)
    write_table(pa.table({"sex": pa.array([], pa.string())}), tmp_path / f"data.{form}")
    assert smallest_class.smallest_class(tmp_path / f"data.{form}", ("sex",)) is None


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("small", [True, False], ids=["in memory", "out of core"])
@pytest.mark.parametrize("name", ["out*", "out?", "out[1]", "[out]", "o'ut", "öut {1}"])
def test_a_folder_may_have_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, small: bool, name: str
) -> None:
    monkeypatch.setattr(smallest_class, "_SMALL_ROWS", 1 << 30 if small else -1)
    monkeypatch.setattr(smallest_class, "_SMALL_TEXT", 1 << 30 if small else -1)
    file = tmp_path / name / f"data.{form}"
    file.parent.mkdir()
    write_table(pa.table({"sex": ["F", "F", "M"]}), file)
    assert smallest_class.smallest_class(file, ("sex",)) == 1
