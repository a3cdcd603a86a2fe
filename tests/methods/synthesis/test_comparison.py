"""A comparison of ways to synthesize: its budget, its choice, its checks, and `incrowd synth compare`."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.csv as pc_csv
import pytest

from incrowd.accounting.concentrated import largest_rho
from incrowd.cli.main import main
from incrowd.core.loss import ZeroConcentrated
from incrowd.core.statement import Statement
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.comparison import Candidate, CompareSyntheses, SyntheticComparison
from incrowd.methods.synthesis.marginals.steps import MeasureTables
from incrowd.verifier.judge import statement_of
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.comparison import comparison_policy
from incrowd.workflows.release.tables import synthesize
from tests.contract.examples import POLICIES, rows
from tests.policies import changed

DELTA = Fraction(1, 10**6)
POLICY = POLICIES["comparison"]["two ways"]


@pytest.mark.parametrize("number", [2, 3, 8])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(10)])
def test_all_runs_together_cost_what_the_policy_says_and_little_less(number: int, epsilon: Fraction) -> None:
    method = SyntheticComparison(epsilon, DELTA, {f"way {n}": Candidate() for n in range(number)})
    spent = sum(way.rho for way in method.ways().values())
    assert Fraction(999, 1000) * largest_rho(epsilon, DELTA) < spent <= largest_rho(epsilon, DELTA)


def test_the_loss_is_the_sum_of_all_runs() -> None:
    plan = load_policy(POLICY).plan
    step = next(step for step in plan.steps if isinstance(step, CompareSyntheses))
    loss = plan.guarantee.loss
    assert isinstance(loss, ZeroConcentrated)
    assert loss.rho == sum(candidate.rho for candidate in step.candidates) == 2 * step.candidates[0].rho
    alone = load_policy(changed(POLICY, release=POLICIES["marginals"]["adaptive"]["release"])).plan
    own = next(step for step in alone.steps if isinstance(step, MeasureTables))
    assert 0 <= own.rho - loss.rho < own.rho / 1000


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        ({"one": {}}, "2 to 8 candidates"),
        ({str(n): {} for n in range(9)}, "2 to 8 candidates"),
        ({"a": {}, "b": {"method": "tree", "target_column": "sex"}}, "no target_column"),
        ({"a": {}, "b": {"method": "safe"}}, "method"),
    ],
)
def test_what_cannot_be_compared_is_refused(candidates: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        load_policy(changed(POLICY, release__candidates=candidates)).plan  # noqa: B018


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Statement:
    ledger = f"sqlite:///{tmp_path_factory.mktemp('ledger')}/ledger.sqlite"
    return statement_of(synthesize(rows(), changed(POLICY, ledger=ledger)).certificate)


def test_rows_of_the_smallest_error_are_released(made: Statement) -> None:
    errors = [float(error) for error in made.evidence["errors of ways"]]
    assert errors.index(min(errors)) == made.evidence["way"]
    assert made.evidence["mean error of pairs"] == made.evidence["errors of ways"][made.evidence["way"]]
    assert check_of("comparison").contradiction(made) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda errors, way: {"way": 1 - way},
        lambda errors, way: {"way": "0"},
        lambda errors, way: {"way": 7},
        lambda errors, way: {"errors of ways": errors[way:][:1], "way": 0},
        lambda errors, way: {"errors of ways": ["0.000001"] * 2},
        lambda errors, way: {"errors of ways": [error if n == way else "-1" for n, error in enumerate(errors)]},
        lambda errors, way: {"errors of ways": [error if n == way else "0" for n, error in enumerate(errors)]},
        lambda errors, way: {"errors of ways": None},
        lambda errors, way: {"margins of ways": ["0"] * 2},
    ],
)
def test_other_errors_than_the_choice_follows_from_are_noticed(made: Statement, change: Any) -> None:
    more = change(made.evidence["errors of ways"], made.evidence["way"])
    forged = replace(made, evidence={**made.evidence, **more})
    assert check_of("comparison").contradiction(forged) is not None


def _files(folder: Path, **changes: dict[str, Any]) -> list[Path]:
    base = changed(POLICIES["marginals"]["adaptive"], ledger=f"sqlite:///{folder}/ledger.sqlite")
    files = []
    for name, own in changes.items():
        file = folder / f"{name}.yaml"
        file.write_text(json.dumps(changed(base, **own)), encoding="utf-8")
        files.append(file)
    return files


def test_policies_are_compared_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = _files(tmp_path, short={"release__rounds": 2}, tree={"release__method": "tree"})
    pc_csv.write_csv(rows(), tmp_path / "rows.csv")
    policies = [word for file in files for word in ("--policy", str(file))]
    assert main(["synth", "compare", str(tmp_path / "rows.csv"), *policies, "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "short" in text
    assert "(best)" in text
    assert "for all 2 runs" in text
    assert main(["verify", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main(["synth", "compare", str(tmp_path / "rows.csv"), *policies[:2], "--out", str(tmp_path / "no")]) == 2
    assert "nothing to compare" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changes",
    [{"release__epsilon": 1}, {"release__levels": {"zip": 1}}, {"dataset__name": "other"}, {"release__method": "safe"}],
    ids=["epsilon", "levels", "dataset", "method"],
)
def test_policies_that_differ_in_more_than_the_way_are_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="compared"):
        comparison_policy(_files(tmp_path, one={}, other=changes))
