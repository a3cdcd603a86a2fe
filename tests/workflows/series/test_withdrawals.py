"""Running counts of people who consent: one row of each, subtracted once by a withdrawal, which is priced."""

from __future__ import annotations

import json
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import Decided
from incrowd.mechanisms.add_noise import AddGaussian
from incrowd.methods.histograms.continual.counting import counted_period
from incrowd.methods.histograms.continual.running import ConsentAnswers, RunningRows
from incrowd.methods.histograms.continual.strategies import ContributionPattern, NoiseStrategy, matrix_of, sensitivity
from incrowd.methods.histograms.shared.partition import BinPartition
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.internal import FOR_HOLDER
from incrowd.workflows.series.series import run_period
from incrowd.workflows.verify.verify import verify
from tests.consents import PURPOSE, Consented, consented
from tests.contract.forging import caught, placed, refolded
from tests.policies import changed
from tests.theorems.test_series import VECTORS
from tests.workflows.series.test_series import MONTHS, POLICY, RUNNING, place, policy_in

GATED = changed(
    POLICY,
    dataset__unit={"column": "patient"},
    purpose=PURPOSE,
    consent={"registry": "../registry/consent.sqlite", "key": "../key/consent.key"},
    release={**RUNNING, "strategy": "independent"},
    budget={"epsilon": 1, "delta": "1e-6"},
)


def rows() -> pa.Table:
    """Return people who come in one month each; p0 comes again in March."""
    lines = [(f"p{n}", "Ärzte" if n % 2 else "B", f"{MONTHS[n % 3]}-05") for n in range(12)]
    lines += [("p0", "Ärzte", "2025-03-09"), ("p3", "B", "2025-01-20")]
    names = ("patient", "ward", "discharged")
    return pa.table({name: pa.array([line[at] for line in lines], pa.string()) for at, name in enumerate(names)})


def run(made: Consented, folder: Path, month: str) -> dict[str, Any]:
    """Release a month without noise, and return what the holder keeps of it."""
    certificate = run_period(rows(), made.policy, month, place(folder, month)).certificate
    (file,) = folder.rglob(f"{certificate.id}/{FOR_HOLDER}")
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["running"]
    return kept


def test_somebody_who_withdraws_is_subtracted_once_and_stays_counted_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AddGaussian, "release", lambda _self, counts, _coins: np.asarray(counts, np.int64))
    made = consented(GATED, tmp_path, [f"p{n}" for n in range(12) if n != 6])
    january = run(made, tmp_path, MONTHS[0])
    assert sum(january["counts"]) == len(january["people"]) == 3  # p0, p3, p9; p6 never consented
    made.decide(Decided.WITHDRAW, ["p0", "p3"])
    february = run(made, tmp_path, MONTHS[1])
    assert sum(february["counts"]) == 4 - 2
    assert len(february["withdrawn"]) == 2
    made.decide(Decided.GIVE, ["p0"])
    made.decide(Decided.WITHDRAW, ["p0"])
    march = run(made, tmp_path, MONTHS[2])
    assert sum(march["counts"]) == 4
    assert march["withdrawn"] == []  # once each
    outcome = verify(tmp_path / "out" / MONTHS[2], policy=made.policy)
    assert outcome.passed, outcome.failure


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ({"type": "integer", "bounds": [-1, 2]}, [-1, 2, None, 7]),
        ({"type": "decimal", "bounds": [0, 9], "hierarchy": {"intervals": ["2.5"]}}, [0.5, 9.0, float("nan"), -4.0]),
        ({"type": "boolean"}, [True, False, None, True]),
        ({"type": "date", "bounds": ["2024-02-28", "2024-03-01"]}, ["2024-02-29", "2024-03-01", None, "2030-01-01"]),
        ({"categories": ["Ä"]}, ["Ä", "B", None, "Ä"]),
    ],
)
def test_columns_of_every_type_are_counted_alike_where_people_can_withdraw(
    column: dict[str, Any], values: list[Any], tmp_path: Path
) -> None:
    """A cell that was not found ended a paid series, and only where somebody had a row."""
    columns = {"patient": {"role": "identifier"}, "x": column, "discharged": POLICY["columns"]["discharged"]}
    levels = {"x": 1} if column.get("type") == "decimal" else {}
    release = {**RUNNING, "columns": ["x"], "levels": levels}
    policy = policy_in(tmp_path, dataset__unit={"column": "patient"}, columns=columns, release=release)
    data = pa.table({"patient": list("abcd"), "x": values, "discharged": ["2025-01-02"] * 4})
    table = Table(policy.schema, open_source(data), LOCAL)
    partition = BinPartition.of(policy.schema, ("x",), levels)
    answers = ConsentAnswers(lambda name: (name, name), lambda *_: True)
    counts = [
        counted_period(RunningRows(table, consent=answers), partition, pattern, SystemCoins()).counts.tolist()
        for pattern in (ContributionPattern(1, 1), ContributionPattern(1, 1, withdrawals=True))
    ]
    assert counts[0] == counts[1]
    assert sum(counts[1]) == len(values)


