"""Figures and laws of surveys with rounds: permanent answers that are randomized again, and one round per person."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrowd.methods.local.mechanisms.memoized import Memoized
from incrowd.methods.local.mechanisms.randomizer import Response
from incrowd.methods.local.mechanisms.ratio import Weights
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.workflows.collect.participant import next_values
from incrowd.workflows.local.survey_file import survey_of
from tests.coins import ScriptedCoins

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors_series.json").read_text(encoding="utf-8"))
History = tuple[int, ...]


def memoized(size: int, one: int, two: int, rounds: int, *, unary: bool = False) -> Memoized:
    return Memoized(size, Weights(one, 1), Weights(two, 1), min(size, rounds), rounds, unary)


def law(made: Memoized, history: Sequence[int]) -> dict[tuple[Any, ...], Fraction]:
    """Return the chance of every series of reports: the permanent answers of all values are averaged over."""
    kernels = {memo: made.law_of(memo) for value in range(made.size) for memo in made.permanent.law(value)}
    reports = list(product(next(iter(kernels.values())), repeat=len(history)))
    chances = dict.fromkeys(reports, Fraction(1))
    for value in set(history):
        places = [place for place, other in enumerate(history) if other == value]
        memos = made.permanent.law(value).items()
        for series in reports:
            chances[series] *= sum(
                chance * math.prod((kernels[memo][series[place]] for place in places), start=Fraction(1))
                for memo, chance in memos
            )
    return chances


def loss(made: Memoized, one: Sequence[int], other: Sequence[int]) -> Fraction:
    """Return by how much a series of reports is likelier for one history than for another, at most."""
    left, right = law(made, one), law(made, other)
    return max(left[series] / right[series] for series in left)


def pattern(history: History) -> History:
    return tuple(history.index(value) for value in history)


def parsed(text: str) -> dict[str, int]:
    return {name: int(value) for name, _, value in (part.partition("=") for part in text.split(","))}


@pytest.mark.parametrize("key", [key for key in VECTORS["Y4_memo"] if key.endswith((",T=2", "d=2,r1=3,r2=3,T=6"))])
def test_losses_of_permanent_answers_are_those_of_the_reference(key: str) -> None:
    figures, told = VECTORS["Y4_memo"][key], parsed(key)
    made = memoized(told["d"], told["r1"], told["r2"], told["T"])
    assert math.log(made.p / made.q) == pytest.approx(figures["one_report"], rel=1e-12)
    same = loss(made, (0,) * told["T"], (1,) * told["T"])
    assert math.log(same) == pytest.approx(figures["same_value"], rel=1e-12)
    half = told["T"] // 2
    moved, stayed = (0,) * half + (1,) * (told["T"] - half), [(value,) * told["T"] for value in range(told["d"])]
    changed = max(max(loss(made, moved, other), loss(made, other, moved)) for other in stayed)
    assert math.log(changed) <= figures["T_ln_r2"]
    assert math.log(changed) >= figures["one_change_vs_none"] * (1 - 1e-9)
    assert math.log(made.ratio) == pytest.approx(min(told["d"], told["T"]) * figures["eps_inf"], rel=1e-12)


@pytest.mark.parametrize("told", VECTORS["Y4_worst_pair"], ids=lambda told: f"{told['d']}-{told['T']}")
def test_the_worst_pair_of_histories_loses_more_than_the_literature_says(told: dict[str, Any]) -> None:
    """Neither d ε∞ nor T ε₁ bounds any two histories; T ln r₂ does."""
    made = memoized(told["d"], int(told["r1"]), int(told["r2"]), told["T"])
    laws = {history: law(made, history) for history in product(range(told["d"]), repeat=told["T"])}
    pairs = ((one, other) for one in laws.values() for other in laws.values())
    worst = max(one[series] / other[series] for one, other in pairs for series in one)
    assert worst == Fraction(told["worst_exact"])
    assert worst <= Fraction(told["r2"]) ** told["T"]


@pytest.mark.parametrize(("size", "rounds", "unary"), [(2, 4, False), (3, 3, False), (2, 3, True), (3, 2, True)])
def test_histories_of_one_pattern_lose_what_is_charged_and_any_two_what_is_stated(
    size: int, rounds: int, unary: bool
) -> None:
    made = memoized(size, 3, 2, rounds, unary=unary)
    again = made.again.weights.value ** (size if unary else 1)
    laws = {history: law(made, history) for history in product(range(size), repeat=rounds)}
    for (one, left), (other, right) in product(laws.items(), repeat=2):
        worst = max(left[series] / right[series] for series in left)
        assert worst <= again**rounds
        if pattern(one) == pattern(other):
            assert worst <= made.permanent.ratio ** len(set(one)) <= made.ratio
    assert all(sum(law.values()) == 1 for law in laws.values())


def survey(rounds: dict[str, Any], **question: Any) -> LocalSurvey:
    told = {"categories": ["yes", "no"], **question}
    section = {"survey": "1", "name": "often", "epsilon": "2", "questions": {"ever": told}, "rounds": rounds}
    return survey_of(section, Path()).survey


def every_draw(totals: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return product(*(range(total) for total in totals))


def test_the_code_of_participants_draws_by_this_law_whatever_the_answers() -> None:
    """Enumerate every draw of permanent answers and of two reports, through the code that people run."""
    asked = survey({"count": "2", "form": "memoized", "distinct": "2"}, mechanism="response")
    made = Memoized(2, Weights(3, 1), Weights(2, 1), 2, 2)
    for history in product(range(2), repeat=2):
        chances: dict[tuple[Any, ...], Fraction] = {}
        for draws in every_draw((4, 4, 3, 3)):
            coins = ScriptedCoins(below=draws)
            memos = [made.permanent.plain(made.memos(coins))]
            reports = []
            used: dict[str, list[int]] = {}
            for value in history:
                used, values = next_values(asked, used, {"ever": value})
                memo = np.array([memos[0][values["ever"]]])
                reports.append(int(made.reports(memo, coins)[0]))
            chances[tuple(reports)] = chances.get(tuple(reports), Fraction(0)) + Fraction(1, 4 * 4 * 3 * 3)
        assert chances == law(made, history)


def test_beyond_the_stated_number_of_answers_the_last_permanent_one_is_repeated() -> None:
    asked = survey({"count": "6", "form": "memoized", "distinct": "2"}, categories=["a", "b", "c"])
    used: dict[str, list[int]] = {}
    reported = []
    for code in (2, 0, 1, 2, 1, 0):
        used, values = next_values(asked, used, {"ever": code})
        reported.append(values["ever"])
    assert reported == [2, 0, 0, 2, 2, 0]
    made = asked.questions[0].randomizer
    assert made.distinct == 2
    assert float(made.ratio) <= math.exp(2)


@pytest.mark.parametrize("key", VECTORS["Y4_estimator_variance"])
def test_the_permanent_part_of_an_error_never_averages_out(key: str) -> None:
    *numbers, holds = key.split(",")
    told = parsed(",".join(numbers))
    made = memoized(told["d"], told["r1"], told["r2"], max(2, told["T"]))
    memo, again = made.permanent, made.again
    part = memo.p if holds == "holds=True" else memo.q
    gap = (memo.p - memo.q) * (again.p - again.q)
    once = part * again.p * (1 - again.p) + (1 - part) * again.q * (1 - again.q)
    mean = ((again.p - again.q) ** 2 * part * (1 - part) + once / told["T"]) / gap**2
    assert mean == Fraction(VECTORS["Y4_estimator_variance"][key])
    if told["T"] == 1:  # one round has the variance of a report
        chance = made.p if holds == "holds=True" else made.q
        assert mean == chance * (1 - chance) / (made.p - made.q) ** 2


@pytest.mark.parametrize("key", VECTORS["Y4_rounds"])
def test_one_round_per_person_is_far_better_than_a_part_of_epsilon_in_each(key: str) -> None:
    rounds, figures = parsed(key)["T"], VECTORS["Y4_rounds"][key]
    e, part = math.e, math.exp(1 / rounds)
    assert rounds * e / (e - 1) ** 2 == pytest.approx(figures["one round per person"], rel=1e-9)
    assert part / (part - 1) ** 2 == pytest.approx(figures["split"], rel=1e-9)
    whole = Response(2, Weights.below(Fraction(1)))
    assert rounds * float(whole.variance(Fraction(0))) == pytest.approx(figures["one round per person"], rel=1e-3)
