"""Population: the people from whom the rows come, and what is demanded against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from incrowd.core.cells import Cells
from incrowd.criteria.demand import TableDemand, Term
from incrowd.criteria.population import DeltaPresence, KMap
from incrowd.criteria.uniqueness.criterion import PopulationUniqueness
from incrowd.engines.columns import require
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.counts import Counts
    from incrowd.core.table import Engine


@dataclass(frozen=True)
class Presence:
    """δ-presence: the share of the people of a class who are in the table, at most and at least.

    Source: Nergiz, Atzori & Clifton 2007, Definition 2.
    """

    most: Fraction
    least: Fraction = Fraction(0)


@dataclass(frozen=True)
class Population:
    """A file with one row for each person from whom the table could come; with k, so many look like each released row.

    Source: Sweeney 2001 (k-map); Nergiz, Atzori & Clifton 2007 (δ-presence).

    >>> Population("people.csv", k=10).terms()
    {'k-map': 10, 'population': 'people.csv'}
    """

    file: str
    k: int | None = None
    presence: Presence | None = None

    def __post_init__(self) -> None:
        if not self.criteria():
            raise InvalidParameter("nothing is demanded against the population: give k or presence, or leave it out.")

    def criteria(self) -> list[TableDemand]:
        """Return the criteria that compare with the population, whose file is named without its folder."""
        name, there = Path(self.file).name, self.presence
        crowds: list[TableDemand] = [] if self.k is None else [KMap(self.k, name)]
        return crowds if there is None else [*crowds, DeltaPresence(there.least, there.most, name)]

    def terms(self) -> dict[str, Term]:
        """Return the demands as they stand in certificates."""
        return {name: value for criterion in self.criteria() for name, value in criterion.terms().items()}

    def check(self, cells: Cells) -> None:
        """Refuse classes that the declaration does not list: they could not be told apart in another file."""
        for recoding in cells.recodings:
            if recoding.classes is None:
                raise InvalidParameter(
                    f"the classes of {recoding.column.name!r} are not declared, so the table cannot be compared with a "
                    "population: declare categories, bounds or a hierarchy file, or let its lowest level be higher."
                )

    def counted(self, engine: Engine, cells: Cells) -> Counts:
        """Count the people in each cell, on the engine that counts the table."""
        rows = engine.open(self.file)
        require(rows.names, cells.reads)
        return engine.count(rows, cells)


@dataclass(frozen=True)
class Unique:
    """How many of the released rows may be unique among so many people, by an estimate from the rows.

    Precondition: the rows are a simple random sample of these people.

    Source: Zayatz 1991; Hoshino 2001 (pitman); Chen & Keller-McNulty 1998 (snb); Dankar, El Emam, Neisa & Roffey 2012,
    whose rule chooses among them (dankar).

    >>> Unique(Fraction(1, 100), 300000).terms()
    {'unique': '1/100', 'unique among': 300000, 'unique by': 'zayatz'}
    """

    share: Fraction
    people: int
    estimator: Literal["zayatz", "pitman", "snb", "dankar"] = "zayatz"

    def __post_init__(self) -> None:
        self.criterion()

    def criterion(self) -> PopulationUniqueness:
        """Return the criterion."""
        return PopulationUniqueness(self.share, self.people, self.estimator)

    def terms(self) -> Mapping[str, Term]:
        """Return the demand as it stands in certificates."""
        return self.criterion().terms()
