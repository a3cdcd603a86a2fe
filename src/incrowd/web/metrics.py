"""Metrics: counts of the audit log in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from incrowd import __version__


def exposition(counts: Mapping[tuple[str, str], int]) -> str:
    """Return the counts as Prometheus reads them.

    >>> print(exposition({("query", "answered"): 3}))
    # HELP incrowd_info The version of the server.
    # TYPE incrowd_info gauge
    incrowd_info{version="..."} 1
    # HELP incrowd_events_total Events of the audit log.
    # TYPE incrowd_events_total counter
    incrowd_events_total{action="query",outcome="answered"} 3
    <BLANKLINE>
    """
    lines = [
        "# HELP incrowd_info The version of the server.",
        "# TYPE incrowd_info gauge",
        f'incrowd_info{{version="{__version__}"}} 1',
        "# HELP incrowd_events_total Events of the audit log.",
        "# TYPE incrowd_events_total counter",
    ]
    for (action, outcome), count in sorted(counts.items()):
        lines.append(f'incrowd_events_total{{action="{action}",outcome="{outcome}"}} {count}')
    return "\n".join(lines) + "\n"
