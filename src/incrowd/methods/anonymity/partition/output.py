"""Partitioned: rows in boxes that were cut privately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from incrowd.methods.outcomes.anonymized import Anonymized


@dataclass(frozen=True, eq=False)
class Partitioned(Anonymized):
    """Rows in boxes that were cut privately: all columns together make a class."""

    form: ClassVar[str] = "partitioned"
