"""Output: the published table of a survey: every randomizer, with the weights that it draws with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from incrowd.methods.local.survey.steps import DEFINITION, CollectReports
from incrowd.methods.shared.outcome import Tabular

if TYPE_CHECKING:
    from incrowd.core.steps.step import Step
    from incrowd.core.unit import Unit

COLUMNS = ("question", "asks", "level", "family", "size", "own", "other", "width", "share")
NONE = "none"


@dataclass(frozen=True, eq=False)
class SurveyTable(Tabular):
    """One row for each randomizer: its question, its level, its family and its weights."""

    form: ClassVar[str] = "survey"

    definition: str

    @classmethod
    def of(cls, steps: Iterable[Step], definition: str) -> SurveyTable:
        """Return the table of a survey's steps, with the text of all that the survey publishes."""
        rows = rows_of(next(step for step in steps if isinstance(step, CollectReports)))
        columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in COLUMNS}
        return cls(pa.table(columns), definition)

    @property
    def documents(self) -> dict[str, str]:
        """What is published beside the table: the definition of the survey, by which pages and clients ask."""
        return {DEFINITION: self.definition}

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the table shows: how many questions and randomizers there are."""
        return {
            "questions": len(set(self.table["question"].to_pylist())),
            "randomizers": len(self),
            "singling out": "no report is published here, only how reports are made",
            "linkability": "no report is published here, only how reports are made",
            "inference": "bounded by the claims above, for every report, whoever reads it",
        }


def rows_of(step: CollectReports) -> list[dict[str, str]]:
    """Return the rows of the table, as texts."""
    return [
        {
            "question": asked.name,
            "asks": asked.asks,
            "level": str(level),
            **{name: NONE if value is None else str(value) for name, value in vars(told).items()},
        }
        for asked in step.questions
        for level, told in enumerate(asked.randomizers)
    ]
