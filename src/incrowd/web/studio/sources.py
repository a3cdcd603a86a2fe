"""Sources: what tells the rows of a policy, as they are now, from what they were before."""

from __future__ import annotations

from incrowd.workflows.policy.policy import Policy


def rows_state(policy: Policy) -> str:
    """Return when the files of a policy's rows were changed and how large they are; databases tell nothing."""
    graph = policy.graph
    sources = (policy.source,) if graph is None else (graph.nodes[0], graph.edges[0])
    paths = [policy.folder / source for source in sources if source is not None and "://" not in source]
    stats = [path.stat() for path in paths if path.is_file()]
    return f"{sources} {[(stat.st_mtime_ns, stat.st_size) for stat in stats]}"
