"""Differencing: two releases, or two answers, whose difference is one person; also around a withdrawal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import NONE, CandidateSearch, CodedColumns, Codes, distinct
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Hits, Trial
from incrowd.errors import InvalidParameter


def differencing(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Read the record of somebody who left, or came, from the cells that changed between two releases.

    Knows: some columns of a person, and that the person is in one of the two releases and not in the other;
    `knowledge.people` are such people.  Success: among the cells that fit exactly one changed, and what it says about
    everything else is true.  Blind guess: the commonest of the other values.

    Meaningless if both releases are of the same people, and for noisy counts: there nearly every cell changes.

    Source: Denning & Denning 1979 (trackers); around a withdrawal the counts c and c − 1 name the leaver's cell.
    """
    if len(published.earlier) != 1:
        raise InvalidParameter("differencing needs two releases: name the other one with --also.")
    changed = _changed(published, published.earlier[0])
    trial = Trial.of(changed, knowledge, outsiders)
    cells = np.arange(changed.table.num_rows)
    said = CandidateSearch.of(changed, trial.everyone, trial.known, knowledge).agreement(cells)
    hits = trial.fits(said)
    usual = Trial(published, knowledge, trial.everyone, trial.inside)
    blind = usual.fits(np.full(len(hits), usual.commonest_row(*usual.rest)))
    return trial.finding("differencing", Risk.LINKABILITY, hits, blind, _story(trial, hits, said))


def _changed(one: PublishedTable, other: PublishedTable) -> PublishedTable:
    """Return the cells whose counts differ, each once."""
    columns = [name for name in one.columns if name in other.columns]
    if not columns:
        raise InvalidParameter("the two releases have no column in common, so that nothing can be subtracted.")
    codes = []
    for name in columns:
        both = [each.table.column(name).cast(pa.string()) for each in (one, other)]
        codes.append(CodedColumns.of(pa.chunked_array([*both[0].chunks, *both[1].chunks])).codes)
    _, cell = distinct(codes)
    here = one.table.num_rows
    counts = np.bincount(cell[:here], one.weights, int(cell.max()) + 1).astype(np.int64)
    counts -= np.bincount(cell[here:], other.weights, len(counts)).astype(np.int64)
    both = pa.concat_tables([_as_text(each.table, columns) for each in (one, other)])
    first = np.unique(cell, return_index=True)[1]
    if not counts.any():
        raise InvalidParameter("the two releases have the same rows: there is no difference to read.")
    return PublishedTable(both.take(first[counts != 0]), one.lookups)


def _as_text(table: pa.Table, columns: list[str]) -> pa.Table:
    return pa.table({name: table.column(name).cast(pa.string()) for name in columns})


def _story(trial: Trial, hits: Hits, said: Codes) -> tuple[str, ...]:
    person = trial.victim(hits)
    if person is None or said[person] == NONE:
        return ()
    return (
        f"The attacker knows of a person who is in one release only: {trial.told(person, trial.known)}.",
        f"Of the cells that this person can be in, exactly one changed: {trial.shown(int(said[person]), trial.rest)}.",
        f"The truth about the person: {trial.told(person, trial.rest)}.",
    )
