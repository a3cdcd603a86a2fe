"""Figures of local collection, by exact enumeration or in 40 digits; errors of the literature stand beside them."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrowd.methods.local.choice import best_hashing, best_subset, optimum, randomizers
from incrowd.methods.local.estimates import Support, projected
from incrowd.methods.local.mechanisms.hashed import Galois, HadamardResponse
from incrowd.methods.local.mechanisms.numbers import Duchi, Window, best_mixture, best_window
from incrowd.methods.local.mechanisms.randomizer import Categorical, Response
from incrowd.methods.local.mechanisms.ratio import Weights, exponential_below, logarithm_of
from incrowd.methods.local.mechanisms.sets import OptimalUnary, Rappor, SubsetSelection, SymmetricUnary
from incrowd.workflows.local.survey_file import survey_of
from tests.coins import law_of

FIGURES: dict[str, Any] = json.loads((Path(__file__).parent / "vectors_local.json").read_text(encoding="utf-8"))
FINE = 30
"""Bits of weights whose ratio is e^ε in twelve digits."""


def named(name: str, size: int) -> Categorical:
    """Return a randomizer by the figures' name of it, at ε = 1 and denominators of 8 bits."""
    whole, half = Weights.below(Fraction(1), 8), Weights.below(Fraction(1, 2), 8)
    if name.startswith("SS"):
        return SubsetSelection(size, whole, int(name[2:]))
    simple = {"GRR": Response, "OUE": OptimalUnary, "HR": HadamardResponse}
    return SymmetricUnary(size, half) if name == "SUE" else simple[name](size, whole)


@pytest.mark.parametrize("told", FIGURES["M_lower_ratio"], ids=lambda told: f"{told['eps']}-{told['bits']}")
def test_weights_are_the_largest_fraction_below_e_to_the_epsilon(told: dict[str, Any]) -> None:
    found = Weights.below(Fraction(told["eps"]), told["bits"])
    assert (found.own, found.other) == (told["a"], told["b"])
    lost = Fraction(told["eps"]) - logarithm_of(found.value)
    assert float(lost) == pytest.approx(float(told["eps_minus_ln"]), rel=1e-6, abs=3e-18)
    assert found.value <= exponential_below(Fraction(told["eps"]))


@pytest.mark.parametrize("told", FIGURES["M_exact"], ids=lambda told: f"{told['mech']}-{told['d']}")
def test_chances_and_errors_are_exact(told: dict[str, Any]) -> None:
    found = named(told["mech"], told["d"])
    stated = [Fraction(told[name]) for name in ("ratio", "p", "q", "n_total_mse")]
    assert [found.ratio, found.p, found.q, found.error] == stated


@pytest.mark.parametrize("told", FIGURES["M_table"], ids=lambda told: f"{told['d']}-{told['eps']}")
def test_errors_of_all_families_are_those_of_the_table(told: dict[str, Any]) -> None:
    size, epsilon = told["d"], Fraction(told["eps"])
    whole, half = Weights.below(epsilon, FINE), Weights.below(epsilon / 2, FINE)
    names = {"response": "GRR", "symmetric-unary": "SUE", "optimal-unary": "OUE", "hadamard": "HR", "subset": "SS"}
    for found in randomizers(size, whole, half):
        if found.family in names:
            assert float(found.error) == pytest.approx(float(told[names[found.family]]), rel=1e-8)
    assert best_subset(size, whole).width == told["w"]
    assert optimum(size, float(epsilon)) == pytest.approx(float(told["optimum_iid_uniform"]), rel=1e-9)
    hashing = best_hashing(size, whole)  # the table's widths are any whole numbers, ours are sizes of fields
    assert float(told["OLH"]) * (1 - 1e-8) <= hashing.error <= float(told["OLH"]) * 1.09


def test_subset_selection_attains_the_optimum_for_people_drawn_at_random() -> None:
    for told in FIGURES["M_table"]:
        sampled = float(told["SS"]) + 1 - 1 / told["d"]
        assert sampled == pytest.approx(float(told["optimum_iid_uniform"]), rel=1e-9)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "3", "4"])
def test_randomized_response_is_best_up_to_fewer_values_than_the_familiar_rule_says(epsilon: str) -> None:
    weights, stated = Weights.below(Fraction(epsilon), FINE), FIGURES["M_grr_optimal_up_to_d"]
    for size, optimal in ((stated[epsilon], True), (stated[epsilon] + 1, False)):
        assert (best_subset(size, weights).width == 1) == optimal
    rare = Fraction(0)
    beats = [Response(d, weights).variance(rare) < OptimalUnary(d, weights).variance(rare) for d in range(2, 200)]
    assert sum(beats) + 1 == stated[f"{epsilon}_vs_OUE"] == int(3 * math.exp(float(epsilon)) + 2)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 8, 9, 16, 25])
