"""Anonymized tables unfold to the rows they count, in an order that tells nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incrowd.core.unit import Unit
from incrowd.methods.shared.microdata import Anonymized, Blanked, LocallyGeneralized

TABLE = Anonymized.of(
    {
        "age": (pa.array(["[20, 29]", "[30, 39]"]), np.array([1, 0, 1, 1])),
        "paid": (pa.array([5, 7], pa.int64()), np.array([0, 2, 1, 0])),
    },
    np.array([2, 3, 1, 4]),
    ["age"],
)


def test_rows_unfold_in_the_order_of_the_values_and_missing_comes_last() -> None:
    assert TABLE.to_arrow().to_pylist() == [
        *[{"age": "[20, 29]", "paid": None}] * 3,
        *[{"age": "[30, 39]", "paid": 5}] * 6,
        {"age": "[30, 39]", "paid": 7},
    ]
    assert len(TABLE) == 10


def test_classes_are_told_apart_by_the_quasi_identifiers() -> None:
    assert TABLE.sizes.tolist() == [3, 7]
    assert TABLE.evidence(Unit(), private=False)["smallest class"] == 3


def test_text_is_a_dictionary_of_what_occurs_and_numbers_stay_numbers() -> None:
    assert TABLE.schema.field("age").type == pa.dictionary(pa.int32(), pa.string())
    assert TABLE.schema.field("paid").type == pa.int64()


def test_long_tables_unfold_in_several_batches() -> None:
    long = Anonymized.of({"a": (pa.array(["x", "y"]), np.array([0, 1]))}, np.array([200_000, 100_000]))
    sizes = [len(batch) for batch in long.batches()]
    assert len(sizes) > 1
    assert sum(sizes) == 300_000
    assert sum(value == "y" for value in long.to_arrow().column("a").to_pylist()) == 100_000


AGES, SEXES = pa.array([30, 31]), pa.array(["F"])


def test_missing_cells_are_counted_for_each_quasi_identifier() -> None:
    table = Blanked.of(
        {"age": (AGES, np.array([0, 2])), "sex": (SEXES, np.array([1, 1]))}, np.array([3, 4]), quasi=("age",)
    )
    evidence = table.evidence(Unit(), private=False)
    assert (evidence["missing cells"], evidence["missing cells by column"]) == (4, {"age": 4})
    assert (evidence["rows"], evidence["smallest class"]) == (7, 3)
    assert table.to_arrow()["age"].to_pylist() == [30] * 3 + [None] * 4


def test_a_table_without_rows_has_no_missing_cells() -> None:
    table = Blanked.of({"age": (AGES.slice(0, 0), np.zeros(0, np.int32))}, np.zeros(0, np.int64))
    assert table.evidence(Unit(), private=False)["missing cells"] == 0


def test_the_levels_of_all_rounds_are_told_column_by_column() -> None:
    ages = {"age": (pa.array(["30", "*"]), np.array([0, 1]))}
    made = LocallyGeneralized.of(ages, np.array([2, 2]))
    table = LocallyGeneralized.of(ages, np.array([2, 2]), rounds=({"age": 2}, {"age": 0}, {"age": 2}))
    assert table.evidence(Unit(), private=False)["levels"] == {"age": [0, 2]}
    assert made.evidence(Unit(), private=False)["levels"] == {}
