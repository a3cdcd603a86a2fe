"""Unit of privacy: one row, person, edge, node or report; added or removed, or replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from incrowd.errors import InvalidParameter


class Adjacency(StrEnum):
    """Which two datasets are neighbors."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace-one"


class Kind(StrEnum):
    """What one unit is."""

    ROW = "row"
    PERSON = "person"
    PERSON_PERIOD = "person in a period"
    """All rows of one person in one period of the dataset's calendar; the person's rows of other periods stay."""
    EDGE = "edge"
    """All that connects two nodes, of whatever kind and direction."""
    RELATION = "edge of one kind"
    """One edge: of one kind, and where edges have directions in one of them."""
    NODE = "node"
    REPORT = "report of one person"
    HISTORY = "person's reports of all rounds"
    """All that one person sends to a survey with rounds, or to several surveys of the same people."""

    @property
    def of_people(self) -> bool:
        """Whether a column says whose rows are one unit."""
        return self in (Kind.PERSON, Kind.PERSON_PERIOD)

    @property
    def of_edges(self) -> bool:
        """Whether edges are hidden, and nodes are not."""
        return self in (Kind.EDGE, Kind.RELATION)


class ExtraRowsRule(StrEnum):
    """The rule for people with more rows than `max_rows`."""

    DROP = "drop"
    """All their rows are suppressed."""
    REFUSE = "refuse"
    """A source that contains such a person is refused."""


_OF_MORE = {
    None: "",
    ExtraRowsRule.DROP: "; people with more are left out",
    ExtraRowsRule.REFUSE: "; a source in which anyone has more is refused",
}


@dataclass(frozen=True)
class Unit:
    """The unit of privacy of a dataset, declared once.

    `more` is the rule for people with more rows than `max_rows`; without one, `max_rows` of their rows are kept.

    >>> str(Unit())
    'one row, added or removed'
    >>> str(Unit(Kind.PERSON, column="mother_id", max_rows=3))
    'one person (mother_id, at most 3 rows), added or removed'
    >>> str(Unit(Kind.PERSON_PERIOD, column="mother_id", max_rows=3))
    'one person in a period (mother_id, at most 3 rows), added or removed'
    >>> str(Unit(Kind.PERSON, column="mother_id", more=ExtraRowsRule.DROP))
    'one person (mother_id, one row; people with more are left out), added or removed'
    """

    kind: Kind = Kind.ROW
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    column: str | None = None
    max_rows: int = 1
    more: ExtraRowsRule | None = None

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise InvalidParameter("a person has at least one row: max_rows must be 1 or more.")
        if self.kind.of_people and self.column is None:
            raise InvalidParameter(
                f"the unit {self.kind} needs a person ID column: name the column that identifies people."
            )
        if not self.kind.of_people and (self.column is not None or self.max_rows != 1 or self.more is not None):
            raise InvalidParameter("only a unit of people has a column, max_rows and more.")

    @property
    def single(self) -> bool:
        """Whether nobody has a second row: each row is one unit by declaration, or the rule for more rows sees to it.

        Crowds of rows are then crowds of people.  A person with several rows, of which one is kept at random, does not
        blend: no other person's data gives the same rows as often.
        """
        return self.kind is Kind.ROW or (self.kind.of_people and self.max_rows == 1 and self.more is not None)

    def protects_as(self, other: Unit) -> bool:
        """Whether both protect the same; the rule for people with more rows may differ from release to release."""
        return self._protected == other._protected

    @property
    def _protected(self) -> tuple[object, ...]:
        return self.kind, self.adjacency, self.column, self.max_rows

    def __str__(self) -> str:
        rows = (f"at most {self.max_rows} rows" if self.max_rows > 1 else "one row") + _OF_MORE[self.more]
        who = f"one {self.kind}" + (f" ({self.column}, {rows})" if self.column else "")
        return f"{who}, " + ("added or removed" if self.adjacency is Adjacency.ADD_REMOVE else "replaced")

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers and certificates."""
        plain: dict[str, Any] = {"kind": str(self.kind), "adjacency": str(self.adjacency)}
        person = {"column": self.column, "max_rows": self.max_rows} if self.column else {}
        return plain | person | ({"more": str(self.more)} if self.more else {})

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Unit:
        """Read what `to_json` wrote.

        >>> unit = Unit(Kind.PERSON, column="id")
        >>> Unit.from_json(unit.to_json()) == unit
        True
        """
        try:
            kind, adjacency = Kind(plain["kind"]), Adjacency(plain["adjacency"])
            more = ExtraRowsRule(plain["more"]) if "more" in plain else None
        except (KeyError, ValueError) as error:
            raise InvalidParameter("this unit of privacy is unknown.") from error
        return cls(kind, adjacency, plain.get("column"), int(plain.get("max_rows", 1)), more)
