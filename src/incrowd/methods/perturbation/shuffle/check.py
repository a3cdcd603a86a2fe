"""The file of values dealt out again, looked at again as every masked table is."""

from __future__ import annotations

from incrowd.methods.perturbation.check import (
    CLAIMS,
    STATISTICS,
    contradiction,
    hidden,
    looks,
    recount,
    reopen,
    steps_with,
)
from incrowd.methods.perturbation.shuffle.steps import ShuffleValues

__all__ = ["CLAIMS", "ORDER", "STATISTICS", "STEPS", "contradiction", "hidden", "looks", "recount", "reopen"]

STEPS, ORDER = steps_with(ShuffleValues)
