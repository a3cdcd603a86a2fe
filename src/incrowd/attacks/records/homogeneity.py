"""Homogeneity and skewness: rows of one equivalence class may share the secret, or nearly so, and so disclose it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import NONE, Codes, ColumnMatch
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Trial
from incrowd.core.words import counted


def homogeneity(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Read the secret where all rows that fit a person have the same one.

    Knows: some columns of a person; the published method with its parameters.  Success: every published row that fits
    has the same secret, and it is the person's.  In masked columns the nearest rows fit, and a masked number is the
    person's if at most 1 % of the people have one that is nearer to it, as in linkage.  Baseline: the commonest
    secret.

    Meaningless without a control group where the secret follows from the known columns for everybody: that is a fact
    about the world, and the attack succeeds as often on people who are not in the data.

    Source: Machanavajjhala et al. 2006, the homogeneity attack.
    """
    trial = Trial.of(published, knowledge, control)
    secret = trial.column(trial.secret)
    guesses = trial.matches.agreement(secret.labels.codes)
    return _finding(trial, "homogeneity", secret, guesses)


def skewness(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Guess the commonest secret among the rows that fit a person.

    Knows: some columns of a person; the published method with its parameters.  Success: the commonest secret of the
    rows that fit is the person's; where no row fits, the commonest of all is guessed.  Masked columns are matched and
    judged as in homogeneity.  Baseline: the commonest secret of all.

    Meaningless without a control group, for the same reason as homogeneity.

    Source: Li, Li & Venkatasubramanian 2007, the skewness attack.
    """
    trial = Trial.of(published, knowledge, control)
    secret = trial.column(trial.secret)
    guesses = trial.matches.commonest(secret.labels.codes, published.weights)
    overall = secret.labels.codes[trial.commonest_row(trial.secret)]
    return _finding(trial, "skewness", secret, np.where(guesses == NONE, overall, guesses))


def _finding(trial: Trial, name: str, secret: ColumnMatch, guesses: Codes) -> Finding:
    hits, baseline = secret.fits(guesses), trial.commonest_secret

    def steps(person: int) -> list[str]:
        rows = counted(int(trial.matches.totals()[person]), "published row")
        guess = secret.labels.texts[guesses[person]]
        return [f"{rows} can be this person; their commonest {trial.secret} is {guess}."]

    return trial.finding(name, Risk.INFERENCE, hits, baseline, trial.story(hits & ~baseline, steps))
