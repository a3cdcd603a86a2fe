"""Homogeneity and skewness: rows that look alike may share the secret, or nearly so, and then a crowd hides nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import NONE, Codes, ColumnMatch
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Hits, Trial
from incrowd.core.words import counted


def homogeneity(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Read the secret where all rows that fit a person show the same one.

    Knows: some columns of a person; the published method with its parameters.  Success: every published row that fits
    shows one secret, and it is the person's.  In masked columns the nearest rows fit, and a masked number is the
    person's if at most 1 % of the people have one that is nearer to it, as in linkage.  Blind guess: the commonest
    secret.

    Meaningless without outsiders where the secret follows from the known columns for everybody: that is a truth about
    the world, and people who are not in the data are hit as often.

    Source: Machanavajjhala et al. 2006, the homogeneity attack.
    """
    trial = Trial.of(published, knowledge, outsiders)
    secret = trial.column(trial.secret)
    said = trial.matches.agreement(secret.labels.codes)
    return _finding(trial, "homogeneity", secret, said)


def skewness(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Guess the commonest secret among the rows that fit a person.

    Knows: some columns of a person; the published method with its parameters.  Success: the commonest secret of the
    rows that fit is the person's; where no row fits, the commonest of all is guessed.  Masked columns are matched and
    judged as in homogeneity.  Blind guess: the commonest secret of all.

    Meaningless without outsiders, for the same reason as homogeneity.

    Source: Li, Li & Venkatasubramanian 2007, the skewness attack.
    """
    trial = Trial.of(published, knowledge, outsiders)
    secret = trial.column(trial.secret)
    said = trial.matches.commonest(secret.labels.codes, published.weights)
    overall = secret.labels.codes[trial.commonest_row(trial.secret)]
    return _finding(trial, "skewness", secret, np.where(said == NONE, overall, said))


def _finding(trial: Trial, name: str, secret: ColumnMatch, said: Codes) -> Finding:
    hits = secret.fits(said)
    overall = secret.labels.codes[trial.commonest_row(trial.secret)]
    blind = secret.fits(np.full(len(said), overall))
    return trial.finding(name, Risk.INFERENCE, hits, blind, _story(trial, hits & ~blind, secret, said))


def _story(trial: Trial, hits: Hits, secret: ColumnMatch, said: Codes) -> tuple[str, ...]:
    person = trial.victim(hits)
    if person is None:
        return ()
    shown = secret.labels.texts[said[person]]
    rows = counted(int(trial.matches.totals()[person]), "published row")
    return (
        f"The attacker knows of a person: {trial.told(person, trial.known)}.",
        f"{rows} can be this person; what they show most in {trial.secret} is {shown}.",
        f"The truth about the person: {trial.told(person, (trial.secret,))}.",
    )
