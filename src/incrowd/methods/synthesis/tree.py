"""Tree: a model of a table that is a tree of pairs of columns, and rows drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from incrowd.methods.synthesis.marginals.method import Marginals
from incrowd.methods.synthesis.marginals.output import SyntheticCheck, SyntheticPicture
from incrowd.methods.synthesis.marginals.search import Search, TableSelection
from incrowd.methods.synthesis.marginals.steps import Strategy


@dataclass(frozen=True)
class SpanningTree(Marginals):
    """A synthetic table from a tree: the pairs of columns that depend on each other most, each measured once.

    Guarantee: as `marginals`; a third of the budget for single columns, for the choice of the tree, for its pairs.

    Assumes: domains and levels were declared without looking at the rows.

    Source: McKenna, Miklau & Sheldon 2021 (MST).
    """

    name: ClassVar[str] = "tree"
    strategy: ClassVar[Strategy] = Strategy.TREE

    def search(self, search: Search) -> TableSelection:
        return search.tree(self.spendable)


CHECK = SyntheticCheck()
PICTURE = SyntheticPicture()
METHOD = SpanningTree
