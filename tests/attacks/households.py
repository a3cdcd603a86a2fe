"""Households whose incomes nobody else has, outsiders, strangers, and masks of them: weak ones and strong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

ILLS = ["rhume", "goutte", "asthme", "rougeole"]
NUMBER: dict[str, Any] = {"type": "integer", "missing": "drop"}
POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "ménages"},
    "columns": {
        "âge": {"role": "quasi", "bounds": [0, 120], **NUMBER},
        "revenu": {"role": "quasi", "bounds": [0, 10**7], **NUMBER},
        "loyer": {"role": "sensitive", "bounds": [0, 10**6], **NUMBER},
        "sexe": {"role": "quasi", "categories": ["F", "M"]},
        "maladie": {"role": "sensitive", "categories": ILLS},
    },
    "budget": {"unbounded": "essai"},
}
NUMBERS = ["âge", "revenu", "loyer"]
WEAK: dict[str, dict[str, Any]] = {
    "noise": {"method": "noise", "columns": NUMBERS, "variance": "1/1000000"},
    "orthogonal": {"method": "orthogonal", "columns": NUMBERS, "strength": "1/1000"},
    "rank-swap": {"method": "rank-swap", "columns": NUMBERS, "share": "1/400"},
    "rounding": {"method": "rounding", "columns": {"revenu": 10, "loyer": 5}},
    "pram": {"method": "pram", "columns": {"sexe": {"stay": "999/1000"}, "maladie": {"stay": "999/1000"}}},
}
LEAST: dict[str, tuple[Any, str]] = {
    **{name: (release, "loyer") for name, release in WEAK.items()},
    "microaggregation": ({"method": "microaggregation", "columns": ["revenu"], "k": 2}, "loyer"),
    "coding": ({"method": "coding", "columns": {"revenu": {"top": 10**7}}}, "loyer"),
    "record-swap": ({"method": "record-swap", "area": "maladie", "similar": ["sexe"], "share": "1/1000"}, "loyer"),
    "shuffle": ({"method": "shuffle", "columns": ["loyer"], "given": ["revenu"]}, "maladie"),
    "a list": ([WEAK["noise"], WEAK["pram"]], "loyer"),
}
"""Each mask at its weakest, and the column that it leaves to be learned.

Local suppression leaves nobody alone at its weakest, and calibration changes weights alone.
"""
STRONG: dict[str, dict[str, Any]] = {
    "noise": {"method": "noise", "columns": NUMBERS, "variance": 4},
    "orthogonal": {"method": "orthogonal", "columns": NUMBERS, "strength": 3},
    "rank-swap": {"method": "rank-swap", "columns": NUMBERS, "share": "1/2"},
    "microaggregation": {"method": "microaggregation", "columns": NUMBERS, "k": 50},
}


def households(rows: int, seed: int) -> pa.Table:
    """Return people with incomes that nobody else has."""
    chance = np.random.default_rng(seed)
    age = chance.integers(18, 90, rows)
    income = chance.lognormal(10, 0.6, rows) * (1 + age / 100)
    ill = np.where(chance.random(rows) < 0.3, chance.integers(0, 4, rows), np.minimum(age // 23, 3))
    return pa.table(
        {
            "âge": age.astype(str),
            "revenu": income.astype(int).astype(str),
            "loyer": (income * chance.uniform(0.1, 0.5, rows) / 12).astype(int).astype(str),
            "sexe": chance.choice(["F", "M"], rows),
            "maladie": np.array(ILLS)[ill],
        }
    )


PEOPLE, OUTSIDERS, STRANGERS = (households(240, seed) for seed in (1, 2, 3))
