"""Routes beside each other: errors follow the formulas of noise, from public numbers alone."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from incrowd.cli.main import main
from incrowd.errors import InvalidParameter
from incrowd.workflows.plan.compare import compare
from incrowd.workflows.policy.policy import load_policy
from tests.policies import PEOPLE, changed, written

MODEL = {"method": "tree", "target": {"epsilon": 1, "delta": "1e-9"}, "levels": {"zip": 2, "age": 1}}
POLICY = changed(PEOPLE, dataset__rows=50_000, release=MODEL)
METHODS = ["safe", "scheme", "points", "private-histogram", "tree", "marginals"]


def test_every_route_has_a_claim_a_price_and_what_it_cannot_do() -> None:
    found = compare(load_policy(POLICY))
    assert [each.method for each in found.routes] == METHODS
    assert all(each.refusal is None and each.claim and each.cannot for each in found.routes)
    assert all(float(each.epsilon or "inf") <= 1 for each in found.routes)


def test_errors_are_those_of_the_noise() -> None:
    """A third of ρ for two pairs: the scale of the reference, over tables of 4 × 11, 4 × 1 and 11 × 1 cells."""
    routes = {each.method: each for each in compare(load_policy(POLICY)).routes}
    scale = math.sqrt(2 * 3 / (2 * 0.99 * 0.014973057673588523))
    expected = sum(cells * scale * math.sqrt(2 / math.pi) / 100_000 for cells in (44, 4, 11)) / 3
    assert routes["tree"].error == pytest.approx(expected, rel=1e-4)
    histogram = routes["private-histogram"].error
    a = math.exp(-1)
    deviation = math.sqrt(2 * a) / (1 - a) * math.sqrt(2 / math.pi) / 100_000
    sums = sum(cells * math.sqrt(44 / cells) * deviation for cells in (44, 4, 11)) / 3
    assert histogram == pytest.approx(sums, rel=1e-4)


def test_without_a_number_of_rows_the_line_to_add_is_named() -> None:
    with pytest.raises(InvalidParameter, match="add rows: N under dataset:"):
        compare(load_policy(changed(PEOPLE, release=MODEL)))


def test_routes_are_shown_as_a_table_and_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    policy = str(written(POLICY, tmp_path))
    assert main(["plan", "--policy", policy, "--compare"]) == 0
    shown = capsys.readouterr().out
    assert all(method in shown for method in METHODS)
    assert max(map(len, shown.splitlines())) <= 80
    assert main(["plan", "--policy", policy, "--compare", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert [each["method"] for each in plain["routes"]] == METHODS
