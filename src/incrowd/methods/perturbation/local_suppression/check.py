"""The file of rows whose values at risk were left out, looked at again as every masked table is."""

from __future__ import annotations

from incrowd.methods.perturbation.check import CLAIMS, contradiction, hidden, looks, recount, reopen, steps_with
from incrowd.methods.perturbation.local_suppression.steps import SuppressAtRisk

__all__ = ["CLAIMS", "ORDER", "STEPS", "contradiction", "hidden", "looks", "recount", "reopen"]

STEPS, ORDER = steps_with(SuppressAtRisk)
