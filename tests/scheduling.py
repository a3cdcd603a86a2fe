"""Which process runs which tests: a file goes to one process, and everything on Spark to one."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    """Files in the order of collection; one process alone starts Spark."""

    def _split_scope(self, nodeid: str) -> str:
        """Return what a test shares a process with."""
        return "spark" if "spark" in nodeid else nodeid.split("::", 1)[0]
