"""What an attacker proves by asking a server: never more than was charged, and broken servers are caught."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from numpy.typing import NDArray

from incrowd.client.client import Transport
from incrowd.core.coins import Coins
from incrowd.engines.sql import duckdb
from incrowd.mechanisms.vector_noise import AddCube
from incrowd.queries.language import tables
from incrowd.queries.measuring import noise as question_noise
from incrowd.queries.measuring import picks, statistics
from tests.audit.asking import CELLS, EPSILON, EVENTS, NOT_SHOWN, Attack, Reply
from tests.audit.auditing import Trials, reaching, shifted
from tests.statistics.alarm import FALSE_ALARM
from tests.web.serving import Browser, listening

TWO_ROWS = {"column": "who", "max_rows": 2}
FOUR = [("a", 1), ("b", 1), ("c", 3), ("d", 3)]
TEXT = {"type": "text", "missing": "drop"}

COUNT = Attack("SELECT cell, COUNT(*) AS n FROM t GROUP BY cell", FOUR, [("you", 4)])
SUM = Attack("SELECT cell, SUM(value) AS s FROM t GROUP BY cell", FOUR, [("you", 4)])
MEAN = Attack("SELECT cell, AVG(value) AS m FROM t GROUP BY cell", [("a", 0), ("b", 0)], [("you", 4)])
MEDIAN = Attack("SELECT cell, MEDIAN(value) AS m FROM t GROUP BY cell", [], [("you", 4)])
MODE = Attack("SELECT cell, MODE(value) AS m FROM t GROUP BY cell", [], [("you", 4)])
OUTLIER = replace(SUM, you=[("you", 1_000_000)])
PEOPLE = replace(COUNT, sql="SELECT cell, COUNT(DISTINCT who) AS n FROM t GROUP BY cell", unit=TWO_ROWS)
PERSON = replace(COUNT, you=[("you", 4), ("you", 4)], unit=TWO_ROWS)
GREEDY = replace(COUNT, you=[("you", value % 5) for value in range(40)], unit=TWO_ROWS)
HIDDEN = Attack("SELECT cell, COUNT(*) AS n FROM t GROUP BY cell", [], [("you", 4)], delta=0.05, cell=TEXT)
CROWDED = replace(HIDDEN, others=FOUR)


def inside(server: FastAPI, token: str, asked: dict[str, object]) -> Reply:
    """Ask an application in this process."""
    reply = Browser(server).post("/v1/query", json=asked, headers={"Authorization": f"Bearer {token}"})
    assert reply.status_code == 200, reply.text
    answer: Reply = reply.json()
    return answer


def outside(server: FastAPI, token: str, asked: dict[str, object]) -> Reply:
    """Ask over a socket."""
    with listening(server) as address:
        answer: Reply = Transport(address, token).post("/v1/query", asked)
    return answer


def attacked(attack: Attack, folder: Path) -> float:
    """Return the epsilon that an attack proves."""
    return EVENTS.proved(*attack.seen(folder, inside), attack.delta)


def exponential(gap: float, others: int) -> tuple[float, float]:
    """Return the chances to pick a value whose score is this far above so many others, and is level with them."""
    return 1 / (1 + others * math.exp(-gap)), 1 / (1 + others)


def permuted(gap: float, others: int) -> tuple[float, float]:
    """Return the same two chances where values are gone through in random order, each kept with e^(−what it lacks)."""
    passed = 1 - math.exp(-gap)
    return sum(passed**earlier for earlier in range(1 + others)) / (1 + others), 1 / (1 + others)


UNKNOWN = (0.0, 1.0)
"""Chances of an event that proves nothing: what the attack finds at least is not computed."""


@pytest.mark.parametrize(
    ("attack", "chances"),
    [
        pytest.param(COUNT, shifted(1, 1), id="count"),
        pytest.param(SUM, shifted(4, 4), id="sum"),
        pytest.param(MEAN, UNKNOWN, id="mean"),
        pytest.param(MEDIAN, exponential(EPSILON / 2, 4), id="median"),
        pytest.param(MODE, permuted(EPSILON, 4), id="mode"),
        pytest.param(OUTLIER, shifted(4, 4), id="outlier"),
        pytest.param(PEOPLE, shifted(1, 2), id="people"),
        pytest.param(PERSON, shifted(2, 2), id="person"),
        pytest.param(GREEDY, shifted(2, 2), id="person with too many rows"),
        pytest.param(HIDDEN, UNKNOWN, id="group of one"),
        pytest.param(CROWDED, shifted(1, 1), id="group that others have too"),
    ],
)
def test_a_question_proves_what_so_many_cells_can_and_no_more_than_was_charged(
    attack: Attack, chances: tuple[float, float], tmp_path: Path
) -> None:
    """Either side fails with probability FALSE_ALARM / 2 at most; so few cells of a median need not prove anything."""
    assert EVENTS.sure(chances, CELLS, attack.delta) <= attacked(attack, tmp_path) <= EPSILON


def test_the_attacks_are_strong_enough_to_be_worth_their_while() -> None:
    assert EVENTS.sure(shifted(1, 1), CELLS) > 0.6 * EPSILON
    assert EVENTS.sure(shifted(4, 4), CELLS) > 0.5 * EPSILON
    assert EVENTS.sure(permuted(EPSILON, 4), CELLS) > 0.4 * EPSILON


def test_over_a_socket_a_question_proves_what_was_charged_and_no_more(tmp_path: Path) -> None:
    assert EVENTS.sure(shifted(1, 1), CELLS) <= EVENTS.proved(*COUNT.seen(tmp_path, outside)) <= EPSILON


def test_a_group_of_one_is_shown_as_rarely_as_guaranteed(tmp_path: Path) -> None:
    """The threshold is the least whole number that keeps delta, so one alone is shown with more than delta / e."""
    with_you, without = HIDDEN.seen(tmp_path, inside)
    assert set(without) == {NOT_SHOWN}
    shown = Trials.count(number != NOT_SHOWN for number in with_you)
    assert shown.least() <= HIDDEN.delta
    assert shown.seen > 0
    assert (1 - HIDDEN.delta / math.e) ** CELLS < FALSE_ALARM


def half_the_noise(noise: AddCube, vectors: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
    return _RELEASE(replace(noise, epsilon=2 * noise.epsilon), vectors, coins)


def no_noise(_noise: AddCube, vectors: NDArray[Any], _coins: Coins) -> NDArray[np.int64]:
    return np.asarray(vectors, dtype=np.int64)


def none_where_empty(noise: AddCube, vectors: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
    return np.where(vectors.any(axis=1, keepdims=True), _RELEASE(noise, vectors, coins), 0)


_RELEASE = AddCube.release


SURE = (1.0, 0.0)
"""Chances of an event that is certain with you and impossible without you."""


@pytest.mark.parametrize(
    ("broken", "attack", "chances"),
    [
        pytest.param(half_the_noise, COUNT, shifted(1, 0.5), id="half the noise on a count"),
        pytest.param(half_the_noise, SUM, shifted(4, 2), id="half the noise on a sum"),
        pytest.param(half_the_noise, PERSON, shifted(2, 1), id="half the noise on a person"),
        pytest.param(no_noise, COUNT, SURE, id="no noise"),
        pytest.param(no_noise, PEOPLE, SURE, id="no noise on people"),
        pytest.param(no_noise, MEAN, SURE, id="no noise on a mean"),
        pytest.param(none_where_empty, replace(COUNT, others=[]), (reaching(0, 1), 0.0), id="no noise on empty groups"),
    ],
)
def test_a_server_with_too_little_noise_is_caught(
    broken: Any, attack: Attack, chances: tuple[float, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AddCube, "release", broken)
    assert attacked(attack, tmp_path) >= EVENTS.sure(chances, CELLS) > EPSILON


def test_a_server_that_forgets_bounds_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without you the sum is 8, with you a million more: it is 16 or more.  Codes alone would refuse such a number."""
    monkeypatch.setattr(tables, "_moved", lambda *_: [])
    monkeypatch.setattr(duckdb, "codes_of", lambda _: {})
    monkeypatch.setattr(statistics, "clamp_number", lambda number, _most: number)
    monkeypatch.setattr(statistics, "whole_number", lambda *_: None)
    assert attacked(OUTLIER, tmp_path) >= EVENTS.sure((reaching(-(10**6), 4), reaching(8, 4)), CELLS) > EPSILON


def test_a_server_that_counts_all_rows_of_a_person_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without you there are 4 rows, with you 44: there are 16 or more."""
    monkeypatch.setattr(tables, "own_rows", lambda query, *_: query)
    assert attacked(GREEDY, tmp_path) >= EVENTS.sure((reaching(-28, 2), reaching(12, 2)), CELLS) > EPSILON


def test_a_server_without_a_threshold_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of one is shown, and with a count of 0 or more in most cases."""
    low = question_noise.CountThreshold(-(10**9), Fraction(1, 20))
    monkeypatch.setattr(question_noise, "_threshold", lambda *_: low)
    assert attacked(HIDDEN, tmp_path) >= EVENTS.sure((reaching(-1, 1), 0.0), CELLS, HIDDEN.delta) > EPSILON


@pytest.mark.parametrize("attack", [pytest.param(MEDIAN, id="median"), pytest.param(MODE, id="mode")])
def test_a_server_that_picks_the_best_is_caught(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picks, "select_each", lambda _mechanism, scores, _coins: scores.argmax(axis=1))
    assert attacked(attack, tmp_path) >= EVENTS.sure(SURE, CELLS) > EPSILON
