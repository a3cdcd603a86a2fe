from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Crowd, Loss, Pure, Sampled
from incrowd.core.terms import Theorem
from incrowd.core.unit import Kind, Unit
from tests.cli.running import Runner

SAFE = "bounds safe --k 20 --rate 0.1 --epsilon 0.5"


def test_safe_prints_the_tight_delta_beside_that_of_theorem_1(run: Runner) -> None:
    found = run(f"{SAFE} --json").json
    assert found["delta"] == pytest.approx(2.63178346622506e-11, rel=1e-10)
    assert found["delta_theorem1"] == pytest.approx(1.60625293618e-9, rel=1e-10)
    assert (found["k"], found["rate"], found["epsilon"], found["solved"]) == (20, 0.1, 0.5, "delta")
    assert found["rule"] == "sampled suppression, tight bound"


def test_theorem_1_is_null_below_its_reach(run: Runner) -> None:
    found = run("bounds safe --k 20 --rate 0.1 --epsilon 0.1 --json").json
    assert found["delta_theorem1"] is None
    assert found["delta"] == pytest.approx(5.33e-5, rel=1e-2)


@pytest.mark.parametrize(
    ("line", "solved", "value"),
    [
        ("--rate 0.1 --epsilon 0.5 --delta 1e-6", "k", 10),
        ("--k 20 --rate 0.1 --delta 1e-6", "epsilon", 0.18299),
        ("--k 5 --epsilon 2 --delta 1e-9", "rate", 0.0158489),
    ],
)
def test_any_three_give_the_fourth(run: Runner, line: str, solved: str, value: float) -> None:
    found = run(f"bounds safe {line} --json").json
    assert found["solved"] == solved
    assert found[solved] == pytest.approx(value, rel=1e-4)
    assert found["delta_tight"] <= found["delta"]


def test_numbers_are_read_as_exact_text(run: Runner) -> None:
    assert run("bounds safe --k 4 --rate 1/10 --epsilon 10 --json").json["delta"] == 1e-4


def test_a_delta_below_every_float_is_reported_as_the_smallest_float_with_its_logarithm(run: Runner) -> None:
    found = run("bounds safe --k 1000 --rate 0.01 --epsilon 0.5 --json").json
    assert found["delta"] == 5e-324
    assert found["log10_delta"] == pytest.approx(-1280.683, abs=1e-3)


def test_replaced_rows_cost_more(run: Runner) -> None:
    replaced = run(f"{SAFE} --replace --json").json
    assert replaced["delta"] > run(f"{SAFE} --json").json["delta"]
    assert replaced["delta_theorem1"] is None
    assert replaced["unit"] == "one row, replaced"


def test_people_with_several_rows_cost_more(run: Runner) -> None:
    found = run("bounds safe --k 20 --rate 0.1 --epsilon 1 --rows-per-person 2 --json").json
    assert found["delta"] == pytest.approx(6.970860846867e-11, rel=1e-9)
    assert found["unit"] == "one person with at most 2 rows, added or removed"


