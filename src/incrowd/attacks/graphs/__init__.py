"""Attacks on graphs: whoever knows a part of a graph lays it on what was published."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.attacks.graphs.trial import GraphAttack

GRAPH_ATTACKS: tuple[tuple[str, str], ...] = (
    ("degree", "neighborhoods"),
    ("neighborhood", "neighborhoods"),
    ("characteristic-vectors", "vectors"),
    ("seed-and-grow", "growth"),
    ("link-disclosure", "links"),
)
"""Every attack on a published graph, and where it lives."""


def graph_attack_of(name: str) -> GraphAttack:
    """Return an attack by its name.

    >>> graph_attack_of("degree").__name__
    'degree'
    """
    for known, module in GRAPH_ATTACKS:
        if known == name:
            found: GraphAttack = getattr(import_module(f"incrowd.attacks.graphs.{module}"), name.replace("-", "_"))
            return found
    raise InvalidParameter(
        f"there is no attack {name!r} on graphs; there are {', '.join(n for n, _ in GRAPH_ATTACKS)}."
    )
