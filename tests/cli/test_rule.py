from __future__ import annotations

from tests.cli.running import Runner


def test_a_rule_in_words_is_explained(run: Runner) -> None:
    found = run("rule 'counts of 7 or fewer become 0, then round to 5'")
    assert found.code == 0
    for text in ("(8, 0)-crowd-blending", "with a secret sample in front", "method: suppressed-histogram"):
        assert text in found.out


def test_a_rule_by_numbers_is_explained_as_json(run: Runner) -> None:
    found = run("rule --minimum 8 --round 5 --rate 0.1 --json").json
    assert (found["k"], found["round"], found["rate"], found["crowd_blending"]) == (8, 5, "1/10", True)
    assert [row["rate"] for row in found["sampled"]] == ["1/100", "1/20", "1/10", "1/5", "1/2"]


def test_the_policy_alone_is_a_policy(run: Runner) -> None:
    assert run("rule 'counts below 5 become 0' --policy").out.startswith("incrowd: 1\n")
    assert run("rule 'k = 5' --policy").out.startswith("# the rule does not say how withheld cells look")


def test_a_policy_that_differs_from_the_rule_says_so_on_the_terminal_too(run: Runner) -> None:
    found = run("rule 'random rounding to base 3'")
    assert found.code == 0
    assert "The nearest policy, which differs from the rule" in found.out


def test_bad_rules_exit_with_2(run: Runner) -> None:
    for line in ("rule", "rule 'k = 5' --minimum 5", "rule 'bananas'", "rule --minimum 1", "rule --minimum x"):
        found = run(line)
        assert found.code == 2
        assert found.err.startswith("incrowd: ")
