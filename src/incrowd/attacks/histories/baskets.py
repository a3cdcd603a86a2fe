"""Linkage on logs and baskets: a few goods or search words that somebody is known for single out a history (AOL)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from incrowd.attacks.candidates import NONE, Codes
from incrowd.attacks.finding import Finding
from incrowd.attacks.histories.events import Histories
from incrowd.attacks.knowledge import Knowledge, PublishedTable


def baskets(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Look for the one published history that holds all of a few known items.

    Knows: a few items of a person: goods bought, words searched for, places visited.  Items that were made coarser
    still count as held.  Success: exactly one published history holds all of them, and at least half of the person's
    events.  Blind guess: the longest history.

    Meaningless if most people have no more items than are known: then nothing is learned.

    Source: Barbaro & Zeller 2006 (a searcher of AOL found by her words); Terrovitis, Mamoulis & Kalnis 2008.
    """
    histories = replace(Histories.of(published, knowledge, outsiders), parts=())
    glimpses = histories.glimpses()
    wanted = np.bincount(histories.people[glimpses], minlength=histories.targets)
    one = np.ones(len(histories.item.labels.texts))
    claims, fitting = np.full(histories.targets, NONE), np.zeros(histories.targets, np.int64)
    for block, scores in histories.scores(glimpses, (), one):
        full = scores >= wanted[block][:, None] - 0.5
        fitting[block] = full.sum(axis=1)
        claims[block] = np.where(fitting[block] == 1, full.argmax(axis=1), NONE)
    knows = f"{knowledge.few} items of a person"
    return histories.finding("baskets", knows, claims, _story(histories, glimpses, claims))


def _story(histories: Histories, glimpses: Codes, claims: Codes) -> tuple[str, ...]:
    hits = np.flatnonzero(histories.right(claims)[: histories.inside])
    if not len(hits):
        return ()
    person = int(hits[0])
    events = glimpses[histories.people[glimpses] == person]
    whole = int((histories.people == person).sum())
    return (
        f"The attacker knows of a person: {histories.words(events)}.",
        f"Of {histories.number} published histories exactly one holds all of these.",
        f"It is the person's: the attacker, who knew {len(events)} items, now reads all {whole}.",
    )
