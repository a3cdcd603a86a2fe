"""The attack lab at a server: reconstruction succeeds without a budget and fails under one; averaging gains nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from incrowd.attacks.answers import averaging, reconstruction
from incrowd.attacks.finding import AttackVerdict
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessDecision, AccessRole, User
from incrowd.web.app import ServeOrder, open_server
from incrowd.web.settings import Settings
from tests.web.serving import Browser

PEOPLE, QUESTIONS = 24, 30
BITS = np.random.default_rng(8).permutation(np.arange(PEOPLE) % 2)
Counting = Callable[[NDArray[np.bool_]], float | None]


@contextmanager
def counting(folder: Path, budget: str, epsilon: str) -> Iterator[Counting]:
    """Give a way to ask a server how many people of a subset have the bit; None where it refuses."""
    lines = [f"{person},{bit}\n" for person, bit in enumerate(BITS)]
    (folder / "table.csv").write_text("person,bit\n" + "".join(lines))
    content = {
        "incrowd": 1,
        "dataset": {"name": "t"},
        "source": "table.csv",
        "columns": {
            "person": {"type": "integer", "bounds": [0, PEOPLE - 1], "missing": "drop"},
            "bit": {"type": "integer", "bounds": [0, 1], "missing": "drop"},
        },
        "queries": {"table": "t", "open": True, "most_epsilon": 1000},
        "budget": {"epsilon": budget},
    }
    (folder / "policy.yaml").write_text(json.dumps(content))
    access = AccessList.create(f"sqlite:///{folder}/.incrowd/ledger.sqlite")
    end = access.now() + timedelta(days=1)
    token = access.grant(User("eve", AccessRole.ANALYST), end, AccessDecision("officer", "a test")).token
    server = open_server(ServeOrder((str(folder / "policy.yaml"),), None, Settings(pace=0.0, rate=10_000)))
    browser = Browser(server)

    def ask(subset: NDArray[np.bool_]) -> float | None:
        people = ", ".join(str(person) for person in np.flatnonzero(subset))
        sql = f"SELECT COUNT(*) AS n FROM t WHERE bit = 1 AND person IN ({people})"
        told = {"sql": sql, "epsilon": epsilon}
        reply = browser.post("/v1/query", json=told, headers={"Authorization": f"Bearer {token}"})
        return float(reply.json()["answer"]["columns"][0]["values"][0]) if reply.status_code == 200 else None

    try:
        yield ask
    finally:
        server.state.close()


def _number(ask: Counting, subset: NDArray[np.bool_]) -> float:
    told = ask(subset)
    assert told is not None
    return told


def test_reconstruction_succeeds_where_a_budget_does_not_stop_it(tmp_path: Path) -> None:
    with counting(tmp_path, "1000", "20") as ask:
        found = reconstruction(ask, BITS, QUESTIONS)
    assert found.verdict is AttackVerdict.BEATS_GUESSING
    assert found.success.hits >= PEOPLE - 1, "of 30 counts one is off with 30 * 2 * exp(-20)"


def test_reconstruction_fails_under_a_budget(tmp_path: Path) -> None:
    with counting(tmp_path, "1/2", "1/8") as ask:
        found = reconstruction(ask, BITS, 6)
    assert found.success.hits < PEOPLE, "all of them by chance: with 2**-24"
    assert "4 are answered" in found.story[0]


def test_averaging_gains_nothing_where_answers_are_kept(tmp_path: Path) -> None:
    subsets = [np.arange(PEOPLE) < size for size in (8, 16)]
    with counting(tmp_path, "10", "1/2") as ask:
        found = averaging([(partial(_number, ask, subset), int(BITS[subset].sum())) for subset in subsets], 4)
        again = {ask(subsets[0]) for _ in range(3)}
    assert found.success == found.baseline
    assert len(again) == 1
