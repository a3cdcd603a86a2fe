"""Seed and grow: a few people are known in the published graph, and their neighbors are found one after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.attacks.finding import Finding
from incrowd.attacks.graphs.trial import GraphTrial, Places
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.shared.matrices import adjacency

_SEEDS, _ROUNDS, _LEAST, _LARGEST = 10, 30, 2.0, 5000


def seed_and_grow(trial: GraphTrial) -> Finding:
    """Find people from those who are found already.

    Knows: the graph with names, nearly as it is, and ten people of the highest degrees in the published one.  Success:
    whoever shares more known neighbors with a node than with any other, and the reverse, is taken for it, round by
    round; those so found that are right, of all who were not given.  Blind guess: any node.

    Meaningless if nobody can know a graph like the published one, or ten people in it; it takes at most 5,000 nodes.

    Source: Narayanan & Shmatikov 2009.
    """
    if max(trial.known.size, trial.published.size) > _LARGEST:
        raise InvalidParameter(f"seed-and-grow compares all pairs of nodes, and takes at most {_LARGEST:,} of them.")
    seeds = np.argsort(-trial.known.degrees, kind="stable")[:_SEEDS]
    guesses = np.full(trial.known.size, -1, np.int64)
    guesses[seeds] = trial.truth[seeds]
    guesses = _grown(trial, guesses)
    targets = np.setdiff1d(trial.targets, seeds)
    knows = "the graph with names, nearly as it is, and ten people in the published one"
    return trial.finding("seed-and-grow", knows, targets, guesses[targets])


def _grown(trial: GraphTrial, guesses: Places) -> Places:
    own, shown = adjacency(trial.known).astype(np.float64), adjacency(trial.published).astype(np.float64)
    weight = np.sqrt(np.maximum(1, trial.published.degrees)).astype(np.float64)
    for _ in range(_ROUNDS):
        mapped = np.flatnonzero(guesses >= 0)
        scores = (own[:, mapped] @ shown[guesses[mapped]]).toarray()
        scores[mapped] = 0
        scores[:, guesses[mapped]] = 0
        new = _mutual(scores, weight)
        if not len(new):
            break
        guesses = guesses.copy()
        guesses[new[:, 0]] = new[:, 1]
    return guesses


def _mutual(scores: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the pairs that are each other's best, with two known neighbors in common at least."""
    weighed = scores / weight
    best, back = weighed.argmax(axis=1), weighed.argmax(axis=0)
    rows = np.arange(len(scores))
    good = (back[best] == rows) & (scores[rows, best] >= _LEAST)
    return np.stack([rows[good], best[good]], axis=1)
