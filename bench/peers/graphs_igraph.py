"""igraph: degrees and triangles of a graph in a Parquet file of edges, whole process; prints one JSON object.

Its environment has igraph, numpy and pyarrow.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    import igraph
    import numpy as np
    from pyarrow import parquet

    table = parquet.read_table(sys.argv[1])
    ends = np.stack([column.cast("int64").to_numpy() for column in table.columns], axis=1)
    graph = igraph.Graph(n=int(ends.max()) + 1, edges=ends)
    degrees = np.array(graph.degree())
    counted = time.process_time()
    wedges = int((degrees * (degrees - 1) // 2).sum())
    triangles = round(graph.transitivity_undirected() * wedges / 3)
    print(json.dumps({"triangles": triangles, "seconds": time.process_time(), "degree seconds": counted}))


if __name__ == "__main__":
    main()
