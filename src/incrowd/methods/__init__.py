"""Ways to protect a table; one file, one method."""

from __future__ import annotations

from incrowd.methods.anonymity.full_domain import FullDomain
from incrowd.methods.anonymity.itemsets.method import Itemsets
from incrowd.methods.anonymity.local.method import LocalRecoding
from incrowd.methods.anonymity.mondrian.method import Mondrian
from incrowd.methods.anonymity.partition.method import Partition
from incrowd.methods.anonymity.safe.method import Safe
from incrowd.methods.anonymity.scheme.scheme import Scheme
from incrowd.methods.anonymity.slicing.method import Slicing
from incrowd.methods.anonymity.suppression.method import CellSuppression
from incrowd.methods.histograms.blending import BlendedHistogram, SuppressedHistogram
from incrowd.methods.histograms.private import PrivateHistogram
from incrowd.methods.histograms.selection import MostCommon
from incrowd.methods.synthesis.points import SyntheticPoints

METHODS = (
    Safe,
    Scheme,
    SuppressedHistogram,
    BlendedHistogram,
    PrivateHistogram,
    MostCommon,
    SyntheticPoints,
    FullDomain,
    LocalRecoding,
    CellSuppression,
    Mondrian,
    Itemsets,
    Partition,
    Slicing,
)
"""Every method, read top to bottom: being here gives it a policy section, a help page and the contract tests."""
