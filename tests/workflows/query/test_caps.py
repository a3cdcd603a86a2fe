"""Caps: the noise of each follows from declarations, what each keeps from noisy counts that are charged."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.query.caps import caps_of

ROWS = [1] * 300 + [2] * 200 + [9] * 1
"""How many rows the people have: one has more than are declared."""


def policy(folder: Path, **unit: Any) -> Policy:
    return load_policy(
        {
            "incrowd": 1,
            "dataset": {"name": "visits", "unit": {"column": "patient", "max_rows": 4} | unit},
            "columns": {"patient": {"role": "identifier"}, "age": {"type": "integer", "bounds": [0, 99]}},
            "queries": {"most_epsilon": 1000},
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
    assert all(cap.retained is None for cap in caps.caps)
    assert not (tmp_path / "ledger.sqlite").exists(), "nothing is charged"
    replaced = caps_of(policy(tmp_path, adjacency="replace-one"))
    assert [cap.noise for cap in caps_of(policy(tmp_path, max_rows=8)).caps][1::2] == [
        cap.noise for cap in replaced.caps
    ]


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
