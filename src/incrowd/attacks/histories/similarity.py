"""Similarity matching on sparse data: a few events, known about, find a person among all histories (Netflix)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import NONE, Codes
from incrowd.attacks.finding import Finding
from incrowd.attacks.histories.events import Histories
from incrowd.attacks.knowledge import Knowledge, PublishedTable

ECCENTRICITY = 1.5
Numbers = NDArray[np.float64]


def similarity(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Score every published history by how like a person's few known events it is, and take the best if it stands out.

    Knows: a few events of a person, their numbers and days only about (off by up to the slack).  An item that few have
    weighs more.  Success: the best history scores more than 1.5 standard deviations above the second, and holds at
    least half of all the person's events.  Blind guess: the longest history.

    Meaningless with histories of one or two events: there is nothing left to learn once they are known.

    Source: Narayanan & Shmatikov 2008.
    """
    histories = Histories.of(published, knowledge, outsiders)
    glimpses = histories.glimpses()
    chance = np.random.default_rng(knowledge.seed + 1)
    slack = [knowledge.slack.get(part.name, 0.0) for part in histories.parts]
    known = [
        part.people[glimpses] + np.round(chance.uniform(-1.0, 1.0, len(glimpses)) * off)
        for part, off in zip(histories.parts, slack, strict=True)
    ]
    claims, margin = np.full(histories.targets, NONE), np.zeros(histories.targets)
    for block, scores in histories.scores(glimpses, known, rarity(histories.support())):
        margin[block] = eccentricity(scores)
        claims[block] = np.where(margin[block] > ECCENTRICITY, scores.argmax(axis=1), NONE)
    knows = f"{knowledge.few} events of a person" + "".join(
        f", {part.name} within {off:g}" for part, off in zip(histories.parts, slack, strict=True)
    )
    return histories.finding("similarity", knows, claims, _story(histories, glimpses, claims, margin))


def rarity(support: Codes) -> Numbers:
    """Return the weight of an item that occurs in so many histories: 1 over the logarithm, at most that of two.

    >>> rarity(np.array([100, 1])).round(4).tolist()
    [0.2171, 1.4427]
    """
    return np.asarray(1.0 / np.log(np.maximum(support, 2)), float)


def eccentricity(scores: Numbers) -> Numbers:
    """Return how far the best of each row of scores stands above the second, in standard deviations of all.

    >>> eccentricity(np.array([[3.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])).round(3).tolist()
    [2.309, 0.0]
    """
    if scores.shape[1] < 2:
        return np.zeros(len(scores))
    best = np.partition(scores, -2, axis=1)[:, -2:]
    deviation = scores.std(axis=1)
    return np.asarray(np.where(deviation > 0, (best[:, 1] - best[:, 0]) / np.where(deviation > 0, deviation, 1.0), 0.0))


def _story(histories: Histories, glimpses: Codes, claims: Codes, margin: Numbers) -> tuple[str, ...]:
    hits = np.flatnonzero(histories.right(claims)[: histories.inside])
    if not len(hits):
        return ()
    person = int(hits[0])
    events = glimpses[histories.people[glimpses] == person]
    whole = int((histories.people == person).sum())
    return (
        f"The attacker knows about a person: {histories.words(events)}.",
        f"One published history stands out by {margin[person]:.1f} standard deviations above the second.",
        f"It is the person's: the attacker, who knew {len(events)} events, now reads all {whole}.",
    )
