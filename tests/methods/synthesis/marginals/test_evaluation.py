"""Errors that are told with noise: no unit moves them farther than their noise is made for, and intervals hold."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.marginals.budget import EVALUATION, Sensitivity, table_rho
from incrowd.methods.synthesis.marginals.evaluation import Evaluator, WeightedRows
from incrowd.methods.synthesis.marginals.output import SyntheticRows
from incrowd.methods.synthesis.marginals.steps import MeasureTables, spent
from incrowd.noise.system import SystemCoins
from incrowd.verifier.judge import statement_of
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, with_ledger
from tests.statistics.alarm import FALSE_ALARM

SIZES = (2, 3, 2, 4)
PAIRS = list(combinations(range(4), 2))
MODEL = {
    "method": "marginals",
    "epsilon": 3,
    "delta": "1e-6",
    "levels": {"zip": 2, "age": 1},
    "errors": "tables",
}


@pytest.mark.parametrize(
    "unit",
    [
        Unit(),
        Unit(adjacency=Adjacency.REPLACE),
        Unit(Kind.PERSON, column="id", max_rows=2),
        Unit(Kind.PERSON, Adjacency.REPLACE, "id", 2),
    ],
    ids=str,
)
def test_no_unit_moves_errors_farther_than_their_noise_is_made_for(unit: Unit) -> None:
    """Every unit's rows over three columns of two values, beside finished tables of one, two and four rows.

    Rows of others only change what is left of the finished table's counts, so that these stand for them.
    """
    reach = Sensitivity.of(unit)
    tables = [*combinations(range(3), 2), (0, 1, 2)]
    cells = [(a, b, c) for a in range(2) for b in range(2) for c in range(2)]
    mine = [each for size in range(unit.max_rows + 1) for each in combinations_with_replacement(cells, size)]
    worst_sum, worst_vector = 0, 0
    for finished in (((0, 0, 0),), ((0, 0, 0),) * 2, ((0, 1, 0), (1, 0, 1), (1, 1, 0), (0, 0, 1))):
        drawn = _rows(finished)
        errors = {
            one: np.array([_rows(one).away(drawn, table, len(finished)) for table in tables], np.int64) for one in mine
        }
        for one in mine:
            for other in mine if unit.adjacency is Adjacency.REPLACE else [()]:
                moved = errors[one] - errors[other]
                worst_sum = max(worst_sum, abs(int(moved[:3].sum())))
                worst_vector = max(worst_vector, int((moved**2).sum()))
    assert worst_sum == 3 * reach.score
    assert worst_vector == len(tables) * reach.score**2


def _rows(rows: tuple[tuple[int, ...], ...]) -> WeightedRows:
    return WeightedRows.once((2, 2, 2), np.array(rows, np.int64).reshape(-1, 3).T)


@pytest.mark.parametrize("reach", [Sensitivity(1, 1), Sensitivity(8, 4)])
def test_mean_and_tables_cost_a_hundredth_each(reach: Sensitivity) -> None:
    evaluator = Evaluator(*_two_tables(), 500, Fraction(1, 7), reach)
    mean, each = evaluator.mean(SystemCoins()), evaluator.tables(PAIRS, SystemCoins())
    share = EVALUATION * evaluator.rho
    assert table_rho(mean.scale, Sensitivity((6 * reach.score) ** 2, 1)) <= share
    assert table_rho(each.scale, Sensitivity(reach.score**2, 1), 6) <= share
    assert each.margin == pytest.approx(math.sqrt(6) * mean.margin, rel=0.02), "√k times as wide"


def test_intervals_hold_the_truth_in_nearly_all_runs() -> None:
    """Of 300 intervals with 95 %, fewer than 264 hold the truth with a chance below one in a million.

    For the mean and six tables together, below 261 does.
    """
    tails = [sum(math.comb(300, n) * 0.95**n * 0.05 ** (300 - n) for n in range(least)) for least in (264, 261)]
    assert tails[0] < FALSE_ALARM
    assert 7 * tails[1] < FALSE_ALARM
    rows, drawn = _two_tables()
    evaluator = Evaluator(rows, drawn, 500, Fraction(1), Sensitivity(1, 1))
    truths = np.array([np.abs(rows.table(pair) - drawn.table(pair)).sum() / 1000 for pair in PAIRS])
    held, held_each = 0, np.zeros(6, np.int64)
    for _ in range(300):
        mean, each = evaluator.mean(SystemCoins()), evaluator.tables(PAIRS, SystemCoins())
        held += abs(mean.error - truths.mean()) <= mean.margin
        held_each += np.abs(np.array(each.errors) - truths) <= each.margin
    assert min(held, *held_each) >= 261


def _two_tables() -> tuple[WeightedRows, WeightedRows]:
    chance = np.random.default_rng(6)
    one, other = (np.array([chance.integers(0, size, 500) for size in SIZES]) for _ in range(2))
    return WeightedRows.once(SIZES, one), WeightedRows.once(SIZES, other)


@pytest.mark.parametrize("method", ["marginals", "tree"])
@pytest.mark.parametrize("workload", [None, [["zip", "sex"], ["sex", "age", "zip"]]])
def test_the_error_of_each_table_is_told_and_paid(method: str, workload: Any, tmp_path: Path) -> None:
    """At ε = 3, 2,000 rows and 1 % of ρ, each error strays by a standard deviation of .021 or less."""
    plain = changed(PEOPLE, release=MODEL, release__method=method, release__workload=workload)
    found = release(people(2000), with_ledger(plain, tmp_path))
    evidence = found.certificate.evidence
    named = [each["columns"] for each in evidence["errors of tables"]]
    pairs = [["sex", "age"], ["sex", "zip"], ["age", "zip"], ["sex", "age", "zip"]]
    assert named == (pairs if workload is None else [["sex", "zip"], ["sex", "age", "zip"]])
    measure = next(step for step in found.certificate.steps if isinstance(step, MeasureTables))
    assert measure.evaluation == "1/50"
    assert spent(evidence, Sensitivity(1, 1)) <= measure.rho
    assert isinstance(found.result, SyntheticRows)
    assert "each measured privately" in found.report()


def test_what_is_told_of_tables_is_verified(tmp_path: Path) -> None:
    policy = with_ledger(changed(PEOPLE, release=MODEL), tmp_path)
    made = release_to(people(500), policy, Destination(tmp_path / "out", "csv"))
    assert verify(tmp_path / "out", policy=load_policy(policy)).failure is None
    plain = made.release.certificate.to_json()
    assert not _contradicted(plain)
    told = plain["evidence"]["errors of tables"]
    forgeries: tuple[dict[str, Any], ...] = (
        {"errors of tables": told[1:]},
        {"errors of tables": []},
        {"scale of each table": "1"},
        {"scale of each table": "no number"},
        {"error scale": "1"},
    )
    for forged in forgeries:
        assert _contradicted({**plain, "evidence": {**plain["evidence"], **forged}}), forged


def _contradicted(plain: dict[str, Any]) -> bool:
    statement = statement_of(certificate_of(json.loads(json.dumps(plain))))
    return check_of("marginals").contradiction(statement) is not None


def test_errors_of_something_else_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="errors"):
        load_policy(changed(PEOPLE, release=MODEL, release__errors="cells")).plan  # noqa: B018
