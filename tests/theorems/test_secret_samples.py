"""Secret samples: what they save, and the shortcuts that betray people, each with the number that betrays them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.amplification import amplify, before_sampling
from incrowd.accounting.blending import sampled_crowd
from incrowd.accounting.people import person_delta
from incrowd.accounting.suppression import tight_delta
from incrowd.accounting.suppression.loss_distribution import composed_delta
from tests.theorems.crowd_laws import Database, delta, mixture, on_sample, response, suppressed_histogram, sure
from tests.theorems.exact_laws import Law, binomial, e_to_the, excess, pair, published_count

VECTORS: dict[str, Any] = json.loads(Path(__file__).with_name("vectors_samples.json").read_text())
ANY = e_to_the(Fraction(30))  # at any epsilon, up to 30
TENTH = Fraction(1, 10)


def shown(count: int, k: int) -> int:
    return count if count >= k else 0


def released(others: int, rate: Fraction, release: Callable[[int, bool], Hashable]) -> tuple[Law, Law]:
    """The laws with t in the population and without; `release` sees how many others were drawn, and whether t was."""

    def given(t_drawn: bool) -> Law:
        return mixture((binomial(others, drawn, rate), sure(release(drawn, t_drawn))) for drawn in range(others + 1))

    return mixture([(rate, given(True)), (1 - rate, given(False))]), given(False)


def upper_tail(n: int, rate: Fraction, least: int) -> Fraction:
    return sum((binomial(n, j, rate) for j in range(least, n + 1)), Fraction(0))


# What sampling saves: Li, Qardaji & Su 2010, Theorem 3


@pytest.mark.parametrize("row", VECTORS["amplification"], ids=lambda row: f"{row['eps']}-{row['beta']}")
def test_amplification_has_the_reference_values_both_ways(row: dict[str, Any]) -> None:
    epsilon, failing = amplify(row["eps"], row["delta"], row["beta"])
    assert 0 <= Fraction(epsilon) / Fraction(row["eps_out"]) - 1 < 1e-12
    assert Fraction(row["delta_out"]) <= failing <= float(row["delta_out"]) * (1 + 1e-12)
    back, allowed = before_sampling(row["eps_out"], row["delta_out"], row["beta"])
    assert 0 <= 1 - Fraction(back) / Fraction(row["eps_back"]) < 1e-12
    assert float(row["delta"]) * (1 - 1e-12) <= allowed <= Fraction(row["delta"])


def test_amplification_is_attained_by_randomized_response() -> None:
    ratio, rate = Fraction(5), Fraction(1, 4)
    amplified = 1 + rate * (ratio - 1)
    absent = response(False, ratio)
    present = mixture([(rate, response(True, ratio)), (1 - rate, absent)])
    assert delta(present, absent, amplified) == 0
    assert delta(present, absent, amplified - Fraction(1, 1000)) > 0


def test_a_sample_of_fixed_size_is_not_amplified() -> None:
    # One of two people is drawn, or the only one: laws within a ratio of 2 of each other when one person comes or goes.
    ratio = Fraction(2)
    empty: Law = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    lone: dict[str, Law] = {"v": {0: Fraction(3, 4), 1: Fraction(1, 4)}, "t": {0: Fraction(1, 4), 1: Fraction(3, 4)}}
    assert all(delta(law, empty, ratio) == 0 for law in lone.values())
    present = mixture([(Fraction(1, 2), lone["v"]), (Fraction(1, 2), lone["t"])])
    guaranteed = 1 + Fraction(1, 2) * (ratio - 1)
    assert delta(present, lone["v"], ratio) == 0
    assert delta(present, lone["v"], guaranteed) > 0


def test_privacy_of_replaced_people_is_not_amplified() -> None:
    ratio = Fraction(4)

    def release(database: Database) -> Law:
        return pair(sure(len(database)), response("t" in database, ratio))

    assert delta(release(("u", "t")), release(("u", "v")), ratio) == 0
    one, other = (on_sample(release, [("u", TENTH), (last, TENTH)]) for last in ("t", "v"))
    guaranteed = 1 + TENTH * (ratio - 1)
    assert delta(one, other, guaranteed) > 0
    assert delta(one, other, ratio - Fraction(1, 1000)) > 0


# One sample, two releases: Li, Qardaji & Su 2010, Theorem 2 and section on slicing


def test_two_counts_of_one_sample_betray_t_although_each_is_private_under_sampling() -> None:
    row = VECTORS["shared_sample"]
    k, others, rate = row["k"], row["n"], Fraction(row["beta"])
    both = released(others, rate, lambda drawn, t_drawn: (shown(drawn + t_drawn, k), shown(drawn, k)))
    truth = rate * upper_tail(others, rate, k - 1)
    assert excess(*both, ANY) == truth
    assert truth > Fraction(row["delta_at_any_eps_lower"])
    assert f"{float(truth):.4f}" == "0.0992"
    alone = tight_delta.delta(k, rate, 1)
    assert 2 * alone == pytest.approx(float(row["sum_delta_if_independent_eps1_each"]), rel=1e-9)
    for release in (lambda drawn, t: shown(drawn + t, k), lambda drawn, t: shown(drawn, k)):
        assert delta(*released(others, rate, release), e_to_the(Fraction(1))) <= alone


def test_two_counts_of_two_samples_add_up() -> None:
    k, others, rate = 3, 6, Fraction(1, 5)
    first = released(others, rate, lambda drawn, t: shown(drawn + t, k))
    second = released(others, rate, lambda drawn, t: (t, shown(drawn, k)) if drawn + t >= k else 0)
    for epsilon in ("0.2", "0.6"):
        one, other = (delta(*release, e_to_the(Fraction(epsilon))) for release in (first, second))
        together = (pair(first[0], second[0]), pair(first[1], second[1]))
        assert delta(*together, e_to_the(2 * Fraction(epsilon))) <= one + other


def test_slices_of_one_sample_betray_the_zip_code() -> None:
    # twelve people (F, z1) and t = (F, z2): the counts of F and of z1 differ only if t was drawn
    k, others, rate = 3, 12, Fraction(1, 5)
    laws = released(others, rate, lambda drawn, t: (shown(drawn + t, k), shown(drawn, k), shown(int(t), k)))
    assert excess(*laws, ANY) == rate * upper_tail(others, rate, k - 1)
    assert f"{float(excess(*laws, ANY)):.3f}" == "0.145"


def test_slices_read_off_one_joint_release_cost_one_release() -> None:
    k, rate, epsilon = 2, Fraction(3, 10), Fraction(1, 2)
    people = ["F1", "F1", "F1", "M1", "M1", "F2", "F2"]
    joint = suppressed_histogram({name: name for name in people}, k)

    def marginals(database: Database) -> Law:
        laws = joint(database)
        table = next(iter(laws))
        genders = tuple(sum(n for name, n in table if name[0] == sex) for sex in "FM")  # type: ignore[attr-defined]
        zips = tuple(sum(n for name, n in table if name[1] == code) for code in "12")  # type: ignore[attr-defined]
        return sure((genders, zips))

    present = on_sample(marginals, [(name, rate) for name in people])
    absent = on_sample(marginals, [(name, rate) for name in people[:-1]])
    assert delta(present, absent, e_to_the(epsilon)) <= tight_delta.delta(k, rate, epsilon)


# A scheme chosen by looking


def scheme_and_release(people: Database, k: int, rate: Fraction, ratio: Fraction) -> Law:
    """A scheme chosen by a private question to all people, then released on a fresh sample."""
    coarse, fine = {"a": "x", "b": "x"}, {"a": "a", "b": "b"}
    chosen = response(people.count("b") >= 3, ratio)
    parts = []
    for answer, chance in chosen.items():
        scheme = fine if answer is True else coarse
        release = on_sample(suppressed_histogram(scheme, k), [(one, rate) for one in people])
        parts.append((chance, pair(sure(answer), release)))
    return mixture(parts)


@pytest.mark.parametrize("epsilon", ["0", "0.3", "1"])
def test_a_privately_chosen_scheme_adds_its_epsilon_and_no_delta(epsilon: str) -> None:
    k, rate, choice = 2, Fraction(1, 4), Fraction(3, 2)
    present = scheme_and_release(("a", "a", "b", "b", "b"), k, rate, choice)
    absent = scheme_and_release(("a", "a", "b", "b"), k, rate, choice)
    bound = tight_delta.delta(k, rate, epsilon)
    assert delta(present, absent, choice * e_to_the(Fraction(epsilon))) <= bound
    if epsilon == "0":
        assert delta(present, absent, e_to_the(Fraction(epsilon))) > bound  # the choice itself is not free


def test_the_reference_cost_of_a_chosen_scheme_is_the_tight_delta() -> None:
    row = VECTORS["scheme_selection"]
    assert Fraction(row["eps1"]) + Fraction(row["eps2"]) == Fraction(row["total_eps"])
    found = tight_delta.delta(row["k"], row["beta"], row["eps2"])
    assert 0 <= Fraction(found) / Fraction(row["total_delta"]) - 1 < 1e-10


def test_the_finest_scheme_that_suppresses_nobody_betrays_who_made_it_coarser() -> None:
    # Chosen on the released sample: {a} and {t} apart if each is empty or has k people, else together, else nothing.
    k, others = 5, 40

    def release(drawn: int, t_drawn: bool) -> Hashable:
        if all(count == 0 or count >= k for count in (drawn, int(t_drawn))):
            return "fine", drawn, int(t_drawn)
        return ("coarse", drawn + t_drawn) if drawn + t_drawn >= k else "nothing"

    laws = released(others, TENTH, release)
    assert excess(*laws, ANY) == TENTH * upper_tail(others, TENTH, k - 1)
    assert excess(*laws, ANY) > 1000 * tight_delta.delta(k, TENTH, 30)


# People with several rows, and what may happen before sampling


@pytest.mark.parametrize("row", VECTORS["person_rows"], ids=lambda row: f"{row['k']}-{row['beta']}-{row['m']}")
def test_a_person_with_several_rows_has_the_reference_delta(row: dict[str, Any]) -> None:
    k, rate, rows = row["k"], row["beta"], row["m"]
    found = person_delta(lambda epsilon: tight_delta.log_delta(k, rate, epsilon), row["eps"], rows)
    assert found == pytest.approx(float(row["delta_person"]), rel=float(row["rel_tol"]))
    single = tight_delta.delta(k, rate, Fraction(row["eps"]) / rows)
    assert single == pytest.approx(float(row["delta_row"]), rel=float(row["rel_tol"]))


def test_five_rows_in_one_cell_show_far_more_than_five_independent_rows() -> None:
    k, rate, rows, ratio = 20, TENTH, 5, e_to_the(Fraction(2))
    truth = max(
        excess(published_count(size, k, rate), published_count(size - rows, k, rate), ratio) for size in range(30, 80)
    )
    bound = person_delta(lambda epsilon: tight_delta.log_delta(k, rate, epsilon), 2, rows)
    assert f"{float(truth):.3g}" == "4.34e-09"
    assert truth <= bound < 1.25 * float(truth)
    assert truth > 10**8 * composed_delta([(k, rate)] * rows, 2)


@pytest.mark.parametrize(
    ("release", "least", "number"),
    [
        (lambda drawn, t: shown(2 * drawn + t, 5), 2, "0.0920"),  # the others have two rows each: parity
        (lambda drawn, t: shown(5 * t, 5), 0, "0.1000"),  # t has k rows in a cell of its own
        (lambda drawn, t: (shown(drawn + t, 5), shown(drawn, 5)), 4, "0.0577"),  # the others are in two cells, t in one
    ],
)
def test_one_coin_for_several_rows_betrays_t_at_any_epsilon(
    release: Callable[[int, bool], Hashable], least: int, number: str
) -> None:
    laws = released(40, TENTH, release)
    assert excess(*laws, ANY) == TENTH * upper_tail(40, TENTH, least)
    assert f"{float(excess(*laws, ANY)):.4f}" == number


def test_keeping_one_of_a_persons_sampled_rows_is_not_sampling_at_the_rate() -> None:
    k, rows = 3, 5
    enters = 1 - (1 - TENTH) ** rows
    assert f"{float(enters):.2f}" == "0.41"
    present = mixture(
        (binomial(2, n, TENTH) * chance, sure(shown(n + t, k)))
        for n in range(3)
        for t, chance in ((1, enters), (0, 1 - enters))
    )
    assert excess(present, sure(0), ANY) == enters * TENTH**2
    assert excess(present, sure(0), ANY) > 4 * tight_delta.delta(k, TENTH, 30)


def test_dropping_small_cells_of_the_full_data_betrays_the_fiftieth_person() -> None:
    truth = excess(published_count(50, 5, TENTH), sure(0), ANY)
    assert truth == upper_tail(50, TENTH, 5)
    assert f"{float(truth):.3f}" == "0.569"


def test_a_rate_computed_from_the_number_of_people_breaks_its_own_guarantee() -> None:
    k, target, people, mine = 5, 10, 12, 5
    rates = {size: Fraction(target, size) for size in (people, people - 1)}

    def table(size: int, cell: int) -> Law:
        return pair(*(published_count(n, k, rates[size]) for n in (cell, people - mine)))

    truth = delta(table(people, mine), table(people - 1, mine - 1), e_to_the(Fraction(1, 20)))
    assert truth > tight_delta.delta(k, rates[people], Fraction(1, 20))


def test_unequal_rates_are_covered_by_the_largest() -> None:
    k, largest = 3, Fraction(2, 5)
    rates = [Fraction(1, 10), Fraction(1, 5), largest, largest, Fraction(3, 10)]
    release = suppressed_histogram({"a": "x"}, k)
    for member in (Fraction(1, 10), largest):
        present = on_sample(release, [("a", rate) for rate in (*rates, member)])
        absent = on_sample(release, [("a", rate) for rate in rates])
        for epsilon in ("0", "0.4", "1"):
            assert delta(present, absent, e_to_the(Fraction(epsilon))) <= tight_delta.delta(k, largest, epsilon)


def test_weighted_counts_betray_a_person_of_unique_weight() -> None:
    k, others = 5, 40
    laws = released(others, TENTH, lambda drawn, t: 10 * drawn + 7 * t if drawn + t >= k else 0)
    assert excess(*laws, ANY) == TENTH * upper_tail(others, TENTH, k - 1)
    constant = released(others, TENTH, lambda drawn, t: 10 * shown(drawn + t, k))
    for epsilon in ("0.1", "1"):
        assert delta(*constant, e_to_the(Fraction(epsilon))) <= tight_delta.delta(k, TENTH, epsilon)


def test_the_size_of_the_sample_is_a_count_without_a_crowd() -> None:
    for epsilon in ("0.1", "5"):
        assert tight_delta.delta(1, TENTH, epsilon) == pytest.approx(0.1, rel=1e-10)
        assert sampled_crowd.delta(1, "0.3", TENTH, epsilon) == pytest.approx(0.1, rel=1e-10)
    assert excess(*released(0, TENTH, lambda drawn, t: drawn + t), ANY) == TENTH


def test_the_tight_curve_of_suppression_is_crowd_blending_at_crowd_epsilon_zero() -> None:
    for k, rate, epsilon in (
        (5, "0.2", "0.1"),
        (20, "0.1", "0.5"),
        (35, "0.97", "0.05"),
        (7, "0.4", 0),
        (50, "0.01", 2),
    ):
        assert sampled_crowd.log_delta(k, 0, rate, epsilon) == pytest.approx(
            tight_delta.log_delta(k, rate, epsilon), abs=2e-10
        )
    assert math.isclose(sampled_crowd.delta(4, 0, TENTH, 40), 1e-4, rel_tol=1e-9)
