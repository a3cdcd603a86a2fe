"""The steps of questions: read back as written, and whatever they guarantee and claim follows from them alone."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from incrowd.core.claims.claim import claim_of
from incrowd.core.loss import Approximate, Sequence, ZeroConcentrated
from incrowd.core.statement import Statement
from incrowd.core.steps.samples import COINS
from incrowd.core.steps.step import ClaimBasis, Step, claims_of, fold, step_of, walk
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.queries.check import CHECK
from incrowd.queries.measurement import QueryPlan
from incrowd.queries.query import AggregateKind
from incrowd.queries.steps.noise import AddUp, GroupThreshold, PickScore, PrivatePick, SharedGaussianNoise
from incrowd.queries.steps.query import BoundContribution, Combine
from incrowd.verifier.check import in_order
from incrowd.verifier.judge import numbers_of
from tests.queries.plans import PLANS

_TOLD = {"question", "tables", "terms", "columns", "by", "value", "center", "step", "aggregate", "candidates", "groups"}
"""Fields of steps that say what was asked, and on which no loss depends."""


def released(plan: QueryPlan) -> tuple[str, ...]:
    """The columns of the answers, without intervals."""
    if isinstance(plan.steps[-1], Combine):
        return plan.steps[-1].columns
    return tuple(name for step in walk(plan.steps) for name in getattr(step, "columns", ()))


def statement(plan: QueryPlan, steps: tuple[Step, ...]) -> Statement:
    return Statement(ClaimBasis(plan.guarantee, steps, plan.numbers), plan.claims, released(plan))


@pytest.fixture(params=PLANS)
def plan(request: pytest.FixtureRequest) -> QueryPlan:
    return PLANS[request.param]


def test_steps_and_claims_are_read_back_as_they_were_written(plan: QueryPlan) -> None:
    assert tuple(step_of(step.to_json(), CHECK.steps) for step in plan.steps) == plan.steps
    assert tuple(claim_of(claim.to_json(), CHECK.claims) for claim in plan.claims) == plan.claims
    assert in_order(plan.steps, CHECK.order)
    assert CHECK.contradiction(statement(plan, plan.steps)) is None


def test_guarantee_and_claims_are_made_again_from_the_steps_and_the_numbers_of_the_claims(plan: QueryPlan) -> None:
    guarantee = fold(plan.steps, plan.unit, plan.guarantee.delta)
    assert guarantee == plan.guarantee
    assert claims_of(ClaimBasis(guarantee, plan.steps, numbers_of(plan.claims))) == plan.claims


def test_an_unknown_key_is_refused(plan: QueryPlan) -> None:
    for step in walk(plan.steps):
        with pytest.raises(InvalidParameter):
            step_of({**step.to_json(), "certified": "GDPR"}, CHECK.steps)


def changed(plain: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield a plain form with one number changed, for each number in it that a loss could depend on."""
    items = enumerate(plain) if isinstance(plain, list) else plain.items() if isinstance(plain, dict) else ()
    for name, part in items:
        if name in _TOLD and isinstance(plain, dict):
            continue
        others: list[Any] = []
        if isinstance(part, int):
            others = [part + 1, part - 1]
        elif isinstance(part, str) and part.replace("/", "").isdigit():
            others = [f"{part}7", f"7{part}"]
        for other in others:
            forged = copy.deepcopy(plain)
            forged[name] = other
            yield (*path, str(name)), forged
        for where, inner in changed(part, (*path, str(name))):
            forged = copy.deepcopy(plain)
            forged[name] = inner
            yield where, forged


def test_no_number_of_a_step_can_be_changed_without_changing_the_guarantee(plan: QueryPlan) -> None:
    """Every width, scale, sensitivity, row and threshold decides: another gives another guarantee, or none."""
    shared = any(isinstance(step, SharedGaussianNoise) for step in plan.steps)
    people = any(isinstance(step, AddUp) and step.people for step in plan.steps)
    free = {"least", "groups", "scales", *(["width"] if shared else []), *(["rows"] if people else [])}
    for place, step in enumerate(plan.steps):
        for where, plain in changed(step.to_json()):
            try:
                steps = (*plan.steps[:place], step_of(plain, CHECK.steps), *plan.steps[place + 1 :])
                same = fold(steps, plan.unit, plan.guarantee.delta) == plan.guarantee
            except IncrowdError:
                continue
            if same:  # a threshold, and noise that has a share of ε and δ: the check holds them against their law
                assert free & {*where}, where


