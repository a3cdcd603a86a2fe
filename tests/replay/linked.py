"""Linked tables: the examples, released for real and replayed without one person and all rows of that person."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from incrowd.core.unit import Adjacency
from incrowd.workflows.policy.policy import Policy
from tests.linked import EXAMPLES, Tables, example, hospital, opened, with_person
from tests.replay.golden import Parts
from tests.replay.replaying import Recording, Replay, part_of_guarantee
from tests.replay.transcript import Chance

REPLAYED = tuple(EXAMPLES)
_STAY = (1, "A", True, "uuu")
YOU: tuple[tuple[str, list[tuple[int, str, bool, str]]], ...] = (
    ("F", []),
    ("F", [_STAY]),
    ("F", [_STAY] * 2),
    ("M", [(n, "C", False, "w") for n in range(4)]),
    ("F", [(n, "ABC"[n % 3], n % 2 == 0, "uvw") for n in range(7)]),
)
"""People whose presence matters: without stays, with equal ones that fill a class, with more than are read."""


@cache
def policy(name: str) -> Policy:
    """Return an example with one round of choices."""
    return example(name, rounds=1)


def published(output: Any) -> Any:
    """Return all rows of all tables."""
    return {name: table.to_pylist() for name, table in output.tables.items()}


def pairs(adjacency: Adjacency) -> Iterator[tuple[Tables, Tables]]:
    """Return tables with somebody, and without or with another in the same place."""
    base = hospital(12)
    for number, you in enumerate(YOU):
        other = base if adjacency is Adjacency.ADD_REMOVE else with_person(base, *YOU[number - 1])
        yield with_person(base, *you), other
    yield with_person(hospital(0), *YOU[1]), hospital(0)


def parts(name: str) -> Parts:
    """Return the largest part of its guarantee that an example lost."""
    own = policy(name)
    results: list[Replay] = []
    for some, others in pairs(own.schema.unit.adjacency):
        recording = Recording.of(own.plan, opened(own, some), Chance(0), published)
        results.append(recording.replay(opened(own, others)))
    return {"person and all rows": part_of_guarantee(own.plan, results)}
