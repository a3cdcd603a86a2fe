from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.workflows.series.series import PeriodState
from tests.workflows.series.kills import play


@pytest.mark.parametrize(("method", "periods"), [("private-histogram", 400), ("continual", 365)])
def test_kills_charge_nothing_twice_and_change_nothing_published(method: str, periods: int, tmp_path: Path) -> None:
    states = play(tmp_path, kills=2, seed=7, method=method)
    assert sum(states.values()) == periods
    assert states[PeriodState.MISSING] <= 2