def test_two_values_share_a_hash_over_a_field_with_a_chance_of_exactly_one_in_its_size(size: int) -> None:
    field = Galois(size)
    for value in range(1, size):  # <s, x> - <s, y> = <s, x - y>, uniform as soon as one digit differs
        assert sorted(field.product[:, value].tolist()) == list(range(size))
    assert sorted(field.sum[1].tolist()) == list(range(size))
    for x, y, z in product(range(min(size, 5)), repeat=3):
        left = field.product[x, field.sum[y, z]]
        assert left == field.sum[field.product[x, y], field.product[x, z]]


def test_a_hash_modulo_a_prime_and_then_modulo_four_collides_too_rarely() -> None:
    pairs = [(a, b) for a in range(1, 11) for b in range(11)]
    collide = {
        Fraction(sum((a * x + b) % 11 % 4 == (a * y + b) % 11 % 4 for a, b in pairs), len(pairs))
        for x in range(11)
        for y in range(x)
    }
    assert collide == set(map(Fraction, FIGURES["M_hash_modprime_P11_g4"]))


def test_points_of_a_projective_plane_do_what_all_subsets_do() -> None:
    told = FIGURES["M_pgr"]
    found = SubsetSelection(told["d"], Weights.below(Fraction(told["eps"]), FINE), 4)
    assert float(found.error) == pytest.approx(float(told["n_total"]), rel=1e-9)


@pytest.mark.parametrize("told", FIGURES["M_numeric"], ids=lambda told: told["eps"])
def test_worst_variances_of_numbers(told: dict[str, Any]) -> None:
    epsilon, weights, size = Fraction(told["eps"]), Weights.below(Fraction(told["eps"]), FINE), 20_000
    assert float(Duchi(size, weights).variance) == pytest.approx(float(told["duchi_worst"]), rel=1e-8)
    half = round(size * math.exp(-epsilon / 2) / (1 - math.exp(-epsilon / 2)))  # piecewise: C = (e + 1) / (e - 1)
    piecewise = Window(size, weights, min(half, size))
    assert float(best_window(size, weights).variance) <= float(piecewise.variance) + 1e-9
    assert float(best_mixture(size, weights).variance) <= float(told["hybrid_worst"]) * (1 + 1e-4)
    assert float(best_window(size, weights).variance) <= float(told["piecewise_worst"]) * (1 + 1e-4)
    assert 2 * (2 / float(epsilon)) ** 2 == pytest.approx(float(told["laplace"]))


def test_piecewise_beats_duchi_from_a_stated_epsilon_on_and_the_hybrid_from_another() -> None:
    def worst(e: float) -> tuple[float, float]:
        c = math.sqrt(e)
        return ((e + 1) / (e - 1)) ** 2, 4 * c / (3 * (c - 1) ** 2)

    crossing, star = (float(FIGURES[name]) for name in ("M_duchi_pm_crossing", "M_hybrid_eps_star"))
    duchi, piecewise = worst(math.exp(crossing))
    assert duchi == pytest.approx(piecewise, rel=1e-9)
    assert star == pytest.approx(0.609352493027)


@pytest.mark.parametrize("told", FIGURES["M_window"], ids=lambda told: told["eps"])
def test_the_best_window_in_whole_numbers(told: dict[str, Any]) -> None:
    weights = Weights.below(Fraction(told["eps"]), FINE)
    found = best_window(told["K"], weights)
    assert found.width == told["best_h"]
    assert float(found.variance) == pytest.approx(told["worst_var_best"], rel=1e-9)
    formula = Window(told["K"], weights, told["h_formula"])
    assert float(formula.variance) == pytest.approx(told["worst_var_formula"], rel=1e-9)


@pytest.mark.parametrize("told", FIGURES["M_best_window"], ids=lambda told: told["eps"])
def test_the_best_window_and_the_best_mixture(told: dict[str, Any]) -> None:
    weights, size = Weights.below(Fraction(told["eps"]), FINE), 4000
    window, mixture = best_window(size, weights), best_mixture(size, weights)
    assert window.width / size == pytest.approx(told["h"], abs=1e-3)
    assert float(window.variance) == pytest.approx(told["worst"], rel=1e-6)
    assert float(mixture.variance) <= told["best_mixture"] * (1 + 1e-4)  # the figures are from a grid of 1e-3
    assert float(mixture.variance) == pytest.approx(told["best_mixture"], rel=1e-2)


