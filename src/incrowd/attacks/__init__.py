"""Attacks: one adversary a file, with stated knowledge, a control group and intervals."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.attacks.knowledge import Attack

ATTACKS: tuple[tuple[str, str], ...] = (
    ("linkage", "records.linkage"),
    ("homogeneity", "records.homogeneity"),
    ("skewness", "records.homogeneity"),
    ("learning", "records.learning"),
    ("intersection", "records.intersection"),
    ("differencing", "records.differencing"),
    ("membership", "records.membership"),
    ("extremes", "records.extremes"),
    ("minimality", "records.minimality"),
    ("similarity", "histories.similarity"),
    ("baskets", "histories.baskets"),
    ("singling-out", "opinion.singling_out"),
    ("linkability", "opinion.linkability"),
    ("inference", "opinion.inference"),
)
"""Every attack on something published, and where it lives; only what is asked for is imported.

Attacks on answers (averaging, reconstruction) and the audit need somebody to ask and are called by themselves.
"""


def attack_names() -> tuple[str, ...]:
    """Return the attacks by name.

    >>> attack_names()[:2]
    ('linkage', 'homogeneity')
    """
    return tuple(name for name, _ in ATTACKS)


def attack_of(name: str) -> Attack:
    """Return an attack by its name.

    >>> attack_of("linkage").__name__
    'linkage'
    """
    for known, module in ATTACKS:
        if known == name:
            found: Attack = getattr(import_module(f"incrowd.attacks.{module}"), name.replace("-", "_"))
            return found
    raise InvalidParameter(f"there is no attack {name!r}; there are {', '.join(attack_names())}.")
