from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Crowd, Loss, Pure, Sampled
from incrowd.core.unit import Kind, Unit
from tests.cli.running import Runner


def write(path: Path, loss: Loss, unit: Unit) -> None:
    path.write_text(json.dumps(Guarantee(loss, unit, "a test").to_json()), encoding="utf-8")


def test_eight_sampled_suppressions_are_composed_by_their_envelope(run: Runner) -> None:
    found = run('bounds compose --safe "k=20,rate=0.1 x8" --epsilon 1 --json').json
    assert found["delta"] == pytest.approx(3.867e-14, rel=1e-3)
    assert found["rule"] == "sampled suppression, composed envelope"
    assert {rule["rule"]: rule["delta"] for rule in found["rules"]}["sums"] == pytest.approx(1.2e-4, rel=1e-2)
    assert found["releases"] == 8


def test_epsilon_at_delta_and_delta_at_epsilon_agree(run: Runner) -> None:
    releases = '--gaussian "scale=20 x10" --laplace scale=10 --pure 0.1'
    epsilon = run(f"bounds compose {releases} --delta 1e-6 --json").json["epsilon"]
    delta = run(f"bounds compose {releases} --epsilon {epsilon * 1.0001} --json").json["delta"]
    assert delta == pytest.approx(1e-6, rel=2e-2)


def test_rules_are_listed_with_the_tightest_first(run: Runner) -> None:
    found = run('bounds compose --gaussian "10 x100" --delta 1e-6 --json').json
    values = [rule["epsilon"] for rule in found["rules"]]
    assert values == sorted(values)
    assert found["epsilon"] == values[0]
    assert {rule["rule"] for rule in found["rules"]} == {"sums", "zero-concentrated", "privacy loss distribution"}


def test_pure_promises_add_up_and_are_rounded_up(run: Runner) -> None:
    assert 1.0 <= run('bounds compose --pure "0.1 x10" --delta 0 --json').json["epsilon"] <= 1.0 + 1e-14


def test_options_can_be_repeated_and_mixed(run: Runner) -> None:
    line = "bounds compose --pure 0.5 --pure 0.25,rate=0.1 --approximate 1,1e-7 --rho 0.01 --crowd 20,0.1,0.1"
    found = run(f"{line} --delta 1e-4 --json").json
    assert found["releases"] == 5


def test_the_promise_of_a_file_is_composed_with_the_others(run: Runner, tmp_path: Path) -> None:
    write(tmp_path / "promise.json", Pure(Fraction(1, 2)), Unit())
    assert run("bounds compose --promise promise.json --pure 1/2 --delta 0 --json").json["epsilon"] == 1.0


def test_promises_to_different_units_are_refused(run: Runner, tmp_path: Path) -> None:
    write(tmp_path / "promise.json", Pure(Fraction(1, 2)), Unit(Kind.PERSON, column="id"))
    outcome = run("bounds compose --promise promise.json --pure 0.5 --delta 0 --json")
    assert outcome.code == 2
    assert json.loads(outcome.err)["kind"] == "MixedUnits"


def test_two_promises_from_one_sample_are_refused(run: Runner, tmp_path: Path) -> None:
    write(tmp_path / "promise.json", Sampled(Fraction(1, 10), Crowd(20), sample="s1"), Unit())
    outcome = run("bounds compose --promise promise.json --promise promise.json --delta 1e-6 --json")
    assert outcome.code == 1
    assert json.loads(outcome.err)["kind"] == "SampleReused"


def test_an_unknown_loss_is_refused(run: Runner, tmp_path: Path) -> None:
    plain = Guarantee(Pure(Fraction(1)), Unit(), "a test").to_json()
    (tmp_path / "promise.json").write_text(json.dumps(plain | {"loss": {"loss": "wishful"}}), encoding="utf-8")
    outcome = run("bounds compose --promise promise.json --delta 0 --json")
    assert outcome.code == 2
    assert json.loads(outcome.err)["kind"] == "UnknownLoss"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--delta 1e-6", "at least one release"),
        ("--pure 0.5", "1 more of epsilon, delta"),
        ("--pure 0.5 --epsilon 1 --delta 0", "leave one out"),
        ("--pure 0.5 --delta 2", "delta lies in [0, 1)"),
        ("--pure 0.5 --epsilon -1", "negative"),
        ("--pure -0.5 --delta 0", "negative"),
        ("--pure 0.5,0.1,3 --delta 0", "--pure takes epsilon=…"),
        ("--pure 0.5,epsilon=1 --delta 0", "--pure takes epsilon=…"),
        ("--pure abc --delta 0", "epsilon of --pure must be a finite number"),
        ("--pure '0.5 x0' --delta 0", "1 to 10,000 times"),
        ("--pure '0.5 x99999' --delta 0", "1 to 10,000 times"),
        ("--safe k=20 --delta 1e-6", "--safe needs k=…,rate=…"),
        ("--safe k=2.5,rate=0.1 --delta 1e-6", "whole number"),
        ("--safe k=20,rate=2 --delta 1e-6", "strictly between 0 and 1"),
        ("--safe k=20,rate=0.1 --delta 1e-30", "their delta is at least 1e-20"),
        ("--rho 0.1 --delta 0", "delta above 0"),
        ("--laplace scale=0 --delta 0", "positive"),
        ("--promise nothing.json --delta 0", "existing file"),
    ],
)
def test_bad_input_of_compose_is_one_clear_message_and_exit_2(run: Runner, line: str, says: str) -> None:
    outcome = run(f"bounds compose {line}")
    assert (outcome.code, outcome.out) == (2, "")
    assert says in outcome.err


@pytest.mark.parametrize("text", ["[]", "{}", "not json", '{"guarantee": 99}'])
def test_a_file_that_is_no_promise_is_bad_input(run: Runner, tmp_path: Path, text: str) -> None:
    (tmp_path / "promise.json").write_text(text, encoding="utf-8")
    assert run("bounds compose --promise promise.json --delta 0").code == 2


def test_the_table_compares_the_rules(run: Runner) -> None:
    text = " ".join(run('bounds compose --pure "0.1 x10" --delta 0').out.split())
    assert "releases 10 with independent coins each" in text
    assert "by sums 1 the tightest" in text
