"""Minimality: an algorithm that generalized discloses that a finer table would have broken the rule, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import NONE, CandidateSearch, Codes, ColumnMatch, ordered_codes, row_groups
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Trial
from incrowd.errors import InvalidParameter

_LARGE = 300
"""Larger classes are not judged: counting their arrangements takes exact integers of many digits."""


def minimality(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Conclude from the generalization itself which of the merged groups broke l-diversity.

    Knows: the original known columns of *everybody* in the data, and that the algorithm generalizes no more than
    l-diversity of the secret requires; an unknown l is estimated from the table.  In a class that was merged from
    several groups, one group must have had a secret too often; under that condition, the probability of each secret in
    each group is exact.  Success: a secret with a probability above 1/l, and above its share in the class, is the
    person's.  Baseline: the commonest secret.

    Meaningless against an algorithm that is not minimal, and against one that generalizes all classes because of one.

    Source: Wong, Fu, Wang & Pei 2007.
    """
    trial = Trial.of(published, knowledge, control)
    secret = trial.column(trial.secret)
    guesses = _inferred(trial, secret)
    hits = secret.fits(guesses)
    story = trial.story(
        hits,
        lambda person: [
            f"The attacker knows {', '.join(trial.known_columns)} of everybody else too.",
            "If no group had broken the rule, the table would be finer: so one of the merged groups broke it.",
            f"Then {secret.labels.texts[guesses[person]]} is likelier in this person's group than the rule allows.",
        ],
    )
    return trial.finding("minimality", Risk.INFERENCE, hits, trial.commonest_secret, story)


def credibility(sizes: Sequence[int], number: int, l: int) -> list[Fraction] | None:  # noqa: E741 - the field's letter
    """Return the probability that a member of each merged group has a secret, if one group had it too often.

    `number` of all members have it, and a group of n may have at most n/l of them.  None if no group can have had it
    too often.  Example: two of seven are ill, in groups of 2 and 5, and 2-diversity required merging them.  Then both
    are in the small group.

    >>> [str(chance) for chance in credibility([2, 5], 2, 2)]
    ['1', '0']
    """
    total = comb(sum(sizes), number)
    most = [size // l for size in sizes]
    fine = _ways(sizes, most, number)
    if fine == total:
        return None
    chances = []
    for place, size in enumerate(sizes):
        others, limits = [*sizes[:place], *sizes[place + 1 :]], [*most[:place], *most[place + 1 :]]
        inside = sum(n * comb(size, n) * _ways(others, limits, number - n) for n in range(min(most[place], number) + 1))
        expected = Fraction(size * number, sum(sizes)) * total
        chances.append((expected - inside) / (total - fine) / size)
    return chances


def _ways(sizes: Sequence[int], most: Sequence[int], number: int) -> int:
    """Return in how many ways `number` members can be spread over groups, each with a maximum."""
    ways = [1] + [0] * number
    for size, limit in zip(sizes, most, strict=True):
        own = [comb(size, n) for n in range(min(size, limit, number) + 1)]
        ways = [sum(own[n] * ways[at - n] for n in range(min(at, len(own) - 1) + 1)) for at in range(number + 1)]
    return ways[number]


@dataclass(frozen=True)
class _Merged:
    """A class of the table: the groups that were merged into it, and how often each secret occurs."""

    groups: Codes
    sizes: Codes
    secrets: Codes


def _inferred(trial: Trial, secret: ColumnMatch) -> Codes:
    """Return the inferred secret of each person, −1 for none."""
    knowledge = trial.knowledge
    search = CandidateSearch.of(trial.published, knowledge.people, trial.known_columns, knowledge)
    own = np.full(len(search.targets), NONE)
    for owner, classes in search.blocks():
        alone = np.bincount(owner, minlength=len(own))[owner] == 1
        own[owner[alone]] = classes[alone]
    width = len(secret.labels.texts)
    number = np.zeros((len(search.classes), width), np.int64)
    np.add.at(number, (search.class_of, secret.labels.codes), trial.published.weights)
    l = knowledge.diversity or _diversity(number)  # noqa: E741 - the field's letter
    concluded = np.full(len(own), NONE)
    sizes = np.bincount(search.target_of, minlength=len(own))
    for code in np.unique(own[own >= 0]):
        groups = np.flatnonzero(own == code)
        merged = _Merged(groups, sizes[groups], number[code])
        concluded[groups] = _conclusions(merged, l)
    return _carried(trial, search, concluded)


def _diversity(number: Codes) -> int:
    """Return the largest l for which no class has a secret in more than 1/l of its rows."""
    rows = number.sum(axis=1)
    diversity = int((rows[rows > 0] // number.max(axis=1)[rows > 0]).min())
    if diversity < 2:
        raise InvalidParameter("the table is not 2-diverse in the secret: use homogeneity, which needs no minimality.")
    return diversity


def _conclusions(merged: _Merged, l: int) -> Codes:  # noqa: E741 - the field's letter
    guesses, best = np.full(len(merged.groups), NONE), np.zeros(len(merged.groups))
    rows = int(merged.sizes.sum())
    if len(merged.groups) < 2 or rows != int(merged.secrets.sum()) or rows > _LARGE:
        return guesses
    for code in np.flatnonzero(merged.secrets):
        chances = credibility(merged.sizes.tolist(), int(merged.secrets[code]), l)
        for place, chance in enumerate(chances or ()):
            if chance > max(Fraction(1, l), Fraction(int(merged.secrets[code]), rows)) and chance > best[place]:
                guesses[place], best[place] = code, float(chance)
    return guesses


def _carried(trial: Trial, search: CandidateSearch, concluded: Codes) -> Codes:
    """Return the conclusions for the attacked people, matched to groups by their known values."""
    group = row_groups(_common_codes(trial, name) for name in trial.known_columns)
    attacked, listed = group[: trial.everyone.num_rows], group[trial.everyone.num_rows :]
    conclusion = np.full(int(group.max()) + 1, NONE)
    conclusion[listed] = concluded[search.target_of]
    return conclusion[attacked]


def _common_codes(trial: Trial, name: str) -> Codes:
    """Return a column of the attacked people, and then of everybody in the data, as codes."""
    sides = (trial.everyone.column(name), trial.knowledge.people.column(name))
    return ordered_codes(pa.chunked_array([chunk for side in sides for chunk in side.cast(pa.string()).chunks]))[0]
