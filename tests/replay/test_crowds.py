"""What a secret sample of crowds shows of one cell keeps to the δ of the plan, exactly, for every number of rows."""

from __future__ import annotations

import pytest

from tests.replay import golden
from tests.replay.crowds import SAMPLED, parts


@pytest.mark.parametrize(("method", "name"), SAMPLED, ids=["-".join(item) for item in SAMPLED])
def test_no_cell_of_a_sample_exceeds_the_delta_of_its_plan_or_falls_behind(method: str, name: str) -> None:
    golden.check(f"{method}, {name}", parts(method, name))
