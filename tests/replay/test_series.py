"""The actual loss of a whole series of running counts is within its guarantee, and comes near it."""

from __future__ import annotations

import pytest

from tests.replay import golden
from tests.replay.series import REPLAYED, parts


@pytest.mark.parametrize(("strategy", "limit"), REPLAYED, ids=["-".join(item) for item in REPLAYED])
def test_no_transcript_of_a_series_loses_more_than_the_guarantee_or_less_than_it_did(strategy: str, limit: str) -> None:
    golden.check(f"continual, {strategy}, {limit}", parts(strategy, limit, step=9))