@pytest.mark.parametrize("name", ["unknown groups", "unknown groups of people", "gaussian and unknown groups"])
@pytest.mark.parametrize("change", ["least", "groups"])
def test_a_threshold_that_is_too_low_for_its_delta_is_found_out(name: str, change: str) -> None:
    plan = PLANS[name]
    steps = tuple(
        replace(step, least=step.least - 1 - step.least // 20)
        if change == "least" and isinstance(step, GroupThreshold)
        else replace(step, groups=step.groups * 1000)
        if change == "groups" and isinstance(step, BoundContribution)
        else step
        for step in plan.steps
    )
    problem = CHECK.contradiction(statement(plan, steps))
    assert problem is not None
    assert problem.text == "the threshold is too low for its delta"


def test_gaussian_noise_that_claims_a_smaller_share_is_found_out() -> None:
    plan = PLANS["gaussian and picks"]
    place = next(at for at, step in enumerate(plan.steps) if isinstance(step, SharedGaussianNoise))
    noise = plan.steps[place]
    assert isinstance(noise, SharedGaussianNoise)
    narrow = SharedGaussianNoise(tuple(scale * 9 / 10 for scale in noise.scales), noise.epsilon, noise.delta)
    assert CHECK.contradiction(statement(plan, (*plan.steps[:place], narrow, *plan.steps[place + 1 :]))) is not None
    for share in ((noise.epsilon / 2, noise.delta), (noise.epsilon, noise.delta / 2)):
        steps = (*plan.steps[:place], SharedGaussianNoise(noise.scales, *share), *plan.steps[place + 1 :])
        problem = CHECK.contradiction(statement(plan, steps))
        assert problem is not None
        assert problem.text == "the noise costs more than its epsilon and delta"
        assert fold(steps, plan.unit, plan.guarantee.delta) != plan.guarantee


@pytest.mark.parametrize("score", [PickScore.EXCESS, None], ids=["today", "version 1"])
@pytest.mark.parametrize("at", [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(2, 3), Fraction(1)], ids=str)
def test_the_slow_route_finds_how_far_a_row_moves_the_scores_of_a_quantile(
    at: Fraction, score: PickScore | None
) -> None:
    plan = PLANS["picks alone"]
    place = next(at for at, step in enumerate(plan.steps) if isinstance(step, PrivatePick))
    moved = max(at.numerator, at.denominator - at.numerator)
    for sensitivity, right in ((moved, True), (moved + 1, True), (moved - 1, False)):
        pick = PrivatePick("median", AggregateKind.QUANTILE, 5, Fraction(1), sensitivity, Fraction(2), at, score)
        problem = CHECK.contradiction(statement(plan, (*plan.steps[:place], pick, *plan.steps[place + 1 :])))
        assert (problem is None) == right
        assert right or (problem and problem.text == "one row moves the scores of a pick further than its steps say")


def test_only_quantiles_have_a_score_of_their_own() -> None:
    plan = PLANS["picks alone"]
    scores = {step.of: step.score for step in plan.steps if isinstance(step, PrivatePick)}
    assert scores == {AggregateKind.QUANTILE: PickScore.EXCESS, AggregateKind.MODE: None}
    other = [replace(step, score=PickScore.EXCESS) if isinstance(step, PrivatePick) else step for step in plan.steps]
    with pytest.raises(InvalidParameter):
        fold(tuple(other), plan.unit, plan.guarantee.delta)


def test_losses_have_the_form_in_which_they_were_paid() -> None:
    assert isinstance(PLANS["rho for picks"].guarantee.loss, ZeroConcentrated)
    assert isinstance(PLANS["gaussian and unknown groups"].guarantee.loss, Approximate)
    mixed = PLANS["rho and unknown groups"].guarantee.loss
    assert isinstance(mixed, Sequence)
    assert [type(part) for part in mixed.parts] == [ZeroConcentrated, Approximate]


def test_a_question_out_of_order_is_no_question() -> None:
    steps = PLANS["sums and picks"].steps
    for at in range(len(steps) - 1):
        if isinstance(steps[at], PrivatePick) and isinstance(steps[at + 1], PrivatePick):
            continue
        swapped = (*steps[:at], steps[at + 1], steps[at], *steps[at + 2 :])
        assert (
            not in_order(swapped, CHECK.order)
            or CHECK.contradiction(statement(PLANS["sums and picks"], swapped)) is not None
        )


def test_each_dataset_has_the_guarantee_for_its_own_unit() -> None:
    from incrowd.core.unit import Kind, Unit

    plan, other = PLANS["a sum alone"], Unit(Kind.PERSON, column="nurse", max_rows=7)
    guarantees = plan.over({"visits": plan.unit, "staff": other})
    assert guarantees["visits"] == plan.guarantee
    assert guarantees["staff"].unit == other
    assert guarantees["staff"].loss == plan.guarantee.loss


def test_what_is_proved_of_an_answer_is_true_of_every_noise(plan: QueryPlan) -> None:
    """Cube noise is one for all numbers of a group, and a pick has none: no number has noise of its own there."""
    for claim in plan.claims:
        texts = [each.text for each in claim.preconditions]
        assert not any("noise of its own" in text for text in texts)
        assert any("sums under the stated noise" in text and "private selections" in text for text in texts)


def test_only_a_secret_sample_assumes_that_its_coins_stay_secret() -> None:
    for name, plan in PLANS.items():
        sampled = "sample" in name
        assert (COINS in plan.guarantee.assumes) == sampled
        assert all((str(COINS) in claim.assumed) == sampled for claim in plan.claims)
