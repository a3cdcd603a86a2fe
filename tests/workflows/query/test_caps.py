"""Caps: the noise of each follows from declarations, what each keeps from noisy counts that are charged."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.query.caps import caps_of

ROWS = [1] * 300 + [2] * 200 + [9] * 1
"""How many rows the people have: one has more than are declared."""


def policy(folder: Path, about: Mapping[str, int] | None = None, most: int = 1000, **unit: Any) -> Policy:
    return load_policy(
        {
            "incrowd": 1,
            "dataset": {"name": "visits", "unit": {"column": "patient", "max_rows": 4} | unit, **(about or {})},
            "columns": {"patient": {"role": "identifier"}, "age": {"type": "integer", "bounds": [0, 99]}},
            "queries": {"most_epsilon": most},
            "budget": {"epsilon": 5000},
            "ledger": f"sqlite:///{folder}/ledger.sqlite",
        }
    )


def visits() -> pa.Table:
    people = [f"p{place}" for place, many in enumerate(ROWS) for _ in range(many)]
    return pa.table({"patient": people, "age": [30] * len(people)})


def test_declarations_alone_give_the_noise_and_no_share(tmp_path: Path) -> None:
    caps = caps_of(policy(tmp_path))
    assert [cap.rows for cap in caps.caps] == [1, 2, 3, 4]
    assert caps.best is None
    assert all(cap.retained is cap.worst is None for cap in caps.caps)
    assert [(cap.least, cap.most) for cap in caps.caps] == [(0.25, 1), (0.5, 1), (0.75, 1), (1, 1)]
    assert not (tmp_path / "ledger.sqlite").exists(), "nothing is charged"
    replaced = caps_of(policy(tmp_path, adjacency="replace-one"))
    assert [cap.noise for cap in caps_of(policy(tmp_path, max_rows=8)).caps][1::2] == [
        cap.noise for cap in replaced.caps
    ]


def test_declared_numbers_of_rows_and_people_bound_what_each_cap_keeps(tmp_path: Path) -> None:
    caps = caps_of(policy(tmp_path, {"rows": 1000, "population": 400})).caps
    for many in product(range(5), repeat=4):  # rows of four people at most, 10 in all
        if sum(many) == 10:
            kept = [sum(min(own, cap.rows) for own in many) / 10 for cap in caps]
            assert all(cap.least <= share <= cap.most for cap, share in zip(caps, kept, strict=True))
    assert [cap.worst for cap in caps] == [750, 500, 250, 0]
    assert [cap.most for cap in caps] == [0.4, 0.8, 1, 1]


@pytest.mark.parametrize(("rows", "best"), [(1000, 4), (3, 1)])
def test_a_cap_is_recommended_by_the_worst_case_of_declarations(tmp_path: Path, rows: int, best: int) -> None:
    caps = caps_of(policy(tmp_path, {"rows": rows}, most=1))
    assert caps.best is not None
    assert caps.best.rows == best
    assert caps.charged is None


def test_a_price_buys_what_each_cap_keeps_and_a_recommendation(tmp_path: Path) -> None:
    caps = caps_of(policy(tmp_path), Fraction(1000), visits())
    assert caps.charged == "1000"
    assert [cap.lost for cap in caps.caps] == [203, 2, 1, 0]
    assert [cap.retained for cap in caps.caps] == [round(part / 704, 3) for part in (501, 702, 703, 704)]
    assert caps.best is not None
    assert caps.best.rows == 4


def test_where_no_cap_can_cut_there_is_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="2 to 1,000 rows"):
        caps_of(policy(tmp_path, max_rows=1))
