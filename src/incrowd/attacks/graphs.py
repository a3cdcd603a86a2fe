"""Attacks on graphs: an adversary who knows a part of a graph looks for it in the published one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.core.graph import Graph, keys_of
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.shared.matrices import adjacency, pieces

Places = NDArray[np.int64]
Hits = NDArray[np.bool_]
Links = Callable[[Places], NDArray[np.float64]]
_BLOCK = 512  # nodes compared at a time with all others
_TIE = 1e-9
"""Relative difference below which two squared distances count as equal: they are sums of floats."""


@dataclass(frozen=True, eq=False)
class GraphTrial:
    """The original graph with names, the published one, and, for the judge alone, where each original node is in it.

    `crowd` groups the published nodes that the release does not distinguish: all nodes of a graph are one crowd, and
    those of a super-node are one.  The control is the same attack with names exchanged at random within each crowd: it
    succeeds by chance alone.
    """

    original: Graph
    published: Graph
    truth: Places
    crowd: Places
    trials: int = 2000
    seed: int = 0
    withheld: Places | None = None
    """The pairs of original nodes with an edge of a kind that was not published."""
    links: Links | None = None
    """What is published of pairs of published nodes; by default their edge, and how many neighbors they share."""

    def __post_init__(self) -> None:
        if len(self.truth) != self.original.size or len(self.crowd) != self.published.size:
            raise InvalidParameter(
                "every original node needs a place in the published graph, and every published node a crowd."
            )

    @property
    def chance(self) -> np.random.Generator:
        """A seeded generator, so that attacks are repeatable."""
        return np.random.default_rng(self.seed)

    @property
    def targets(self) -> Places:
        """The nodes that the attacker looks for: at most `trials` nodes with an edge."""
        nodes = np.flatnonzero(self.original.degrees > 0)
        return np.sort(self.chance.permutation(nodes)[: self.trials])

    def exchanged(self) -> Places:
        """Return the truth with names exchanged within each crowd."""
        chance = np.random.default_rng(self.seed + 1)
        order = np.lexsort((chance.random(len(self.crowd)), self.crowd))
        places = np.empty(len(self.crowd), np.int64)
        places[np.lexsort((np.arange(len(self.crowd)), self.crowd))] = order
        return places[self.truth]

    def finding(self, attack: str, knows: str, targets: Places, guesses: Places) -> Finding:
        """Judge guesses at the places of targets, with a baseline and a control."""
        random = np.random.default_rng(self.seed + 2).integers(0, max(1, self.published.size), len(targets))
        truth, exchanged = self.truth[targets], self.exchanged()[targets]
        hits = (guesses == truth, random == truth, guesses == exchanged)
        return graph_finding(attack, Risk.SINGLING_OUT, knows, hits)


def graph_finding(attack: str, risk: Risk, knows: str, hits: tuple[Hits, Hits, Hits]) -> Finding:
    """Return a finding from the hits of the attack, of the baseline and of the control."""
    success, baseline, control = (Rate(int(right.sum()), len(right)) for right in hits)
    note = "the control is the same attack with names exchanged at random"
    return Finding(attack, risk, knows, success, baseline, control, notes=(note,))


GraphAttack = Callable[[GraphTrial], Finding]
"""An adversary: what is known and what was published come to a finding."""


def nearest(originals: NDArray[np.float64], published: NDArray[np.float64], seed: int) -> Places:
    """Return for each row the nearest row on the other side; where several are as near, one of them at random."""
    chance, places = np.random.default_rng(seed), []
    squares = (published**2).sum(axis=1)
    for start in range(0, len(originals), _BLOCK):
        rows = originals[start : start + _BLOCK]
        apart = (rows**2).sum(axis=1)[:, None] + squares - 2 * rows @ published.T
        least = apart.min(axis=1, keepdims=True)
        ties = apart <= least + _TIE * (1 + (rows**2).sum(axis=1)[:, None])
        places.append(np.where(ties, chance.random(apart.shape), -1.0).argmax(axis=1))
    return np.concatenate(places) if places else np.zeros(0, np.int64)


_LARGEST_ENTRIES = 64  # of a node's neighborhood that are compared: the largest tell nodes apart


def degree(trial: GraphTrial) -> Finding:
    """Look for a person by the number of their edges.

    Knows: a person's degree.  Success: of the published nodes with the nearest degree, one at random is the person.
    Baseline: any node.

    Meaningless if the degrees of people are not known to anyone.

    Source: Liu & Terzi 2008.
    """
    targets = trial.targets
    original, published = trial.original.degrees[targets, None], trial.published.degrees[:, None]
    guesses = nearest(original.astype(np.float64), published.astype(np.float64), trial.seed)
    return trial.finding("degree", "a person's degree", targets, guesses)


def neighborhood(trial: GraphTrial) -> Finding:
    """Look for a person by the degrees of their neighbors.

    Knows: a person's degree and those of all neighbors, the largest first, 64 at most.  Success: of the published nodes
    whose neighbors have the nearest degrees, one at random is the person.  Baseline: any node.

    Meaningless if nobody can know how many others a person's neighbors know.

    Source: Zhou & Pei 2008; Hay, Miklau, Jensen, Towsley & Weis 2008.
    """
    targets = trial.targets
    guesses = nearest(neighbor_degrees(trial.original)[targets], neighbor_degrees(trial.published), trial.seed)
    return trial.finding("neighborhood", "the degrees of a person's neighbors", targets, guesses)


def neighbor_degrees(graph: Graph) -> NDArray[np.float64]:
    """Return for each node its degree, then the degrees of its neighbors, the largest first; zeros fill up."""
    matrix = adjacency(graph)
    largest = _largest_of_rows(matrix.indptr, graph.degrees[matrix.indices])
    return np.hstack([graph.degrees[:, None].astype(np.float64), largest])


def _largest_of_rows(starts: Places, values: Places) -> NDArray[np.float64]:
    """Return the largest values of each row of a sparse matrix, in descending order, at most `_LARGEST_ENTRIES`."""
    sizes = np.diff(starts)
    row = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((-values, row))
    place = np.arange(len(row)) - np.repeat(starts[:-1], sizes)
    used = place < _LARGEST_ENTRIES
    table = np.zeros((len(sizes), _LARGEST_ENTRIES))
    table[row[used], place[used]] = values[order][used]
    return table


_WHOLE = 4096  # up to so many nodes all pairs are matched at once


def characteristic_vectors(trial: GraphTrial) -> Finding:
    """Look for a person by the sorted row of s(i, j).

    Knows: the graph with names, as it was or nearly so.  Success: of the published nodes with the nearest sorted row of
    s(i, j) = Σ A_ik A_jk / N − d_i d_j / N², the covariance of two rows of the adjacency matrix, one at random is the
    person.  Beyond 4,096 nodes only the 64 largest numbers of common neighbors are compared, and the degree.  Baseline:
    any node.

    Meaningless if nobody can know a graph like the published one with names.

    Source: the lecture's attack on relational data; without an order of nodes rows are compared sorted.
    """
    targets = trial.targets
    whole = max(trial.original.size, trial.published.size) <= _WHOLE and trial.original.size == trial.published.size
    rows = sorted_rows if whole else largest_shared
    guesses = nearest(rows(trial.original)[targets], rows(trial.published), trial.seed)
    return trial.finding("characteristic-vectors", "the graph with names, nearly as it is", targets, guesses)


def characteristic(graph: Graph) -> NDArray[np.float64]:
    """Return s(i, j) for all pairs of nodes."""
    matrix = adjacency(graph).astype(np.float64)
    shared = (matrix @ matrix).toarray()
    degrees = graph.degrees.astype(np.float64)
    return np.asarray(shared / graph.size - np.outer(degrees, degrees) / graph.size**2, np.float64)


def sorted_rows(graph: Graph) -> NDArray[np.float64]:
    """Return the rows of s, each in ascending order, on a scale on which the rows of different graphs compare."""
    return np.sort(characteristic(graph), axis=1) * graph.size


def largest_shared(graph: Graph) -> NDArray[np.float64]:
    """Return for each node its degree and its largest numbers of common neighbors, the sparse part of s."""
    matrix = adjacency(graph)
    table = np.zeros((graph.size, _LARGEST_ENTRIES + 1))
    table[:, 0] = graph.degrees
    for rows in pieces(matrix @ graph.degrees):
        product = (matrix[rows] @ matrix).tocsr()
        table[rows, 1:] = _largest_of_rows(product.indptr, product.data)
    return table


# seeds, rounds, shared neighbors that make a match; all pairs of so many nodes fit in memory
_SEEDS, _ROUNDS, _LEAST, _LARGEST = 10, 30, 2.0, 5000


def seed_and_grow(trial: GraphTrial) -> Finding:
    """Identify people through the neighbors that are identified already.

    Knows: the graph with names, nearly unchanged, and the places of the ten people with the highest degrees in the
    published one.  Success: in each round, a person and a node that share more identified neighbors with each other
    than with any other are matched; success is the share of right matches among all other people.  Baseline: any
    node.

    Meaningless if nobody can know a graph like the published one, or ten people in it; it takes at most 5,000 nodes.

    Source: Narayanan & Shmatikov 2009.
    """
    if max(trial.original.size, trial.published.size) > _LARGEST:
        raise InvalidParameter(f"seed-and-grow compares all pairs of nodes: it accepts at most {_LARGEST:,} nodes.")
    seeds = np.argsort(-trial.original.degrees, kind="stable")[:_SEEDS]
    guesses = np.full(trial.original.size, -1, np.int64)
    guesses[seeds] = trial.truth[seeds]
    guesses = _grown(trial, guesses)
    targets = np.setdiff1d(trial.targets, seeds)
    knows = "the graph with names, nearly as it is, and ten people in the published one"
    return trial.finding("seed-and-grow", knows, targets, guesses[targets])


def _grown(trial: GraphTrial, guesses: Places) -> Places:
    original, published = adjacency(trial.original).astype(np.float64), adjacency(trial.published).astype(np.float64)
    weight = np.sqrt(np.maximum(1, trial.published.degrees)).astype(np.float64)
    for _ in range(_ROUNDS):
        mapped = np.flatnonzero(guesses >= 0)
        scores = (original[:, mapped] @ published[guesses[mapped]]).toarray()
        scores[mapped] = 0
        scores[:, guesses[mapped]] = 0
        new = _mutual(scores, weight)
        if not len(new):
            break
        guesses = guesses.copy()
        guesses[new[:, 0]] = new[:, 1]
    return guesses


def _mutual(scores: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the pairs that are each other's best, with at least two identified neighbors in common."""
    weighed = scores / weight
    best, back = weighed.argmax(axis=1), weighed.argmax(axis=0)
    rows = np.arange(len(scores))
    good = (back[best] == rows) & (scores[rows, best] >= _LEAST)
    return np.stack([rows[good], best[good]], axis=1)


