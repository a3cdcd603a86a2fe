"""What an attacker proves by asking a server: never more than was charged, and broken servers are caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from numpy.typing import NDArray

from incrowd.client.transport import Transport
from incrowd.core.mechanism import Coins
from incrowd.mechanisms.cube import AddCube
from incrowd.queries.language import declared, tables
from incrowd.queries.measuring import noise as question_noise
from incrowd.queries.measuring import picks, statistics
from tests.audit.asking import EPSILON, NOT_SHOWN, Attack, Reply, proved
from tests.audit.auditing import Trials
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
    return proved(*attack.seen(folder, inside), attack.delta)


@pytest.mark.parametrize(
    ("attack", "least"),
    [
        pytest.param(COUNT, 0.6, id="count"),
        pytest.param(SUM, 0.6, id="sum"),
        pytest.param(MEAN, 0.5, id="mean"),
        pytest.param(MEDIAN, 0.05, id="median"),
        pytest.param(MODE, 0.4, id="mode"),
        pytest.param(OUTLIER, 0.6, id="outlier"),
        pytest.param(PEOPLE, 0.2, id="people"),
        pytest.param(PERSON, 0.6, id="person"),
        pytest.param(GREEDY, 0.6, id="person with too many rows"),
        pytest.param(HIDDEN, -np.inf, id="group of one"),
        pytest.param(CROWDED, 0.4, id="group that others have too"),
    ],
)
def test_a_question_proves_no_more_than_was_charged(attack: Attack, least: float, tmp_path: Path) -> None:
    assert least * EPSILON <= attacked(attack, tmp_path) <= EPSILON


def test_over_a_socket_a_question_proves_what_was_charged_and_no_more(tmp_path: Path) -> None:
    assert 0.6 * EPSILON < proved(*COUNT.seen(tmp_path, outside)) <= EPSILON


def test_a_group_of_one_is_shown_as_rarely_as_promised(tmp_path: Path) -> None:
    with_you, without = HIDDEN.seen(tmp_path, inside)
    assert set(without) == {NOT_SHOWN}
    shown = Trials.count(number != NOT_SHOWN for number in with_you)
    assert 0.0 < shown.least <= HIDDEN.delta


def half_the_noise(noise: AddCube, vectors: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
    return _RELEASE(replace(noise, epsilon=2 * noise.epsilon), vectors, coins)


def no_noise(_noise: AddCube, vectors: NDArray[Any], _coins: Coins) -> NDArray[np.int64]:
    return np.asarray(vectors, dtype=np.int64)


def none_where_empty(noise: AddCube, vectors: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
    return np.where(vectors.any(axis=1, keepdims=True), _RELEASE(noise, vectors, coins), 0)


_RELEASE = AddCube.release


@pytest.mark.parametrize(
    ("broken", "attack"),
    [
        pytest.param(half_the_noise, COUNT, id="half the noise on a count"),
        pytest.param(half_the_noise, SUM, id="half the noise on a sum"),
        pytest.param(half_the_noise, PERSON, id="half the noise on a person"),
        pytest.param(no_noise, COUNT, id="no noise"),
        pytest.param(none_where_empty, replace(COUNT, others=[]), id="no noise on empty groups"),
    ],
)
def test_a_server_with_too_little_noise_is_caught(
    broken: Any, attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AddCube, "release", broken)
    assert attacked(attack, tmp_path) > EPSILON


def test_a_server_that_forgets_bounds_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declared, "_moved", lambda *_: [])
    monkeypatch.setattr(statistics, "held", lambda number, _most: number)
    assert attacked(OUTLIER, tmp_path) > EPSILON


def test_a_server_that_counts_all_rows_of_a_person_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "first_rows", lambda query, *_: query)
    assert attacked(GREEDY, tmp_path) > EPSILON


def test_a_server_without_a_threshold_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    low = question_noise.Threshold(-(10**9), Fraction(1, 20))
    monkeypatch.setattr(question_noise, "_threshold", lambda *_: low)
    assert attacked(HIDDEN, tmp_path) > EPSILON


@pytest.mark.parametrize("attack", [pytest.param(MEDIAN, id="median"), pytest.param(MODE, id="mode")])
def test_a_server_that_picks_the_best_is_caught(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picks, "select_each", lambda _mechanism, scores, _coins: scores.argmax(axis=1))
    assert attacked(attack, tmp_path) > EPSILON
