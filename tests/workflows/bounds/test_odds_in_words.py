from __future__ import annotations

import math
import re
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from incrowd.workflows.bounds.odds import guessing_limit, in_words, one_in

SIZES = {"": 1.0, "million": 1e6, "billion": 1e9, "trillion": 1e12}


@given(
    st.lists(st.floats(0.001, 1.0), min_size=2, max_size=5),
    st.lists(st.floats(0.001, 1.0), min_size=2, max_size=5),
    st.floats(0, 3),
)
def test_no_guess_beats_the_limit(one: list[float], other: list[float], epsilon: float) -> None:
    size = min(len(one), len(other))
    p = [weight / sum(one[:size]) for weight in one[:size]]
    q = [weight / sum(other[:size]) for weight in other[:size]]
    delta = max(
        sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(first, second, strict=True))
        for first, second in ((p, q), (q, p))
    )
    best = sum(max(a, b) for a, b in zip(p, q, strict=True)) / 2
    assert best <= guessing_limit(epsilon, delta) + 1e-12


def test_the_limit_is_reached_by_randomized_response() -> None:
    for epsilon, delta in product((0.0, 0.5, 2.0), (0.0, 0.1)):
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert math.isclose(delta + (1 - delta) * truth, guessing_limit(epsilon, delta))


@given(st.floats(5e-324, 0.999))
def test_a_chance_never_looks_smaller_than_it_is(delta: float) -> None:
    text = one_in(delta)
    if match := re.fullmatch(r"1 in ([\d,]+) ?(\w*)", text):
        assert float(match[1].replace(",", "")) * SIZES[match[2]] <= 1 / delta * (1 + 1e-9)
    else:
        power = int(text.removeprefix("less than 1 in 10^"))
        assert power <= -math.log10(delta) + 1e-9


def test_words_for_a_promise_without_delta() -> None:
    assert in_words(0.0, 0.0).endswith("right at most 50 % of the time (50 % is blind guessing), without exception.")


def test_an_infinite_epsilon_leaves_no_doubt() -> None:
    assert guessing_limit(math.inf, 0.0) == 1.0
    assert "at most 100 %" in in_words(math.inf, 1e-6)
