"""The check of tables of item sets: rare combinations and strange columns are found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.steps.rows import Recode
from incrowd.core.unit import Kind, Unit
from incrowd.methods.anonymity.itemsets.check import CutItems, rarest
from incrowd.methods.anonymity.itemsets.method import CHECK
from tests.contract.examples import POLICIES
from tests.contract.examples import rows as examples
from tests.methods.anonymity.syntactic.patients import file_of, released, stated
from tests.statements import with_step

POLICY = POLICIES["itemsets"]["beside others"]


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_released_file_holds_and_reads_back(form: str, tmp_path: Path) -> None:
    statement, made = stated(POLICY, tmp_path), released(POLICY, tmp_path, examples())
    file = file_of(made.to_arrow(), tmp_path, form)
    looks = list(CHECK.inspect(statement, (file,)))
    assert [look.problem for look in looks] == [None, None]
    assert looks[1].about == "k^m-anonymity of bought in the file"
    assert CHECK.contradiction(statement) is None
    assert CHECK.recount(statement, made) is None
    again = CHECK.reopen(statement, (file,))
    assert len(again) == len(made)
    assert CHECK.recount(statement, again) is None


def test_a_rare_combination_is_found(tmp_path: Path) -> None:
    statement, table = stated(POLICY, tmp_path), released(POLICY, tmp_path, examples()).to_arrow()
    strange = pa.Table.from_pylist([{**table.slice(0, 1).to_pylist()[0], "bought": "gold"}], table.schema)
    problem = list(CHECK.inspect(statement, (file_of(pa.concat_tables([table, strange]), tmp_path),)))[1].problem
    assert problem is not None
    assert problem.text == "the rarest combination of up to 2 items occurs in 1 rows, k is 5"
    more = table.append_column("id", pa.array(range(len(table))))
    first, *others = CHECK.inspect(statement, (file_of(more, tmp_path),))
    assert first.problem is not None
    assert not others
    assert CHECK.recount(statement, object()) is not None  # type: ignore[arg-type]


def test_other_columns_than_the_quasi_identifiers_and_people_with_rows_are_found(tmp_path: Path) -> None:
    statement = stated(POLICY, tmp_path)
    for forged in (
        with_step(statement, CutItems, columns=("sex",)),
        with_step(statement, CutItems, items="sex"),
        with_step(statement, Recode, columns=()),
        replace(statement, roles={**statement.roles, "bought": "sensitive"}),
        replace(
            statement,
            basis=replace(
                statement.basis, guarantee=replace(statement.basis.guarantee, unit=Unit(Kind.PERSON, column="id"))
            ),
        ),
    ):
        assert CHECK.contradiction(forged) is not None


def test_a_table_without_rows_breaks_nothing(tmp_path: Path) -> None:
    statement = stated(POLICY, tmp_path)
    table = pa.table({name: pa.array([], pa.string()) for name in statement.released})
    looks = list(CHECK.inspect(statement, (file_of(table, tmp_path, "csv"),)))
    assert [(look.problem, look.otherwise) for look in looks][1] == (None, "there are no rows")


@given(st.lists(st.frozensets(st.sampled_from("abcd")), min_size=1, max_size=8), st.integers(1, 3))
def test_the_rarest_combination_is_counted_as_an_oracle_counts_it(sets: list[frozenset[str]], m: int) -> None:
    found: Counter[frozenset[str]] = Counter()
    for items in sets:
        for size in range(m + 1):
            found.update(map(frozenset, combinations(sorted(items), size)))
    assert rarest({(): Counter(sets)}, m) == min(found.values())
