"""Ways to protect a table or a graph; one module a method, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping

METHODS: Mapping[str, str] = {
    "safe": "incrowd.methods.anonymity.safe",
    "scheme": "incrowd.methods.anonymity.scheme",
    "suppressed-histogram": "incrowd.methods.histograms.suppressed",
    "blended-histogram": "incrowd.methods.histograms.blended",
    "private-histogram": "incrowd.methods.histograms.private",
    "most-common": "incrowd.methods.histograms.most_common",
    "marginals": "incrowd.methods.synthesis.marginals.method",
    "tree": "incrowd.methods.synthesis.tree",
    "comparison": "incrowd.methods.synthesis.comparison",
    "classifier": "incrowd.methods.learning.classifier.method",
    "regressor": "incrowd.methods.learning.regressor",
    "kmeans": "incrowd.methods.learning.kmeans",
    "pca": "incrowd.methods.learning.pca",
    "tuning": "incrowd.methods.learning.tuning",
    "points": "incrowd.methods.synthesis.points.method",
    "full-domain": "incrowd.methods.anonymity.full_domain",
    "local-recoding": "incrowd.methods.anonymity.local_recoding",
    "cell-suppression": "incrowd.methods.anonymity.cell_suppression.method",
    "mondrian": "incrowd.methods.anonymity.mondrian.method",
    "itemsets": "incrowd.methods.anonymity.itemsets.method",
    "partition": "incrowd.methods.anonymity.partition.method",
    "slicing": "incrowd.methods.anonymity.slicing.method",
    "protected-table": "incrowd.methods.tabulation.protected.method",
    "microaggregation": "incrowd.methods.perturbation.microaggregation",
    "noise": "incrowd.methods.perturbation.noise",
    "orthogonal": "incrowd.methods.perturbation.orthogonal",
    "rank-swap": "incrowd.methods.perturbation.rank_swap",
    "record-swap": "incrowd.methods.perturbation.record_swap",
    "pram": "incrowd.methods.perturbation.pram.method",
    "shuffle": "incrowd.methods.perturbation.shuffle",
    "coding": "incrowd.methods.perturbation.coding",
    "rounding": "incrowd.methods.perturbation.rounding",
    "local-suppression": "incrowd.methods.perturbation.local_suppression",
    "calibration": "incrowd.methods.perturbation.calibration",
}
"""Every method by its name in policies: its module, which holds METHOD, CHECK and PICTURE.

Being here gives it a policy section, a help page and the contract tests.
"""

GRAPHS: Mapping[str, str] = {
    "degree-anonymity": "incrowd.methods.graphs.degree_anonymity.method",
    "switching": "incrowd.methods.graphs.switching",
    "add-delete": "incrowd.methods.graphs.add_delete",
    "edge-response": "incrowd.methods.graphs.edge_response",
    "super-nodes": "incrowd.methods.graphs.super_nodes",
    "degree-distribution": "incrowd.methods.graphs.degree_distribution",
    "subgraph-count": "incrowd.methods.graphs.subgraph_count",
    "clustering": "incrowd.methods.graphs.clustering",
    "edge-kinds": "incrowd.methods.graphs.edge_kinds",
    "block-model": "incrowd.methods.graphs.block_model",
    "degree-sequence": "incrowd.methods.graphs.degree_sequence",
}
"""Every method for a graph, in the same way: a policy with `nodes:` and `edges:` asks for them."""

LINKED: Mapping[str, str] = {
    "linked": "incrowd.methods.synthesis.linked.method",
}
"""Every method for linked tables, in the same way: a policy whose `tables:` name a parent asks for them."""

SERIES: Mapping[str, str] = {"continual": "incrowd.methods.histograms.continual.method"}
"""Every method that is one plan for all periods of a calendar: a policy with `period:` asks for them."""
