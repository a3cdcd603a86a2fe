"""Inference: the secret of the published row that is most like a person, taken for the person's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import match
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.opinion.nearest import nearest_rows
from incrowd.attacks.trial import Trial


def inference(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Take the secret of the nearest published row for the person's.

    Knows: some columns of a person.  Success: the secret of the published row nearest in these columns is the person's
    (numbers within the slack of the secret, if one is given; a masked number if at most 1 % of the people have one
    that is nearer to it).  Blind guess: the secret of a published row drawn at
    random.  For tables whose rows are real people's and for synthetic ones.

    Meaningless without outsiders: what follows from the known columns for everybody is no secret of those in the data.

    Source: Opinion 05/2014 of the Article 29 Working Party; Giomi, Boenisch, Wehmeyer & Tasnádi 2023 (anonymeter).
    """
    trial = Trial.of(published, knowledge, outsiders)
    secret = match(published, trial.everyone, trial.secret, knowledge.slack.get(trial.secret))
    known = [
        match(published, trial.everyone, name, knowledge.slack.get(name))
        for name in trial.known
        if name != trial.secret
    ]
    rows = nearest_rows(known, [*known, secret], 1)[:, 0]
    hits = secret.fits(secret.labels.codes[rows])
    some = np.sort(secret.labels.codes)[knowledge.chance.integers(0, published.table.num_rows, len(hits))]
    story: tuple[str, ...] = ()
    if (person := trial.victim(hits)) is not None:
        story = (
            f"The attacker knows of a person: {trial.told(person, trial.known)}.",
            f"The published row most like that shows {trial.shown(int(rows[person]), (trial.secret,))}.",
            f"The truth about the person: {trial.told(person, (trial.secret,))}.",
        )
    return trial.finding("inference", Risk.INFERENCE, hits, secret.fits(some), story)
