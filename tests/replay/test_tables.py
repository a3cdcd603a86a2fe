"""The actual loss of every private method of tables is within its guarantee, and where accounting is exact near it."""

from __future__ import annotations

import pytest

from tests.replay import consent, golden
from tests.replay.tables import REPLAYED, parts


@pytest.mark.parametrize(("method", "name"), REPLAYED, ids=["-".join(item) for item in REPLAYED])
def test_no_transcript_loses_more_than_the_guarantee_or_less_than_it_did(method: str, name: str) -> None:
    golden.check(f"{method}, {name}", parts(method, name))


@pytest.mark.parametrize("method", sorted({method for method, _ in REPLAYED}))
def test_where_noise_is_added_to_sums_some_pair_reaches_nine_tenths_of_the_guarantee(method: str) -> None:
    reached = [max(own.values()) for name, own in golden.load().items() if name.startswith(f"{method}, ")]
    assert max(reached) >= 0.9


@pytest.mark.parametrize(("method", "name"), consent.GATED, ids=["-".join(item) for item in consent.GATED])
def test_behind_a_consent_gate_a_refuser_loses_nothing_and_nobody_more_than_the_guarantee(
    method: str, name: str
) -> None:
    results = consent.parts(method, name)
    golden.check(f"consent, {method}, {name}", results)
    assert results["refuses or is not there"] == 0.0
