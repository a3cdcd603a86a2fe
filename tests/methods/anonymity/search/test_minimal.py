"""The minimal generalizations of the table of eleven patients, found by hand and by program."""

from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.core.cells import Cells
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search.lattice import Lattice, Task
from incrowd.methods.anonymity.search.optimal import minimal
from incrowd.workflows.policy.policy import load_policy
from tests.methods.anonymity.search.huge import huge

FOLDER = Path(__file__).resolve().parents[4] / "examples" / "lecture"
QUASI = ("ethnicity", "birth", "gender", "zip")
BY_HAND = {
    # Without zip codes 02133, 02141 and 02142 stand for one patient each, so the zip code rises; then all pairs meet.
    2: [(0, 0, 0, 1)],
    # Two patients live in 0214*, so the zip code rises to 021**, which all share.  Of the other three columns any one
    # alone leaves a pair, and so do ethnicity and gender (1967); the birth year with either of them leaves none.
    3: [(0, 1, 1, 2), (1, 1, 0, 2)],
    4: [(0, 1, 1, 2), (1, 1, 0, 2)],
    # Four women: gender goes.
    5: [(0, 1, 1, 2)],
    # Five are white: ethnicity goes too.
    6: [(1, 1, 1, 2)],
    12: [],
}


@pytest.mark.parametrize("k", BY_HAND)
def test_the_lecture_table_has_the_minimal_generalizations_found_by_hand(k: int) -> None:
    cells = Cells.of(load_policy(FOLDER / "policy.yaml").schema, {}, QUASI)
    lattice = Lattice.of(LocalEngine().count(open_source(FOLDER / "medical.csv"), cells), QUASI)
    assert [point.levels for point in minimal(lattice, Task(KAnonymity(k)))] == BY_HAND[k]


def test_minimal_nodes_of_an_astronomical_lattice_are_not_looked_for() -> None:
    with pytest.raises(InvalidParameter, match="limit the levels"):
        minimal(huge(), Task(KAnonymity(2)))