def link_disclosure(trial: GraphTrial) -> Finding:
    """Read from the published graph whether two people are connected.

    Knows: who two published nodes are; half of the pairs are connected.  Success: the pair is connected where the
    published graph says so, and not where it does not.  Baseline: a fair coin.

    Meaningless if nobody can know who a node is: the other attacks measure that.

    Source: Zheleva & Getoor 2007.
    """
    pairs, connected = _pairs(trial)
    coins = trial.chance.random(len(pairs)) < 0.5
    answer, exchanged = (_connected(trial, truth[pairs]) for truth in (trial.truth, trial.exchanged()))
    hits = (answer == connected, coins == connected, exchanged == connected)
    return graph_finding("link-disclosure", Risk.INFERENCE, "who two nodes are", hits)


_STEPS, _RATE = 300, 0.5  # of a logistic regression by gradient descent; more is slower


def withheld_kind(trial: GraphTrial) -> Finding:
    """Infer edges of a kind that was withheld from what was published of other kinds.

    Knows: who the published nodes, or the members of super-nodes, are; and of half of the pairs whether they have an
    edge of the withheld kind, which half of all pairs have.  Success: a logistic model of what is published of a pair,
    learned from the known half, is right about a pair of the other half.  Baseline: a fair coin.  Control: the same
    with all names exchanged at random.

    Meaningless if nobody can know edges of the withheld kind.

    Source: Zheleva & Getoor 2007 (link re-identification).
    """
    if trial.withheld is None or len(trial.withheld) < _FEWEST:
        raise InvalidParameter(
            f"fewer than {_FEWEST} pairs have an edge of a kind that was withheld: declare kind: and the published "
            "kinds: under edges:, and keep the others in the source."
        )
    pairs, connected = _pairs(trial, trial.withheld)
    order = trial.chance.permutation(len(pairs))
    pairs, connected = pairs[order], connected[order]
    half = len(pairs) // 2
    anybody = np.random.default_rng(trial.seed + 3).permutation(trial.published.size)
    success, control = (
        _learned(trial, places[pairs], connected, half) for places in (trial.truth, anybody[trial.truth])
    )
    coins = np.random.default_rng(trial.seed + 4).random(len(pairs) - half) < 0.5
    knows = "who the nodes are, and half of the pairs of the withheld kind"
    return graph_finding("withheld-kind", Risk.INFERENCE, knows, (success, coins == connected[half:], control))


