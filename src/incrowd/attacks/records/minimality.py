"""Minimality: that an algorithm had to generalize says that the finer table would have broken the rule, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import NONE, CodedColumns, Codes, ColumnMatch, distinct
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Hits, Trial
from incrowd.errors import InvalidParameter

_LARGE = 300


def minimality(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Conclude from the mere fact of generalization which of the merged groups broke l-diversity.

    Knows: the known columns of *everybody* in the data as they were before, and that the algorithm generalizes no more
    than l-diversity of the secret demands; an l that is not known is read off the table.  In a class that was merged
    from several groups one must have had a secret too often; given that, the chance of each secret in each group is
    exact.  Success: a secret whose chance is above 1/l, and above its share in the class, is the person's.  Blind
    guess: the commonest secret.

    Meaningless against an algorithm that is not minimal, and against one that generalizes all classes because of one.

    Source: Wong, Fu, Wang & Pei 2007.
    """
    trial = Trial.of(published, knowledge, outsiders)
    secret = trial.column(trial.secret)
    everyone = Trial(published, knowledge, knowledge.people, knowledge.people.num_rows)
    said = _said(trial, everyone, secret)
    hits, overall = secret.fits(said), secret.labels.codes[trial.commonest_row(trial.secret)]
    blind = secret.fits(np.full(len(said), overall))
    return trial.finding("minimality", Risk.INFERENCE, hits, blind, _story(trial, hits, secret, said))


def credibility(sizes: Sequence[int], number: int, l: int) -> list[Fraction] | None:  # noqa: E741 - the field's letter
    """Return the chance that a member of each merged group has a secret, given that one group had it too often.

    `number` of all members have it, and a group of n may hold at most n/l of them.  None if no group can have had it
    too often.  Two of seven are ill, in groups of 2 and 5, and 2-diversity had to be made: the two of the small group.

    >>> [str(chance) for chance in credibility([2, 5], 2, 2)]
    ['1', '0']
    """
    total = comb(sum(sizes), number)
    most = [size // l for size in sizes]
    fine = _ways(sizes, most, number)
    if fine == total:
        return None
    found = []
    for place, size in enumerate(sizes):
        others, limits = [*sizes[:place], *sizes[place + 1 :]], [*most[:place], *most[place + 1 :]]
        inside = sum(n * comb(size, n) * _ways(others, limits, number - n) for n in range(min(most[place], number) + 1))
        expected = Fraction(size * number, sum(sizes)) * total
        found.append((expected - inside) / (total - fine) / size)
    return found


def _ways(sizes: Sequence[int], most: Sequence[int], number: int) -> int:
    """Return in how many ways so many can be spread over groups, none of which takes more than its most."""
    ways = [1] + [0] * number
    for size, limit in zip(sizes, most, strict=True):
        each = [comb(size, n) for n in range(min(size, limit, number) + 1)]
        ways = [sum(each[n] * ways[at - n] for n in range(min(at, len(each) - 1) + 1)) for at in range(number + 1)]
    return ways[number]


@dataclass(frozen=True)
class _Merged:
    """A class of the table: the groups that were merged into it, and how often each secret occurs."""

    groups: Codes
    sizes: Codes
    secrets: Codes


def _said(trial: Trial, everyone: Trial, secret: ColumnMatch) -> Codes:
    """Return the secret that is concluded for each person, −1 where nothing is."""
    search = everyone.search
    own = np.full(len(search.targets), NONE)
    for owner, classes in search.blocks():
        alone = np.bincount(owner, minlength=len(own))[owner] == 1
        own[owner[alone]] = classes[alone]
    width = len(secret.labels.texts)
    number = np.zeros((len(search.classes), width), np.int64)
    np.add.at(number, (search.class_of, secret.labels.codes), trial.published.weights)
    l = trial.knowledge.diversity or _diversity(number)  # noqa: E741 - the field's letter
    concluded = np.full(len(own), NONE)
    sizes = np.bincount(search.target_of, minlength=len(own))
    for each in np.unique(own[own >= 0]):
        groups = np.flatnonzero(own == each)
        merged = _Merged(groups, sizes[groups], number[each])
        concluded[groups] = _conclusions(merged, l)
    return _carried(trial, everyone, concluded)


def _diversity(number: Codes) -> int:
    """Return the greatest l for which no class shows a secret in more than 1/l of its rows."""
    rows = number.sum(axis=1)
    found = int((rows[rows > 0] // number.max(axis=1)[rows > 0]).min())
    if found < 2:
        raise InvalidParameter(
            "the table is not even 2-diverse in the secret: homogeneity reads it without this attack."
        )
    return found


def _conclusions(merged: _Merged, l: int) -> Codes:  # noqa: E741 - the field's letter
    said, best = np.full(len(merged.groups), NONE), np.zeros(len(merged.groups))
    rows = int(merged.sizes.sum())
    if len(merged.groups) < 2 or rows != int(merged.secrets.sum()) or rows > _LARGE:
        return said
    for code in np.flatnonzero(merged.secrets):
        chances = credibility(merged.sizes.tolist(), int(merged.secrets[code]), l)
        for place, chance in enumerate(chances or ()):
            if chance > max(Fraction(1, l), Fraction(int(merged.secrets[code]), rows)) and chance > best[place]:
                said[place], best[place] = code, float(chance)
    return said


def _carried(trial: Trial, everyone: Trial, concluded: Codes) -> Codes:
    """Return what was concluded for the people who are attacked: for whoever has the known values of a group."""
    columns = [trial.everyone.column(name) for name in trial.known]
    theirs = [everyone.everyone.column(name) for name in trial.known]
    codes = [_common_codes(one, other) for one, other in zip(columns, theirs, strict=True)]
    _, group = distinct([np.concatenate(pair) for pair in codes])
    attacked, listed = group[: trial.everyone.num_rows], group[trial.everyone.num_rows :]
    known = np.full(int(group.max()) + 1, NONE)
    known[listed] = concluded[everyone.search.target_of]
    return known[attacked]


def _common_codes(one: pa.ChunkedArray, other: pa.ChunkedArray) -> tuple[Codes, Codes]:
    """Return the values of two columns as codes over both."""
    both = CodedColumns.of(pa.chunked_array([*one.cast(pa.string()).chunks, *other.cast(pa.string()).chunks]))
    return both.codes[: len(one)], both.codes[len(one) :]


def _story(trial: Trial, hits: Hits, secret: ColumnMatch, said: Codes) -> tuple[str, ...]:
    person = trial.victim(hits)
    if person is None:
        return ()
    return (
        f"The attacker knows {', '.join(trial.known)} of everybody; of one person: {trial.told(person, trial.known)}.",
        "Had no group broken the rule, the table would have been left finer: so one of the merged groups did.",
        f"Given that, {secret.labels.texts[said[person]]} is more likely in this person's group than the rule allows.",
        f"The truth about the person: {trial.told(person, (trial.secret,))}.",
    )
