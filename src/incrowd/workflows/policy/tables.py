"""The further tables of a policy: of the same people as the main one, or public."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.core.schema import Column, Schema
from incrowd.core.source import SourceOptions
from incrowd.core.unit import Kind, More, Unit
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.sections import TableSection


@dataclass(frozen=True)
class OtherTable:
    """A table beside the main one: its name in SQL, what is declared about it, where its rows are."""

    name: str
    schema: Schema
    source: str
    options: SourceOptions
    public: bool


def other_table(
    name: str, section: TableSection, unit: Unit, columns: tuple[Column, ...], source: tuple[str, SourceOptions]
) -> OtherTable:
    """Return a table as its section declares it; a private one has the people of the main table, whose unit this is.

    >>> from incrowd.workflows.policy.sections import ColumnSection
    >>> section = TableSection(source="regions.csv", public=True, columns={"zip": ColumnSection()})
    >>> other_table("regions", section, Unit(), (Column("zip"),), ("regions.csv", SourceOptions())).public
    True
    """
    if section.public:
        return OtherTable(name, Schema(columns), *source, public=True)
    if unit.kind is not Kind.PERSON:
        raise InvalidParameter(
            f"the rows of {name!r} are somebody's, but the dataset protects single rows: declare dataset.unit.column, "
            "the column that tells people apart."
        )
    more = None if section.more is None else More(section.more)
    own = Unit(Kind.PERSON, unit.adjacency, section.unit, section.max_rows, more)
    return OtherTable(name, Schema(columns, own), *source, public=False)
