"""The actual loss of every private method of tables is within its guarantee, and where accounting is exact near it."""

from __future__ import annotations

import pytest

from tests.replay import golden
from tests.replay.tables import REPLAYED, parts


@pytest.mark.parametrize(("method", "name"), REPLAYED, ids=["-".join(item) for item in REPLAYED])
def test_no_transcript_loses_more_than_the_guarantee_or_less_than_it_did(method: str, name: str) -> None:
    golden.check(f"{method}, {name}", parts(method, name))


@pytest.mark.parametrize("method", sorted({method for method, _ in REPLAYED}))
def test_where_noise_is_added_to_sums_some_pair_reaches_nine_tenths_of_the_guarantee(method: str) -> None:
    reached = [max(own.values()) for name, own in golden.load().items() if name.startswith(f"{method}, ")]
    assert max(reached) >= 0.9
