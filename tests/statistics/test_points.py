"""Is what is drawn on a huge grid drawn as on a small one, and is a uniform point uniform?"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.domain import Numbers
from incrowd.methods.synthesis.points.method import SyntheticPoints
from incrowd.methods.synthesis.points.output import Points
from incrowd.noise.system import SystemCoins
from tests.methods.synthesis.boxes import column, side, table_of
from tests.statistics.alarm import FALSE_ALARM, binomial_p_value, p_value

EPSILON, K, CELLS = Fraction(1), 4, 6
RUNS = 1500


def test_cells_on_the_sparse_path_have_the_law_of_the_dense_one() -> None:
    """Counts 5, 0, 0, 2, 0, 0: the row of released counts, as one outcome, against independent noise on every cell."""
    table = table_of((side("x"),), ([0.05] * 5 + [0.55] * 2,))
    method = SyntheticPoints(s=CELLS, k=K, noise_epsilon=EPSILON)
    sparse = np.array([outcome(method.release(table, SystemCoins())) for _ in range(RUNS)])
    masses = np.ones(1)
    for count in (0, 0, 2, 0, 0):
        masses = np.outer(clamped(count), masses).ravel()
    assert p_value(sparse, dict(enumerate(masses.tolist()))) > FALSE_ALARM


def clamped(count: int) -> list[float]:
    """The law of noise on a count below k, held between 0 and k − 1, from its closed form."""
    a = math.exp(-float(EPSILON))
    inner = [(1 - a) / (1 + a) * a ** abs(out - count) for out in range(1, K - 1)]
    return [a**count / (1 + a), *inner, a ** (K - 1 - count) / (1 + a)]


def outcome(made: Points) -> int:
    found = np.zeros(CELLS, np.int64)
    found[made.keys] = made.counts
    assert found[0] == 5
    return int(found[1:] @ (K ** np.arange(CELLS - 1)))


def test_places_of_phantoms_on_a_huge_grid_are_uniform() -> None:
    columns = tuple(side(f"x{n}") for n in range(8))
    table = table_of(columns, [[0.5]] * 8)
    made = SyntheticPoints(s=10, k=3, noise_epsilon=Fraction(7)).release(table, SystemCoins())
    a = math.exp(-7)
    assert binomial_p_value(len(made.keys), 10**8, a / (1 + a)) > FALSE_ALARM / 9
    for codes in made.codes():
        assert p_value(codes.astype(np.int64), dict.fromkeys(range(10), 0.1)) > FALSE_ALARM / 9


def test_uniform_points_fill_their_cells_evenly() -> None:
    table = table_of((side("x"), column("n", Numbers(0, 10))), ([0.3] * 20_000, [7] * 20_000))
    made = SyntheticPoints(s=2, k=2, place="uniform").release(table, SystemCoins()).to_arrow()
    tenths: NDArray[np.int64] = np.floor(made["x"].to_numpy() * 20).astype(np.int64)
    assert p_value(tenths, dict.fromkeys(range(10), 0.1)) > FALSE_ALARM / 2
    assert p_value(made["n"].to_numpy(), dict.fromkeys(range(5, 11), 1 / 6)) > FALSE_ALARM / 2
