"""None"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.cells import Cells
from incrowd.core.domain import Categories, Text, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Missing, Schema
from incrowd.engines.local.counting import CountTally
from incrowd.engines.local.encoding import Codebook, Encoder, RowKeys, TextEncoder
from incrowd.engines.local.engine import LOCAL, LocalEngine
from incrowd.engines.local.views import KeyedRows
from incrowd.engines.readers.delimited import Delimited
from incrowd.errors import BudgetExceeded
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.coins import ScriptedSample
from tests.people import PEOPLE, levels, tables
from tests.policies import PEOPLE as POLICY
from tests.policies import changed, people, written
from tests.tables import Batches, as_counter, tally

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
    for (classes, table), outcome in zip(encoder.classes(), codes, strict=True):
        names = classes.labels().to_pylist()
        columns.append([names[code if table is None else table[code]] for code in outcome])
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
    classes, retained = book.classes()
    assert classes.marks.equals(pa.array([10, 20], pa.int32()).cast(pa.date32()))
    assert retained[codes].tolist() == [1, 0, 1]
    assert retained[[book.other, book.missing]].tolist() == [classes.other, classes.missing]


def keyed(table: pa.Table, cells: Cells, size: int, in_memory: int) -> KeyedRows:
    rows = KeyedRows(Batches(table, size), RowKeys(cells, in_memory))
    for batch in map(TextEncoder(), rows.batches(cells.reads)):
        rows.keys.add(batch)
    return rows


@settings(deadline=None, max_examples=60)
@given(
    table=tables(),
    chosen=levels(),
    size=st.integers(1, 12),
    in_memory=st.sampled_from([0, 40, 1 << 20]),
    data=st.data(),
)
def test_counting_what_was_kept_is_counting_row_by_row(
    table: pa.Table, chosen: dict[str, int], size: int, in_memory: int, data: st.DataObject
) -> None:
    cells = Cells.of(PEOPLE, chosen)
    retained = data.draw(st.none() | st.lists(st.booleans(), min_size=table.num_rows, max_size=table.num_rows))
    sample = [] if retained is None else [ScriptedSample(Fraction(1, 2), frozenset(np.flatnonzero(retained).tolist()))]
    rows = keyed(table, cells, size, in_memory)
    for _ in range(2):  # keys can be read again
        with patch.object(Batches, "batches", side_effect=AssertionError("the source was read again")):
            assert as_counter(LOCAL.count(rows, cells, *sample)) == tally(cells, table, retained)


def test_other_cells_are_counted_from_the_source() -> None:
    table = pa.table({"sex": ["F", "M", "F"], "age": ["1", "2", "3"]})
    schema = Schema((Column("sex", hierarchy=Flat(Categories(("F", "M")))), Column("age")))
    rows = keyed(table, Cells.of(schema, {}, ["sex"]), 2, 1 << 20)
    other = Cells.of(schema, {}, ["age"])
    assert as_counter(LOCAL.count(rows, other)) == tally(other, table, None)


def test_keys_that_would_be_longer_than_eight_bytes_are_not_kept() -> None:
    wide = Flat(Categories(tuple(f"v{number}" for number in range(2**11))))
    schema = Schema(tuple(Column(name, hierarchy=wide) for name in "abcdef"))
    table = pa.table({name: ["v1", "v2", "x"] for name in "abcdef"})
    rows = keyed(table, Cells.of(schema, {}), 2, 1 << 20)
    keys = rows.keys
    assert isinstance(keys, RowKeys)
    assert not keys.complete
    assert as_counter(LOCAL.count(rows, keys.cells)) == tally(keys.cells, table, None)


def test_only_text_is_kept(tmp_path: Path) -> None:
    csv.write_csv(people(), tmp_path / "people.csv")
    parquet.write_table(people(), tmp_path / "people.parquet")
    cells = load_policy(written(POLICY, tmp_path)).plan.cells
    kinds = {
        name: isinstance(LOCAL.keyed(LOCAL.open(tmp_path / name), cells), KeyedRows)
        for name in ("people.csv", "people.parquet")
    }
    assert kinds == {"people.csv": True, "people.parquet": False}
    assert not isinstance(LOCAL.keyed(LOCAL.open(people()), cells), KeyedRows)
    assert not isinstance(LOCAL.keyed(LOCAL.open(tmp_path / "people.csv"), None), KeyedRows)


def test_marks_are_the_same_whether_keys_are_kept_or_not(tmp_path: Path) -> None:
    table = people().append_column("paid", pa.array([f"{number / 4:.2f}" for number in range(600)]))
    csv.write_csv(table, tmp_path / "people.csv")
    columns = {"paid": {"type": "decimal", "bounds": [0, 200], "hierarchy": {"intervals": [50]}}}
    policy = load_policy(written(changed(POLICY, columns={**POLICY["columns"], **columns}), tmp_path))
    source = LOCAL.open(tmp_path / "people.csv")
    with_keys = LOCAL.marks(LOCAL.keyed(source, policy.plan.cells), policy.schema, bytes(32))
    without, typed = (LOCAL.marks(rows, policy.schema, bytes(32)) for rows in (source, LOCAL.open(table)))
    for other in (without, typed):
        assert with_keys.content == other.content
        assert with_keys.rows.bits.tolist() == other.rows.bits.tolist()


def test_a_release_parses_its_text_once(tmp_path: Path) -> None:
    csv.write_csv(people(), tmp_path / "people.csv")
    policy = written(POLICY, tmp_path)
    read = Delimited._parse
    with patch.object(Delimited, "_parse", autospec=True, side_effect=read) as reads:
        published = release_to(str(tmp_path / "people.csv"), policy, Destination(tmp_path / "out", "csv"))
    assert [call.args[0].path.name for call in reads.call_args_list] == ["people.csv", "data.csv"]  # and what it wrote
    assert len(published.release.result) > 0


def test_keys_are_counted_after_the_charge_and_never_without_it(tmp_path: Path) -> None:
    csv.write_csv(people(), tmp_path / "people.csv")
    policy = written(changed(POLICY, budget={"epsilon": "0.1", "delta": "1e-3"}), tmp_path)
    with (
        patch.object(LocalEngine, "count", side_effect=AssertionError("counted")),
        patch.object(CountTally, "add_keys", side_effect=AssertionError("counted")),
        pytest.raises(BudgetExceeded),
    ):
        release_to(str(tmp_path / "people.csv"), policy, Destination(tmp_path / "out", "csv"))


def test_a_release_of_which_nothing_is_left_is_paid_and_published(tmp_path: Path) -> None:
    csv.write_csv(people(8), tmp_path / "people.csv")
    policy = written(POLICY, tmp_path)
    published = release_to(str(tmp_path / "people.csv"), policy, Destination(tmp_path / "out", "csv"))
    assert len(published.release.result) == 0
    assert (tmp_path / "out" / "certificate.json").exists()
    ledger = Ledger.open(load_policy(policy).ledger_address)
    assert [entry.kind for entry in ledger.entries()].count("charge") == 1
