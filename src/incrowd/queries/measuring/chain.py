"""Chain: the steps of a measurement, from the question to its answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from incrowd.mechanisms.cube import AddCube
from incrowd.queries.steps.noise import (
    AddUp,
    ConcentratedPick,
    CubeNoise,
    GaussianNoise,
    GroupThreshold,
    LaplaceNoise,
    NumberInGroup,
    PrivatePick,
    SharedGaussianNoise,
)
from incrowd.queries.steps.question import (
    BoundContribution,
    GiveAnswer,
    GroupRows,
    OneGroup,
    OpenGroups,
    RowSample,
    Understand,
)

if TYPE_CHECKING:
    from incrowd.core.steps.step import Step
    from incrowd.queries.measuring import picks, statistics
    from incrowd.queries.measuring.noise import Settled
    from incrowd.queries.question import Question
    from incrowd.queries.terms import Terms


def question_steps(
    question: Question, terms: Terms, sums: statistics.Statistics, settled: Settled, picked: tuple[picks.Pick, ...]
) -> tuple[Step, ...]:
    """Return the steps: the question, whose rows, which groups, which sums, which noise, which picks, the answer."""
    reach = question.contribution
    return (
        Understand(question.text, question.tables, terms.to_json()),
        *(() if terms.rate is None else (RowSample(terms.rate),)),
        BoundContribution(reach.rows, reach.groups, question.caps.rows or None, question.caps.groups),
        _groups(question),
        *_noisy(sums, settled),
        *(_pick(pick, ConcentratedPick if terms.rho is not None else PrivatePick) for pick in picked),
        GiveAnswer(tuple(output.name for output in question.outputs)),
    )


def _groups(question: Question) -> Step:
    by = tuple(key.name for key in question.keys)
    if not question.public_keys:
        return OpenGroups(by)
    return GroupRows(by, math.prod(len(key.values or ()) for key in question.keys)) if by else OneGroup()


def _noisy(sums: statistics.Statistics, settled: Settled) -> tuple[Step, ...]:
    if settled.noise is None:
        return ()
    steps = (AddUp(tuple(map(_statistic, sums.all)), sums.rows), _noise(settled))
    if settled.threshold is None or sums.counting is None:
        return steps
    return (*steps, GroupThreshold(settled.threshold.least, sums.counting, settled.threshold.delta))


def _statistic(each: statistics.Statistic) -> NumberInGroup:
    value = None if each.value is None else each.value.name
    grid = each.grid
    return NumberInGroup(each.of, each.width, value, *((None, None) if grid is None else (grid.center, grid.step)))


def _noise(settled: Settled) -> Step:
    match settled.noise:
        case AddCube(epsilon=epsilon, law=law):
            kind = CubeNoise if len(law.widths) > 1 else LaplaceNoise
            return kind(epsilon, law.widths, law.fine, law.scale)
        case None:
            raise AssertionError("sums have noise")
    scales, share = settled.noise.law.scales, settled.share
    return GaussianNoise(scales) if share is None else SharedGaussianNoise(scales, share.epsilon, share.delta)


def _pick(pick: picks.Pick, kind: type[PrivatePick]) -> PrivatePick:
    mechanism, aggregate = pick.mechanism, pick.aggregate
    return kind(
        aggregate.name,
        aggregate.kind,
        pick.candidates.number,
        pick.epsilon,
        mechanism.sensitivity,
        mechanism.scale,
        aggregate.at,
    )
