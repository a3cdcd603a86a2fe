"""Is the noise in answers the guaranteed noise?  Laws are written down here from the definitions."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.queries.query import QueryTerms
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import open_queries
from tests.coins import cube_radius
from tests.statistics.alarm import FALSE_ALARM, escape, p_value

CELLS = 15_000
VALUES = (0, 1, 1, 4)
EPSILON = Fraction(3, 4)
HIGHEST = 4


def answered(folder: Path, wanted: str, **unit: object) -> Mapping[str, Sequence[Any]]:
    """Query a table with the same four rows in each of many groups; each of them is of another person."""
    rows = (f"{cell},{value},p{cell}_{i}\n" for cell in range(CELLS) for i, value in enumerate(VALUES))
    (folder / "table.csv").write_text("cell,value,who\n" + "".join(rows))
    content = {
        "incrowd": 1,
        "dataset": {"name": "t", **unit},
        "source": "table.csv",
        "columns": {
            "cell": {"type": "integer", "bounds": [0, CELLS - 1], "missing": "drop"},
            "value": {"type": "integer", "bounds": [0, HIGHEST], "missing": "drop"},
            "who": {"role": "identifier"},
        },
        "queries": {"table": "t"},
        "budget": {"epsilon": str(EPSILON)},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    (folder / "policy.yaml").write_text(json.dumps(content))
    with open_queries([load_policy(str(folder / "policy.yaml"))]) as service:
        answer = service.ask(QueryRequest(f"SELECT {wanted} FROM t GROUP BY cell", QueryTerms(epsilon=EPSILON))).answer
    found: Mapping[str, Sequence[Any]] = answer.to_arrow().to_pydict()
    assert len(next(iter(found.values()))) == CELLS
    return found


def laplace(scale: float | Fraction) -> dict[int, float]:
    """Integer Laplace noise: P[z] ∝ e^(−|z| / scale)."""
    return {z: math.tanh(0.5 / float(scale)) * math.exp(-abs(z) / scale) for z in range(-400, 401)}


def held(law: Mapping[int, float], least: int) -> dict[int, float]:
    """Return the law of noise where what is below zero is told as zero: all of it lies at `least`."""
    found = {z: mass for z, mass in law.items() if z >= least}
    return {**found, least: math.fsum(mass for z, mass in law.items() if z <= least)}


def whole(numbers: Sequence[Any]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.rint(np.array(numbers, dtype=np.float64)).astype(np.int64)


def test_a_count_has_laplace_noise_of_one_over_epsilon(tmp_path: Path) -> None:
    noise = whole(answered(tmp_path, "COUNT(*) AS n")["n"]) - len(VALUES)
    right, wrong = (held(laplace(scale / EPSILON), -len(VALUES)) for scale in (1, 1.2))
    assert p_value(noise, right) > FALSE_ALARM / 2
    assert p_value(noise, wrong) < FALSE_ALARM
    assert escape(right, wrong, CELLS) < FALSE_ALARM / 2


def test_a_sum_has_laplace_noise_of_its_bound_over_epsilon(tmp_path: Path) -> None:
    noise = whole(answered(tmp_path, "SUM(value) AS s")["s"]) - sum(VALUES)
    right, wrong = (held(laplace(scale * HIGHEST / EPSILON), -sum(VALUES)) for scale in (1, 1.2))
    assert p_value(noise, right) > FALSE_ALARM / 2
    assert p_value(noise, wrong) < FALSE_ALARM
    assert escape(right, wrong, CELLS) < FALSE_ALARM / 2


def test_a_count_where_people_have_three_rows_has_three_times_the_noise(tmp_path: Path) -> None:
    noise = whole(answered(tmp_path, "COUNT(*) AS n", unit={"column": "who", "max_rows": 3})["n"]) - len(VALUES)
    assert p_value(noise, held(laplace(3 / EPSILON), -len(VALUES))) > FALSE_ALARM


def test_count_and_sum_have_the_joint_law_of_cube_noise(tmp_path: Path) -> None:
    """A row moves the count by 1 and the sum of value − 2 by 2: noise falls with the larger of |x| and |y| / 2."""
    found = answered(tmp_path, "COUNT(*) AS n, SUM(value) AS s")
    n, s = whole(found["n"]), whole(found["s"])
    widths, fine, reach = (1, 2), 16, 40
    points = list(itertools.product(range(-reach, reach + 1), range(-2 * reach, 2 * reach + 1)))
    weights = [math.exp(-EPSILON * cube_radius(point, widths, fine) / fine) for point in points]
    total = math.fsum(weights)
    law: dict[int, float] = {}
    for (a, b), weight in zip(points, weights, strict=True):
        told = 1000 * max(0, len(VALUES) + a) + max(0, sum(VALUES) + 2 * a + b)  # below zero is told as zero
        law[told] = law.get(told, 0.0) + weight / total
    assert p_value(1000 * n + s, law) > FALSE_ALARM


def test_a_median_is_picked_by_the_exponential_mechanism(tmp_path: Path) -> None:
    picked = whole(answered(tmp_path, "MEDIAN(value) AS m")["m"])
    few = [2 * sum(x <= v for x in VALUES) for v in range(HIGHEST + 1)]
    many = [2 * sum(x < v for x in VALUES) for v in range(HIGHEST + 1)]
    off = [max(0, len(VALUES) - least, most - len(VALUES)) for least, most in zip(few, many, strict=True)]
    weights = [math.exp(-EPSILON * each / 2) for each in off]
    assert p_value(picked, {v: weight / sum(weights) for v, weight in enumerate(weights)}) > FALSE_ALARM


def test_a_mode_is_picked_by_permuting_and_flipping(tmp_path: Path) -> None:
    """Go through the values in a random order and take each with chance e^(−ε · how much rarer it is than the mode)."""
    picked = whole(answered(tmp_path, "MODE(value) AS m")["m"])
    counts = [VALUES.count(v) for v in range(HIGHEST + 1)]
    chances = [math.exp(-EPSILON * (max(counts) - each)) for each in counts]
    law = dict.fromkeys(range(HIGHEST + 1), 0.0)
    orders = list(itertools.permutations(range(HIGHEST + 1)))
    for order in orders:
        left = 1.0 / len(orders)
        for v in order:
            law[v] += left * chances[v]
            left *= 1.0 - chances[v]
    assert p_value(picked, law) > FALSE_ALARM


def test_the_noise_of_neighboring_groups_is_independent(tmp_path: Path) -> None:
    noise = whole(answered(tmp_path, "COUNT(*) AS n")["n"]) - len(VALUES)
    law = held(laplace(1 / EPSILON), -len(VALUES))
    pairs = {1000 * a + b: p * q for a, p in law.items() for b, q in law.items() if abs(a) < 40 and abs(b) < 40}
    assert p_value(1000 * noise[::2] + noise[1::2], pairs) > FALSE_ALARM


def test_the_same_question_of_another_desk_has_other_noise(tmp_path: Path) -> None:
    """No outcome of a count or a median has a chance of one half, so as many agree with less than 2^(−CELLS)."""
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    one, other = (answered(folder, "COUNT(*) AS n, MEDIAN(value) AS m") for folder in folders)
    assert one["n"] != other["n"]
    assert one["m"] != other["m"]
