"""The file of several masks, looked at again as every masked table is."""

from __future__ import annotations

from incrowd.methods.perturbation.calibration.steps import CalibrateWeights
from incrowd.methods.perturbation.check import (
    CLAIMS,
    STATISTICS,
    chain_of,
    contradiction,
    hidden,
    looks,
    recount,
    reopen,
)
from incrowd.methods.perturbation.coding.steps import CodeEnds
from incrowd.methods.perturbation.local_suppression.steps import SuppressAtRisk
from incrowd.methods.perturbation.microaggregation.steps import AggregateRows
from incrowd.methods.perturbation.noise.steps import AddMaskingNoise
from incrowd.methods.perturbation.orthogonal.steps import Rotate
from incrowd.methods.perturbation.pram.steps import Randomize
from incrowd.methods.perturbation.rank_swap.steps import SwapRanks
from incrowd.methods.perturbation.record_swap.steps import SwapRecords
from incrowd.methods.perturbation.rounding.steps import RoundValues
from incrowd.methods.perturbation.shuffle.steps import ShuffleValues

__all__ = ["CLAIMS", "ORDER", "STATISTICS", "STEPS", "contradiction", "hidden", "looks", "recount", "reopen"]

STEPS, ORDER = chain_of(
    AggregateRows,
    AddMaskingNoise,
    Rotate,
    SwapRanks,
    SwapRecords,
    Randomize,
    ShuffleValues,
    CodeEnds,
    RoundValues,
    SuppressAtRisk,
    CalibrateWeights,
)