def test_the_table_for_people_says_the_odds_in_words(run: Runner) -> None:
    text = " ".join(run(SAFE).out.split())
    assert "2.63179e-11 ← solved" in text
    assert "right at most 62.3 % of the time" in text
    assert "1 in 37 billion" in text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--k 0 --rate 0.1 --epsilon 1", "1 or more"),
        ("--k -3 --rate 0.1 --epsilon 1", "1 or more"),
        ("--k 2.5 --rate 0.1 --epsilon 1", "whole number"),
        ("--k 999999999999 --rate 0.1 --epsilon 1", "k can be at most 100,000."),
        ("--k 20 --rate 1 --epsilon 1", "below 1"),
        ("--k 20 --rate 0 --epsilon 1", "between 0 and 1"),
        ("--k 20 --rate -0.1 --epsilon 1", "between 0 and 1"),
        ("--k 20 --rate 1.5 --epsilon 1", "between 0 and 1"),
        ("--k 20 --rate many --epsilon 1", "finite number"),
        ("--k 20 --rate 1/0 --epsilon 1", "finite number"),
        ("--k 20 --rate 0.1 --epsilon -1", "negative"),
        ("--k 20 --rate 0.1 --epsilon nan", "finite number"),
        ("--k 20 --rate 0.1 --epsilon inf", "finite number"),
        ("--k 20 --rate 0.1 --epsilon 1e400", "above a million"),
        ("--k 20 --rate 0.1 --epsilon 1e9999999999", "exponent"),
        ("--k 20 --rate 0.1 --delta 0", "between 0 and 1"),
        ("--k 20 --rate 0.1 --delta 1", "between 0 and 1"),
        ("--k 20 --rate 0.1 --delta -1e-6", "between 0 and 1"),
        ("--k 20 --rate 0.1 --delta nan", "finite number"),
        ("--k 20 --rate 0.1 --delta 1e-21", "Raise k or lower the rate: k = 21"),
        ("--k 20 --rate 0.1 --epsilon 1 --delta 0.1", "omit one"),
        ("--k 20 --rate 0.1", "1 more of epsilon, delta"),
        ("--k 20", "2 more of rate, epsilon, delta"),
        ("", "none given"),
        ("--k 20 --rate 0.1 --epsilon 1 --rows-per-person 0", "at least 1"),
        ("--k 20 --rate 0.1 --epsilon 1 --rows-per-person 2 --replace", "--replace"),
        ("--k 20 --rate 0.1 --epsilon 1 --plot curve.png", "convert the .svg"),
        ("--k 20 --rate 0.1 --epsilon 1 --plot nowhere/curve.svg", "folder must exist"),
    ],
)
def test_bad_input_is_one_clear_message_and_exit_2(run: Runner, line: str, says: str) -> None:
    outcome = run(f"bounds safe {line}")
    assert outcome.code == 2
    assert outcome.out == ""
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


def test_crowd_prints_the_papers_epsilon_and_the_exact_delta(run: Runner) -> None:
    found = run("bounds crowd --k 20 --rate 0.1 --crowd-epsilon 0.1 --json").json
    assert found["epsilon"] == found["epsilon_zk"] == pytest.approx(0.12515, abs=1e-5)
    assert found["delta"] == pytest.approx(2.21e-5, rel=5e-3)
    assert found["delta_closed"] == pytest.approx(2.12e-2, rel=5e-3)
    assert found["delta_closed_simple"] == pytest.approx(3.71e-2, rel=5e-3)


def test_crowd_takes_a_target_epsilon(run: Runner) -> None:
    found = run("bounds crowd --k 50 --rate 0.1 --crowd-epsilon 0.1 --epsilon 0.605 --json").json
    assert found["delta"] == pytest.approx(1.44e-25, rel=1e-2)


def test_crowd_solves_for_epsilon(run: Runner) -> None:
    found = run("bounds crowd --k 20 --rate 0.1 --delta 1e-6 --json").json
    assert found["solved"] == "epsilon"
    assert found["epsilon"] == pytest.approx(0.18299, abs=1e-5)


@pytest.mark.parametrize("rate", ["0.1", "0.5", "1/3", "0.01", "0.9"])
@pytest.mark.parametrize("more", ["", " --crowd-epsilon 0.5", " --high-rate 0.95 --irregular 1 --max-rate 0.99"])
def test_a_delta_that_crowd_prints_can_be_asked_for(run: Runner, rate: str, more: str) -> None:
    for k, epsilon in product((3, 20) if "irregular" in more else (1, 2, 5, 20), (1, 60)):
        asked = f"bounds crowd --k {k} --rate {rate}{more}"
        printed = run(f"{asked} --epsilon {epsilon} --json").json["delta"]
        if printed == 1:
            continue
        table = re.search(r"delta +(\S+)", run(f"{asked} --epsilon {epsilon}").out)
        assert table is not None
        for delta in (repr(printed), table.group(1)):
            found = run(f"{asked} --delta {delta} --json")
            assert found.code == 0, (asked, delta, found.err)
            assert found.json["epsilon"] <= epsilon + 1e-6


