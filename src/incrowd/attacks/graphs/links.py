"""Link disclosure: whoever knows who two nodes are reads from the published graph whether they are connected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.attacks.graphs.trial import GraphTrial, Places
from incrowd.core.graph import keys_of


def link_disclosure(trial: GraphTrial) -> Finding:
    """Read off whether two people are connected.

    Knows: who two published nodes are; half of the pairs are connected.  Success: the pair is connected where the
    published graph says so, and not where it does not.  Blind guess: a coin.

    Meaningless if nobody can know who a node is; then see how often the other attacks find it.

    Source: Zheleva & Getoor 2007.
    """
    pairs, connected = _pairs(trial)
    coins = trial.chance.random(len(pairs)) < 0.5
    said = [_connected(trial, truth[pairs]) for truth in (trial.truth, trial.exchanged())]
    rates = [int((each == connected).sum()) for each in (said[0], coins, said[1])]
    number = len(pairs)
    return Finding(
        "link-disclosure",
        Risk.INFERENCE,
        "who two nodes are",
        Rate(rates[0], number),
        Rate(rates[1], number),
        Rate(rates[2], number),
        notes=("outsiders are the same pairs with names exchanged at random",),
    )


def _pairs(trial: GraphTrial) -> tuple[Places, NDArray[np.bool_]]:
    """Return as many connected pairs as others, drawn at random."""
    graph, chance = trial.known, trial.chance
    number = min(trial.trials // 2, len(graph.ends))
    joined = graph.ends[chance.permutation(len(graph.ends))[:number]]
    others = chance.integers(0, graph.size, (4 * number + 16, 2))
    others = others[others[:, 0] != others[:, 1]]
    free = others[~np.isin(keys_of(others, graph.size), keys_of(graph.ends, graph.size))][:number]
    return np.concatenate([joined, free]), np.arange(len(joined) + len(free)) < len(joined)


def _connected(trial: GraphTrial, pairs: Places) -> NDArray[np.bool_]:
    size = trial.published.size
    return np.isin(keys_of(pairs, size), keys_of(trial.published.ends, size))
