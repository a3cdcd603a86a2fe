from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from incrowd.measures.frontier import MappedRelease, placed, risk_utility_map
from incrowd.measures.score import Score, share

numbers = st.integers(0, 4).map(lambda n: n / 4)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_the_frontier_holds_what_nothing_beats(points: list[tuple[float, float]]) -> None:
    found = placed([MappedRelease(str(n), *point) for n, point in enumerate(points)])
    best = {(each.risk, each.loss) for each in found if each.best}
    assert best
    for risk, loss in best:
        assert not any(r <= risk and lost <= loss and (r, lost) != (risk, loss) for r, lost in points)
    for point in set(points) - best:
        assert any(r <= point[0] and lost <= point[1] for r, lost in best)


def test_the_map_names_every_release_and_draws_those_with_a_place() -> None:
    page = str(risk_utility_map([MappedRelease("fine", 0.2, 0.1), MappedRelease("points", None, None)], "risk", "loss"))
    assert page.count("<circle") == 1
    assert "not on the map" in page


def test_a_share_lies_in_its_interval_and_a_count_has_none() -> None:
    found = share("right", 0, 30, "guesses")
    assert found.low == 0.0
    assert found.high is not None
    assert 0.05 < found.high < 0.15
    assert "interval" not in Score("classes", 3, "tuples").to_json()
