"""The actual loss of linked tables is within their guarantee for a person with all rows, and comes near it."""

from __future__ import annotations

import pytest

from tests.replay import consent, golden
from tests.replay.linked import REPLAYED, parts


@pytest.mark.parametrize("name", REPLAYED)
def test_no_transcript_of_linked_tables_loses_more_than_the_guarantee_or_less_than_it_did(name: str) -> None:
    results = parts(name)
    golden.check(f"linked, {name}", results)
    assert min(results.values()) >= 0.8


@pytest.mark.parametrize("name", [name for _, name in consent.LINKED])
def test_who_refuses_loses_nothing_with_all_linked_rows_and_who_consents_no_more_than_the_guarantee(name: str) -> None:
    results = consent.parts("linked", name)
    golden.check(f"consent, linked, {name}", results)
    assert results["refuses or is not there"] == 0.0