_FEWEST = 20  # below, an estimate says nothing


def _learned(trial: GraphTrial, places: Places, connected: Hits, half: int) -> Hits:
    """Return where a model that is learned from the first half of the pairs is right about the second."""
    features = (trial.links or _published_links(trial.published))(places)
    spread = features[:half].std(axis=0)
    scaled = (features - features[:half].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    design = np.hstack([np.ones((len(scaled), 1)), scaled])
    weights = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design[:half] @ weights, -30, 30)))
        weights -= _RATE * (design[:half].T @ (chance - connected[:half]) / max(1, half) + 1e-3 * weights)
    scores = design[half:] @ weights
    tie = np.random.default_rng(trial.seed + 5).random(len(scores)) < 0.5
    answer = np.where(np.abs(scores) < _TIE, tie, scores > 0)
    right: Hits = answer == connected[half:]
    return right


def _published_links(graph: Graph) -> Links:
    """Return whether pairs of published nodes are connected, and how many neighbors they share."""
    matrix = adjacency(graph)

    def links(pairs: Places) -> NDArray[np.float64]:
        joined = np.isin(keys_of(pairs, graph.size), keys_of(graph.ends, graph.size))
        shared = np.asarray(matrix[pairs[:, 0]].multiply(matrix[pairs[:, 1]]).sum(axis=1)).ravel()
        return np.stack([joined.astype(np.float64), shared.astype(np.float64)], axis=1)

    return links


