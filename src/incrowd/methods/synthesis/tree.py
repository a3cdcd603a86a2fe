"""Tree: a model of a table that is a tree of pairs of columns, and rows drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.marginals.check import SyntheticCheck
from incrowd.methods.synthesis.marginals.detail import FinerPieces
from incrowd.methods.synthesis.marginals.method import Marginals
from incrowd.methods.synthesis.marginals.output import SyntheticPicture
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_column is not None:
            raise InvalidParameter("a tree has no target_column: choose the method marginals.")

    def search(self, search: Search, pieces: Sequence[FinerPieces] = ()) -> TableSelection:
        return search.tree(self.spendable(pieces))


CHECK = SyntheticCheck()
PICTURE = SyntheticPicture()
METHOD = SpanningTree
