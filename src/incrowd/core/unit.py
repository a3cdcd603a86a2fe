"""Whom a promise protects: one row, person, edge or node; added or removed, or replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from incrowd.errors import InvalidParameter


class Adjacency(StrEnum):
    """Which two datasets must look alike."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace-one"


class Kind(StrEnum):
    """What one unit is."""

    ROW = "row"
    PERSON = "person"
    EDGE = "edge"
    NODE = "node"


@dataclass(frozen=True)
class Unit:
    """The unit of privacy of a dataset, declared once.

    >>> str(Unit())
    'one row, added or removed'
    >>> str(Unit(Kind.PERSON, column="mother_id", max_rows=3))
    'one person (mother_id, at most 3 rows), added or removed'
    """

    kind: Kind = Kind.ROW
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    column: str | None = None
    max_rows: int = 1

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise InvalidParameter("a person has at least one row: max_rows must be 1 or more.")
        if self.kind is Kind.PERSON and self.column is None:
            raise InvalidParameter("a person is known by a column: name the column that identifies people.")
        if self.kind is not Kind.PERSON and (self.column is not None or self.max_rows != 1):
            raise InvalidParameter("only the unit 'person' has a column and max_rows.")

    def __str__(self) -> str:
        rows = f"at most {self.max_rows} rows" if self.max_rows > 1 else "one row"
        who = f"one {self.kind}" + (f" ({self.column}, {rows})" if self.column else "")
        return f"{who}, " + ("added or removed" if self.adjacency is Adjacency.ADD_REMOVE else "replaced")

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers and certificates."""
        plain: dict[str, Any] = {"kind": str(self.kind), "adjacency": str(self.adjacency)}
        return plain | ({"column": self.column, "max_rows": self.max_rows} if self.column else {})

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Unit:
        """Read what `to_json` wrote.

        >>> unit = Unit(Kind.PERSON, column="id")
        >>> Unit.from_json(unit.to_json()) == unit
        True
        """
        try:
            kind, adjacency = Kind(plain["kind"]), Adjacency(plain["adjacency"])
        except (KeyError, ValueError) as error:
            raise InvalidParameter("this unit of privacy is not known here.") from error
        return cls(kind, adjacency, plain.get("column"), int(plain.get("max_rows", 1)))