def test_crowd_takes_a_biased_sample(run: Runner) -> None:
    line = "bounds crowd --k 50 --rate 0.1 --high-rate 0.12 --irregular 5 --max-rate 1 --crowd-epsilon 0.1 --json"
    found = run(line).json
    assert found["epsilon"] == pytest.approx(1.07448, abs=1e-5)
    assert found["delta"] == pytest.approx(3.851e-9, rel=1e-3)
    assert found["delta_closed"] == pytest.approx(1.17e-3, rel=1e-2)
    assert "biased" in found["rule"]


def test_crowd_without_irregular_people_is_the_even_theorem_at_the_high_rate(run: Runner) -> None:
    biased = run("bounds crowd --k 20 --rate 0.05 --high-rate 0.1 --epsilon 0.5 --json").json["delta"]
    assert biased == pytest.approx(run("bounds crowd --k 20 --rate 0.1 --epsilon 0.5 --json").json["delta"], rel=1e-9)


def test_the_crowd_table_shows_the_bias(run: Runner) -> None:
    text = " ".join(run("bounds crowd --k 50 --rate 0.1 --high-rate 0.12 --irregular 5 --max-rate 1").out.split())
    assert "rates up to 0.12, 5 people up to 1" in text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--rate 0.1", "needs k and rate"),
        ("--k 20", "needs k and rate"),
        ("--k 20 --rate 1", "strictly between 0 and 1"),
        ("--k 20 --rate 0.1 --epsilon 1 --delta 1e-6", "omit one"),
        ("--k 20 --rate 0.1 --crowd-epsilon -1", "negative"),
        ("--k 20 --rate 0.1 --delta 1e-30", "Raise k or lower the rate"),
        ("--k 6 --rate 0.1 --irregular 5 --max-rate 1", "raise k to at least 7"),
        ("--k 20 --rate 0.2 --high-rate 0.1", "low ≤ high"),
    ],
)
def test_bad_input_of_crowd_is_one_clear_message_and_exit_2(run: Runner, line: str, says: str) -> None:
    outcome = run(f"bounds crowd {line}")
    assert (outcome.code, outcome.out) == (2, "")
    assert says in outcome.err


def test_amplify_and_its_inverse_agree(run: Runner) -> None:
    after = run("bounds amplify --rate 0.1 --epsilon 1 --delta 1e-6 --json").json
    assert after["sampled_epsilon"] == pytest.approx(0.1585650787404291, rel=1e-12)
    assert after["sampled_delta"] == pytest.approx(1e-7)
    line = f"bounds amplify --rate 0.1 --sampled-epsilon {after['sampled_epsilon']} --sampled-delta 1e-7 --json"
    before = run(line).json
    assert before["epsilon"] == pytest.approx(1.0)
    assert before["delta"] == pytest.approx(1e-6)
    rate = run(f"bounds amplify --epsilon 1 --sampled-epsilon {after['sampled_epsilon']} --json").json["rate"]
    assert rate == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--rate 0.1", "1 more of epsilon, sampled_epsilon"),
        ("--rate 2 --epsilon 1", "at most 1"),
        ("--epsilon 1 --sampled-epsilon 2", "below epsilon"),
        ("--epsilon 1 --sampled-epsilon 0", "above 0"),
        ("--rate 0.1 --epsilon 1 --sampled-delta 1e-6", "sampled-delta can only be given together"),
        ("--rate 0.1 --sampled-epsilon 1 --delta 1e-6", "delta can only be given together"),
        ("--rate 0.1 --epsilon 1 --delta 2", "probability"),
    ],
)
def test_bad_input_of_amplify_is_one_clear_message_and_exit_2(run: Runner, line: str, says: str) -> None:
    outcome = run(f"bounds amplify {line}")
    assert (outcome.code, outcome.out) == (2, "")
    assert says in outcome.err


def test_the_amplify_table_marks_what_was_solved(run: Runner) -> None:
    assert re.search(r"on the sample.*← solved", run("bounds amplify --rate 0.1 --sampled-epsilon 1").out)


@pytest.mark.parametrize("ending", ["svg", "html"])
@pytest.mark.parametrize("line", [SAFE, "bounds crowd --k 20 --rate 0.1", f"{SAFE} --replace"])
def test_plot_draws_the_curve(run: Runner, tmp_path: Path, line: str, ending: str) -> None:
    assert run(f"{line} --plot curve.{ending} --json").code == 0
    assert "<polyline" in (tmp_path / f"curve.{ending}").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == [f"curve.{ending}"]


