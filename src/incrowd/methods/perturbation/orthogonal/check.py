"""The file of rows that were rotated, looked at again as every masked table is."""

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
from incrowd.methods.perturbation.orthogonal.steps import Rotate

__all__ = ["CLAIMS", "ORDER", "STATISTICS", "STEPS", "contradiction", "hidden", "looks", "recount", "reopen"]

STEPS, ORDER = steps_with(Rotate)
