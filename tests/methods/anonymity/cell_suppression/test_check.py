"""The check of tables with missing cells: rows that nobody is like, or that match nobody, are found."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.steps.rows import Recode
from incrowd.methods.anonymity.cell_suppression.check import LeaveOutCells, fewest_alike, fewest_matching, tuples_of
from incrowd.methods.anonymity.cell_suppression.method import CHECK
from incrowd.methods.shared.microdata import Blanked
from tests.methods.anonymity.cell_suppression import slow
from tests.methods.anonymity.syntactic.patients import file_of, released, stated
from tests.policies import PEOPLE, changed, people
from tests.statements import with_step

CELLS = changed(
    PEOPLE,
    columns__ill={"categories": ["flu", "gout", "none"], "role": "sensitive"},
    release={"method": "cell-suppression", "k": 5, "levels": {"zip": 1}, "subsets": {1: 9}},
    budget={"unbounded": "compared with other tools"},
)
WILD = changed(CELLS, release__missing="matches")


def rows() -> pa.Table:
    return people(600).append_column("ill", pa.array([["flu", "gout", "none"][n * 7 % 3] for n in range(600)]))


@pytest.mark.parametrize("policy", [CELLS, WILD], ids=["strict", "wild"])
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_released_file_holds_and_reads_back(policy: dict[str, Any], form: str, tmp_path: Path) -> None:
    statement, made = stated(policy, tmp_path), released(policy, tmp_path, rows())
    file = file_of(made.to_arrow(), tmp_path, form)
    looks = list(CHECK.inspect(statement, (file,)))
    assert [look.problem for look in looks] == [None, None, None]
    assert looks[2].about == f"{statement.claims[1].kind} of any 1 in the file"
    assert CHECK.contradiction(statement) is None
    assert CHECK.recount(statement, made) is None
    again = CHECK.reopen(statement, (file,))
    assert isinstance(made, Blanked)
    assert sorted(again.sizes.tolist()) == sorted(made.sizes.tolist())


@pytest.mark.parametrize("policy", [CELLS, WILD], ids=["strict", "wild"])
def test_a_row_that_is_shown_in_full_again_is_found(policy: dict[str, Any], tmp_path: Path) -> None:
    """A row that nobody is like, and that no empty cell of another row could be."""
    statement, table = stated(policy, tmp_path), released(policy, tmp_path, rows()).to_arrow()
    plain = table.to_pylist()
    assert any(None in row.values() for row in plain), "nothing was left out, so nothing is tested"
    strange = {"sex": "F", "age": 31, "zip": "77*", "ill": "flu"}
    full = [row for row in plain if None not in row.values()]
    forged = pa.Table.from_pylist([*full, strange], schema=table.schema)
    problems = [look.problem for look in CHECK.inspect(statement, (file_of(forged, tmp_path),))]
    assert any(problem is not None and not problem.undecided for problem in problems)
    more = table.append_column("id", pa.array(range(len(table))))
    first, *others = CHECK.inspect(statement, (file_of(more, tmp_path),))
    assert first.problem is not None
    assert not others


def test_an_output_in_memory_is_held_against_its_claims(tmp_path: Path) -> None:
    careless = released(changed(CELLS, release__k=1, release__subsets=None), tmp_path, rows())
    problem = CHECK.recount(stated(CELLS, tmp_path), careless)
    assert problem is not None
    assert "k is 5" in problem.text
    assert CHECK.recount(stated(CELLS, tmp_path), object()) is not None  # type: ignore[arg-type]


def test_other_columns_than_the_quasi_identifiers_are_found(tmp_path: Path) -> None:
    statement = stated(CELLS, tmp_path)
    assert CHECK.contradiction(with_step(statement, LeaveOutCells, columns=("sex", "age"))) is not None
    assert CHECK.contradiction(replace(statement, roles={**statement.roles, "ill": "quasi"})) is not None
    assert CHECK.contradiction(with_step(statement, Recode, columns=())) is not None


def test_a_table_without_rows_breaks_nothing(tmp_path: Path) -> None:
    statement = stated(CELLS, tmp_path)
    table = pa.table({name: pa.array([], pa.string()) for name in statement.released})
    looks = list(CHECK.inspect(statement, (file_of(table, tmp_path, "csv"),)))
    assert [look.problem for look in looks] == [None, None, None]
    assert looks[1].otherwise == "there are no rows"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*(st.sampled_from([None, "1", "2"]) for _ in range(3))), min_size=1, max_size=10))
def test_rows_are_counted_as_an_oracle_counts_them(plain: list[tuple[str | None, ...]]) -> None:
    table = pa.table({str(place): pa.array([row[place] for row in plain], pa.string()) for place in range(3)})
    tuples = tuples_of(table.to_batches(max_chunksize=3), ["0", "1", "2"])
    known = [tuple(0 if cell is None else int(cell) for cell in row) for row in plain]
    assert fewest_alike(tuples) == slow.fewest_alike(known)
    assert fewest_matching(tuples, 99) == slow.fewest_matching(known)
    for size in (1, 2):
        parts = [[tuple(row[place] for place in chosen) for row in known] for chosen in combinations(range(3), size)]
        assert fewest_alike(tuples, size) == min(slow.fewest_alike(part) for part in parts)
        assert fewest_matching(tuples, 99, size) == min(slow.fewest_matching(part) for part in parts)
