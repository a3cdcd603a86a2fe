"""Measurements: guarantees from the question alone, answers with scripted and with real noise."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction

import numpy as np
import pytest

from incrowd.accounting import accountant
from incrowd.core.domain import Type
from incrowd.core.loss import Approximate, Laplace, Pure, Sampled, ZeroConcentrated
from incrowd.core.rounding import Number
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.vector_noise import AddCube, AddGaussianVector
from incrowd.noise.system import SystemCoins
from incrowd.noise.tails import CubeLaw
from incrowd.queries.answer import Answer
from incrowd.queries.measurement import measurement
from incrowd.queries.measuring.columns import NO_RANGE
from incrowd.queries.query import Aggregate, AggregateKind, Key, Value
from tests.coins import ScriptedCoins
from tests.queries.asked import AGE, EVERY, PERSON, ROW, WARD, Visit, answered, asked, terms

N = Aggregate("n", AggregateKind.ROWS)
TOTAL = Aggregate("total", AggregateKind.SUM, AGE)
MEDIAN = Aggregate("median", AggregateKind.QUANTILE, AGE, Fraction(1, 2))
MODE = Aggregate("mode", AggregateKind.MODE, Value("ward", Type.TEXT, choices=("a", "b"), optional=True))
VISITS: list[Visit] = [(i, "FM"[i % 2], "ab"[i % 3 == 0], float(i % 5)) for i in range(200)]
ONE = terms(epsilon=1)


def test_one_count_costs_what_laplace_noise_costs() -> None:
    assert measurement(asked((N,)), ROW, ONE).loss == Laplace(Fraction(1))
    assert measurement(asked((N,), unit=PERSON), PERSON, ONE).loss == Pure(Fraction(1))


def test_count_sum_and_mean_of_a_value_are_two_statistics_and_one_charge() -> None:
    value = Value("age", Type.INTEGER, Fraction(0), Fraction(4), optional=False)
    measured = measurement(
        asked((N, Aggregate("s", AggregateKind.SUM, value), Aggregate("m", AggregateKind.MEAN, value))), ROW, ONE
    )
    assert measured.sums.widths == (1, 2)
    assert measured.loss == Pure(Fraction(1))
    assert len(measured.statistics) == 1


def test_a_sum_alone_is_one_statistic_around_zero() -> None:
    measured = measurement(asked((TOTAL,)), ROW, ONE)
    assert measured.sums.widths == (4,)
    assert measured.expected[0].half_width == CubeLaw((1,), 1, Fraction(4)).within(0, 0.05)


def test_statistics_and_picks_share_epsilon_by_their_number() -> None:
    measured = measurement(asked((N, TOTAL, MEDIAN, MODE)), ROW, ONE)
    noise = measured.noise_choice.noise
    assert isinstance(noise, AddCube)
    assert (noise.epsilon, measured.noise_choice.pick) == (Fraction(1, 2), Fraction(1, 4))
    assert accountant.charge_of(measured.loss, 0).epsilon == 1
    assert len(measured.statistics) == 3


def test_picks_alone_need_no_sums() -> None:
    measured = measurement(asked((MEDIAN,)), ROW, ONE)
    assert measured.loss == Pure(Fraction(1))
    assert measured.noise_choice.noise is None
    answer = answered(asked((MEDIAN,)), terms(epsilon=50), VISITS, SystemCoins())
    assert answer.table.to_pylist()[:2] == [{"sex": "F", "median": 2}, {"sex": "M", "median": 2}]


def test_with_a_delta_the_narrower_noise_is_taken() -> None:
    few = measurement(asked((N,)), ROW, terms(epsilon=1, delta="1e-6"))
    assert isinstance(few.noise_choice.noise, AddCube)
    assert few.noise_choice.delta == 0
    many = tuple(
        Aggregate(f"a{i}", AggregateKind.SUM, Value(f"v{i}", Type.INTEGER, Fraction(0), Fraction(9))) for i in range(30)
    )
    measured = measurement(asked(many), ROW, terms(epsilon=1, delta="1e-2"))
    assert isinstance(measured.noise_choice.noise, AddGaussianVector)
    assert isinstance(measured.loss, ZeroConcentrated)
    assert accountant.charge_of(measured.loss, measured.plan.guarantee.delta).epsilon <= 1


def test_rho_is_paid_and_never_exceeded() -> None:
    measured = measurement(asked((N, TOTAL, MEDIAN)), ROW, terms(rho="0.1"))
    assert isinstance(measured.loss, ZeroConcentrated)
    assert Fraction(99, 1000) < measured.loss.rho <= Fraction(1, 10)
    assert measured.plan.claims[0].kind == "zero-concentrated differential privacy"


@pytest.mark.parametrize("error", [1, 10, 1000])
def test_an_error_is_met_at_nearly_the_least_epsilon(error: int) -> None:
    measured = measurement(asked((N,)), ROW, terms(error=error))
    spent = accountant.charge_of(measured.loss, 0).epsilon
    assert measured.expected[0].half_width is not None
    assert measured.expected[0].half_width <= error
    less = measurement(asked((N,)), ROW, terms(epsilon=Fraction(spent) * Fraction(99, 100)))
    assert less.expected[0].half_width is not None
    assert less.expected[0].half_width > error


def test_an_error_cannot_be_asked_of_means() -> None:
    with pytest.raises(InvalidParameter, match="counts and sums only"):
        measurement(asked((EVERY[3],)), ROW, terms(error=1))
    with pytest.raises(InvalidParameter, match="counts and sums only"):
        measurement(asked((MEDIAN,)), ROW, terms(error=1))


def test_unknown_groups_need_a_delta_and_pay_it_once() -> None:
    question = asked((TOTAL,), (WARD,))
    with pytest.raises(InvalidParameter, match="need"):
        measurement(question, ROW, ONE)
    measured = measurement(question, ROW, terms(epsilon=1, delta="1e-6"))
    assert measured.loss == Approximate(Fraction(1), Fraction(1, 10**6))
    assert measured.sums.counting is not None
    spend = accountant.charge_of(measured.loss, measured.plan.guarantee.delta)
    assert Fraction(spend.epsilon) == 1
    assert Fraction(spend.delta) == Fraction(1, 10**6)


@pytest.mark.parametrize("unit", [ROW, PERSON], ids=["row", "person"])
def test_a_group_that_only_one_unit_has_is_shown_with_chance_delta_at_most(unit: object) -> None:
    which = PERSON if unit is PERSON else ROW
    measured = measurement(asked((N, TOTAL), (WARD,), which), which, terms(epsilon=1, delta="1e-3"))
    noise, threshold, place = measured.noise_choice.noise, measured.noise_choice.threshold, measured.sums.counting
    assert isinstance(noise, AddCube)
    assert threshold is not None
    assert place is not None
    law, rows = noise.law, measured.question.contribution.rows
    q = float(1 / law.scale)
    J = np.arange(0, int(200 * law.scale))
    half = [np.floor(J * width / law.fine) for width in law.widths]
    weights = np.prod([2 * h + 1 for h in half], axis=0) * np.exp(-J * q)
    tail = np.maximum(half[place] - (threshold.least - rows) + 1, 0) / (2 * half[place] + 1)
    chance = float((weights * tail).sum() / weights.sum())
    assert measured.question.contribution.groups * chance <= 1e-3
    assert measured.question.contribution.groups * chance > 2e-4


def test_groups_below_the_threshold_are_not_shown_and_the_others_are_sorted() -> None:
    measured = measurement(asked((N,), (WARD,)), ROW, terms(epsilon=1, delta="1e-6"))
    assert measured.noise_choice.threshold is not None
    assert measured.noise_choice.threshold.least == 15
    wards: list[str | None] = ["b"] * 20 + ["rare"] + ["a"] * 30 + [None] * 15
    visits: list[Visit] = [(i, None, ward, None) for i, ward in enumerate(wards)]
    answer = answered(
        asked((N,), (WARD,)), terms(epsilon=1, delta="1e-6"), visits, ScriptedCoins(laplace=[0, 0, -1, 13])
    )
    assert answer.table.to_pylist() == [{"ward": None, "n": 15}, {"ward": "a", "n": 30}, {"ward": "b", "n": 19}]


def test_all_public_groups_are_answered_present_or_not_in_their_order() -> None:
    answer = answered(asked((N,)), ONE, [(1, "M", None, None), (2, "X", None, None)], ScriptedCoins(laplace=[5, -2, 0]))
    assert answer.table.to_pylist() == [{"sex": "F", "n": 5}, {"sex": "M", "n": 0}, {"sex": None, "n": 0}]


def test_estimates_are_held_within_their_intervals_and_what_is_possible() -> None:
    coins = ScriptedCoins(laplace=[-20, -2, 3])
    for row in answered(asked((N,)), ONE, [], coins).rows():
        assert 0 <= row["n_low"] <= row["n"] <= row["n_high"]
    found = answered(asked(EVERY, keys=()), ONE, [], ScriptedCoins(cube=[-3, -5, -30, -40])).rows()[0]
    assert all(found[f"{each.name}_low"] <= found[each.name] <= found[f"{each.name}_high"] for each in EVERY)
    assert found["total"] == found["n"] == found["present"] == 0
    assert found["total_low"] == 0


def test_computed_numbers_are_held_within_their_intervals() -> None:
    outputs = {"double": "2 * n", "less": "n - total", "share": "total / (n + 1)"}
    for _ in range(20):
        answer = answered(asked((N, TOTAL), outputs=outputs), ONE, VISITS[:3], SystemCoins())
        for row in answer.rows():
            for name in outputs:
                low, high = row[f"{name}_low"], row[f"{name}_high"]
                assert low is None or low <= row[name] <= high
            assert row["double"] >= 0


def test_groups_that_having_or_limit_chose_by_noise_say_so() -> None:
    chosen = "in fewer of those that were chosen"
    for rest in ("HAVING n > 3", "ORDER BY n LIMIT 1", "ORDER BY double DESC LIMIT 1"):
        answer = answered(asked((N,), outputs={"double": "2 * n"}, rest=rest), ONE, VISITS, SystemCoins())
        assert [column.note.endswith(chosen) for column in answer.columns] == [False, True, True]
    for rest in ("HAVING sex = 'F'", "ORDER BY n", "ORDER BY sex LIMIT 1"):
        answer = answered(asked((N,), outputs={"double": "2 * n"}, rest=rest), ONE, VISITS, SystemCoins())
        assert not any(chosen in column.note for column in answer.columns)


def test_what_has_no_interval_says_so() -> None:
    outputs = {"rest": "n % 7", "middle": "median + 1", "text": "UPPER(sex)"}
    answer = answered(asked((N, MEDIAN), outputs=outputs), ONE, VISITS, SystemCoins())
    notes = {column.name: column.note for column in answer.columns if column.low is None}
    assert set(notes) == {"sex", "median", *outputs}
    assert notes["median"].startswith("no interval of values: in 95 % of groups")
    assert notes["rest"] == notes["middle"] == NO_RANGE


def test_what_is_expected_names_the_worst_case_and_the_typical_one() -> None:
    value = Value("age", Type.INTEGER, Fraction(0), Fraction(100), optional=False)
    kinds = (AggregateKind.MEAN, AggregateKind.VARIANCE, AggregateKind.DEVIATION)
    for kind in kinds:
        (told,) = measurement(asked((Aggregate("x", kind, value),), keys=()), ROW, ONE).expected
        assert [size for size, _ in told.by_size] == [size for size, _ in told.typical] == [10, 100, 1000, 10_000]
        assert told.to_json()["typical"]["of"] == "values spread evenly over their bounds"
        assert told.by_size[2][1] > (5 if kind is AggregateKind.DEVIATION else 1.2) * told.typical[2][1]


def test_groups_near_a_threshold_are_said_to_be_known_less_well() -> None:
    measured = measurement(asked((N, TOTAL, EVERY[3]), (WARD,)), ROW, terms(epsilon=1, delta="1e-6"))
    least = measured.steps[5].to_json()["least"]
    for each in measured.expected:
        assert f"groups are shown from {least} on" in each.note
    assert all(size > least for size, _ in measured.expected[2].by_size)


def test_a_table_without_rows_is_answered_like_any_other() -> None:
    for question in (asked((N,)), asked(EVERY, keys=()), asked((MEDIAN, MODE))):
        assert answered(question, ONE, [], SystemCoins()).table.num_rows in (1, 3)
    unknown = asked((*EVERY, MEDIAN, MODE), (WARD,), outputs={"x": "n / total"}, rest="ORDER BY n")
    answer = answered(unknown, terms(epsilon=1, delta="1e-6"), [], SystemCoins())
    assert answer.table.num_rows == 0
    assert Answer.from_json(answer.to_json()).table.column_names == answer.table.column_names


def test_estimates_without_noise_are_those_of_the_rows() -> None:
    rows: list[Visit] = [(i, "F", None, value) for i, value in enumerate((0.0, 1.0, 1.0, 4.0, None))]
    quiet = ScriptedCoins(cube=[0] * 4)
    found = answered(asked(EVERY, keys=()), ONE, rows, quiet).table.to_pylist()[0]
    assert found == {
        "n": 5,
        "present": 4,
        "total": 6,
        "mean": 1.5,
        "variance": pytest.approx(3.0),
        "deviation": pytest.approx(3.0**0.5),
    }


def test_having_order_and_limit_work_on_the_noisy_answer() -> None:
    question = asked(
        (N,),
        outputs={"double": "2 * n", "odd": "1 / (n - 7)"},
        rest="HAVING n > 0 ORDER BY double DESC LIMIT 2 OFFSET 1",
    )
    answer = answered(question, ONE, [], ScriptedCoins(laplace=[3, -9, 7]))
    assert answer.table.to_pylist() == [{"sex": "F", "n": 3, "double": 6, "odd": -0.25}]
    everything = asked((N,), outputs={"odd": "1 / (n - 7)"}, rest="ORDER BY n DESC")
    found = answered(everything, ONE, [], ScriptedCoins(laplace=[3, -9, 7])).table.to_pylist()
    assert [row["odd"] for row in found] == [None, -0.25, -1 / 7]


def test_what_cannot_be_computed_from_the_answer_is_refused_before_a_row_is_read() -> None:
    with pytest.raises(InvalidParameter, match="not part of the answer"):
        measurement(asked((N,), outputs={"x": "age + 1"}), ROW, ONE)
    with pytest.raises(InvalidParameter, match="is not computed on answers"):
        measurement(asked((N,), outputs={"x": "RANDOM()"}), ROW, ONE)


def test_values_without_bounds_are_refused_with_the_way_out() -> None:
    for kind in (AggregateKind.SUM, AggregateKind.MEAN, AggregateKind.QUANTILE):
        with pytest.raises(InvalidParameter, match="CLAMP"):
            measurement(asked((Aggregate("x", kind, Value("age", Type.DECIMAL)),)), ROW, ONE)


def test_people_are_counted_only_where_the_unit_is_a_person() -> None:
    with pytest.raises(InvalidParameter, match="person"):
        measurement(asked((Aggregate("p", AggregateKind.PEOPLE),)), ROW, ONE)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"error": -1},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "rate": 1},
    ],
)
def test_terms_that_mean_nothing_are_refused(wrong: dict[str, Number]) -> None:
    with pytest.raises(InvalidParameter):
        terms(**wrong)


def test_picks_find_their_values_at_a_generous_epsilon() -> None:
    day = Value("age", Type.DATE, Fraction(0), Fraction(400), optional=True)
    assert day.low is not None
    aggregates = (MEDIAN, MODE, Aggregate("low", AggregateKind.QUANTILE, AGE, Fraction(0)))
    found = answered(asked(aggregates, keys=()), terms(epsilon=200), VISITS, SystemCoins()).table.to_pylist()[0]
    assert found == {"median": 2, "mode": "a", "low": 0}


def test_dates_come_back_as_dates() -> None:
    value = Value("born", Type.DATE, Fraction(0), Fraction(40_000), optional=True)
    pick = measurement(
        asked((Aggregate("m", AggregateKind.QUANTILE, value, Fraction(1, 2)),), keys=()), ROW, ONE
    ).picks[0]
    assert pick.candidates.column(np.array([0, 366])).to_pylist() == [date(1970, 1, 1), date(1971, 1, 2)]


def test_an_answer_survives_its_plain_form() -> None:
    key = Key("day", Type.DATE, (date(2020, 1, 1), None))
    question = asked((N, MODE), (key,))
    measured = measurement(question, ROW, ONE)
    assert measured.steps[-1].kind == "answer"
    answer = answered(asked((N, MODE)), ONE, VISITS, SystemCoins())
    assert Answer.from_json(answer.to_json()) == answer
    assert answer.to_arrow().column_names == ["sex", "n", "n_low", "n_high", "mode"]


def test_the_guarantee_and_its_plain_form_hold_no_rows() -> None:
    measured = measurement(asked((N, MEDIAN), (WARD,)), ROW, terms(epsilon=1, delta="1e-6"))
    guarantee = measured.plan.guarantee
    assert type(guarantee).from_json(guarantee.to_json()) == guarantee
    assert [step.kind for step in measured.steps] == [
        "understand",
        "bound what one unit contributes",
        "group",
        "add up",
        "Laplace noise",
        "threshold",
        "pick",
        "answer",
    ]


def test_noise_that_could_not_be_drawn_is_refused_before_a_row_is_read() -> None:
    wide = Aggregate("s", AggregateKind.SUM, Value("age", Type.INTEGER, Fraction(0), Fraction(2**30)))
    for aggregates in ((wide,), (N, wide)):
        for paid in (terms(epsilon="1e-6"), terms(rho="1e-14")):
            with pytest.raises(InvalidParameter, match="wide"):
                measurement(asked(aggregates), ROW, paid)
    many = tuple(
        Aggregate(f"a{i}", AggregateKind.SUM, Value(f"v{i}", Type.INTEGER, Fraction(0), Fraction(9))) for i in range(65)
    )
    with pytest.raises(InvalidParameter, match="64"):
        measurement(asked(many), ROW, ONE)
    assert isinstance(measurement(asked(many), ROW, terms(rho=1)).noise_choice.noise, AddGaussianVector)
    assert isinstance(
        measurement(asked(many), ROW, terms(epsilon=1, delta="1e-6")).noise_choice.noise, AddGaussianVector
    )


def test_a_secret_sample_pays_for_less_noise() -> None:
    plain, sampled = (measurement(asked((N, TOTAL)), ROW, terms(epsilon=1, **rate)) for rate in ({}, {"rate": "0.1"}))
    assert isinstance(sampled.loss, Sampled)
    assert Fraction(99, 100) < Fraction(accountant.charge_of(sampled.loss, 0).epsilon) <= 1
    assert isinstance(plain.noise_choice.noise, AddCube)
    assert isinstance(sampled.noise_choice.noise, AddCube)
    assert sampled.noise_choice.noise.epsilon > 2 * plain.noise_choice.noise.epsilon
    assert "sample" in [step.kind for step in sampled.steps]
    assert sampled.expected[0].by_size


def test_a_secret_sample_is_refused_where_it_does_not_stand_in_front() -> None:
    for question, unit, paid in (
        (asked((N,), unit=PERSON), PERSON, terms(epsilon=1, rate="0.1")),
        (asked((N,), (WARD,)), ROW, terms(epsilon=1, delta="1e-6", rate="0.1")),
        (asked((N,)), ROW, terms(rho=1, rate="0.1")),
        (asked((N,)), ROW, terms(error=1, rate="0.1")),
    ):
        with pytest.raises(InvalidParameter, match="secret sample"):
            measurement(question, unit, paid)


def test_counts_from_a_sample_are_scaled_up() -> None:
    found = answered(asked((N,), keys=()), terms(epsilon=1, rate="0.1"), VISITS[:20], ScriptedCoins(laplace=[1]))
    assert found.table.to_pylist() == [{"n": 210}]


def test_a_secret_sample_is_drawn_of_one_table_only() -> None:
    question = replace(asked((N,)), tables=("visits", "wards"))
    with pytest.raises(InvalidParameter, match="one table"):
        measurement(question, ROW, terms(epsilon=1, rate="0.1"))
