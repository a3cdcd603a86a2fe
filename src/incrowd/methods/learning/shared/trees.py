"""Trees: where rows part, by the codes of their columns, and what is said of those who end in the same leaf."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from incrowd.methods.learning.shared.fits import Floats
    from incrowd.methods.learning.shared.inputs import ColumnEncoder
    from incrowd.methods.learning.shared.statistics import Integers


@dataclass(frozen=True, eq=False)
class TreeSplits:
    """Where the rows of a tree part: a column and a code for each inner node, from the root, level by level.

    A row goes left if the code of its column is below that code, where codes are ordered, or is that code elsewhere.
    """

    columns: Integers
    codes: Integers

    @property
    def depth(self) -> int:
        """How many nodes a row passes."""
        return (len(self.columns) + 1).bit_length() - 1

    def ends(self, rows: Integers, ordered: Sequence[bool]) -> Integers:
        """Return the number of the leaf of each row of codes; a code of −1 never goes left.

        >>> root, rows = TreeSplits(np.array([0]), np.array([2])), np.array([[0], [1], [2], [-1]])
        >>> root.ends(rows, [True]).tolist(), root.ends(rows, [False]).tolist()
        ([0, 0, 1, 1], [1, 1, 0, 1])
        """
        node, below = np.zeros(len(rows), np.int64), np.array(ordered, np.bool_)
        for _ in range(self.depth):
            column, code = self.columns[node], self.codes[node]
            own = rows[np.arange(len(rows)), column]
            left = np.where(below[column], (own >= 0) & (own < code), own == code)
            node = 2 * node + 2 - left
        return node - len(self.columns)

    def paths(self, columns: Sequence[ColumnEncoder]) -> Iterator[str]:
        """Return in words which rows end in each leaf."""
        for leaf in range(len(self.columns) + 1):
            node, conditions = leaf + len(self.columns), []
            while node:
                parent = (node - 1) // 2
                conditions.append(_words(columns[self.columns[parent]], int(self.codes[parent]), left=node % 2 == 1))
                node = parent
            yield "; ".join(reversed(conditions))

    def to_json(self) -> dict[str, Any]:
        """Return the cuts as plain JSON."""
        return {"columns": self.columns.tolist(), "codes": self.codes.tolist()}


def _words(column: ColumnEncoder, code: int, *, left: bool) -> str:
    label = "missing" if column.labels[code] is None else column.labels[code]
    if column.ordered:
        return f"{column.name} before {label}" if left else f"{column.name} from {label} on"
    return f"{column.name} is {label}" if left else f"{column.name} is not {label}"


@dataclass(frozen=True, eq=False)
class DecisionTree:
    """A tree of a model: its cuts, and a number for each leaf and output."""

    cuts: TreeSplits
    leaves: Floats

    def to_json(self) -> dict[str, Any]:
        """Return the tree as plain JSON."""
        return {**self.cuts.to_json(), "leaves": self.leaves.tolist()}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any], sizes: Sequence[int], outputs: int) -> DecisionTree:
        """Read what `to_json` wrote; whatever else raises what its parts raise."""
        columns, codes = (np.array(plain[name]) for name in ("columns", "codes"))
        leaves = np.array(plain["leaves"], np.float64)
        whole = set(plain) == {"columns", "codes", "leaves"} and columns.dtype.kind == codes.dtype.kind == "i"
        full = columns.shape == codes.shape == (len(leaves) - 1,) and len(leaves).bit_count() == 1
        if not (whole and full and leaves.shape == (len(leaves), outputs) and np.isfinite(leaves).all()):
            raise ValueError("trees")
        if not all(0 <= code < sizes[column] for column, code in zip(columns, codes, strict=True) if column >= 0):
            raise ValueError("cuts")
        if (columns < 0).any():
            raise ValueError("columns")
        return cls(TreeSplits(columns, codes), leaves)


@dataclass(frozen=True, eq=False)
class SplitCandidates:
    """The cuts that a node can have, from what is declared alone: a column and a code each."""

    columns: Integers
    codes: Integers

    @classmethod
    def of(cls, sizes: Sequence[int], ordered: Sequence[bool]) -> SplitCandidates:
        """Return all cuts: between any two codes that follow each other, or of one code from all others.

        >>> SplitCandidates.of([3, 2, 3], [True, False, False]).codes.tolist()
        [1, 2, 0, 0, 1, 2]
        """
        pairs = [
            (column, code)
            for column, (size, below) in enumerate(zip(sizes, ordered, strict=True))
            for code in (range(1, size) if below else range(1 if size == 2 else size))
        ]
        columns, codes = np.array(pairs, np.int64).T
        return cls(columns, codes)

    def __len__(self) -> int:
        return len(self.columns)

    def random(self, trees: int, depth: int) -> tuple[TreeSplits, ...]:
        """Return the cuts of trees that are drawn without rows: columns are equally likely, then their codes.

        The same columns always give the same trees, which anyone can draw again.
        """
        return tuple(self._random_tree(tree, depth) for tree in range(trees))

    def _random_tree(self, tree: int, depth: int) -> TreeSplits:
        columns, codes = [], []
        names = np.unique(self.columns)
        for node in range(2**depth - 1):
            column = names[_public(f"column {tree} {node}", len(names))]
            own = self.codes[self.columns == column]
            columns.append(int(column))
            codes.append(int(own[_public(f"code {tree} {node}", len(own))]))
        return TreeSplits(np.array(columns, np.int64), np.array(codes, np.int64))

    def some(self, tree: int, share: float) -> SplitCandidates:
        """Return the cuts of a share of the columns, three at least, others for each tree, by public chance."""
        names = np.unique(self.columns)
        order = sorted(names.tolist(), key=lambda column: _public(f"share {tree} {column}", 2**64))
        allowed = np.isin(self.columns, order[: max(3, round(share * len(names)))])
        return SplitCandidates(self.columns[allowed], self.codes[allowed])


def _public(name: str, bound: int) -> int:
    """Return a number below a bound that everybody gets by the same name."""
    return int.from_bytes(hashlib.sha256(f"incrowd trees: {name}".encode()).digest(), "big") % bound
