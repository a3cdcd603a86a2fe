"""PRAM: its matrices against the reference, its draws, its price by enumeration, and unbiased estimates."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.loss import Pure, Syntactic
from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.pram.channel import Matrix, invariant, logarithm_up, ratio, staying
from incrowd.methods.perturbation.pram.method import Change, Pram
from incrowd.methods.perturbation.shared.frame import RowFrame
from incrowd.methods.perturbation.shared.masks import MaskInput
from incrowd.noise.system import SystemCoins
from incrowd.workflows.estimate import estimate
from incrowd.workflows.policy.policy import load_policy
from tests.coins import ScriptedCoins
from tests.statistics.alarm import FALSE_ALARM

REFERENCE: Matrix = tuple(
    tuple(map(Fraction, row)) for row in (("7/10", "1/5", "1/10"), ("1/10", "4/5", "1/10"), ("1/5", "1/5", "3/5"))
)
COVARIANCE = [["79/25", "-23/15", "-122/75"], ["-23/15", "8/3", "-17/15"], ["-122/75", "-17/15", "69/25"]]
INVARIANT = [
    ["3659/5500", "856/4125", "2099/16500"],
    ["428/1375", "2308/4125", "533/4125"],
    ["2099/5500", "1066/4125", "5939/16500"],
]


def test_the_price_is_the_largest_ratio_within_a_column() -> None:
    assert ratio(REFERENCE) == 7
    assert ratio(((Fraction(1), Fraction(0)), (Fraction(1, 2), Fraction(1, 2)))) is None


def test_estimates_have_the_covariance_of_the_reference() -> None:
    probabilities = np.array([[float(each) for each in row] for row in REFERENCE])
    released = probabilities.T @ np.array([3.0, 2.0, 1.0])
    found = estimate(REFERENCE, released)
    assert np.allclose(found.counts, [3, 2, 1])
    assert np.allclose(found.covariance, [[float(Fraction(each)) for each in row] for row in COVARIANCE])


def test_the_invariant_matrix_is_that_of_the_reference_and_keeps_frequencies() -> None:
    shares = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    made = invariant(REFERENCE, shares)
    expected = [[float(Fraction(each)) for each in row] for row in INVARIANT]
    assert np.allclose([[float(each) for each in row] for row in made], expected, atol=1e-10)
    kept = [sum(shares[k] * made[k][column] for k in range(3)) for column in range(3)]
    assert all(abs(a - b) < Fraction(3, 2**40) for a, b in zip(kept, shares, strict=True))
    assert all(sum(row) == 1 for row in made)


@given(st.fractions(min_value=1, max_value=10**9, max_denominator=10**6))
def test_logarithms_are_never_below(value: Fraction) -> None:
    found = logarithm_up(value)
    assert float(found) == pytest.approx(math.log(value), abs=1e-12)
    assert math.exp(found) >= float(value) * (1 - 1e-14)


def policy(columns: dict[str, Any], changes: dict[str, Any], unit: dict[str, Any] | None = None) -> Any:
    return load_policy(
        {
            "incrowd": 1,
            "dataset": {"name": "x", "unit": unit or {"adjacency": "replace-one"}},
            "columns": columns,
            "release": {"method": "pram", "columns": changes},
            "budget": {"unbounded": "a test", "epsilon": 9},
        }
    )


SEX = {"sex": {"categories": ["F", "M"]}}
TWO = SEX | {"ill": {"categories": ["no", "yes"]}}


def test_no_output_is_likelier_by_more_than_the_guarantee_for_any_two_records() -> None:
    """Every pair of records over two columns, by the very weights that are drawn from."""
    read = policy(TWO, {"sex": {"stay": "3/5"}, "ill": {"stay": "7/10"}})
    loss = read.plan.guarantee.loss
    assert isinstance(loss, Pure)
    step = read.method.step(read.schema)
    laws = []
    for record in product(range(4), range(4)):
        one, two = (channel.probabilities[code] for channel, code in zip(step.channels, record, strict=True))
        laws.append({(a, b): one[a] * two[b] for a, b in product(range(4), range(4))})
    worst = max(one[out] / other[out] for one in laws for other in laws for out in one)
    assert math.exp(loss.epsilon) == pytest.approx(float(worst))
    assert loss.epsilon >= Fraction(math.log(worst)) - Fraction(1, 10**14)


@pytest.mark.parametrize(
    ("columns", "changes", "unit"),
    [
        (TWO, {"sex": {"stay": "3/5"}}, None),
        (SEX, {"sex": {"stay": "3/5"}}, {"adjacency": "add-remove"}),
        (SEX, {"sex": {"stay": "1"}}, None),
        (SEX, {"sex": {"stay": "3/5", "invariant": True}}, None),
        ({"sex": SEX["sex"] | {"missing": "drop"}}, {"sex": {"stay": "3/5"}}, None),
        ({"sex": SEX["sex"] | {"derived": "rows"}}, {"sex": {"stay": "3/5"}}, None),
        (
            SEX | {"id": {"role": "identifier"}},
            {"sex": {"stay": "3/5"}},
            {"column": "id", "max_rows": 2, "adjacency": "replace-one"},
        ),
        (
            SEX | {"id": {"role": "identifier"}},
            {"sex": {"stay": "3/5"}},
            {"column": "id", "more": "drop", "adjacency": "replace-one"},
        ),
    ],
)
def test_there_is_no_epsilon_where_something_shows_through(columns: Any, changes: Any, unit: Any) -> None:
    plan = policy(columns, changes, unit).plan
    assert isinstance(plan.guarantee.loss, Syntactic)
    assert not any("differential" in claim.kind for claim in plan.claims)


def test_public_margins_make_an_invariant_matrix_with_a_price() -> None:
    change = {"sex": {"stay": "3/5", "invariant": True, "margins": ["1/2", "1/4", "1/8", "1/8"]}}
    plan = policy(SEX, change).plan
    assert isinstance(plan.guarantee.loss, Pure)
    assert plan.steps[-2].channels[0].matrix is not None


def test_draws_follow_the_matrix() -> None:
    """Of 30,000 draws a cell of probability p misses n·p by more than 5.5 standard deviations with chance 4e-8."""
    assert 18 * math.erfc(5.5 / math.sqrt(2)) < FALSE_ALARM
    rows = 30000
    schema = policy({"c": {"categories": ["a", "b"]}}, {"c": {"stay": "1/2"}}).schema
    change = Change(matrix=(*((*row, Fraction(0)) for row in REFERENCE), (Fraction(0),) * 3 + (Fraction(1),)))
    for place, name in enumerate(["a", "b", "other"]):
        frame = RowFrame(pa.table({"c": pa.array([name] * rows)}))
        found = Counter(Pram({"c": change}).masked(MaskInput(frame, schema, SystemCoins())).values("c").to_pylist())
        for other, label in enumerate(["a", "b", "other"]):
            p = float(REFERENCE[place][other])
            assert abs(found[label] - rows * p) < 5.5 * math.sqrt(rows * p * (1 - p))


def test_categories_change_within_their_class_only() -> None:
    blocks = staying(Fraction(1, 2), (0, 0, 1, 1, 1))
    assert blocks[0][2] == 0
    assert blocks[2][3] == Fraction(1, 4)
    columns = {"region": {"hierarchy": {"tree": {"A": ["A1", "A2"], "B": ["B1", "B2"]}}}}
    read = policy(columns, {"region": {"stay": "1/2", "within": 1}})
    frame = RowFrame(pa.table({"region": ["A1"] * 200 + ["B1"] * 200}))
    after = read.method.masked(MaskInput(frame, read.schema, SystemCoins())).values("region").to_pylist()
    assert {each[0] for each in after[:200]} == {"A"}
    assert {each[0] for each in after[200:]} == {"B"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "either stay"),
        ({"stay": "1/2", "matrix": [["1"]]}, "either stay"),
        ({"matrix": [["1", "0"], ["0", "1"]]}, "4 categories"),
        ({"matrix": [["1/2", "1/3", "0", "0"]] * 4}, "adds up to 5/6"),
        ({"matrix": [["1/2", "1/3", "0", "0"]] * 4, "invariant": True}, "adds up to 5/6"),
        ({"stay": "1/2", "invariant": True, "margins": ["1"]}, "add up to 1"),
        ({"stay": "1/2", "across": ["ill"], "within": 1}, "alone"),
    ],
)
def test_what_is_no_matrix_is_refused(change: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        policy(TWO, {"sex": change}).plan  # noqa: B018


def test_frequencies_are_claimed_only_where_they_can_be_estimated() -> None:
    """Of four categories, a stay of 1/4 spreads every one evenly: nothing is left to estimate from."""
    claims = policy(SEX, {"sex": {"stay": "1/4"}}).plan.claims
    assert not any(claim.kind == "preserved statistics" for claim in claims)
    with pytest.raises(InvalidParameter, match="cannot be inverted"):
        estimate(staying(Fraction(1, 4), (0, 0, 0, 0)), np.array([1, 2, 3, 4]))


BITS = {name: {"type": "integer", "bounds": [0, 1], "missing": "0"} for name in "ab"}
FAIR = {"method": "pram", "columns": {"a": {"stay": "1/2"}, "b": {"stay": "1/2"}}}


def chain(*steps: Any) -> Any:
    plain = {"incrowd": 1, "dataset": {"name": "x", "unit": {"adjacency": "replace-one"}}, "columns": BITS}
    return load_policy(plain | {"release": list(steps), "budget": {"epsilon": 9}})


def test_what_follows_breaks_ties_by_the_changed_rows_alone() -> None:
    """Fair coins guarantee an ε of 0: whatever was true, the same changed rows become the same table."""
    grouped = {"method": "microaggregation", "columns": ["a"], "k": 3, "grouping": "univariate"}
    read, changed = chain(FAIR, grouped), [(0, 0), (0, 1), (0, 0), (0, 1), (0, 0), (1, 0)]
    assert read.plan.guarantee.loss == Pure(Fraction(0))
    found = set()
    for truth in product([(0, 0), (1, 1)], repeat=6):
        order = sorted(range(6), key=truth.__getitem__)
        script = [
            changed[row][place] for place in range(2) for bit in (0, 1) for row in order if truth[row][place] == bit
        ]
        rows = pa.table({name: [record[place] for record in truth] for place, name in enumerate("ab")})
        shown = read.plan.release(Table(read.schema, LOCAL.open(rows), LOCAL), ScriptedCoins(below=script)).to_arrow()
        found.add(tuple(map(tuple, shown.to_pydict().values())))
    assert len(found) == 1


@pytest.mark.parametrize(
    "step",
    [
        {"method": "coding", "columns": {"a": {"top": "1/2"}}},
        {"method": "coding", "columns": {"a": {"bottom": -3, "top": 0}}},
        {"method": "rounding", "columns": {"a": 5}},
        {"method": "noise", "columns": ["a"]},
    ],
)
def test_a_step_before_that_makes_values_without_probabilities_is_refused(step: Any) -> None:
    """Else whether some row has such a value decides, after the charge, whether anything can be released."""
    with pytest.raises(InvalidParameter, match="may show others"):
        chain(step, FAIR).plan  # noqa: B018
    assert chain({"method": "coding", "columns": {"a": {"top": 0}}}, FAIR).plan.guarantee.loss == Pure(Fraction(0))