def test_a_projection_on_the_simplex_is_norm_sub_and_biased() -> None:
    told = FIGURES["M_simplex"]
    stated = [float(Fraction(each)) for each in told["output"]]
    assert projected(np.array(told["input"])).tolist() == pytest.approx(stated)
    effect = FIGURES["M_projection_effect"]
    weights, chance = Weights.below(Fraction(1)), np.random.default_rng(5)  # a fixed seed: the same draws every time
    found, true = OptimalUnary(effect["d"], weights), _zipf(effect["d"], effect["n"])
    runs = [_estimated(found, true, chance) for _ in range(300)]
    raw = np.mean([((each - true / effect["n"]) ** 2).sum() for each in runs])
    near = np.array([projected(each) for each in runs])
    assert raw == pytest.approx(effect["mse_raw"], rel=0.05)
    assert np.mean(((near - true / effect["n"]) ** 2).sum(axis=1)) == pytest.approx(effect["mse_projected"], rel=0.05)
    assert np.mean(near[:, 0]) - true[0] / effect["n"] == pytest.approx(effect["bias_top"], rel=0.2)
    assert near[:, 50:].sum(axis=1).mean() - true[50:].sum() / effect["n"] == pytest.approx(
        effect["bias_bottom50"], rel=0.05
    )


def _zipf(size: int, people: int) -> Any:
    weights = 1 / np.arange(1, size + 1)
    counts = np.floor(weights / weights.sum() * people).astype(int)
    counts[0] += people - counts.sum()
    return counts


def _estimated(found: Categorical, true: Any, chance: np.random.Generator) -> Any:
    people = int(true.sum())
    counts = chance.binomial(true, float(found.p)) + chance.binomial(people - true, float(found.q))
    return Support(people, found.p, found.q).estimates(counts)


def test_an_exact_interval_covers_where_the_plug_in_normal_one_does_not() -> None:
    told = FIGURES["M_interval"]
    found = OptimalUnary(2, Weights.below(Fraction(told["eps"]), FINE))
    support = Support(told["n"], found.p, found.q)
    for count, ends in told["ci"].items():
        low, high = support.intervals(np.array([int(count)]))
        assert [round(float(each[0]) * told["n"]) for each in (low, high)] == ends
    low, high = support.intervals(np.arange(told["n"] + 1))
    covered = [_coverage(support, having, low, high) for having in range(told["n"] + 1)]
    assert min(covered) == pytest.approx(told["exact_min_coverage"], abs=1e-9)
    assert min(covered) >= 0.95


def _coverage(support: Support, having: int, low: Any, high: Any) -> float:
    p, q, n = float(support.p), float(support.q), support.people
    mine = [math.comb(having, k) * p**k * (1 - p) ** (having - k) for k in range(having + 1)]
    rest = [math.comb(n - having, k) * q**k * (1 - q) ** (n - having - k) for k in range(n - having + 1)]
    law = np.convolve(mine, rest)
    return float(sum(law[count] for count in range(n + 1) if low[count] * n <= having + 1e-9 <= high[count] * n + 2e-9))


@pytest.mark.parametrize("told", FIGURES["M_split_sample"], ids=lambda told: f"{told['m']}-{told['eps']}")
def test_answering_one_of_several_questions_beats_splitting_epsilon(told: dict[str, Any]) -> None:
    def noise(epsilon: float) -> float:
        return 1 / math.sinh(epsilon / 2) ** 2

    assert noise(told["eps"] / told["m"]) == pytest.approx(told["split"], rel=1e-9)
    assert told["m"] * noise(told["eps"]) == pytest.approx(told["sample"], rel=1e-9)
    assert told["split"] >= told["m"] * told["sample"] * (1 - 1e-12)


@pytest.mark.parametrize("told", FIGURES["M_rsfd"], ids=lambda told: f"{told['m']}-{told['d']}")
def test_fake_values_in_the_other_attributes_save_nothing_for_the_whole_person(told: dict[str, Any]) -> None:
    m, d, claimed = told["m"], told["d"], Fraction(told["claimed"])
    ratio = m * (claimed - 1) + 1
    p, q = ratio / (ratio + d - 1), 1 / (ratio + d - 1)

    def chance(values: tuple[int, ...], report: tuple[int, ...]) -> Fraction:
        each = [(p if values[at] == report[at] else q) * Fraction(1, d) ** (m - 1) for at in range(m)]
        return Fraction(sum(each, Fraction(0)) / m)

    people = list(product(range(d), repeat=m))
    loss = max(chance(x, y) / chance(z, y) for x, y, z in product(people, repeat=3))
    single = max(chance(x, y) / chance((z, *x[1:]), y) for x, y in product(people, repeat=2) for z in range(d))
    assert (loss, single) == (Fraction(told["user_level"]), Fraction(told["attribute_level"]))


