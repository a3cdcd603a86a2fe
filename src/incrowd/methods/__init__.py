"""Ways to protect a table; one package, one method, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping

METHODS: Mapping[str, tuple[str, str]] = {
    "safe": ("incrowd.methods.anonymity.safe", "Safe"),
    "scheme": ("incrowd.methods.anonymity.scheme", "Scheme"),
    "suppressed-histogram": ("incrowd.methods.histograms.suppressed", "SuppressedHistogram"),
    "blended-histogram": ("incrowd.methods.histograms.blended", "BlendedHistogram"),
    "private-histogram": ("incrowd.methods.histograms.private", "PrivateHistogram"),
    "most-common": ("incrowd.methods.histograms.most_common", "MostCommon"),
    "points": ("incrowd.methods.synthesis.points", "SyntheticPoints"),
    "full-domain": ("incrowd.methods.anonymity.full_domain", "FullDomain"),
    "local-recoding": ("incrowd.methods.anonymity.local", "LocalRecoding"),
    "cell-suppression": ("incrowd.methods.anonymity.suppression", "CellSuppression"),
    "mondrian": ("incrowd.methods.anonymity.mondrian", "Mondrian"),
    "itemsets": ("incrowd.methods.anonymity.itemsets", "Itemsets"),
    "partition": ("incrowd.methods.anonymity.partition", "PrivatePartition"),
    "slicing": ("incrowd.methods.anonymity.slicing", "Slicing"),
}
"""Every method by its name in policies: the package it lives in, and its class there.

Being here gives it a policy section, a help page and the contract tests.
"""
