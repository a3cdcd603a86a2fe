from __future__ import annotations

import io

import pytest

from tests.cli.running import Runner


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_rule_by_options_is_explained(run: Runner) -> None:
    done = run("rule --hide-up-to 7 --small-counts zero --no-totals --round 5")
    assert done.code == 0
    assert done.out.startswith("Yes: ")
    for text in ("(8, 0)-crowd-blending", "after a secret sample", "method: suppressed-histogram", "incrowd check"):
        assert text in done.out


def test_a_rule_with_totals_begins_with_no_and_names_the_method_for_it(run: Runner) -> None:
    done = run("rule --hide-below 5 --totals --round 5 --zeros shown")
    assert (done.code, done.out[:4]) == (0, "No: ")
    for text in ("Totals:", "Zeros:", "protected-table", "minimum: 5"):
        assert text in done.out


def test_a_rule_is_explained_as_json(run: Runner) -> None:
    found = run("rule --hide-below 8 --zeros hidden --no-totals --round 5 --rate 0.1 --json").json
    assert (found["k"], found["round"], found["rate"], found["protects"]) == (8, 5, "1/10", True)
    assert [row["rate"] for row in found["sampled"]] == ["1/100", "1/20", "1/10", "1/5", "1/2"]


def test_a_word_that_is_no_answer_is_named_and_not_what_it_hides(run: Runner) -> None:
    outcome = run("rule --hide-below 5 --zeros --totals")
    assert (outcome.code, "--zeros is one of: shown, hidden." in outcome.err) == (2, True)


def test_hide_up_to_4_is_hide_below_5(run: Runner) -> None:
    rest = "--zeros hidden --no-totals --json"
    assert run(f"rule --hide-up-to 4 {rest}").json == run(f"rule --hide-below 5 {rest}").json


def test_the_policy_alone_is_a_policy(run: Runner) -> None:
    assert run("rule --hide-below 5 --zeros hidden --no-totals --policy").out.startswith("incrowd: 1\n")
    assert run("rule --hide-below 5 --zeros shown --no-totals --policy").out.startswith("# differs from the rule:\n")


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("rule", "--hide-below, --hide-up-to or --round is missing"),
        ("rule --hide-below 5 --no-totals", "--zeros is missing"),
        ("rule --hide-below 5 --zeros hidden", "--totals or --no-totals is missing"),
        ("rule --round 5", "--totals or --no-totals is missing"),
    ],
)
def test_without_a_terminal_a_missing_option_is_named(run: Runner, line: str, missing: str) -> None:
    done = run(line)
    assert (done.code, done.out) == (2, "")
    assert missing in done.err


def test_a_terminal_asks_for_what_is_missing(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("5\nperhaps\nhidden\nno\n"))
    asked = run("rule --json")
    assert asked.json == run("rule --hide-below 5 --zeros hidden --no-totals --json").json
    assert asked.err.count("Are empty cells shown as 0") == 2


def test_a_terminal_asks_nothing_that_was_said(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(""))
    assert run("rule --round 5 --no-totals").err == ""
    assert run("rule --hide-below 5 --small-counts zero --totals").err == ""


@pytest.mark.parametrize(
    "options",
    [
        "--hide-below 1 --zeros hidden",
        "--hide-up-to 0 --zeros hidden",
        "--hide-below fünf --zeros hidden",
        "--hide-below 5 --hide-up-to 4 --zeros hidden",
        "--hide-below 5 --zeros maybe",
        "--hide-below 5 --zeros hidden --small-counts gone",
        "--hide-below 5 --zeros hidden --round 5 --rounding sideways",
        "--hide-below 5 --zeros hidden --rounding up",
        "--hide-below 5 --zeros shown --small-counts zero",
        "--hide-below 5 --zeros hidden --rate 2",
        "--hide-below 5 --zeros hidden --tables 0",
        "'counts below 5 are suppressed'",
    ],
)
def test_bad_rules_exit_with_2(run: Runner, options: str) -> None:
    done = run(f"rule {options} --no-totals")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("incrowd: ")
