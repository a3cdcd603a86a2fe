"""Routes beside each other: errors follow the formulas of noise, from public numbers alone."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv

from incrowd.cli.main import main
from incrowd.errors import InvalidParameter
from incrowd.verifier.check import Verdict
from incrowd.workflows.plan.compare import compare
from incrowd.workflows.plan.preview.preview import refine
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, with_ledger, written
from tests.workflows.plan.preview.weighing import ROWS, SURVEY, even, skewed

MODEL = {"method": "tree", "epsilon": 1, "delta": "1e-9", "levels": {"zip": 2, "age": 1}}
POLICY = changed(PEOPLE, dataset__rows=50_000, release=MODEL)
COMPARED = changed(
    SURVEY,
    release={"method": "marginals", "epsilon": 1, "delta": "1e-6", "levels": {"age": 1, "town": 0}},
)
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


def test_a_look_measures_what_crowds_leave_out(tmp_path: Path) -> None:
    """Of rows that gather in few cells less is lost than of rows that are spread: both with the same public numbers.

    About 2,400 of 5,000 sampled rows are kept of the first and 3 of the others; noise strays by 19 in 1 of 20 cases,
    and by k times that with a chance that falls with e^−k.
    """
    errors = []
    for name, make in (("skewed", skewed), ("even", even)):
        plain = with_ledger(changed(COMPARED, dataset__name=name), tmp_path / name)
        found = refine(make(np.random.default_rng(3), ROWS), plain, "0.5")
        route, *others = found.comparison.routes
        assert others == list(compare(load_policy(plain)).routes[1:])
        assert (route.low or 0) <= (route.error or 0) <= (route.high or 0)
        errors.append(route.error or 0)
    assert errors[0] < errors[1]


def test_a_look_for_a_comparison_is_charged_and_verified(tmp_path: Path) -> None:
    plain = with_ledger(COMPARED, tmp_path)
    found = refine(even(np.random.default_rng(3), ROWS), plain, "0.5")
    policy, certificate = load_policy(plain), tmp_path / "look.json"
    certificate.write_text(found.looked.certificate.to_text(), encoding="utf-8")
    seen = verify(certificate, ledger=find_book(policy), policy=policy)
    assert seen.passed
    assert {each.about: each.verdict for each in seen.findings}["policy"] is Verdict.PASSED
    assert found.to_json()["look"]["chosen"]["epsilon"] == "1/2"
    other = load_policy(changed(plain, release__epsilon=2, release__delta="1e-6"))
    assert not verify(certificate, policy=other).passed


def test_a_look_for_a_comparison_is_shown_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    policy, data = str(written(with_ledger(COMPARED, tmp_path), tmp_path)), str(tmp_path / "rows.csv")
    csv.write_csv(skewed(np.random.default_rng(3), ROWS), data)
    asked = ["plan", data, "--policy", policy, "--compare", "--look", "0.5"]
    assert main([*asked, "--write", str(tmp_path / "chosen.yaml")]) == 2
    assert "leave --compare out" in capsys.readouterr().err
    assert main(asked) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "epsilon 1/2 charged for a private preview (entry" in shown
    assert "measured with noise" in shown
