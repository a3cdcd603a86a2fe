"""The coins of releases: what they accept and what they refuse."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.coins import Coins
from incrowd.errors import InvalidParameter
from incrowd.noise.system import SystemCoins
from tests.coins import ScriptedCoins, SeededCoins

COINS = SystemCoins()
ONE = Fraction(1)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: COINS.bernoulli(Fraction(3, 2), 1),
        lambda: COINS.bernoulli(Fraction(-1, 2), 1),
        lambda: COINS.bernoulli(ONE, -1),
        lambda: COINS.below(0, 1),
        lambda: COINS.below(2**63 + 1, 1),
        lambda: COINS.laplace(Fraction(0), 1),
        lambda: COINS.laplace(Fraction(2**48 + 1), 1),
        lambda: COINS.laplace(ONE, -1),
        lambda: COINS.gaussian(Fraction(-1), 1),
        lambda: COINS.gaussian(Fraction(2**50), 1),
        lambda: COINS.decay(Fraction(0), np.array([1])),
        lambda: COINS.decay(ONE, np.array([-1])),
        lambda: COINS.decay(ONE, np.array([1.0])),
        lambda: COINS.outliers(ONE, 0, 10),
        lambda: COINS.outliers(ONE, 1, 2**46 + 1),
        lambda: COINS.sample(ONE),
    ],
)
def test_what_has_no_meaning_is_refused(draw: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        draw()


def test_nothing_is_drawn_when_nothing_is_asked_for() -> None:
    sizes = [COINS.bernoulli(ONE / 2, 0).size, COINS.below(5, 0).size, COINS.laplace(ONE, 0).size]
    assert [*sizes, COINS.gaussian(ONE, 0).size, COINS.outliers(ONE, 1, 0)[0].size] == [0] * 5


def test_two_draws_differ() -> None:
    assert (COINS.laplace(Fraction(1000), 100) != COINS.laplace(Fraction(1000), 100)).any()


def test_coins_of_every_kind_are_coins() -> None:
    kinds: tuple[Coins, ...] = (COINS, SeededCoins(1), ScriptedCoins(laplace=[3]))
    assert [coins.laplace(ONE, 1).size for coins in kinds] == [1, 1, 1]


def test_seeded_coins_repeat_themselves() -> None:
    assert (SeededCoins(7).gaussian(ONE, 50) == SeededCoins(7).gaussian(ONE, 50)).all()
    one, other = SeededCoins(7).sample(ONE / 2), SeededCoins(7).sample(ONE / 2)
    assert (one.at(0, 100) == other.at(0, 100)).all()


def test_a_script_that_is_too_short_is_noticed() -> None:
    with pytest.raises(AssertionError, match="too short"):
        ScriptedCoins(laplace=[1]).laplace(ONE, 2)


def test_forked_processes_do_not_draw_the_same() -> None:
    code = """
import os
from fractions import Fraction
from incrowd.noise.system import SystemCoins
coins = SystemCoins()
coins.laplace(Fraction(2**30), 1)
child = os.fork()
os.write(1, f"{coins.laplace(Fraction(2**30), 1)[0]}\\n".encode())
if child:
    os.waitpid(child, 0)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert len(set(out)) == 2
