from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.cells import Cells
from incrowd.core.domain import Categories, Text, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.prefix import Prefix
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Missing, Schema
from incrowd.engines.local.encoding import Codebook, Encoder

SCHEMA = Schema(
    (
        Column("sex", hierarchy=Flat(Categories(("F", "M"))), missing=Missing.DROP),
        Column("zip", hierarchy=Prefix(Text(), (3,))),
    )
)


def batch(sexes: list[str | None], zips: list[str | None]) -> pa.RecordBatch:
    return pa.record_batch({"sex": pa.array(sexes), "zip": pa.array(zips).dictionary_encode()})


def labels(encoder: Encoder, codes: list[np.ndarray[tuple[int], np.dtype[np.int32]]]) -> list[tuple[str | None, ...]]:
    columns = []
    for (classes, table), found in zip(encoder.classes(), codes, strict=True):
        names = classes.labels().to_pylist()
        columns.append([names[code if table is None else table[code]] for code in found])
    return list(zip(*columns, strict=True))


def test_a_dictionary_that_changes_is_looked_at_again() -> None:
    encoder = Encoder(Cells.of(SCHEMA, {"zip": 1}))
    first = encoder.codes(batch(["F", "M"], ["02139", "94305"]), None)
    second = encoder.codes(batch(["F", "M"], ["94305", "10001"]), None)
    assert labels(encoder, first) == [("F", "021"), ("M", "943")]
    assert labels(encoder, second) == [("F", "943"), ("M", "100")]


def test_a_dictionary_that_stays_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    real = Recoding.codes_of

    def watched(self: Recoding, values: pa.Array, book: Codebook | None = None) -> object:
        looks.append(len(values))
        return real(self, values, book)

    monkeypatch.setattr(Recoding, "codes_of", watched)
    encoder = Encoder(Cells.of(SCHEMA, {"zip": 1}, ["zip"]))
    for _ in range(3):
        encoder.codes(batch(["F"], ["02139"]), None)
    assert looks == [1]


def test_only_chosen_rows_that_are_not_left_out_get_codes() -> None:
    encoder = Encoder(Cells.of(SCHEMA, {"zip": 1}))
    rows = batch(["F", None, "M", "F"], ["1", "2", "3", None])
    assert labels(encoder, encoder.codes(rows, np.array([1, 2, 3]))) == [("M", "3"), ("F", None)]
    assert labels(encoder, encoder.codes(rows, np.array([1]))) == []


def test_room_grows_in_few_steps() -> None:
    encoder = Encoder(Cells.of(SCHEMA, {}, ["zip"]))
    sizes = set()
    for start in range(0, 3000, 10):
        encoder.codes(batch(["F"] * 10, [str(number) for number in range(start, start + 10)]), None)
        sizes.add(encoder.sizes)
    assert sizes == {(64,), (256,), (1024,), (4096,)}


def test_a_codebook_of_dates_gives_back_dates_in_order() -> None:
    book = Codebook(Recoding(Column("day", type=Type.DATE), 0))
    days = pa.array([20, 10, 20], pa.int32()).cast(pa.date32())
    codes = book.codes(days)
    classes, kept = book.classes()
    assert classes.marks.equals(pa.array([10, 20], pa.int32()).cast(pa.date32()))
    assert kept[codes].tolist() == [1, 0, 1]
    assert kept[[book.other, book.missing]].tolist() == [classes.other, classes.missing]
