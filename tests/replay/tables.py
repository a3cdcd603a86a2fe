"""Every private method of tables: its examples, released for real and replayed on neighbors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

import pyarrow as pa

from incrowd.core.loss import BestRun, Loss, Syntactic, walk
from incrowd.core.table import Table
from incrowd.core.unit import Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.replay.examples import EXAMPLES
from tests.replay.golden import Parts
from tests.replay.guarantees import comparable
from tests.replay.neighbors import Pair, pairs
from tests.replay.replaying import Recording, Replay, part_of_guarantee
from tests.replay.transcript import Chance
from tests.tables import Batches

RUNS = 3
SEEDS = {"classifier": 2, "regressor": 2, "marginals": 2}
"""How many transcripts there are, where what is measured depends on what came out before."""
SLOW = frozenset({"marginals", "tree", "comparison"})
"""Methods of which every third pair is replayed: a model is fitted for each."""


@cache
def policy(method: str, name: str) -> Policy:
    """Return a policy of the examples."""
    return load_policy(EXAMPLES[method][name])


def private(method: str, name: str) -> bool:
    """Whether the guarantee of an example is more than a property of the output."""
    return not any(isinstance(part, Syntactic) for part in walk(_loss(method, name)))


def replayed(method: str, name: str) -> bool:
    """Whether an example is a sequence of mechanisms; samples of crowds and randomized answers have a law instead."""
    return private(method, name) and comparable(_loss(method, name)) and method not in ANSWERS


def requested(method: str, name: str) -> Fraction | None:
    """Return the ε that a policy asks for as a whole; None where it asks for none, or pays for a choice beside it."""
    release = EXAMPLES[method][name]["release"]
    whole = release.get("epsilon")
    return None if whole is None or "choosing" in release else Fraction(str(whole))


def _loss(method: str, name: str) -> Loss:
    return policy(method, name).plan.guarantee.loss


ANSWERS = frozenset({"pram"})
"""Methods that randomize each value by coins of its own; `test_answers.py` has their laws."""
SEQUENCES = frozenset(
    {
        "classifier",
        "comparison",
        "kmeans",
        "marginals",
        "most-common",
        "pca",
        "private-histogram",
        "regressor",
        "tree",
        "tuning",
    }
)
"""Methods whose examples are `replayed`, by name: planning all of them takes seconds; `test_contract.py` compares."""
REPLAYED = [(method, name) for method, ways in EXAMPLES.items() if method in SEQUENCES for name in ways]


def parts(method: str, name: str) -> Parts:
    """Return by the kind of neighbor the largest part of its guarantee that an example lost."""
    example, results = policy(method, name), dict[str, list[Replay]]()
    several = list(pairs(example.schema.unit))[:: 3 if method in SLOW else 1]
    for chance in chances(method, _loss(method, name)):
        for pair, recording in recorded(example, several, chance):
            results.setdefault(pair.kind, []).append(recording.replay(_table(example, pair.table)))
    return {kind: part_of_guarantee(example.plan, own) for kind, own in results.items()}


def recorded(example: Policy, several: list[Pair], chance: Chance) -> Iterator[tuple[Pair, Recording]]:
    """Return each pair with the transcript of its neighbor, which pairs of one table share."""
    recordings: dict[tuple[str, bool], Recording] = {}
    for pair in several:
        key = (pair.base, pair.last)
        if key not in recordings:
            same = replace(chance, together=not pair.last)
            recordings[key] = Recording.of(
                example.plan, _table(example, pair.neighbor), same, partial(published, unit=example.schema.unit)
            )
        yield pair, recordings[key]


def chances(method: str, loss: Loss) -> list[Chance]:
    """Return the randomness of an example: one run, and where the best of several is kept several of them."""
    single = [Chance(seed) for seed in range(SEEDS.get(method, 1))]
    return [*single, *(Chance(seed, runs=RUNS) for seed in range(4) if isinstance(loss, BestRun))]


def _table(example: Policy, rows: pa.Table) -> Table:
    return Table(example.schema, Batches(rows), LocalEngine())


def published(output: Any, unit: Unit) -> tuple[Any, ...]:
    """Return what leaves: rows, the documents beside them, and what the certificate says of both."""
    return (
        [pa.Table.from_batches(part.batches(), part.schema) for part in output.parts],
        getattr(output, "documents", {}),
        output.evidence(unit, private=True),
    )
