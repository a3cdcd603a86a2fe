"""Frames of pandas, Polars and Arrow, through the Arrow C stream interface."""

from __future__ import annotations

import datetime as dt
from importlib import import_module

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from incrowd.core.table import SourceOptions
from incrowd.engines.readers.reader import BATCH_ROWS
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, SourceUnreadable

pd = import_module("pandas")  # its types live in a package of their own

DATA: dict[str, list[object]] = {
    "zip": ["01234", None, "NO"],
    "age": [41, 7, None],
    "born": [dt.date(2024, 2, 29), None, dt.date(1999, 12, 31)],
    "ok": [True, False, None],
}


def values(frame: object, *columns: str) -> list[tuple[object, ...]]:
    source = open_source(frame)
    return [tuple(row.values()) for batch in source.batches(columns or source.names) for row in batch.to_pylist()]


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pa.RecordBatch.from_pydict, pd.DataFrame])
def test_frames_of_every_kind_give_the_same_rows(make: object) -> None:
    frame = make(DATA)  # type: ignore[operator]  # each maker takes a dictionary of columns
    assert values(frame, "zip", "age", "born") == [
        ("01234", 41, dt.date(2024, 2, 29)),
        (None, 7, None),
        ("NO", None, dt.date(1999, 12, 31)),
    ]
    assert open_source(frame).rows == 3
    assert open_source(frame).address is None


def test_text_and_categories_become_plain_text_and_codes() -> None:
    polars = pl.DataFrame({"t": ["x", None], "c": pl.Series(["x", "y"], dtype=pl.Categorical)})
    pandas = pd.DataFrame({"t": ["x", None], "c": pd.Categorical(["x", "y"])})
    for frame in (polars, pandas):
        (batch,) = open_source(frame).batches(["t", "c"])
        assert batch.schema.types == [pa.string(), pa.dictionary(pa.int32(), pa.string())]
        assert batch.schema.metadata is None
        assert batch.to_pydict() == {"t": ["x", None], "c": ["x", "y"]}


def test_categories_of_numbers_become_numbers() -> None:
    (batch,) = open_source(pd.DataFrame({"c": pd.Categorical([3, 1, 3])})).batches(["c"])
    assert batch.column(0).to_pylist() == [3, 1, 3]
    assert batch.column(0).type == pa.int64()


def test_a_dictionary_with_a_null_in_it_is_taken_apart() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array(["x", None]))
    assert values(pa.table({"c": coded})) == [("x",), (None,), ("x",)]


def test_other_layouts_are_made_plain() -> None:
    table = pa.table(
        {
            "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", "y"])),
            "half": pa.array([np.float16(0.5), None, np.float16(2)], pa.float16()),
            "none": pa.nulls(3),
        }
    )
    assert values(table) == [("x", 0.5, None), ("x", None, None), ("y", 2.0, None)]


def test_a_named_index_is_a_column_and_an_unnamed_one_is_not() -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="key"))
    assert set(open_source(frame).names) == {"a", "key"}
    assert open_source(frame.rename_axis(None)).names == ("a",)


def test_long_frames_come_in_bounded_batches_in_order() -> None:
    numbers = np.arange(2 * BATCH_ROWS + 1)
    batches = list(open_source(pa.table({"i": numbers})).batches(["i"]))
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS, BATCH_ROWS, 1]
    assert np.array_equal(np.concatenate([batch.column(0).to_numpy() for batch in batches]), numbers)
    assert [batch.num_rows for batch in open_source(pa.table({"i": numbers})).batches([])] == [BATCH_ROWS] * 2 + [1]


def test_what_can_be_read_once_is_refused() -> None:
    table = pa.table({"a": [1]})
    with pytest.raises(SourceUnreadable, match="can be read once"):
        open_source(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))


def test_what_is_no_frame_is_refused_with_advice() -> None:
    with pytest.raises(SourceUnreadable, match="a dict is no table"):
        open_source({"a": [1]})
    with pytest.raises(SourceUnreadable, match=r"a LazyFrame is no table .* Call \.collect\(\)"):
        open_source(pl.DataFrame({"a": [1]}).lazy())


def test_a_column_that_mixes_types_is_refused_without_showing_values() -> None:
    with pytest.raises(SourceUnreadable, match="mixes types") as caught:
        open_source(pd.DataFrame({"a": pd.Series(["secret", 1], dtype=object)}))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_equal_names_are_refused() -> None:
    with pytest.raises(SourceUnreadable):
        open_source(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_options_of_files_mean_nothing_for_frames() -> None:
    with pytest.raises(InvalidParameter, match="delimiter means nothing for a frame"):
        open_source(pa.table(DATA), SourceOptions(delimiter=";"))
