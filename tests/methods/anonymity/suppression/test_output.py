"""What tables with missing cells, and tables at levels of several rounds, show of themselves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incrowd.core.unit import Unit
from incrowd.methods.anonymity.local.output import LocallyGeneralized
from incrowd.methods.anonymity.suppression.output import Blanked

AGES, SEXES = pa.array([30, 31]), pa.array(["F"])


def test_missing_cells_are_counted_for_each_quasi_identifier() -> None:
    table = Blanked.of(
        {"age": AGES, "sex": SEXES}, [np.array([0, 2]), np.array([1, 1])], np.array([3, 4]), quasi=("age",)
    )
    told = table.evidence(Unit(), private=False)
    assert (told["missing cells"], told["missing cells by column"]) == (4, {"age": 4})
    assert (told["rows"], told["smallest class"]) == (7, 3)
    assert table.to_arrow()["age"].to_pylist() == [30] * 3 + [None] * 4


def test_a_table_without_rows_has_no_missing_cells() -> None:
    table = Blanked.of({"age": AGES.slice(0, 0)}, [np.zeros(0, np.int32)], np.zeros(0, np.int64))
    assert table.evidence(Unit(), private=False)["missing cells"] == 0


def test_the_levels_of_all_rounds_are_told_column_by_column() -> None:
    made = LocallyGeneralized.of({"age": pa.array(["30", "*"])}, [np.array([0, 1])], np.array([2, 2]))
    rounds = ({"age": 2}, {"age": 0}, {"age": 2})
    table = LocallyGeneralized(made.names, made.values, made.keys, made.counts, made.quasi, rounds)
    assert table.evidence(Unit(), private=False)["levels"] == {"age": [0, 2]}
    assert made.evidence(Unit(), private=False)["levels"] == {}