def _pairs(trial: GraphTrial, ends: Places | None = None) -> tuple[Places, NDArray[np.bool_]]:
    """Return as many connected pairs as others, sampled at random."""
    graph, chance = trial.original, trial.chance
    edges = graph.ends if ends is None else ends
    number = min(trial.trials // 2, len(edges))
    joined = edges[chance.permutation(len(edges))[:number]]
    others = chance.integers(0, graph.size, (4 * number + 16, 2))
    others = others[others[:, 0] != others[:, 1]]
    free = others[~np.isin(keys_of(others, graph.size), keys_of(edges, graph.size))][:number]
    return np.concatenate([joined, free]), np.arange(len(joined) + len(free)) < len(joined)


def _connected(trial: GraphTrial, pairs: Places) -> NDArray[np.bool_]:
    size = trial.published.size
    return np.isin(keys_of(pairs, size), keys_of(trial.published.ends, size))


GRAPH_ATTACKS: Mapping[str, GraphAttack] = MappingProxyType(
    {
        "degree": degree,
        "neighborhood": neighborhood,
        "characteristic-vectors": characteristic_vectors,
        "seed-and-grow": seed_and_grow,
        "link-disclosure": link_disclosure,
        "withheld-kind": withheld_kind,
    }
)
"""Every attack on a published graph."""


def graph_attack_of(name: str) -> GraphAttack:
    """Return an attack by its name."""
    if name not in GRAPH_ATTACKS:
        raise InvalidParameter(f"there is no attack {name!r} on graphs; there are {', '.join(GRAPH_ATTACKS)}.")
    return GRAPH_ATTACKS[name]