def test_rappor_costs_nearly_its_permanent_loss_after_ten_reports() -> None:
    told = FIGURES["M_rappor"]
    found = Rappor(8, *(Fraction(told[name]) for name in ("f", "p", "q")))
    assert math.log(found.ratio(1, told["h"])) == pytest.approx(float(told["eps1"]), rel=1e-12)
    assert math.log(found.permanent(told["h"])) == pytest.approx(float(told["eps_inf"]), rel=1e-12)
    for reports, epsilon in told["eps_T"].items():
        assert math.log(found.ratio(int(reports), told["h"])) == pytest.approx(float(epsilon), rel=1e-10)


def test_a_count_mean_sketch_keeps_an_error_that_no_number_of_people_removes() -> None:
    told = FIGURES["M_cms"]
    m, k, (first, *others) = told["m"], told["k"], told["counts"]
    e, n = math.exp(told["eps"] / 2), sum(told["counts"])
    collisions = sum(each + each * (each - 1) / k for each in others)
    variance = (m / (m - 1)) ** 2 * (n * e / (e - 1) ** 2 + (1 / m) * (1 - 1 / m) * collisions)
    assert variance == pytest.approx(told["variance_of_first"], rel=1e-9)
    assert first > 0


@pytest.mark.parametrize("told", FIGURES["M_prefix"], ids=lambda told: f"{told['step']}-{told['eps']}")
def test_each_length_of_a_prefix_tree_has_the_stated_spread(told: dict[str, Any]) -> None:
    levels = 1 + (told["bits"] - told["first"]) // told["step"]
    assert levels == told["groups"]
    e = math.exp(told["eps"])
    q, p = 1 / round(e + 1), e / (e + round(e + 1) - 1)  # local hashing at the width for rare values
    spread = math.sqrt(q * (1 - q) / (p - q) ** 2 * levels / told["n"])
    assert spread == pytest.approx(told["sd_per_level"], rel=1e-6)


@pytest.mark.parametrize("told", FIGURES["M_vector"], ids=lambda told: str(told["eps"]))
def test_a_vector_of_numbers_is_best_reported_by_a_few_coordinates(told: dict[str, Any]) -> None:
    def hybrid(epsilon: float) -> tuple[float, float]:
        """Return the variance at 0 and at 1."""
        e, c = math.exp(epsilon), math.exp(epsilon / 2)
        square = ((e + 1) / (e - 1)) ** 2
        if epsilon <= float(FIGURES["M_hybrid_eps_star"]):
            return square, square - 1
        share, zero = 1 - 1 / c, (c + 3) / (3 * (c - 1) ** 2)
        return share * zero + (1 - share) * square, share * (zero + 1 / (c - 1)) + (1 - share) * (square - 1)

    def worst(j: int) -> float:
        m, (zero, one) = told["m"], hybrid(told["eps"] / j)
        return float(max(m / j * zero, m / j * (one + 1) - 1))

    assert min(range(1, told["m"] + 1), key=worst) == told["best_j"]
    assert worst(told["best_j"]) == pytest.approx(told["worst"], rel=1e-6)


def test_two_inputs_of_a_float_mechanism_share_no_output() -> None:
    """The low bits of l(x) + u (C − 1) betray x: no output of one input is one of the other."""
    c = (math.exp(0.5) + 1) / (math.exp(0.5) - 1)
    draws = np.random.default_rng(1).random(1024)
    left, right = ((c + 1) / 2 * x - (c - 1) / 2 + draws * (c - 1) for x in (0.3, 0.300001))
    assert len(set(left) & set(right)) == FIGURES["M_float_piecewise_common_outputs_of_1024"]


def test_the_lectures_two_coins() -> None:
    found = Response(2, Weights.of(Fraction(3)))
    assert math.isclose(float(logarithm_of(found.ratio)), math.log(3))
    support = Support(1000, found.p, found.q)
    for yes in (250, 400, 750):
        assert support.estimates(np.array([yes]))[0] == pytest.approx(2 * yes / 1000 - 0.5)
    warner = Fraction(1, 5)  # an answer is flipped with this chance
    assert Response(2, Weights.of((1 - warner) / warner)).q == warner


def test_a_skipped_answer_is_as_private_as_any_other() -> None:
    """The law of its report is the mean of the laws of all answers, so its ratio to each is at most e^ε."""
    questions = {"a": {"first": "0", "last": "3", "skip": "random"}}
    asked = survey_of({"survey": "1", "name": "one", "odds": "3", "questions": questions}, Path()).survey
    assert [str(weights.family) for weights in asked.questions[0].randomness] == ["response"]
    answers = [*map(str, range(4)), ""]
    *laws, skipped = (
        law_of(lambda coins, answer=answer: str(asked.randomize({"a": [answer]}, coins)[0]["report"]))  # type: ignore[misc]
        for answer in answers
    )
    for report, chance in skipped.items():
        assert chance == pytest.approx(sum(law[report] for law in laws) / len(laws))
        assert all(1 / 3 - 1e-12 <= chance / law[report] <= 3 + 1e-12 for law in laws)
