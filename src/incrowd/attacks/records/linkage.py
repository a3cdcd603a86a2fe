"""Linkage with a list of names: find a person's published record, and read the rest of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import NONE, Codes, codes_of
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.masked import NearestSearch
from incrowd.attacks.trial import Hits, Trial, first_rows
from incrowd.core.words import counted


def linkage(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Link people to published records by what is known of them.

    Knows: some columns of a named person, as a voter list has them; the published method with its parameters.  In
    columns that a mask moved, the nearest rows fit, in units of how far the published steps move values; if the method
    is unknown and most published rows fit nobody, the nearest by rank.  Success: the published rows that fit all
    say the same about everything else (a single row always does), and all of that is true; a masked number is if at
    most 1 % of the people have one that is nearer to it.  Where nothing else was published, exactly one row must
    fit, and be true in what is known.  Baseline: the commonest of the other values, for every person.

    Meaningless if the control group differs from the people in the data: it must come from the same population.

    Source: Sweeney 1997 (the governor of Massachusetts in a hospital's table, by zip, birth date and sex);
    Domingo-Ferrer & Torra 2001 (masked records, by distance).
    """
    trial = Trial.of(published, knowledge, control)
    rows = _records(trial)
    hits = trial.fits(rows) if trial.rest else trial.fits(rows, trial.known_columns)
    if knowledge.listed:
        hits &= _alone_on_the_list(trial)
    baseline = np.zeros(len(hits), bool)
    if trial.rest:
        baseline = trial.fits(np.full(len(hits), trial.commonest_row(*trial.rest)))
    return trial.finding("linkage", Risk.LINKABILITY, hits, baseline, _story(trial, hits, rows))


def _records(trial: Trial) -> Codes:
    """Return for each person a published row that the attacker takes as theirs, −1 for none."""
    if not trial.rest:
        search = trial.matches
        return np.where(search.totals() == 1, first_rows(search.class_of, search.agreement(search.class_of)), NONE)
    codes = codes_of(trial.published, trial.rest)
    search = trial.matches
    tuples = search.commonest(codes, trial.published.weights) if trial.knowledge.guesses else search.agreement(codes)
    return first_rows(codes, tuples)


def _alone_on_the_list(trial: Trial) -> Hits:
    """Return for each person whether nobody else on the list fits the same published rows."""
    search = trial.matches
    number = np.bincount(search.target_of, minlength=len(search.targets))
    listed = np.zeros(len(search.classes), np.int64)
    crowd = np.full(len(search.targets), np.iinfo(np.int64).max)
    pairs = list(search.blocks())
    for owner, classes in pairs:
        np.add.at(listed, classes, number[owner])
    for owner, classes in pairs:
        np.minimum.at(crowd, owner, listed[classes])
    return np.asarray(crowd[search.target_of] == 1, bool)


def _story(trial: Trial, hits: Hits, rows: Codes) -> tuple[str, ...]:
    def steps(person: int) -> list[str]:
        fitting = int(trial.matches.totals()[person])
        relation = "is nearest to" if isinstance(trial.matches, NearestSearch) else "can be"
        rest = "and no other can."
        if trial.rest:
            rest = f"and {'it says' if fitting == 1 else 'all say'}: {trial.row_text(int(rows[person]), trial.rest)}."
        return [f"{counted(fitting, 'published row')} {relation} this person, {rest}"]

    return trial.story(hits, steps, trial.rest or trial.known_columns)
