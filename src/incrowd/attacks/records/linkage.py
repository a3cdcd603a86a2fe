"""Linkage with a named list: look up what is known of a person, and read the rest of the record."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import NONE, Codes, codes_of
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.masked import NearestSearch
from incrowd.attacks.trial import Hits, Trial, first_rows
from incrowd.core.words import counted


def linkage(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Link people to published records by what is known of them.

    Knows: some columns of a named person, as a voter list has them; the published method with its parameters.  In
    columns that a mask moved, the nearest rows fit, in units of how far the steps say that it moves values; if the
    method is unknown and most published rows fit nobody, the nearest by rank.  Success: the published rows that fit all
    say the same about everything else (a single row always does), and all of that is true; a masked number is if at
    most 1 % of the people have one that is nearer to it.  Where nothing else was published, exactly one row must
    fit, and be true in what is known.  Blind guess: the commonest of the other values, whoever the person is.

    Meaningless if the outsiders are not like the people in the data: they must be drawn from the same population.

    Source: Sweeney 1997 (the governor of Massachusetts in a hospital's table, by zip, birth date and sex);
    Domingo-Ferrer & Torra 2001 (masked records, by distance).
    """
    trial = Trial.of(published, knowledge, outsiders)
    rows = _records(trial)
    hits = trial.fits(rows) if trial.rest else trial.fits(rows, trial.known)
    if knowledge.listed:
        hits &= _alone_on_the_list(trial)
    blind = np.zeros(len(hits), bool)
    if trial.rest:
        blind = trial.fits(np.full(len(hits), trial.commonest_row(*trial.rest)))
    return trial.finding("linkage", Risk.LINKABILITY, hits, blind, _story(trial, hits, rows))


def _records(trial: Trial) -> Codes:
    """Return for each person a published row that is taken for theirs, −1 if the attacker says nothing."""
    if not trial.rest:
        search = trial.matches
        return np.where(search.totals() == 1, first_rows(search.class_of, search.agreement(search.class_of)), NONE)
    codes = codes_of(trial.published, trial.rest)
    search = trial.matches
    said = search.commonest(codes, trial.published.weights) if trial.knowledge.guesses else search.agreement(codes)
    return first_rows(codes, said)


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
    person = trial.victim(hits)
    if person is None:
        return ()
    fitting = int(trial.matches.totals()[person])
    words = "is nearest to" if isinstance(trial.matches, NearestSearch) else "can be"
    read = "and no other can."
    if trial.rest:
        read = f"and {'it says' if fitting == 1 else 'all say'}: {trial.shown(int(rows[person]), trial.rest)}."
    return (
        f"The attacker knows of a person: {trial.told(person, trial.known)}.",
        f"{counted(fitting, 'published row')} {words} this person, {read}",
        f"The truth about the person: {trial.told(person, trial.rest or trial.known)}.",
    )
