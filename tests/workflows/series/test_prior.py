"""Synthetic rows over time: the model of an earlier period, as published, is where the next one starts, at no cost."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.methods.synthesis.marginals.method import Marginals
from incrowd.methods.synthesis.marginals.prior import PriorRows, prior_cliques
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.series.series import Series, run_period
from incrowd.workflows.verify.verify import verify
from tests.coins import SeededCoins

MONTHS = ("2025-01", "2025-02", "2025-03")
NAMES = ("Übelkeit", "Fieber", "Husten")


def rows(people: int = 400, seed: int = 3) -> pa.Table:
    """Return people of three months with three symptoms that come together, in all months alike."""
    chance = np.random.default_rng(seed)
    size = people * len(MONTHS)
    ill = chance.random(size) < 0.4
    columns: dict[str, Any] = {name: np.where(chance.random(size) < 0.05, ~ill, ill) for name in NAMES}
    texts = {name: pa.array(np.where(column, "ja", "nein").tolist()) for name, column in columns.items()}
    days = [f"{MONTHS[place // people]}-{1 + place % 28:02}" for place in range(size)]
    return pa.table({"id": [f"p{place}" for place in range(size)], "tag": days, **texts})


def policy_in(folder: Path, method: str = "marginals") -> Policy:
    section: dict[str, Any] = {
        "incrowd": 1,
        "dataset": {"name": "symptoms", "unit": {"column": "id"}},
        "columns": {
            "id": {"role": "identifier"},
            "tag": {"role": "withheld", "type": "date"},
            **{name: {"categories": ["ja", "nein"], "missing": "drop", "outside": "drop"} for name in NAMES},
        },
        "period": {"column": "tag", "every": "month", "first": MONTHS[0], "last": MONTHS[-1]},
        "release": {"method": method, "epsilon": "1/2", "delta": "1e-6", "rows": 400},
        "budget": {"epsilon": 2, "delta": "1e-5"},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    return load_policy(section, folder=folder)


@pytest.mark.parametrize("method", ["marginals", "tree"])
def test_a_model_starts_from_the_last_published_one_and_says_so(method: str, tmp_path: Path) -> None:
    policy, data = policy_in(tmp_path, method), rows()
    first = run_period(data, policy, MONTHS[0], Destination(tmp_path / MONTHS[0], "csv"))
    second = run_period(data, policy, MONTHS[1], Destination(tmp_path / MONTHS[1], "csv"))
    starts = [
        [step for step in run.certificate.steps if step.kind == "start from an earlier model"]
        for run in (first, second)
    ]
    assert starts[0] == []
    (start,) = starts[1]
    assert start.digest == first.certificate.digest()  # type: ignore[attr-defined]
    assert "The model of 2025-01 was used as published" in start.sentence
    ledger = Series.of(policy).ledger
    assert ledger is not None
    spent = ledger.standing("symptoms").totals.spent
    assert Fraction(9999, 10_000) < Fraction(spent.epsilon) <= 1  # two releases, and nothing for the start
    outcome = verify(tmp_path / MONTHS[1], policy=policy, ledger=ledger)
    assert outcome.passed, outcome.failure
    (tmp_path / MONTHS[1] / "model.json").write_text("{}", encoding="utf-8")
    third = run_period(data, policy, MONTHS[2], Destination(tmp_path / MONTHS[2], "csv"))
    (start,) = (step for step in third.certificate.steps if step.kind == "start from an earlier model")
    assert start.digest == first.certificate.digest()  # type: ignore[attr-defined]  # February is not as it was published


def test_what_was_not_measured_stays_as_it_was_and_errors_are_smaller(tmp_path: Path) -> None:
    """Pairs of three columns of 300 people at a small epsilon, one pair measured; means of 6 runs (.22 and .06)."""
    schema, delta = policy_in(tmp_path).schema, Fraction(1, 10**6)
    method = Marginals(Fraction(1, 5), delta, rows=4000, rounds=1)
    rich = Marginals(Fraction(2), delta)
    model = rich.release(Table(schema, open_source(rows(2000)), LocalEngine()), SeededCoins(1)).model
    assert model is not None
    assert prior_cliques(model, 100_000) == method.start_from(model, schema)
    assert prior_cliques(model, 2) == ()
    month = Table(schema, open_source(rows(100, 7)), LocalEngine())
    truth = {pair: _share(rows(seed=9), pair) for pair in combinations(NAMES, 2)}
    errors = {}
    for name, source in (("alone", month), ("prior", PriorRows(month, model))):
        made = [method.release(source, SeededCoins(seed)).table for seed in range(6)]
        errors[name] = np.mean([abs(_share(one, pair) - share) for one in made for pair, share in truth.items()])
    assert errors["prior"] < 0.5 * errors["alone"]


def _share(table: pa.Table, pair: tuple[str, str]) -> float:
    one, other = (np.array([str(value) for value in table[name].to_pylist()]) for name in pair)
    return float(np.mean(one == other))
