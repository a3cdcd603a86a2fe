"""Released: a result in memory with its certificate, never one without the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from incrowd.core.certificate import Release
from incrowd.methods.outcomes.outcome import Outcome


@dataclass(frozen=True)
class Released(Release[Outcome]):
    """A release in memory: `result` and `certificate`, and the report that explains both."""

    def report(self) -> str:
        """Return the public report as one self-contained HTML page."""
        from incrowd.workflows.report import public_report

        return public_report(self.certificate, self.result)

    def _repr_html_(self) -> Any:
        from incrowd.workflows.report import summary_html

        return summary_html(self.certificate) + self.result._repr_html_()
