"""Membership from published rows: whether a person is among those whose rows were published, by how near they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import Codes, ColumnMatch, match
from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.records.membership import ALARM, control_in_thirds, need_control, threshold
from incrowd.attacks.records.nearest import nearest_distances
from incrowd.attacks.trial import Trial
from incrowd.errors import InvalidParameter

_NEIGHBORS = 2
_SAME = 1e-12
Numbers = NDArray[np.float64]


def closest_record(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Decide that a person is in the data if a published row is nearer to them than to nearly everybody else.

    Knows: all published columns of a person, and such records of other people: a third of the control group sets the
    threshold that 5 % of them pass.  Success: the distance of a person in the data to the nearest published row is
    below it.  Baseline: 5 %, for every person.  The last third is the control group of the finding.  Distances are
    Gower's, so that masked and synthetic rows count as they are.

    Meaningless if the control group comes from another population, and where labels are so coarse that everybody is in
    some published row: then nobody is nearer than others.

    Source: Park et al. 2018 and Lu, Shen et al. 2019 (distance to the closest record); Chen, Yu, Zhang & Fritz 2020.
    """

    def scores(_trial: Trial, columns: Sequence[ColumnMatch], _reference: Codes) -> Numbers:
        return -nearest_distances(columns, 1)[:, 0]

    return _membership("closest-record", (published, knowledge, control), scores)


def density_ratio(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Decide that a person is in the data if published rows are denser around them than people are.

    Knows: all published columns of a person, and the population from a third of the control group; a second third sets
    the threshold that 5 % of them pass.  Logarithms of densities are estimated by the mean logarithm of the distances
    to the nearest two rows.  Success: the ratio of the two densities at a person in the data is above the threshold.
    Baseline: 5 %, for every person.  The last third is the control group of the finding.

    Meaningless if the control group comes from another population: then its density, not the release, separates the
    groups.

    Source: van Breugel, Sun, Qian & van der Schaar 2023 (DOMIAS); Loftsgaarden & Quesenberry 1965 for the
    densities.
    """

    def scores(trial: Trial, columns: Sequence[ColumnMatch], reference: Codes) -> Numbers:
        names = _names(trial)
        others = PublishedTable(trial.everyone.take(pa.array(np.sort(reference))), trial.published.lookups)
        population = [match(others, trial.everyone, name) for name in names]
        ours, theirs = (
            np.log(nearest_distances(side, _NEIGHBORS) + _SAME).mean(axis=1) for side in (columns, population)
        )
        return np.asarray(theirs - ours)

    return _membership("density-ratio", (published, knowledge, control), scores)


Scores = Callable[[Trial, Sequence[ColumnMatch], Codes], Numbers]
"""How much each person seems to be in the data; the codes are the people of the control group who may be used."""


def _membership(name: str, inputs: tuple[PublishedTable, Knowledge, pa.Table | None], scores_of: Scores) -> Finding:
    published, knowledge, control = inputs
    trial = Trial.of(published, knowledge, need_control(name, control))
    reference, judges, tested = control_in_thirds(trial)
    scores = scores_of(trial, [match(published, trial.everyone, column) for column in _names(trial)], reference)
    limit = threshold(scores[judges])
    inside = scores[: trial.inside] > limit
    success, baseline = Rate(int(inside.sum()), trial.inside), Rate(round(ALARM * trial.inside), trial.inside)
    control_rate = Rate(int((scores[tested] > limit).sum()), len(tested))
    story = _story(trial, scores, limit) if inside.any() else ()
    knows = "all published columns of a person"
    return Finding(name, Risk.INFERENCE, knows, success, baseline, control_rate, story)


def _names(trial: Trial) -> list[str]:
    """Return the columns that both sides have, without the person ID column."""
    hidden = (trial.knowledge.person,)
    names = [name for name in trial.published.columns if name in trial.everyone.column_names and name not in hidden]
    if not names:
        raise InvalidParameter("the published table and the data have no column in common: nothing can be compared.")
    return names


def _story(trial: Trial, scores: Numbers, limit: float) -> tuple[str, ...]:
    person = int(np.argmax(scores[: trial.inside]))
    names = tuple(_names(trial))
    return (
        f"The attacker knows of a person: {trial.person_text(person, names[:6])}{', …' if len(names) > 6 else ''}.",
        f"The person scores {scores[person]:.3g}; of people outside the data 95 % score at most {limit:.3g}.",
        "The attacker rightly concludes that the person is in the data.",
    )
