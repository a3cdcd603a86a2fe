"""Cell suppression as a method: rows keep all but some cells, and coins decide among equals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.loss import Syntactic
from incrowd.core.schema import Column, Missing, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.cell_suppression.method import CellSuppression
from incrowd.methods.shared.microdata import Blanked
from incrowd.noise.system import SystemCoins
from tests.tables import Batches

SEX = Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))))
AGE = Column("age", Role.QUASI, Type.INTEGER, hierarchy=Intervals(Numbers(0, 99), (10, 50)))
ILL = Column("ill", Role.SENSITIVE, hierarchy=Flat(Categories(("flu", "gout"))))
SCHEMA = Schema((ILL, SEX, AGE))
Row = tuple[str | None, str | None, str | None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["flu", "gout", None]), st.sampled_from(["F", "M", None]), st.sampled_from(["20", "21", "70"])
    ),
    min_size=1,
    max_size=16,
)


def released(method: CellSuppression, rows: Sequence[Row], schema: Schema = SCHEMA) -> Blanked:
    columns = {
        column.name: pa.array([row[place] for row in rows], pa.string()) for place, column in enumerate(schema.columns)
    }
    return method.release(Table(schema, Batches(pa.table(columns)), LocalEngine()), SystemCoins())


def shown(outcome: Blanked) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in outcome.to_arrow().to_pylist()]


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(1, 4))
def test_every_combination_occurs_k_times_and_sensitive_columns_stay(rows: list[Row], k: int) -> None:
    outcome = released(CellSuppression(k), rows)
    if len(rows) < k:
        assert len(outcome) == 0
        return
    left = shown(outcome)
    assert min(Counter(row[1:] for row in left).values()) >= k
    assert outcome.sizes.min() >= k
    assert Counter(row[0] for row in left) == Counter(row[0] for row in rows)
    known = Counter((ill, sex, None if age is None else int(age)) for ill, sex, age in rows)
    for row in left:
        assert any(
            row[0] == one[0] and all(cell in (None, was) for cell, was in zip(row[1:], one[1:], strict=True))
            for one in known
        )
    told = outcome.evidence(SCHEMA.unit, private=False)
    assert told["missing cells by column"] == {
        "sex": sum(row[1] is None for row in left),
        "age": sum(row[2] is None for row in left),
    }


def test_numbers_stay_numbers_and_columns_keep_their_order() -> None:
    table = released(CellSuppression(2), [("flu", "F", "20"), ("flu", "F", "21")]).to_arrow()
    assert table.column_names == ["ill", "sex", "age"]
    assert pa.types.is_integer(table.schema.field("age").type)
    assert table.to_pylist() == [{"ill": "flu", "sex": "F", "age": None}] * 2


def test_levels_are_applied_before_cells_are_left_out() -> None:
    outcome = released(CellSuppression(2, levels={"age": 1}), [("flu", "F", "20"), ("flu", "F", "21")])
    assert shown(outcome) == [("flu", "F", "[20, 30)")] * 2


def test_coins_decide_which_of_several_equal_rows_lose_cells() -> None:
    """One of twenty must join the lonely row; whether that one has the flu or gout is left to chance."""
    rows = [("flu", "F", "20")] * 10 + [("gout", "F", "20")] * 10 + [("flu", "M", "20")]
    joined = set()
    for _ in range(60):
        empty = Counter(row[0] for row in shown(released(CellSuppression(2), rows)) if row[1] is None)
        assert empty.total() == 2
        joined.add(empty["gout"])
    assert joined == {0, 1}


def test_missing_that_matches_leaves_out_fewer_cells_and_says_so() -> None:
    rows = [("flu", "F", "20")] * 4 + [("flu", "F", "21")]
    strict, wild = released(CellSuppression(5), rows), released(CellSuppression(5, missing="matches"), rows)
    assert (strict.missing["age"], wild.missing["age"]) == (5, 1)
    claim = CellSuppression(5, missing="matches").plan(SCHEMA).claims[0]
    assert claim.kind == "k-anonymity with wildcards"
    assert any(text.startswith("matching:") for text in map(str, claim.not_protected))
    assert any(text.startswith("optimism:") for text in map(str, claim.not_protected))
    assert CellSuppression(5).plan(SCHEMA).claims[0].kind == "k-anonymity"
    assert wild.evidence(SCHEMA.unit, private=False)["smallest class"] == 1


def test_a_value_that_was_missing_may_stand_for_one_even_where_it_is_no_class() -> None:
    filled = Schema((ILL, SEX, Column("age", Role.QUASI, Type.INTEGER, AGE.hierarchy, missing=Missing.DROP)))
    outcome = released(CellSuppression(2), [("flu", "F", "20"), ("flu", "F", "21"), ("flu", "F", None)], filled)
    assert shown(outcome) == [("flu", "F", None)] * 2


def test_the_guarantee_names_the_sense_of_missing_and_every_subset() -> None:
    guarantee = CellSuppression(3, missing="matches", subsets={1: 9}).plan(SCHEMA).guarantee
    assert guarantee.loss == Syntactic("k-anonymity with wildcards", (("k", "3"), ("k of any 1", "9")))
    kinds = [(each.kind, each.parameters["k"]) for each in CellSuppression(1, subsets={1: 9}).plan(SCHEMA).claims]
    assert kinds == [("k-anonymity of subsets", 9)]
    people = Schema((*SCHEMA.columns, Column("id", Role.IDENTIFIER)), Unit(Kind.PERSON, column="id", max_rows=2))
    assert CellSuppression(5).plan(people).claims[0].parameters["people"] == 3


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"k": 0}, "at least 1"),
        ({"k": 2, "subsets": {2: 0}}, "at least 1"),
        ({"k": 2, "subsets": {0: 2}}, "1 or more"),
        ({"k": 2, "missing": "guess"}, "a value or it matches"),
        ({"k": 2, "importance": {"sex": Fraction(0)}}, "above 0"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        CellSuppression(**given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"importance": {"ill": Fraction(2)}}, "not a quasi-identifier"),
        ({"subsets": {3: 2}}, "no subsets of 3"),
        ({"levels": {"age": 9}}, "levels"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused_before_anything_is_read(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        CellSuppression(2, **given).plan(SCHEMA)


def test_a_schema_without_quasi_identifiers_or_with_free_text_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="role quasi"):
        CellSuppression(2).plan(Schema((ILL,)))
    with pytest.raises(InvalidParameter, match="free text"):
        CellSuppression(2).plan(Schema((SEX, Column("name", Role.QUASI))))
