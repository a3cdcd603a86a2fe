"""Attacks on several releases about the same people: intersection and differencing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import NONE, CandidateSearch, CodedColumns, Codes, distinct
from incrowd.attacks.cover import spans
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Trial
from incrowd.errors import InvalidParameter


def intersection(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Read the secret that is possible in every one of several releases about the same people.

    Knows: some columns of a person, and that the person is in every release.  Releases may be made under different
    policies and generalize columns, also the secret, differently.  Success: exactly one secret is possible by the rows
    that fit in each release, and it is the person's.  Baseline: the commonest secret of the last release.

    Meaningless with releases of different people, and where one release alone discloses the secret: compare with
    homogeneity.

    Source: Ganta, Kasiviswanathan & Smith 2008.
    """
    if not published.earlier:
        raise InvalidParameter("intersection needs two releases about the same people: name the other with --also.")
    trial = Trial.of(published, knowledge, control)
    common = replace(published, earlier=())
    releases = [Trial(release, knowledge, trial.everyone, trial.inside) for release in (common, *published.earlier)]
    secret = trial.column(trial.secret)
    pairs = _possible(releases[0])
    for release in releases[1:]:
        pairs = np.intersect1d(pairs, _possible(release))
    person, guesses = pairs // len(secret.values.texts), np.full(trial.everyone.num_rows, NONE)
    guesses[person] = pairs % len(secret.values.texts)
    guesses[np.bincount(person, minlength=len(guesses)) != 1] = NONE
    hits = guesses == secret.values.codes

    def steps(person: int) -> list[str]:
        sizes = " and ".join(str(int(release.search.totals()[person])) for release in releases)
        return [
            f"In the releases {sizes} rows can be this person.",
            f"Only one {trial.secret} is possible in every release: {secret.values.texts[guesses[person]]}.",
        ]

    return trial.finding("intersection", Risk.INFERENCE, hits, trial.commonest_secret, trial.story(hits, steps))


def _possible(trial: Trial) -> Codes:
    """Return the pairs of a person and a value of the secret that a release leaves possible, as one number each.

    A label leaves all values possible that it stands for: releases may generalize the secret differently.
    """
    column = trial.column(trial.secret)
    number, cover = len(column.values.texts), column.cover
    covered = np.repeat(np.arange(number), np.diff(cover.starts))
    by_label = np.argsort(cover.labels, kind="stable")
    first = np.searchsorted(cover.labels[by_label], np.arange(len(column.labels.texts) + 1))
    pairs = []
    order = np.argsort(trial.search.target_of, kind="stable")
    starts = np.searchsorted(trial.search.target_of[order], np.arange(len(trial.search.targets) + 1))
    for target, code, _ in trial.search.holdings(column.labels.codes, trial.published.weights):
        values = covered[by_label[spans(first[code], first[code + 1])]]
        keys = np.unique(np.repeat(target, first[code + 1] - first[code]) * number + values)
        low, high = starts[keys // number], starts[keys // number + 1]
        pairs.append(order[spans(low, high)] * number + np.repeat(keys % number, high - low))
    return np.unique(np.concatenate(pairs)) if pairs else np.empty(0, np.int64)


def differencing(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Read the record of a person who left, or joined, from the cells that changed between two releases.

    Knows: some columns of a person, and that the person is in one of the two releases and not in the other;
    `knowledge.people` are such people.  Success: among the cells that fit, exactly one changed, and all its other
    values are true.  Baseline: the commonest of the other values.

    Meaningless if both releases are of the same people, and for noisy counts: there nearly every cell changes.

    Source: Denning & Denning 1979 (trackers); before and after a withdrawal the counts c and c − 1 show the cell of the
    person who left.
    """
    if len(published.earlier) != 1:
        raise InvalidParameter("differencing needs two releases: name the other one with --also.")
    changed = _changed(published, published.earlier[0])
    trial = Trial.of(changed, knowledge, control)
    cells = np.arange(changed.table.num_rows)
    cell = CandidateSearch.of(changed, trial.everyone, trial.known_columns, knowledge).agreement(cells)
    hits = trial.fits(cell)
    usual = Trial(published, knowledge, trial.everyone, trial.inside)
    baseline = usual.fits(np.full(len(hits), usual.commonest_row(*usual.rest)))
    story = trial.story(
        hits,
        lambda person: [
            f"Of the cells that fit, one differs between the releases: {trial.row_text(int(cell[person]), trial.rest)}."
        ],
        trial.rest,
    )
    return trial.finding("differencing", Risk.LINKABILITY, hits, baseline, story)


def _changed(one: PublishedTable, other: PublishedTable) -> PublishedTable:
    """Return the cells whose counts differ, each once."""
    columns = [name for name in one.columns if name in other.columns]
    if not columns:
        raise InvalidParameter("the two releases have no column in common: differencing needs at least one.")
    both = pa.concat_tables([_as_text(release.table, columns) for release in (one, other)])
    _, cell = distinct([CodedColumns.of(both.column(name)).codes for name in columns])
    here = one.table.num_rows
    counts = np.bincount(cell[:here], one.weights, int(cell.max()) + 1).astype(np.int64)
    counts -= np.bincount(cell[here:], other.weights, len(counts)).astype(np.int64)
    first = np.unique(cell, return_index=True)[1]
    if not counts.any():
        raise InvalidParameter("the two releases have the same rows: differencing needs two that differ.")
    return PublishedTable(both.take(first[counts != 0]), one.lookups)


def _as_text(table: pa.Table, columns: list[str]) -> pa.Table:
    return pa.table({name: table.column(name).cast(pa.string()) for name in columns})
