"""Labels: columns of nodes at their levels, as they may be published beside a graph, and the classes they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.graph import Graph
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Schema
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.outputs import OWN


@dataclass(frozen=True)
class NodeLabels:
    """The columns of nodes that are published, each at a level whose labels are declared; perhaps none."""

    recodings: tuple[Recoding, ...]

    @classmethod
    def of(cls, schema: Schema, columns: Sequence[str], levels: Mapping[str, int]) -> NodeLabels:
        """Return the labels of some columns, or refuse what cannot be listed from the declaration."""
        if extra := [name for name in levels if name not in columns]:
            raise InvalidParameter(f"a level is given for {extra[0]!r}, which is not among columns.")
        found = Cells.of(schema, levels, columns).recodings if columns else ()
        for recoding in found:
            name = recoding.column.name
            if recoding.classes is None or recoding.column.may_drop:
                raise InvalidParameter(
                    f"every node needs a declared label in {name!r}: list its categories or choose a higher level, and "
                    "let what is missing or outside be a class, not dropped."
                )
            if name in OWN:
                raise InvalidParameter(f"a published graph has a column {name!r} of its own: leave that one out.")
        return cls(found)

    def codes(self, graph: Graph) -> list[NDArray[np.int32]]:
        """Return the class of each node in each column."""
        return [recoding.codes(graph.columns.column(recoding.column.name)) for recoding in self.recodings]

    def classes(self, graph: Graph) -> NDArray[np.int64]:
        """Return for each node the number of its tuple of labels; all are 0 where nothing is published."""
        if not self.recodings:
            return np.zeros(graph.size, np.int64)
        return np.unique(np.stack(self.codes(graph), axis=1), axis=0, return_inverse=True)[1].ravel().astype(np.int64)

    def texts(self, graph: Graph) -> dict[str, pa.Array]:
        """Return the labels of each node, column by column."""
        return {
            recoding.column.name: recoding.classes.open_labels().take(pa.array(codes))  # type: ignore[union-attr]
            for recoding, codes in zip(self.recodings, self.codes(graph), strict=True)
        }


def require_crowds(classes: NDArray[np.int64], k: int) -> None:
    """Refuse nodes of which fewer than k have the same labels: before anything is charged, for the holder's eyes."""
    if len(classes) and int(np.bincount(classes).min()) < k:
        raise InvalidParameter(
            f"some labels, or all nodes together, have fewer than {k} nodes: choose a smaller k, higher levels or "
            "fewer columns."
        )
