from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.measures.risk.population import INDEPENDENT, PAIRS, log_linear_risk, poisson_risk, proportional_fit

Codes = NDArray[np.int64]


def people(number: int, *, related: bool, seed: int) -> Codes:
    """Four columns, independent or with the second and third following the first."""
    chance = np.random.default_rng(seed)
    laws = [chance.dirichlet(np.full(size, 0.7)) for size in (12, 10, 8, 6)]
    table = np.stack([chance.choice(len(law), number, p=law) for law in laws])
    if related:
        follow = chance.random((2, number)) < 0.6
        table[1] = np.where(follow[0], table[0] % 10, table[1])
        table[2] = np.where(follow[1], table[0] % 8, table[2])
    return table


def tuples(table: Codes) -> tuple[list[Codes], NDArray[np.int64]]:
    found, counts = np.unique(table, axis=1, return_counts=True)
    return list(found), counts


def truth(population: Codes, sample: Codes) -> tuple[int, float]:
    everyone = Counter(map(tuple, population.T.tolist()))
    alone = [everyone[row] for row, n in Counter(map(tuple, sample.T.tolist())).items() if n == 1]
    return sum(n == 1 for n in alone), sum(1 / n for n in alone)


@pytest.mark.parametrize("related", [False, True])
def test_both_sums_are_near_the_truth_of_a_population(*, related: bool) -> None:
    population = people(40_000, related=related, seed=11)
    chosen = np.random.default_rng(5).choice(40_000, 4_000, replace=False)
    sample = population[:, chosen]
    found = log_linear_risk(*tuples(sample), "1/10")
    unique, right = truth(population, sample)
    assert found.tau1.value == pytest.approx(unique, rel=0.35, abs=8)
    assert found.tau2.value == pytest.approx(right, rel=0.2, abs=8)
    if related:
        assert found.model == PAIRS
    assert abs(found.errors[found.model]) == min(map(abs, found.errors.values()))


def test_means_keep_the_margins_they_were_fitted_to() -> None:
    table = np.random.default_rng(2).poisson(3.0, (3, 4, 5)).astype(float)
    fitted = proportional_fit(table, [(0, 1), (1, 2), (0, 2)])
    for away in range(3):
        assert fitted.sum(axis=away) == pytest.approx(table.sum(axis=away), abs=1e-5)


def test_everybody_sampled_is_everybody_known() -> None:
    tau1, tau2 = poisson_risk([0.3, 2.0], 1)
    assert (tau1.value, tau2.value) == (2.0, 2.0)


def test_a_share_that_is_none_and_a_table_too_large_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="above 0"):
        poisson_risk([1.0], 0)
    wide = [np.arange(3000), np.arange(3000)]
    with pytest.raises(InvalidParameter, match="cells"):
        log_linear_risk(wide, np.ones(3000, np.int64), "0.1")


def test_one_column_has_the_model_of_one_column() -> None:
    found = log_linear_risk([np.array([0, 1, 2])], np.array([5, 1, 1]), "0.5")
    assert found.model == INDEPENDENT
