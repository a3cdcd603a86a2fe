from __future__ import annotations

from pathlib import Path

from incrowd.workflows.series.series import PeriodState
from tests.workflows.series.kills import play


def test_kills_charge_nothing_twice_and_change_nothing_published(tmp_path: Path) -> None:
    states = play(tmp_path, kills=2, seed=7)
    assert sum(states.values()) == 400
    assert states[PeriodState.MISSING] <= 2
