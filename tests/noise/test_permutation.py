"""A permutation is uniform over all orders, and never decided by equal keys."""

from __future__ import annotations

from incrowd.noise.system import SystemCoins, permutation
from tests.coins import ScriptedCoins


def test_every_order_is_as_likely() -> None:
    """Of 6,000 orders of three, each of the six comes up 1,000 times; 180 off is six deviations: below 6 · 3e-9."""
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(6000):
        order = tuple(permutation(SystemCoins(), 3).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(abs(count - 1000) < 180 for count in counts.values())


def test_equal_keys_are_drawn_again() -> None:
    coins = ScriptedCoins(below=[5, 5, 1, 7, 2, 9])
    assert permutation(coins, 3).tolist() == [1, 0, 2]
    assert permutation(ScriptedCoins(below=[]), 0).tolist() == []
