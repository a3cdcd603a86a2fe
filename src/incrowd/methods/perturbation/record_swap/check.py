"""The file of households swapped between areas, looked at again as every masked table is."""

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
from incrowd.methods.perturbation.record_swap.steps import SwapRecords

__all__ = ["CLAIMS", "ORDER", "STATISTICS", "STEPS", "contradiction", "hidden", "looks", "recount", "reopen"]

STEPS, ORDER = steps_with(SwapRecords)
