"""Attacks: adversaries with stated knowledge, a baseline, a control group and confidence intervals."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.attacks.knowledge import Attack

ATTACKS: tuple[tuple[str, str], ...] = (
    ("linkage", "records.linkage"),
    ("household-linkage", "records.households"),
    ("homogeneity", "records.homogeneity"),
    ("skewness", "records.homogeneity"),
    ("learning", "records.learning"),
    ("intersection", "records.several_releases"),
    ("differencing", "records.several_releases"),
    ("count-reconstruction", "records.count_reconstruction"),
    ("membership", "records.membership"),
    ("closest-record", "records.proximity"),
    ("density-ratio", "records.proximity"),
    ("extremes", "records.extremes"),
    ("minimality", "records.minimality"),
    ("similarity", "histories"),
    ("baskets", "histories"),
    ("singling-out", "records.singling_out"),
    ("linkability", "records.nearest"),
    ("inference", "records.nearest"),
)
"""Every attack on a published table, and its module; only the requested one is imported.

Attacks on answers (averaging, reconstruction) and the audit need a query service: they are called directly.
"""


def attack_names() -> tuple[str, ...]:
    """Return the attacks by name.

    >>> attack_names()[:2]
    ('linkage', 'household-linkage')
    """
    return tuple(name for name, _ in ATTACKS)


def attack_of(name: str) -> Attack:
    """Return an attack by its name.

    >>> attack_of("linkage").__name__
    'linkage'
    """
    if name not in attack_names():
        raise InvalidParameter(f"there is no attack {name!r}; there are {', '.join(attack_names())}.")
    attack: Attack = getattr(import_module(f"incrowd.attacks.{dict(ATTACKS)[name]}"), name.replace("-", "_"))
    return attack
