"""Intersection of releases that were anonymized apart: each hides a person in a crowd, together they hide less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.attacks.candidates import NONE, Codes
from incrowd.attacks.cover import spans
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Hits, Trial
from incrowd.errors import InvalidParameter


def intersection(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Read the secret that is possible in every one of several releases about the same people.

    Knows: some columns of a person, and that the person is in every release.  Success: one secret alone occurs among
    the rows that fit in each release, and it is the person's.  Blind guess: the commonest secret of the last release.

    Meaningless with releases of different people, and where one release alone already gives the secret away: compare
    with homogeneity.

    Source: Ganta, Kasiviswanathan & Smith 2008.
    """
    if not published.earlier:
        raise InvalidParameter("an intersection needs two releases about the same people: name the other with --also.")
    trial = Trial.of(published, knowledge, outsiders)
    common = replace(published, earlier=())
    releases = [Trial(each, knowledge, trial.everyone, trial.inside) for each in (common, *published.earlier)]
    domain = pa.array(np.unique(trial.column(trial.secret).labels.texts).tolist())
    left = _possible(releases[0], domain)
    for release in releases[1:]:
        left = np.intersect1d(left, _possible(release, domain))
    whose, said = left // len(domain), np.full(trial.everyone.num_rows, NONE)
    alone = np.bincount(whose, minlength=len(said))
    said[whose] = left % len(domain)
    said[alone != 1] = NONE
    secret = trial.column(trial.secret)
    hits, overall = secret.fits(said), secret.labels.codes[trial.commonest_row(trial.secret)]
    blind = secret.fits(np.full(len(said), overall))
    return trial.finding("intersection", Risk.INFERENCE, hits, blind, _story(trial, hits, releases, said))


def _possible(trial: Trial, domain: pa.Array) -> Codes:
    """Return the pairs of a person and a secret that a release leaves possible, as one number each."""
    labels = trial.column(trial.secret).labels
    place = pc.index_in(pa.array(labels.texts.tolist()), value_set=domain).fill_null(NONE).to_numpy()
    found = []
    order = np.argsort(trial.search.target_of, kind="stable")
    starts = np.searchsorted(trial.search.target_of[order], np.arange(len(trial.search.targets) + 1))
    for target, code, _ in trial.search.holdings(labels.codes, trial.published.weights):
        low, high = starts[target], starts[target + 1]
        people = order[spans(low, high)]
        secret = np.repeat(place[code], high - low)
        found.append(people[secret >= 0] * len(domain) + secret[secret >= 0])
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _story(trial: Trial, hits: Hits, releases: list[Trial], said: Codes) -> tuple[str, ...]:
    person = trial.victim(hits)
    if person is None:
        return ()
    sizes = " and ".join(str(int(each.search.totals()[person])) for each in releases)
    secret = trial.column(trial.secret).labels.texts[said[person]]
    return (
        f"The attacker knows of a person: {trial.told(person, trial.known)}.",
        f"In the releases {sizes} rows can be this person.",
        f"The only {trial.secret} that occurs among them in every release is {secret}.",
        f"The truth about the person: {trial.told(person, (trial.secret,))}.",
    )
