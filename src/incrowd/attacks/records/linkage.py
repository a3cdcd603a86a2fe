"""Linkage with a named list: look up what is known of a person, and read the rest of the record."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import NONE, Codes, codes_of
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, Published
from incrowd.attacks.trial import Hits, Trial, first_rows
from incrowd.core.words import counted


def linkage(published: Published, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Link people to published records by what is known of them.

    Knows: some columns of a named person, as a voter list has them.  Success: the published rows that fit all say the
    same about everything else (a single row always does), and all of that is true.  Where nothing else was published,
    exactly one row must fit.  Blind guess: the commonest of the other values, whoever the person is.

    Meaningless if the outsiders are not like the people in the data: they must be drawn from the same population.

    Source: Sweeney 1997 (the governor of Massachusetts in a hospital's table, by zip, birth date and sex).
    """
    trial = Trial.of(published, knowledge, outsiders)
    rows = _records(trial)
    hits = trial.fits(rows) if trial.rest else rows >= 0
    if knowledge.listed:
        hits &= _alone_on_the_list(trial)
    blind = np.zeros(len(hits), bool)
    if trial.rest:
        blind = trial.fits(np.full(len(hits), trial.commonest_row(*trial.rest)))
    return trial.finding("linkage", Risk.LINKABILITY, hits, blind, _story(trial, hits, rows))


def _records(trial: Trial) -> Codes:
    """Return for each person a published row that is taken for theirs, −1 if the attacker says nothing."""
    if not trial.rest:
        alone = trial.search.totals() == 1
        return np.where(alone, 0, NONE)
    codes = codes_of(trial.published, trial.rest)
    search = trial.search
    said = search.commonest(codes, trial.published.weights) if trial.knowledge.guesses else search.agreement(codes)
    return first_rows(codes, said)


def _alone_on_the_list(trial: Trial) -> Hits:
    """Return for each person whether nobody else on the list fits the same published rows."""
    search = trial.search
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
    person = trial.victim(hits)
    if person is None:
        return ()
    fitting = int(trial.search.totals()[person])
    read = "and no other can."
    if trial.rest:
        read = f"and {'it says' if fitting == 1 else 'all say'}: {trial.shown(int(rows[person]), trial.rest)}."
    return (
        f"The attacker knows of a person: {trial.told(person, trial.known)}.",
        f"{counted(fitting, 'published row')} can be this person, {read}",
        f"The truth about the person: {trial.told(person, trial.rest or trial.known)}.",
    )
