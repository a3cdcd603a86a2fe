from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from incrowd.errors import InvalidParameter, PackageMissing
from incrowd.measures.coded import Coded
from incrowd.measures.utility.distances import (
    correlation,
    cramers_v,
    dependencies,
    hellinger,
    mover,
    mutual_information,
    variation,
)
from incrowd.measures.utility.learning import learning
from incrowd.measures.utility.regressions import coefficients, pmse, propensity
from incrowd.measures.utility.workload import workload_error

CHANCE = np.random.default_rng(6)


def table(rows: int, seed: int, *, noise: float = 0.0) -> Coded:
    """An age, an income that follows it, and an illness that follows both; noise redraws that share of every column."""
    chance = np.random.default_rng(seed)
    age = chance.integers(0, 60, rows)
    income = np.clip(age // 2 + chance.integers(0, 20, rows), 0, 49)
    ill = ((age > 30) & (chance.random(rows) < 0.9)).astype(int)
    codes = np.stack([age, income, ill]).astype(np.int32)
    other = np.stack([chance.integers(0, size, rows) for size in (60, 50, 2)]).astype(np.int32)
    codes = np.where(chance.random(codes.shape) < noise, other, codes)
    positions = (np.arange(60.0), np.arange(50.0), None)
    return Coded(("age", "income", "ill"), codes, np.ones(rows), (60, 50, 2), positions)


shares = st.lists(st.integers(0, 20), min_size=2, max_size=8).filter(sum).map(lambda x: np.array(x) / sum(x))


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 8).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 9), min_size=n, max_size=n)] * 2)))
def test_distances_of_marginals_are_those_of_definitions(both: tuple[list[int], list[int]]) -> None:
    p, q = (np.array(each) + np.eye(len(each))[0] for each in both)
    p, q = p / p.sum(), q / q.sum()
    places = np.arange(0.0, 3.0 * len(p), 3.0, dtype=np.float64)
    assert 0.0 <= variation(p, q) <= 1.0
    assert hellinger(p, q) ** 2 <= variation(p, q) + 1e-9  # Le Cam
    assert variation(p, q) <= math.sqrt(2) * hellinger(p, q) + 1e-9
    assert mover(p, q, places) == pytest.approx(wasserstein_distance(places, places, p, q) / (places[-1] - places[0]))


def test_what_decides_and_what_is_independent() -> None:
    assert cramers_v(np.diag([0.2, 0.3, 0.5])) == pytest.approx(1.0)
    assert mutual_information(np.outer([0.3, 0.7], [0.5, 0.5])) == pytest.approx(0.0, abs=1e-12)
    x = CHANCE.normal(size=200)
    y = x + CHANCE.normal(size=200)
    assert correlation(x, y, np.ones(200)) == pytest.approx(float(np.corrcoef(x, y)[0, 1]))


def test_columns_in_different_tables_say_nothing_about_each_other() -> None:
    whole = table(500, 1)
    found = {each.columns: each for each in dependencies(whole, [whole.only([0, 1]), whole.only([2])])}
    assert found[("age", "income")].information[0] == found[("age", "income")].information[1]
    assert found[("age", "ill")].information[1] == 0.0 < found[("age", "ill")].information[0]


def test_a_release_of_the_same_law_is_told_apart_as_rarely_as_expected() -> None:
    """Rows from a normal law with the mean of the original: Snoke et al.'s case; the mean of 200 ratios is near 1."""
    chance, ratios = np.random.default_rng(4), []
    for _ in range(200):
        x = chance.normal(size=(200, 2))
        y = chance.normal(size=(200, 2)) + x.mean(axis=0)
        ratios.append(pmse(np.vstack([x, y]), np.repeat([0.0, 1.0], 200)).ratio)
    assert 0.7 < float(np.mean(ratios)) < 1.4


def test_more_noise_is_less_use_by_every_measure() -> None:
    original = table(3000, 2)
    found: dict[str, list[float]] = {"told apart": [], "counts": [], "moved": [], "models": []}
    for noise in (0.0, 0.3, 1.0):
        release = table(3000, 3, noise=noise)
        apart = propensity(original, release)
        learned = learning(original, release, "ill", ("decision tree",))
        assert apart is not None
        assert learned is not None
        found["told apart"].append(apart.score.value)
        found["counts"].append(workload_error(original, release).value)
        found["moved"].append(coefficients(original, release, "income")[0].distance)
        found["models"].append(-learned.models[0].released.value)
    for name, values in found.items():
        assert values == sorted(values), name


def test_every_model_learns_and_beats_the_blind_guess() -> None:
    found = learning(table(3000, 2), table(3000, 3), "ill")
    assert found is not None
    assert found.gain > 0.2
    for each in found.models:
        assert each.auc[1] is not None
        assert each.auc[1] > 0.8
        assert each.released.value == pytest.approx(each.original.value, abs=0.1)


def test_without_scikit_learn_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    imported = builtins.__import__

    def none(name: str, *rest: Any) -> Any:
        if name.startswith("sklearn"):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", none)
    with pytest.raises(PackageMissing, match=r"incrowd\[learn\]"):
        learning(table(50, 2), table(50, 3), "ill")


def test_a_regression_needs_an_order() -> None:
    with pytest.raises(InvalidParameter, match="neither numbers nor days"):
        coefficients(table(50, 2), table(50, 3), "ill")
