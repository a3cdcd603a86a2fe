from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.measures.risk.linkage import record_linkage

PEOPLE = np.random.default_rng(8).normal(size=(300, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 2.0]])


def noisy(scale: float) -> NDArray[np.float64]:
    return np.asarray(PEOPLE + scale * np.random.default_rng(9).normal(size=PEOPLE.shape))


def slow(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Go through all pairs, one by one."""
    spread, right = x.std(axis=0, ddof=1), 0.0
    for number, row in enumerate(y):
        each = [float((((row - other) / spread) ** 2).sum()) for other in x]
        near = [place for place, distance in enumerate(each) if distance <= min(each) + 1e-12]
        right += (number in near) / len(near)
    return right / len(y)


def test_records_are_linked_as_going_through_all_pairs_links_them() -> None:
    y = noisy(0.3)
    assert record_linkage(PEOPLE, y).value == pytest.approx(slow(PEOPLE, y))


def test_ties_share() -> None:
    twins = np.zeros((4, 2))
    assert record_linkage(twins, twins).value == 0.25
    assert record_linkage(twins, twins, nearest=2).value == 0.5


@pytest.mark.parametrize("robust", [False, True])
def test_more_noise_is_never_more_risk(*, robust: bool) -> None:
    found = [record_linkage(PEOPLE, noisy(scale), robust=robust) for scale in (0.0, 0.2, 1.0, 5.0)]
    assert found[0].value == 1.0
    for more, less in pairwise(found):
        assert less.low is not None
        assert more.high is not None
        assert less.low <= more.high


def test_neither_order_nor_unit_nor_an_outlier_decides_a_robust_link() -> None:
    y, order = noisy(0.3), np.random.default_rng(1).permutation(len(PEOPLE))
    found = record_linkage(PEOPLE, y, robust=True)
    assert record_linkage(PEOPLE[order], y[order], robust=True).value == pytest.approx(found.value)
    assert record_linkage(PEOPLE * [1, 1000, 1], y * [1, 1000, 1], robust=True).value == pytest.approx(found.value)
    far = np.vstack([PEOPLE, [0, 0, 1e6]])
    moved = record_linkage(far, np.vstack([y, [0, 0, 1e6]]), robust=True).value
    plain = record_linkage(far, np.vstack([y, [0, 0, 1e6]])).value
    assert abs(moved - found.value) < 0.05 <= abs(plain - record_linkage(PEOPLE, y).value)


def test_tables_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="row by row"):
        record_linkage(PEOPLE, PEOPLE[:5])
    with pytest.raises(InvalidParameter, match="every cell"):
        record_linkage(PEOPLE, np.where(PEOPLE > 2, np.nan, PEOPLE))
