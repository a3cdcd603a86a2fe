"""Figures of disclosure risk, computed by another route: closed forms in exact fractions, or in 50 digits."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrowd.criteria.individual_risk import individual_risk
from incrowd.criteria.uniqueness.criterion import estimate_uniques
from incrowd.criteria.uniqueness.models import Pitman
from incrowd.measures.risk.classes import risk
from incrowd.measures.risk.linkage import record_linkage
from incrowd.measures.risk.population import poisson_risk
from incrowd.measures.risk.special_uniques import data_intrusion, special_uniques

FIGURES: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors_disclosure_risk.json").read_text(encoding="utf-8")
)


def test_three_attackers_link_as_their_definitions_say() -> None:
    told = FIGURES["P_three"]
    rows, people = np.array(told["f"]), np.array(told["F"])
    prosecutor, journalist = risk(rows, rows, 0.2), risk(rows, people, 0.2)
    assert prosecutor.highest == float(Fraction(told["prosecutor_max"]))
    assert prosecutor.average == pytest.approx(float(Fraction(told["prosecutor_avg"])))
    assert journalist.highest == float(Fraction(told["journalist_max"]))
    assert journalist.average == pytest.approx(float(Fraction(told["marketer"])))


@pytest.mark.parametrize("told", FIGURES["P_bf"], ids=lambda told: f"f={told['f']} p={told['p']}")
def test_a_weighted_sample_has_the_risk_of_benedetti_and_franconi(told: dict[str, Any]) -> None:
    found = individual_risk([told["f"]], [told["f"] / float(told["p"])])
    assert found[0] == pytest.approx(float(told["risk"]), rel=1e-12)


def test_where_the_published_recursion_explodes_the_risk_stays_right() -> None:
    told = FIGURES["P_bf_recursion_in_doubles_p09_f20"]
    assert individual_risk([20], [20 / 0.9])[0] == pytest.approx(float(told["true"]), rel=1e-12)
    assert told["recursion"] < -500  # what the recursion gives for the same


def test_a_customer_of_pitmans_restaurant_stays_alone_as_often_as_he_should() -> None:
    told = FIGURES["P_pitman"]
    model = Pitman(float(told["theta"]), float(Fraction(told["alpha"])))
    assert model.uniques(told["N"]) == pytest.approx(float(Fraction(told["expected_uniques"])), rel=1e-12)
    assert model.uniques(10**6) == pytest.approx(float(told["N_1e6"]), rel=1e-8)  # a difference of log-gammas


def test_the_slide_negative_binomial_thins_as_its_generating_function_says() -> None:
    told = FIGURES["P_snb"]
    alpha, p, pi = (float(told[name]) for name in ("alpha", "p", "pi"))
    q = 1 - p
    shrunk = p / (p + pi * q)
    one = pi * shrunk**alpha * (1 + alpha * (1 - pi) * q / (p + pi * q))  # as criteria/uniqueness/models writes it
    assert (1 - pi) * shrunk**alpha == pytest.approx(float(told["P_f0"]), rel=1e-12)
    assert one == pytest.approx(float(told["P_f1"]), rel=1e-12)
    assert p**alpha == pytest.approx(float(told["P_unique_population"]), rel=1e-12)
    assert pi * p**alpha / one == pytest.approx(float(told["P_pop_unique_given_sample_unique"]), rel=1e-12)


def test_zayatz_takes_the_classes_of_the_sample_for_those_of_the_population() -> None:
    told = FIGURES["P_zayatz"]
    sizes = np.repeat([int(size) for size in told["sizes"]], list(told["sizes"].values()))
    share, _ = estimate_uniques(sizes, told["N"], "zayatz")
    alone = told["sizes"]["1"] / told["n"]
    assert share / alone == pytest.approx(float(Fraction(told["P_pu_given_su"])), rel=1e-12)


def test_zayatz_errs_high_on_a_population_of_many_small_classes() -> None:
    told = FIGURES["P_zayatz_bias"]
    chance = np.random.default_rng(7)
    people = chance.zipf(1.3, 20_000) % 5_000
    sample = chance.choice(people, 2_000, replace=False)
    values, sizes = np.unique(sample, return_counts=True)
    share, _ = estimate_uniques(sizes, len(people), "zayatz")
    truth = np.isin(values[sizes == 1], np.flatnonzero(np.bincount(people) == 1)).sum() / len(sample)
    assert told["estimate"] > told["truth"]
    assert share > truth


def test_poisson_risk_counts_the_rest_of_the_population() -> None:
    told = FIGURES["P_poisson"]
    tau1, tau2 = poisson_risk([float(mean) for mean in told["fitted_mu"]], told["pi"])
    assert tau1 == pytest.approx(float(told["tau1"]), rel=1e-12)
    assert tau2 == pytest.approx(float(told["tau2"]), rel=1e-12)


def test_special_uniques_score_as_by_hand() -> None:
    told = FIGURES["P_suda"]
    found = special_uniques(list(np.array(told["rows"]).T))
    assert found.scores.tolist() == told["score"]
    assert sum(found.by_size) == sum(map(len, told["msu"]))
    assert data_intrusion(4, 1, told["DIS_fraction"]).value == pytest.approx(float(Fraction(told["DIS"])))


def test_linkage_is_that_of_the_small_table() -> None:
    told = FIGURES["P_linkage"]
    x, y = np.array(told["x"]), np.array(told["y"])
    assert record_linkage(x, y).value == told["risk"]
