"""The actual loss of every private method of graphs is within its guarantee, and reaches it."""

from __future__ import annotations

import pytest

from tests.replay import golden
from tests.replay.graphs import REPLAYED, parts


@pytest.mark.parametrize("name", REPLAYED)
def test_no_transcript_of_a_graph_loses_more_than_the_guarantee_or_less_than_it_did(name: str) -> None:
    results = parts(name)
    golden.check(f"graph, {name}", results)
    assert min(results.values()) >= 0.9
