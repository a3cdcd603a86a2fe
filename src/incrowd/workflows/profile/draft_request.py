"""The request for a draft: its goal, and what the data holder declares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from incrowd.errors import InvalidParameter


class DraftGoal(StrEnum):
    """What is released: rows, counts, answers to queries, or rows under k-anonymity alone."""

    MICRODATA = "microdata"
    COUNTS = "counts"
    QUERIES = "queries"
    CLASSIC = "classic"


@dataclass(frozen=True)
class DraftPeriod:
    """The reference period of the rows, as declared: a year, two years, or two days.

    >>> DraftPeriod("2023-2024").bounds, DraftPeriod("2024-03-01 to 2024-03-31").bounds
    (('2023-01-01', '2024-12-31'), ('2024-03-01', '2024-03-31'))
    """

    text: str

    def __post_init__(self) -> None:
        self.bounds  # noqa: B018 - refused at once

    @property
    def bounds(self) -> tuple[str, str]:
        """The first and the last day."""
        years = re.fullmatch(r"(\d{4})(?:\s*(?:-|to)\s*(\d{4}))?", self.text.strip())
        if years:
            return f"{years[1]}-01-01", f"{years[2] or years[1]}-12-31"
        days = re.fullmatch(r"(\d{4}-\d\d-\d\d)\s*to\s*(\d{4}-\d\d-\d\d)", self.text.strip())
        if not days:
            raise InvalidParameter(f"the period {self.text!r} cannot be read: write 2024, 2023-2024 or DAY to DAY.")
        return days[1], days[2]


@dataclass(frozen=True)
class Origin:
    """The source of the rows: its address in the policy, and the keys for reading it."""

    address: str
    reading: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DraftRequest:
    """The goal of a draft, the reference period if declared, and public sources of some columns."""

    goal: DraftGoal = DraftGoal.MICRODATA
    period: DraftPeriod | None = None
    public: Mapping[str, str] = field(default_factory=dict)
