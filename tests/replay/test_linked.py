"""The actual loss of linked tables is within their guarantee for a person with all rows, and comes near it."""

from __future__ import annotations

import pytest

from tests.replay import golden
from tests.replay.linked import REPLAYED, parts


@pytest.mark.parametrize("name", REPLAYED)
def test_no_transcript_of_linked_tables_loses_more_than_the_guarantee_or_less_than_it_did(name: str) -> None:
    results = parts(name)
    golden.check(f"linked, {name}", results)
    assert min(results.values()) >= 0.8
