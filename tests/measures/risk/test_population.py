from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.measures.risk import population
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


def truth(table: Codes, sample: Codes) -> tuple[int, float]:
    everyone = Counter(map(tuple, table.T.tolist()))
    alone = [everyone[row] for row, n in Counter(map(tuple, sample.T.tolist())).items() if n == 1]
    return sum(n == 1 for n in alone), sum(1 / n for n in alone)


@pytest.mark.parametrize("related", [False, True])
def test_both_sums_are_near_the_truth_of_a_population(*, related: bool) -> None:
    everyone = people(40_000, related=related, seed=11)
    chosen = np.random.default_rng(5).choice(40_000, 4_000, replace=False)
    sample = everyone[:, chosen]
    found = log_linear_risk(*tuples(sample), "1/10")
    unique, right = truth(everyone, sample)
    assert found.tau1.value == pytest.approx(unique, rel=0.35, abs=8)
    assert found.tau2.value == pytest.approx(right, rel=0.2, abs=8)
    if related:
        assert found.model == PAIRS
    else:
        assert found.model == INDEPENDENT
    assert not found.refuted


def test_means_keep_the_margins_they_were_fitted_to() -> None:
    table = np.random.default_rng(2).poisson(3.0, (3, 4, 5)).astype(float)
    fitted = proportional_fit(table, [(0, 1), (1, 2), (0, 2)])
    for away in range(3):
        assert fitted.sum(axis=away) == pytest.approx(table.sum(axis=away), abs=1e-5)


def test_everybody_sampled_is_everybody_known() -> None:
    tau1, tau2 = poisson_risk([0.3, 2.0], 1)
    assert (tau1, tau2) == (2.0, 2.0)


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="above 0"):
        poisson_risk([1.0], 0)


def test_a_table_of_billions_of_cells_has_the_error_that_all_cells_give() -> None:
    """The sums over all cells are estimated from drawn ones, which must agree with adding up every cell."""
    columns, counts = tuples(people(4_000, related=False, seed=3))
    dense = log_linear_risk(columns, counts, "1/10").errors[INDEPENDENT]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(population, "_PAIR_CELLS", 0)
        drawn = log_linear_risk(columns, counts, "1/10")
    assert drawn.errors == {INDEPENDENT: pytest.approx(dense, abs=0.2)}
    wide = log_linear_risk([np.arange(3000)] * 5, np.ones(3000, np.int64), "0.1")
    assert wide.model == INDEPENDENT
    assert wide.tau1.high == 3000


def test_a_model_that_the_class_sizes_refute_is_replaced_by_the_end_of_the_interval() -> None:
    """Twins everywhere: independent columns call each row rare, and no population of uniques has so many pairs."""
    found = log_linear_risk([np.arange(3000)] * 2, np.repeat([1, 2], [2000, 1000]), "1/2")
    assert found.refuted
    assert found.tau2.value in (found.tau2.low, found.tau2.high)


def test_one_column_has_the_model_of_one_column() -> None:
    found = log_linear_risk([np.array([0, 1, 2])], np.array([5, 1, 1]), "0.5")
    assert found.model == INDEPENDENT