def test_the_json_result_is_one_line(run: Runner) -> None:
    out = run(f"{SAFE} --json").out
    assert out.count("\n") == 1
    assert json.loads(out)


def write(path: Path, loss: Loss, unit: Unit) -> None:
    path.write_text(json.dumps(Guarantee(loss, unit, (Theorem("a-test", "a test"),)).to_json()), encoding="utf-8")


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


def test_pure_guarantees_add_up_and_are_rounded_up(run: Runner) -> None:
    assert 1.0 <= run('bounds compose --pure "0.1 x10" --delta 0 --json').json["epsilon"] <= 1.0 + 1e-14


def test_options_can_be_repeated_and_mixed(run: Runner) -> None:
    line = "bounds compose --pure 0.5 --pure 0.25,rate=0.1 --approximate 1,1e-7 --rho 0.01 --crowd 20,0.1,0.1"
    found = run(f"{line} --delta 1e-4 --json").json
    assert found["releases"] == 5


def test_the_guarantee_of_a_file_is_composed_with_the_others(run: Runner, tmp_path: Path) -> None:
    write(tmp_path / "guarantee.json", Pure(Fraction(1, 2)), Unit())
    assert run("bounds compose --guarantee guarantee.json --pure 1/2 --delta 0 --json").json["epsilon"] == 1.0


def test_guarantees_to_different_units_are_refused(run: Runner, tmp_path: Path) -> None:
    write(tmp_path / "guarantee.json", Pure(Fraction(1, 2)), Unit(Kind.PERSON, column="id"))
    outcome = run("bounds compose --guarantee guarantee.json --pure 0.5 --delta 0 --json")
    assert outcome.code == 2
    assert json.loads(outcome.err)["kind"] == "MixedUnits"


def test_two_guarantees_from_one_sample_are_refused(run: Runner, tmp_path: Path) -> None:
    write(tmp_path / "guarantee.json", Sampled(Fraction(1, 10), Crowd(20), sample="s1"), Unit())
    outcome = run("bounds compose --guarantee guarantee.json --guarantee guarantee.json --delta 1e-6 --json")
    assert outcome.code == 1
    assert json.loads(outcome.err)["kind"] == "SampleReused"


def test_an_unknown_loss_is_refused(run: Runner, tmp_path: Path) -> None:
    plain = Guarantee(Pure(Fraction(1)), Unit(), (Theorem("a-test", "a test"),)).to_json()
    (tmp_path / "guarantee.json").write_text(json.dumps(plain | {"loss": {"loss": "wishful"}}), encoding="utf-8")
    outcome = run("bounds compose --guarantee guarantee.json --delta 0 --json")
    assert outcome.code == 2
    assert json.loads(outcome.err)["kind"] == "UnknownLoss"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--delta 1e-6", "at least one release"),
        ("--pure 0.5", "1 more of epsilon, delta"),
        ("--pure 0.5 --epsilon 1 --delta 0", "omit one"),
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
        ("--guarantee nothing.json --delta 0", "existing JSON file"),
    ],
)
def test_bad_input_of_compose_is_one_clear_message_and_exit_2(run: Runner, line: str, says: str) -> None:
    outcome = run(f"bounds compose {line}")
    assert (outcome.code, outcome.out) == (2, "")
    assert says in outcome.err


@pytest.mark.parametrize("text", ["[]", "{}", "not json", '{"guarantee": 99}'])
def test_a_file_that_is_no_guarantee_is_bad_input(run: Runner, tmp_path: Path, text: str) -> None:
    (tmp_path / "guarantee.json").write_text(text, encoding="utf-8")
    assert run("bounds compose --guarantee guarantee.json --delta 0").code == 2


def test_the_table_compares_the_rules(run: Runner) -> None:
    text = " ".join(run('bounds compose --pure "0.1 x10" --delta 0').out.split())
    assert "releases 10 with independent randomness" in text
    assert "by sums 1 tightest" in text