def test_a_series_of_people_who_consent_prices_withdrawals_and_a_certificate_that_does_not_is_refused(
    tmp_path: Path,
) -> None:
    made = consented(GATED, tmp_path, [f"p{n}" for n in range(12)])
    plain = run_period(rows(), made.policy, MONTHS[0], place(tmp_path, MONTHS[0])).certificate.to_json()
    number, noise = next((n, step) for n, step in enumerate(plain["steps"]) if step["step"] == "noise over periods")
    assert noise["withdrawals"] is True
    without = {name: value for name, value in noise.items() if name != "withdrawals"}
    forged = refolded({**plain, "steps": [*plain["steps"][:number], without, *plain["steps"][number + 1 :]]})
    assert caught(forged) == "steps"
    assert caught(refolded(placed(plain, ("steps", number, "squared"), noise["squared"] // 2))) == "steps"


def test_withdrawals_are_for_policies_with_a_purpose_and_one_row_of_each_person(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="which set it"):
        policy_in(tmp_path, dataset__unit={"column": "patient"}, release={**RUNNING, "withdrawals": True})
    with pytest.raises(InvalidParameter, match="max_rows: 1"):
        _ = consented(changed(GATED, dataset__unit={"column": "patient", "max_rows": 2}), tmp_path).policy.plan


def test_what_a_withdrawal_costs_is_the_figure_of_the_reference() -> None:
    matrix = matrix_of(NoiseStrategy.ROOT, 60, 12)
    part = sensitivity(matrix, ContributionPattern(1, 1, withdrawals=True)) / sensitivity(
        matrix, ContributionPattern(1, 1)
    )
    assert part == pytest.approx(VECTORS["Y2_withdrawn_over_D_T60"], rel=1e-4)


@pytest.mark.parametrize("strategy", NoiseStrategy)
@pytest.mark.parametrize(("participations", "apart"), [(1, 1), (2, 1), (2, 2), (None, 1)])
def test_no_history_with_withdrawals_moves_more_than_the_sensitivity(
    strategy: NoiseStrategy, participations: int | None, apart: int
) -> None:
    """Brute force: when somebody is counted, in which of two cells, and when each row is taken back, if ever."""
    periods = 5
    matrix, pattern = matrix_of(strategy, periods, 3), ContributionPattern(1, participations, apart, withdrawals=True)
    worst, most = 0, pattern.most(periods)
    for size in range(1, min(most, 3) + 1):  # of every period: the first three, which is a lower bound
        for chosen in combinations(range(periods), size):
            if any(later - earlier < apart for earlier, later in pairwise(chosen)):
                continue
            ends = [[None, *range(start + 1, periods)] for start in chosen]
            for cells, gone in product(product((0, 1), repeat=size), product(*ends)):
                moved = np.zeros((2, periods), np.int64)
                for start, cell, end in zip(chosen, cells, gone, strict=True):
                    moved[cell] += matrix[:, start] - (0 if end is None else matrix[:, end])
                worst = max(worst, int((moved**2).sum()))
    bound = sensitivity(matrix, pattern)
    assert worst <= bound
    if participations == 1:
        assert worst == bound  # attained
