"""Li, Qardaji and Su 2010, "Provably private data anonymization": its numbers, and what must not be believed in it."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.suppression.binomial import log_upper_tail
from incrowd.accounting.suppression.inverses import largest_rate, smallest_epsilon, smallest_k
from incrowd.accounting.suppression.loss_distribution import (
    LossDistribution,
    Part,
    ProfilePair,
    composed_delta,
    distributions,
    randomized_response,
)
from incrowd.accounting.suppression.theorems import SmoothGuarantee, log_theorem1_delta, theorem1_delta, theorem6_delta
from incrowd.accounting.suppression.tight_delta import SHIFTED, delta, log_delta, worst_size_add, worst_size_remove
from incrowd.core.unit import Adjacency
from incrowd.errors import Infeasible, InvalidParameter
from tests.theorems.exact_laws import Law, bad_mass, binomial, e_to_the, excess, published_count
from tests.theorems.li_2010 import (
    PRODUCT,
    divergence_delta,
    log_delta_add,
    log_delta_remove,
    replace_bounds,
    theorem1_smallest_epsilon,
    theorem1_smallest_k,
)

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors_li.json").read_text())
EXCESS = 1e-10  # how much larger than the truth a reported loss may be, relatively


def named(row: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={row[name]}" for name in ("k", "rate", "epsilon", "delta", "times", "parts") if name in row
    )


def rows(key: str, inner: str | None = None) -> Any:
    chosen = VECTORS[key][inner] if inner else VECTORS[key]
    return pytest.mark.parametrize("row", chosen, ids=[named(row) for row in chosen])


def assert_rounded_up(logarithm: float, truth: str) -> None:
    if Decimal(truth) == 0:
        assert logarithm == -math.inf
    else:
        assert 0.0 <= Decimal(logarithm) - Decimal(truth).ln() <= EXCESS


# Theorem 1 and Table 1.


@rows("table1")
def test_all_cells_of_table_1_are_reproduced(row: dict[str, Any]) -> None:
    assert f"{theorem1_delta(20, row['rate'], row['epsilon']):.2e}" == row["paper"]
    assert_rounded_up(log_theorem1_delta(20, row["rate"], row["epsilon"]), row["d"])
    assert_rounded_up(log_delta(20, row["rate"], row["epsilon"]), row["tight"])


def test_table_1_has_eighteen_cells() -> None:
    assert len({(row["rate"], row["epsilon"]) for row in VECTORS["table1"]}) == 18


@rows("d")
def test_theorem_1_is_right_down_to_one_in_ten_to_the_1277(row: dict[str, Any]) -> None:
    parameters = row["k"], row["rate"], row["epsilon"]
    assert_rounded_up(log_theorem1_delta(*parameters), row["d"])
    assert_rounded_up(log_delta(*parameters), row["tight"])
    if Decimal(row["theorem6"]) > Decimal("1e-300"):
        assert theorem6_delta(*parameters) == pytest.approx(float(row["theorem6"]), rel=EXCESS)
        assert divergence_delta(*parameters) == pytest.approx(float(row["kl_bound"]), rel=EXCESS)


def test_the_worst_size_starts_at_k_over_gamma_not_at_k_over_beta_as_printed() -> None:
    k, rate, ratio = 20, Fraction(1, 10), e_to_the(Fraction(1, 2))
    gamma = 1 - (1 - rate) / ratio
    printed = math.ceil(k / rate - 1)
    as_printed = math.exp(log_upper_tail(math.floor(gamma * printed) + 1, printed, 0.1, 0.9))
    assert as_printed == pytest.approx(4.8e-38, rel=0.01)
    true_mass = sum(binomial(44, j, rate) for j in range(k, 45))
    assert bad_mass(published_count(44, k, rate), published_count(43, k, rate), ratio) == true_mass
    assert theorem1_delta(k, rate, Fraction(1, 2)) == pytest.approx(float(true_mass), rel=EXCESS)
    assert float(true_mass) > 1e28 * as_printed


@pytest.mark.parametrize(
    ("k", "rate", "epsilon", "steps"),
    [(50, "0.4", "0.6", 1), (60, "0.4", "1", 1), (20, "0.8", "1.609439", 5), (100, "0.8", "1.709438", 7)],
)
def test_the_worst_count_is_not_always_the_first(k: int, rate: str, epsilon: str, steps: int) -> None:
    p, q = float(Fraction(rate)), float(1 - Fraction(rate))
    gamma = 1 - q * math.exp(-float(epsilon))
    tails = [log_upper_tail(m, math.ceil(m / gamma) - 1, p, q) for m in range(k, k + 60)]
    assert tails.index(max(tails)) == steps
    assert log_theorem1_delta(k, rate, epsilon) == pytest.approx(max(tails), rel=1e-12)
    assert log_theorem1_delta(k, rate, epsilon) > tails[0]


def test_at_a_tie_the_larger_tail_is_reported() -> None:
    # rate 0.8 at the limit: gamma = 0.96 and 24 / gamma = 25, where the likelihood ratio is e^epsilon exactly.
    at_limit = log_theorem1_delta(20, "0.8", -math.log1p(-0.8))
    assert at_limit == pytest.approx(log_upper_tail(24, 25, 0.8, 0.2), rel=1e-12)
    assert at_limit > log_theorem1_delta(20, "0.8", "1.609439")


def test_delta_of_a_bare_count_is_not_below_the_rate_as_figure_5_says() -> None:
    assert theorem1_delta(1, "0.025", 2) == pytest.approx(0.025, rel=EXCESS)
    assert theorem1_delta(1, "0.025", "0.1") == pytest.approx(0.183348196, rel=1e-8)
    assert all(theorem1_delta(1, "0.025", epsilon) >= 0.025 for epsilon in ("0.05", "0.5", "1", "5"))


def test_theorem_1_is_not_monotone_in_the_rate_but_the_tight_delta_is() -> None:
    assert theorem1_delta(5, "0.223", 1) == pytest.approx(7.69e-3, rel=1e-3)
    assert theorem1_delta(5, "0.224", 1) == pytest.approx(2.75e-3, rel=1e-3)
    assert delta(5, "0.223", 1) < delta(5, "0.224", 1)


def test_the_fourth_setting_of_figure_4_is_hundreds_of_times_less_private_than_the_others() -> None:
    similar = [theorem1_delta(k, rate, 1) for k, rate in ((15, "0.05"), (22, "0.1"), (35, "0.2"), (60, "0.4"))]
    assert similar == pytest.approx([1.02e-14, 2.36e-15, 1.13e-14, 6.88e-12], rel=0.01)
    assert similar[3] > 600 * similar[2]


def test_probabilistic_privacy_is_not_closed_under_post_processing_but_the_standard_one_is() -> None:
    with_it: Law = {"a": Fraction(1, 100), "b": Fraction(40, 100), "c": Fraction(59, 100)}
    without: Law = {"b": Fraction(20, 100), "c": Fraction(80, 100)}
    merged_with: Law = {"ab": Fraction(41, 100), "c": Fraction(59, 100)}
    merged_without: Law = {"ab": Fraction(20, 100), "c": Fraction(80, 100)}
    ratio = Fraction(2)
    assert bad_mass(with_it, without, ratio) == Fraction(1, 100)
    assert bad_mass(merged_with, merged_without, ratio) == Fraction(41, 100)
    assert excess(merged_with, merged_without, ratio) == excess(with_it, without, ratio) == Fraction(1, 100)


def test_the_recorded_example_of_probabilistic_privacy_breaking_is_reproduced() -> None:
    case = VECTORS["misc"]["pdp_postprocessing"]
    p, q = ([Fraction(value) for value in case[side]] for side in ("P", "Q"))
    ratio = e_to_the(Fraction(case["epsilon"])) + Fraction(1, 10**24)  # the recorded masses are rounded
    before = bad_mass(dict(enumerate(p)), dict(enumerate(q)), ratio)
    after = bad_mass({0: p[0] + p[1], 1: p[2]}, {0: q[0] + q[1], 1: q[2]}, ratio)
    assert (before, after) == (Fraction(case["bad_mass_before"]), Fraction(case["bad_mass_after_merging_first_two"]))


def test_the_size_of_the_sample_is_a_bare_count_and_costs_the_whole_rate() -> None:
    assert [delta(1, "0.1", epsilon) for epsilon in (0, 1, 20)] == [0.1, 0.1, 0.1]


# The tight curve.


@rows("tight")
def test_the_tight_curve_is_reproduced_in_both_directions(row: dict[str, Any]) -> None:
    parameters = row["k"], row["rate"], row["epsilon"]
    assert_rounded_up(log_delta_remove(*parameters), row["remove"])
    assert_rounded_up(log_delta_add(*parameters), row["add"])
    assert_rounded_up(log_delta(*parameters), row["tight"])
    assert worst_size_remove(*parameters) in _same_worth(row["n_remove"], row)
    assert worst_size_add(*parameters) in _same_worth(row["n_add"], row)
    if row["d_theorem1"] is not None:
        assert_rounded_up(log_theorem1_delta(*parameters), row["d_theorem1"])
        ratio = theorem1_delta(*parameters) / delta(*parameters)
        assert ratio == pytest.approx(float(row["ratio"]), rel=1e-5)


@rows("tight")
def test_the_bounds_for_replaced_records_are_at_least_as_good_as_the_shifted_removal(row: dict[str, Any]) -> None:
    found = delta(row["k"], row["rate"], row["epsilon"], Adjacency.REPLACE)
    assert delta(row["k"], row["rate"], row["epsilon"]) * (1 - EXCESS) <= found
    assert found <= float(row["replace_upper"]) * (1 + EXCESS)


def _same_worth(size: int | None, row: dict[str, Any]) -> set[int | None]:
    # At epsilon 0 and a whole (k - 1) / rate two neighboring sizes are equally bad.
    tied = row["epsilon"] == "0" and ((row["k"] - 1) / Fraction(row["rate"])).denominator == 1
    return {size, size - 1} if tied and size is not None else {size}


def test_adding_a_record_can_be_worse_than_removing_one() -> None:
    case = VECTORS["misc"]["add_exceeds_remove"]
    parameters = case["k"], case["rate"], case["epsilon"]
    assert_rounded_up(log_delta_remove(*parameters), case["remove"])
    assert_rounded_up(log_delta_add(*parameters), case["add"])
    assert_rounded_up(log_delta(*parameters), case["tight"])
    assert log_delta_add(*parameters) > log_delta_remove(*parameters)


def test_below_the_limit_of_theorem_1_the_tight_curve_goes_on_without_a_jump() -> None:
    limit = -math.log(0.9)
    below, above = delta(20, "0.1", limit - 1e-9), delta(20, "0.1", limit + 1e-9)
    assert below == pytest.approx(above, rel=1e-6)
    with pytest.raises(InvalidParameter):
        theorem1_delta(20, "0.1", limit - 1e-9)


def test_no_epsilon_brings_delta_below_the_rate_to_the_k() -> None:
    case = VECTORS["misc"]["floor"]
    assert delta(case["k"], case["rate"], 1000) == float(case["delta_at_infinity"])
    with pytest.raises(Infeasible, match="Raise k or lower the rate"):
        smallest_epsilon("0.99e-4", case["k"], case["rate"])


def test_at_epsilon_zero_delta_is_the_total_variation_in_closed_form() -> None:
    k, rate = 20, Fraction(1, 10)
    size = math.ceil((k - 1) / rate)
    assert delta(k, rate, 0) == pytest.approx(float(rate * binomial(size - 1, k - 1, rate)), rel=EXCESS)


def test_renyi_divergence_is_infinite_so_its_accountants_do_not_apply() -> None:
    for n in range(5, 12):
        assert published_count(n, 5, Fraction(1, 10))[n] > 0
        assert n not in published_count(n - 1, 5, Fraction(1, 10))
    # Whoever assumed a finite Rényi divergence would conclude that delta vanishes as epsilon grows.
    assert delta(5, "0.1", 10**6) == pytest.approx(1e-5, rel=1e-15)


# Inverse problems.


@rows("inverses", "smallest_k")
def test_the_smallest_k_is_reproduced(row: dict[str, Any]) -> None:
    parameters = row["epsilon"], row["delta"], row["rate"]
    assert smallest_k(*parameters) == row["k_tight"]
    if row["k_theorem1"] is None:
        with pytest.raises(InvalidParameter):
            theorem1_smallest_k(*parameters)
    else:
        assert theorem1_smallest_k(*parameters) == row["k_theorem1"]


@rows("inverses", "smallest_epsilon")
def test_the_smallest_epsilon_is_reproduced(row: dict[str, Any]) -> None:
    parameters = row["delta"], row["k"], row["rate"]
    for inverse, column in ((smallest_epsilon, "epsilon_tight"), (theorem1_smallest_epsilon, "epsilon_theorem1")):
        if row[column] is None:
            with pytest.raises(Infeasible):
                inverse(*parameters)
        else:
            found = Fraction(inverse(*parameters))
            assert Fraction(row[column]) <= found <= Fraction(row[column]) * (1 + Fraction(1, 10**10))


@rows("inverses", "largest_rate")
def test_the_largest_rate_is_reproduced_to_six_digits(row: dict[str, Any]) -> None:
    found = largest_rate(row["epsilon"], row["delta"], row["k"])
    truth = Fraction(row["rate"])
    assert found <= truth < found * (1 + Fraction(1, 10**5))


# Theorem 6 and smoothness.


@rows("theorem6")
def test_theorem_6_is_reproduced_and_its_sharper_form(row: dict[str, Any]) -> None:
    parameters = row["k"], row["rate"], row["epsilon"]
    guarantee = SmoothGuarantee.of(*parameters)
    assert guarantee.delta == pytest.approx(float(row["delta0"]), rel=EXCESS)
    assert divergence_delta(*parameters) == pytest.approx(float(row["delta0_kl"]), rel=EXCESS)
    assert theorem1_delta(*parameters) == pytest.approx(float(row["d_exact"]), rel=EXCESS)
    assert theorem1_delta(*parameters) < divergence_delta(*parameters) < guarantee.delta
    for z, value in row["f"].items():
        assert guarantee.f(z) == pytest.approx(float(value), rel=EXCESS)
    assert guarantee.f(10**6) == pytest.approx(float(row["f_infinity"]), rel=EXCESS)


def test_f_does_not_tend_to_zero_so_total_disclosure_is_never_ruled_out() -> None:
    guarantee = SmoothGuarantee.of(20, "0.2", "0.25")
    assert guarantee.f(10**6) == pytest.approx(guarantee.f(10**9), rel=1e-9)
    assert guarantee.f(10**9) * guarantee.delta > float(Fraction(2, 10) ** 20)
    assert delta(20, "0.2", 10**6) == pytest.approx(0.2**20, rel=1e-12)


def test_delta_sampling_is_zero_delta_private_but_not_in_the_probabilistic_sense() -> None:
    # Algorithm 5: a record is shown with probability delta, nothing else ever is.
    shown = Fraction(1, 100)
    with_it: Law = {"record": shown, "nothing": 1 - shown}
    without: Law = {"nothing": Fraction(1)}
    assert excess(with_it, without, Fraction(1)) == excess(without, with_it, Fraction(1)) == shown
    assert bad_mass(with_it, without, Fraction(1)) == 1
    assert bad_mass(with_it, without, 1 / (1 - shown)) == shown


# Composition.


@rows("composition")
def test_composed_deltas_are_reproduced(row: dict[str, Any]) -> None:
    step, epsilon = float(row["step"]), float(row["epsilon"])
    parts: list[Part] = [(20, "0.1"), (10, "0.05"), randomized_response(0.2)]
    if "k" in row:
        parts = [(row["k"], row["rate"])] * row["times"]
    removed, added = distributions(parts, Adjacency.ADD_REMOVE, step)
    assert removed.delta(epsilon) == pytest.approx(float(row["delta_remove"]), rel=1e-6)
    assert composed_delta(parts, row["epsilon"], step=step) == max(removed.delta(epsilon), added.delta(epsilon))
    if "k" in row:
        assert added.delta(epsilon) == pytest.approx(float(row["delta_add"]), rel=1e-6, abs=1e-280)
        alone = row["times"] * delta(row["k"], row["rate"], Fraction(row["epsilon"]) / row["times"])
        assert alone == pytest.approx(float(row["delta_basic"]), rel=EXCESS)
        assert composed_delta(parts, row["epsilon"]) < alone


def test_no_single_size_is_the_worst_at_every_epsilon() -> None:
    assert [worst_size_remove(5, "0.2", epsilon) for epsilon in ("0.1", "0.5", "1", "2")] == [15, 8, 6, 5]


def test_the_loss_distribution_of_one_size_is_unsound() -> None:
    k, rate = 5, Fraction(1, 5)

    def of_one_size(n: int) -> LossDistribution:
        with_it, without = published_count(n, k, rate), published_count(n - 1, k, rate)

        def forward(epsilon: float) -> float:
            return float(excess(with_it, without, Fraction(math.exp(epsilon))))

        def backward(epsilon: float) -> float:
            return float(excess(without, with_it, Fraction(math.exp(epsilon))))

        return LossDistribution.of(ProfilePair(forward, backward, 3.0, 3.0), 0.02)

    at_half, at_tenth = of_one_size(8).repeated(3), of_one_size(15).repeated(3)
    envelope = composed_delta([(k, rate)] * 3, "0.2", step=0.02)
    assert at_half.delta(0.2) < 0.8 * at_tenth.delta(0.2)  # believing in size 8 misses what size 15 does
    assert at_tenth.delta(1.6) < 0.8 * at_half.delta(1.6)  # and the other way round
    assert at_tenth.delta(0.2) <= envelope


def test_two_releases_from_one_sample_do_not_compose_as_theorem_2_says() -> None:
    # 100 records v and one t; one release counts {v, t} together, the other counts them apart, on the same sample.
    case = VECTORS["misc"]["shared_sample_counterexample"]
    k, n, rate = case["k"], case["n"], Fraction(case["rate"])
    with_it, without = _both_counts(k, n, rate, with_t=True), _both_counts(k, n, rate, with_t=False)
    each = delta(k, rate, 1)
    assert 2 * each == pytest.approx(float(case["sum_of_deltas_at_1"]), rel=EXCESS)
    truth = excess(with_it, without, e_to_the(Fraction(207, 10)))
    at_any_epsilon = rate * sum(binomial(n, j, rate) for j in range(k - 1, n + 1))
    assert truth >= at_any_epsilon > Fraction(99, 1000)
    assert truth > Fraction(case["delta_at_any_epsilon_lower"])
    assert float(truth) > 1000 * 2 * each
    # With a fresh sample for each release the sum is sound, and the composed delta below it.
    assert composed_delta([(k, rate)] * 2, 2) < 2 * each


def _both_counts(k: int, n: int, rate: Fraction, *, with_t: bool) -> Law:
    law: dict[Any, Fraction] = {}
    for t, weight in ((1, rate), (0, 1 - rate)) if with_t else ((0, Fraction(1)),):
        for v in range(n + 1):
            together, apart = v + t if v + t >= k else 0, v if v >= k else 0
            law[together, apart] = law.get((together, apart), Fraction(0)) + weight * binomial(n, v, rate)
    return law


def test_a_privately_chosen_recoding_adds_its_epsilon_and_multiplies_nothing() -> None:
    case = VECTORS["misc"]["scheme_selection"]
    chosen = randomized_response(float(case["epsilon1"]))
    claimed = delta(case["k"], case["rate"], case["epsilon2"])
    assert claimed == pytest.approx(float(case["total_delta"]), rel=EXCESS)
    assert composed_delta([(case["k"], case["rate"]), chosen], case["total_epsilon"]) <= claimed * (1 + 1e-9)


# Replaced records.


@rows("replace_one")
def test_replacing_a_record_is_worse_than_removing_one_and_every_rule_holds(row: dict[str, Any]) -> None:
    k, rate, ratio = row["k"], Fraction(row["rate"]), e_to_the(Fraction(row["epsilon"]))
    n, m = row["argmax"]
    laws = {size: published_count(size, k, rate) for size in (n, n - 1, m, m - 1)}
    truth = excess(
        {(x, y): p * q for x, p in laws[n].items() for y, q in laws[m - 1].items()},
        {(x, y): p * q for x, p in laws[n - 1].items() for y, q in laws[m].items()},
        ratio,
    )
    assert float(truth) == pytest.approx(float(row["brute_sup"]), rel=1e-12)
    assert delta(k, rate, row["epsilon"]) == pytest.approx(float(row["remove_only"]), rel=EXCESS)
    assert float(truth) > delta(k, rate, row["epsilon"])
    bounds = {rule: math.exp(bound) for rule, bound in replace_bounds(k, rate, row["epsilon"]).items()}
    assert bounds[SHIFTED] == pytest.approx(float(row["upper"]), rel=EXCESS)
    assert float(truth) < bounds[PRODUCT] <= float(row["pld_product"]) * (1 + 1e-4)
    coarse = composed_delta([(k, rate)], row["epsilon"], Adjacency.REPLACE, step=0.01)
    assert coarse == pytest.approx(float(row["pld_product"]), rel=1e-6)
