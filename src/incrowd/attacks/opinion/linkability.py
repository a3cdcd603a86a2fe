"""Linkability: two parts of a person's record, held by two parties, joined with the help of what was published."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import distinct, match
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.opinion.nearest import nearest
from incrowd.attacks.trial import Hits, Trial
from incrowd.errors import InvalidParameter


def linkability(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Join two halves of people's records through the published row that is nearest to each half.

    Knows: of a person the known columns; of the same person, among others, the remaining published columns, without a
    name.  Success: a published row is among the nearest to both halves.  Blind guess: the halves of two published rows
    drawn at random.  For tables whose rows are real people's and for synthetic ones.

    Meaningless where few distinct rows were published: halves of everybody meet there, those of outsiders too.

    Source: Opinion 05/2014 of the Article 29 Working Party; Giomi, Boenisch, Wehmeyer & Tasnádi 2023 (anonymeter).
    """
    trial = Trial.of(published, knowledge, outsiders)
    if not trial.rest:
        raise InvalidParameter("linkability needs a second half: leave a published column out of the known ones.")
    halves = [
        [match(published, trial.everyone, name, knowledge.slack.get(name)) for name in columns]
        for columns in (trial.known, trial.rest)
    ]
    shown = [distinct([each.labels.codes for each in half])[1] for half in halves]
    width = int(shown[1].max()) + 1
    near = [nearest(half, 1)[:, 0] for half in halves]
    hits = np.isin(near[0] * width + near[1], shown[0] * width + shown[1])
    some = [np.sort(each)[knowledge.chance.integers(0, len(each), len(hits))] for each in shown]
    blind = np.isin(some[0] * width + knowledge.chance.permutation(some[1]), shown[0] * width + shown[1])
    return trial.finding("linkability", Risk.LINKABILITY, hits, blind, _story(trial, hits))


def _story(trial: Trial, hits: Hits) -> tuple[str, ...]:
    person = trial.victim(hits)
    if person is None:
        return ()
    return (
        f"One party knows of a person: {trial.told(person, trial.known)}.",
        f"Another holds, without a name: {trial.told(person, trial.rest)}.",
        "One published row is among the nearest to both halves: the two conclude that they speak of one person.",
    )
