"""The file of categories changed at random, looked at again as every masked table is."""

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
from incrowd.methods.perturbation.pram.steps import Randomize

__all__ = ["CLAIMS", "ORDER", "STATISTICS", "STEPS", "contradiction", "hidden", "looks", "recount", "reopen"]

STEPS, ORDER = steps_with(Randomize)
