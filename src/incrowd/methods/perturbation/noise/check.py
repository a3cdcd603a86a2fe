"""The file of rows with noise, looked at again as every masked table is."""

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
from incrowd.methods.perturbation.noise.steps import AddMaskingNoise

__all__ = ["CLAIMS", "ORDER", "STATISTICS", "STEPS", "contradiction", "hidden", "looks", "recount", "reopen"]

STEPS, ORDER = steps_with(AddMaskingNoise)
