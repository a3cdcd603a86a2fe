"""A published answer verifies; whoever makes it promise more than its noise, or changes its file, is found out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.certificate import Certificate, release_id
from incrowd.workflows.asking.publish import publish_answer
from incrowd.workflows.forms.answer.rederive import Cost, cost_of, gaussian_epsilon
from incrowd.workflows.verify import verify
from tests.workflows.asking.test_desk import asking, desk_of

MANY = "SELECT sex, COUNT(*) AS n, SUM(age) AS s, MEDIAN(age) AS m, MODE(sex) AS c FROM people GROUP BY sex"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with desk_of(tmp_path) as desk:
        publish_answer(desk.ask(asking(MANY, "2")), tmp_path / "out")
        found = verify(tmp_path / "out", ledger=desk.ledger)
        assert found.passed, [finding for finding in found.findings if finding.outcome == "failed"]
    return tmp_path / "out"


def forged(folder: Path, change: Callable[[dict[str, Any]], None]) -> bool:
    """Change a certificate, give it the id that fits, and return whether it still passes."""
    file = folder / "certificate.json"
    plain = json.loads(file.read_text())
    change(plain)
    made = Certificate.from_json(plain)
    told = (made.claims, made.chain)
    made = replace(made, id=release_id(bytes(4), made.policy_hash, made.guarantee, told))
    file.write_text(made.to_text())
    return verify(folder).passed


def step(plain: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in plain["chain"] if each["step"] == name)
    return found


def test_the_steps_cost_what_was_claimed(folder: Path) -> None:
    certificate = Certificate.from_json(json.loads((folder / "certificate.json").read_text()))
    assert cost_of(certificate).epsilon(certificate.guarantee.delta) == pytest.approx(2.0)


def test_a_certificate_with_another_id_that_fits_still_passes_by_itself(folder: Path) -> None:
    assert forged(folder, lambda plain: None)


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda plain: step(plain, "noise").update(scale="1/100"),
    lambda plain: step(plain, "noise").update(fine=10**6),
    lambda plain: step(plain, "noise").update(widths=[1, 1]),
    lambda plain: step(plain, "noise").update(noise="none"),
    lambda plain: step(plain, "add up")["statistics"][1].update(width=10**6),
    lambda plain: step(plain, "bound what one unit contributes").update(rows=5),
    lambda plain: step(plain, "pick").update(scale="1/50"),
    lambda plain: step(plain, "pick").update(sensitivity=0),
    lambda plain: step(plain, "group").update(groups="not known before rows are read"),
    lambda plain: plain["claims"][0]["parameters"].update(epsilon="1"),
    lambda plain: plain["claims"][0]["parameters"].update(adjacency="replace-one"),
    lambda plain: plain["claims"][0].update(kind="k-anonymity"),
    lambda plain: plain["claims"].clear(),
    lambda plain: plain["accounting"]["spent"].update(epsilon="1"),
    lambda plain: plain["chain"].pop(0),
    lambda plain: plain["chain"].insert(3, {"step": "answer", "columns": []}),
    lambda plain: plain["schema"].update(released=["sex"]),
    lambda plain: plain["evidence"].update(groups=1),
]


@pytest.mark.parametrize("change", CHANGES)
def test_no_certificate_promises_more_than_its_steps(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    assert not forged(folder, change)


def test_a_changed_file_is_found_out(folder: Path) -> None:
    file = folder / "data.csv"
    file.write_text(file.read_text().replace("F", "G"))
    assert not verify(folder).passed


def test_gaussian_parts_are_converted_by_the_second_route_never_below_the_first() -> None:
    from incrowd.accounting.noise.concentrated import epsilon_of_rho

    for rho, delta in ((0.01, 1e-6), (0.5, 1e-9), (3.0, 1e-5), (1e-6, 1e-8)):
        assert gaussian_epsilon(rho, delta) == pytest.approx(float(epsilon_of_rho(rho, delta)), rel=1e-4)
    assert Cost().epsilon(0) == 0  # type: ignore[arg-type]


def test_a_batch_costs_the_sum_of_its_questions(tmp_path: Path) -> None:
    from incrowd.queries.terms import Terms
    from incrowd.workflows.desk import AskingTogether
    from incrowd.workflows.forms.answer.form import ANSWER

    texts = (MANY, "SELECT COUNT(*) AS n FROM people", "SELECT AVG(age) AS a FROM people WHERE sex = 'F'")
    with desk_of(tmp_path) as desk:
        answered = desk.ask_batch(AskingTogether(texts, Terms(epsilon=Fraction(2), delta=Fraction(1, 10**7))))
    certificate = answered.certificate
    assert len(answered.answers) == 3
    assert ANSWER.check_steps(certificate) is None
    assert ANSWER.check_claim(certificate.claims[0], certificate) is None
    assert cost_of(certificate).epsilon(certificate.guarantee.delta) == pytest.approx(2.0, rel=1e-6)
    assert certificate.names_itself()
