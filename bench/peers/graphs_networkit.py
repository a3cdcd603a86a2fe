"""networkit: the triangles of a graph in a Parquet file of edges, whole process; prints one JSON object.

Its environment has networkit, numpy and pyarrow.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    import networkit
    import numpy as np
    from pyarrow import parquet

    networkit.setNumberOfThreads(1)
    table = parquet.read_table(sys.argv[1])
    ends = [column.cast("int64").to_numpy() for column in table.columns]
    nodes = int(max(end.max() for end in ends)) + 1
    graph = networkit.GraphFromCoo(
        (np.ones(len(table)), (ends[0].astype(np.uint64), ends[1].astype(np.uint64))), n=nodes
    )
    graph.indexEdges()
    triangles = networkit.sparsification.TriangleEdgeScore(graph).run().scores()
    print(json.dumps({"triangles": sum(triangles) // 3, "seconds": time.process_time()}))


if __name__ == "__main__":
    main()
