"""The optimal generalization of whole columns as a method: what it releases is what the search found."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Text
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.hierarchy.tree import tree
from incrowd.core.loss import Syntactic
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.full_domain import FullDomain
from incrowd.methods.shared.microdata import Generalized
from incrowd.noise.system import SystemCoins
from tests.tables import Batches

CITY = Column("city", Role.QUASI, hierarchy=tree({"north": ["Oslo", "Bergen"], "south": ["Rome", "Bari"]}))
SEX = Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))))
ILL = Column("ill", Role.SENSITIVE, hierarchy=Flat(Categories(("flu", "gout", "none"))))
SCHEMA = Schema((CITY, SEX, ILL))
Row = tuple[str, str, str]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["Oslo", "Bergen", "Rome", "Bari"]),
        st.sampled_from(["F", "M"]),
        st.sampled_from(["flu", "gout", "none"]),
    ),
    min_size=1,
    max_size=14,
)


def released(method: FullDomain, rows: list[Row], schema: Schema = SCHEMA) -> Generalized:
    names = [column.name for column in schema.columns]
    columns = {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate(names)}
    return method.release(Table(schema, Batches(pa.table(columns)), LocalEngine()), SystemCoins())


def shown(outcome: Generalized) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in outcome.to_arrow().to_pylist()]


def slowly(rows: list[Row], k: int, l: int, allowed: int) -> float | None:  # noqa: E741
    """Try every combination of levels and return the least loss, or None."""
    regions = {"Oslo": "north", "Bergen": "north", "Rome": "south", "Bari": "south"}
    losses = {0: 0.0, 1: 1 / 3, 2: 1.0}
    best = None
    for city, sex in product(range(3), range(2)):
        labels = [((row[0], regions[row[0]], "*")[city], (row[1], "*")[sex]) for row in rows]
        classes = {label: [row[2] for row, of in zip(rows, labels, strict=True) if of == label] for label in labels}
        gone = sum(len(ill) for ill in classes.values() if len(ill) < k or len(set(ill)) < l)
        if gone > allowed:
            continue
        kept = len(rows) - gone
        loss = (kept * (losses[city] + (1.0 if sex else 0.0)) + gone * 2.0) / (2 * len(rows))
        best = loss if best is None else min(best, loss)
    return best


@given(ROWS, st.integers(1, 4), st.integers(1, 3), st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1)]))
@settings(max_examples=80, deadline=None)
def test_what_is_released_meets_the_demands_at_the_least_loss(rows: list[Row], k: int, l: int, share: Fraction) -> None:  # noqa: E741
    method = FullDomain(k, l=l, suppression=share)
    outcome = released(method, rows)
    best = slowly(rows, k, l, int(share * len(rows)))
    if best is None:
        assert len(outcome) == 0
        return
    left, losses = shown(outcome), {0: 0.0, 1: 1 / 3, 2: 1.0}
    classes = {row[:2]: [other[2] for other in left if other[:2] == row[:2]] for row in left}
    assert all(len(ill) >= k and len(set(ill)) >= l for ill in classes.values())
    gone = len(rows) - len(left)
    assert gone <= share * len(rows)
    each = losses[outcome.levels["city"]] + float(outcome.levels["sex"])
    assert (len(left) * each + gone * 2.0) / (2 * len(rows)) == pytest.approx(best)


def test_labels_are_true_of_their_rows_and_sensitive_values_stay() -> None:
    rows: list[Row] = [("Oslo", "F", "flu"), ("Bergen", "F", "gout"), ("Rome", "F", "flu"), ("Bari", "F", "none")]
    outcome = released(FullDomain(2), rows)
    assert outcome.levels == {"city": 1, "sex": 0}
    assert shown(outcome) == [
        ("north", "F", "flu"),
        ("north", "F", "gout"),
        ("south", "F", "flu"),
        ("south", "F", "none"),
    ]


def test_the_guarantee_is_a_form_and_has_no_epsilon() -> None:
    guarantee = FullDomain(5, l=2).plan(SCHEMA).guarantee
    assert guarantee.loss == Syntactic("k-anonymity", (("k", "5"), ("l", "2")))
    kinds = [claim.kind for claim in FullDomain(5, l=2, t=Fraction(1, 5)).plan(SCHEMA).claims]
    assert kinds == ["k-anonymity", "distinct l-diversity", "t-closeness"]
    for claim in FullDomain(5).plan(SCHEMA).claims:
        assert any("minimality" in text for text in map(str, claim.not_protected))
        assert any("homogeneity" in text for text in map(str, claim.not_protected))


def test_open_text_is_searched_above_its_values() -> None:
    schema = Schema((Column("zip", Role.QUASI, hierarchy=Prefix(Text(), (3, 1))),))
    rows = [("02139",), ("02138",), ("94110",), ("94301",)]
    outcome = released(FullDomain(2, lowest={"zip": 1}), rows, schema)  # type: ignore[arg-type]
    assert outcome.levels == {"zip": 2}
    with pytest.raises(InvalidParameter, match="free text"):
        FullDomain(2).plan(schema)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"k": 0}, "at least 1"),
        ({"k": 2, "suppression": Fraction(2)}, "from 0 to 1"),
        ({"k": 2, "quality": "beauty"}, "one of loss"),
        ({"k": 2, "quality": "height", "importance": {"sex": Fraction(2)}}, "loss and precision only"),
        ({"k": 2, "seconds": Fraction(0)}, "positive"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        FullDomain(**given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"lowest": {"ill": 1}}, "not a quasi-identifier"),
        ({"levels": {"sex": 1}}, "is searched for"),
        ({"lowest": {"sex": 1}, "highest": {"sex": 0}}, "run from 0 to 1"),
    ],
)
def test_levels_that_cannot_be_are_refused_before_anything_is_read(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        FullDomain(2, **given).plan(SCHEMA)
