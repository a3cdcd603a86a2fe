"""What the tests of the desks share: a folder with a release, questions, a graph, consent and a survey."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from incrowd.workflows.graph.release import release_graph
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.web.studio.visiting import POLICY, Visitor, studio

EXAMPLES = Path(__file__).parents[3] / "examples"
BOOK = POLICY.replace("epsilon: 1.2, delta: 1e-6}", "epsilon: 4, delta: 1e-5}\nqueries: {most_epsilon: 1}")
CONSENT = """\
incrowd: 1
dataset: {name: consenting, unit: {column: who, more: drop}}
source: ../stays.csv
purpose: research/stays
consent: {registry: registry/consent.sqlite, key: key/consent.key}
columns:
  who: {role: identifier}
  ward: {categories: [east, west, north]}
release: {method: safe, rate: 1/2, epsilon: 1, delta: 1e-6}
budget: {epsilon: 3, delta: 1e-5}
"""
SURVEY = """\
survey: 1
name: wards
title: Which ward?
epsilon: 1
questions:
  ward: {text: Which <b>ward</b>?, categories: [east, west, north]}
"""
ODD = "<img src=x onerror=alert(1)>"
"""A folder may be called like that."""


def desks(folder: Path) -> Visitor:
    """Return a visitor of a folder in which everything was done once."""
    visitor = studio(folder, BOOK)
    furnish(folder)
    return visitor.come_in()


def furnish(folder: Path) -> None:
    """Release a table and a graph in a folder, and put decisions to take and questions to ask beside them."""
    release_to(None, folder / "policy.yaml", Destination(folder / "out", "csv"))
    shutil.copytree(folder / "out", folder / ODD)
    shutil.copytree(EXAMPLES / "club", folder / "club", ignore=shutil.ignore_patterns(".incrowd"))
    release_graph(folder / "club" / "policy.yaml", Destination(folder / "club-out", "csv"))
    for name in ("registry", "key"):
        (folder / "asked" / name).mkdir(parents=True)
    (folder / "asked" / "key" / "consent.key").write_bytes(bytes(range(32)))
    (folder / "asked" / "policy.yaml").write_text(CONSENT)
    (folder / "survey.yaml").write_text(SURVEY)


def leave(visitor: Visitor) -> None:
    """Stop a studio as its server does, so that nothing stays open."""

    async def end() -> None:
        async with visitor.application.router.lifespan_context(visitor.application):
            pass

    asyncio.run(end())
