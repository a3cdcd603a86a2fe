"""The file of calibrated weights, looked at again as every masked table is."""

from __future__ import annotations

from incrowd.methods.perturbation.calibration.steps import CalibrateWeights
from incrowd.methods.perturbation.check import CLAIMS, contradiction, hidden, looks, recount, reopen, steps_with

__all__ = ["CLAIMS", "ORDER", "STEPS", "contradiction", "hidden", "looks", "recount", "reopen"]

STEPS, ORDER = steps_with(CalibrateWeights)
