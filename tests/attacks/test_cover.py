"""Labels are read as people write them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.attacks.candidates import CandidateSearch
from incrowd.attacks.cover import cover_of, ends_of, numbers
from incrowd.attacks.knowledge import Knowledge, PublishedTable


@pytest.mark.parametrize(
    ("label", "covered"),
    [
        ("27", {"27"}),
        ("27.0", {"27"}),
        ("*", {"20", "27", "30", "2020-02-29", "flu"}),
        ("[20, 30)", {"20", "27"}),
        ("(20, 30]", {"27", "30"}),
        ("20-30", {"20", "27", "30"}),
        ("20 to 27", {"20", "27"}),
        ("20..29", {"20", "27"}),
        ("<27", {"20"}),
        (">=27", {"27", "30", "2020-02-29"}),
        ("27+", {"27", "30", "2020-02-29"}),
        ("2*", {"20", "27", "2020-02-29"}),
        ("{flu, 27}", {"flu", "27"}),
        ("[20, 27] or missing", {"20", "27"}),
        ("[2020-01-01, 2020-12-31]", {"2020-02-29"}),
        ("2020-02-29 or earlier", {"20", "27", "30", "2020-02-29"}),
        ("2020-03-01 or later", set()),
        ("2020-02-29 or later or missing", {"2020-02-29"}),
        ("2020 or earlier", set()),
        ("gout", set()),
    ],
)
def test_a_label_covers_what_it_says(label: str, covered: set[str]) -> None:
    values = np.array(["20", "2020-02-29", "27", "30", "flu"])
    cover = cover_of(values, np.array([label, "other label"]))
    assert {str(values[place]) for place in range(len(values)) if 0 in cover.labels_of(place)} == covered


def test_missing_values_match_missing_ones_where_there_are_any() -> None:
    assert 0 in cover_of(np.array(["a", "b"]), np.array([""])).labels_of(0)
    assert 0 not in cover_of(np.array(["", "b"]), np.array([""])).labels_of(1)


def test_numbers_moved_to_the_centers_of_cells_are_still_found() -> None:
    values = np.array([str(n) for n in range(100)])
    cover = cover_of(values, np.array(["12.4", "37.4", "62.4", "87.4"]))
    assert cover.labels_of(3).tolist() == [0]
    assert cover.labels_of(60).tolist() == [2]


def test_ends_and_numbers() -> None:
    assert ends_of("[5, 9]") == (5.0, 9.0)
    assert ends_of("5") is None
    assert np.isnan(numbers(np.array(["five"]))[0])


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=12),
    st.lists(
        st.tuples(st.sampled_from(["*", "0-4", "5-9", "3-7", "2", "8"]), st.sampled_from("0123*")),
        min_size=1,
        max_size=12,
    ),
)
def test_the_join_finds_what_looking_at_every_pair_finds(
    people: list[tuple[int, int]], published: list[tuple[str, str]]
) -> None:
    def fits(value: int, label: str) -> bool:
        low, _, high = label.partition("-")
        return label == "*" or (int(low) <= value <= int(high) if high else value == int(label))

    table = pa.table({"a": [str(a) for a, _ in people], "b": [str(b) for _, b in people]})
    shown = pa.table({"a": [a for a, _ in published], "b": [b for _, b in published]})
    knowledge = Knowledge(table, ("a", "b"), slack={"a": 0.0, "b": 0.0})
    found = CandidateSearch.of(PublishedTable(shown), table, ("a", "b"), knowledge).totals()
    expected = [sum(fits(a, x) and fits(b, y) for x, y in published) for a, b in people]
    assert found.tolist() == expected
