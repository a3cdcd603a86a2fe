"""Trial: people in the data and people who are not, tried in the same way; and the columns that both sides have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import NEAR, NONE, CandidateSearch, Codes, ColumnMatch, codes_of, drawn, match, together
from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.masked import NearestSearch, masked_columns
from incrowd.errors import InvalidParameter

Hits = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Trial:
    """Everybody who is attacked, people in the data first; at most `knowledge.trials` of each kind."""

    published: PublishedTable
    knowledge: Knowledge
    everyone: pa.Table
    inside: int

    @classmethod
    def of(cls, published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None) -> Trial:
        """Draw those who are attacked."""
        people = drawn(knowledge.people, knowledge.trials, knowledge.seed)
        if not people.num_rows or not published.table.num_rows:
            raise InvalidParameter("there is nobody to attack, or nothing was published: both need rows.")
        outside = None if outsiders is None else drawn(outsiders, knowledge.trials, knowledge.seed)
        return cls(published, knowledge, together(people, outside), people.num_rows)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The columns that the attacker knows and finds in what was published."""
        found = tuple(name for name in self.knowledge.known if name in self.published.columns)
        if not found:
            raise InvalidParameter(
                "none of the known columns was published, so that nobody can be looked for: name others with --known."
            )
        return found

    @property
    def secret(self) -> str:
        """The column that is looked for."""
        name = self.knowledge.secret
        if name is None or name not in self.published.columns:
            raise InvalidParameter("this attack looks for a secret: name a published column with --secret.")
        return name

    @cached_property
    def rest(self) -> tuple[str, ...]:
        """The published columns that both sides have and that the attacker does not know."""
        hidden = (*self.known, self.knowledge.person)
        return tuple(
            name for name in self.published.columns if name in self.everyone.column_names and name not in hidden
        )

    @cached_property
    def search(self) -> CandidateSearch:
        """Everybody beside the published rows, by what is known."""
        return CandidateSearch.of(self.published, self.everyone, self.known, self.knowledge)

    @cached_property
    def matches(self) -> CandidateSearch:
        """The same, by distance in masked columns: the nearest published rows are taken for a person's."""
        return NearestSearch.of(self.published, self.everyone, self.known, self.knowledge)

    @property
    def notes(self) -> tuple[str, ...]:
        """How masked columns were matched and judged, in words."""
        columns = masked_columns(self.published, self.everyone, (*self.known, *self.rest))
        moved = [name for name in columns if self.column(name).near is not None]
        unknown = " (the method is unknown)" if self.published.masks is None else ""
        nearest = isinstance(self.__dict__.get("matches"), NearestSearch)
        by = f"People are matched to the nearest published rows, since values were masked{unknown}." if nearest else ""
        right = (
            f"A number in {', '.join(moved)} counts as right if at most {NEAR:.0%} of the people have one that is "
            f"nearer to it{'' if nearest else unknown}."
        )
        return tuple(filter(None, (by, right if moved else "")))

    def as_published(self, attack: str) -> tuple[str, ...]:
        """Return that an attack compares masked values as they stand, in words; nothing where none were masked."""
        moved = [name for name in self.published.masks or () if name in self.everyone.column_names]
        if not moved:
            return ()
        words = f"{attack} compares masked values as they were published"
        return (f"{words} ({', '.join(moved)}): that it finds little does not mean that the mask hides much.",)

    def column(self, name: str) -> ColumnMatch:
        """Return a column of what was published beside the truth about everybody."""
        return match(self.published, self.everyone, name)

    def fits(self, rows: Codes, columns: tuple[str, ...] | None = None) -> Hits:
        """Return for each person whether a published row (its place, −1 for none) is true in all unknown columns.

        Or in others that are named.
        """
        found = rows >= 0
        for name in self.rest if columns is None else columns:
            column = self.column(name)
            found &= column.fits(np.where(rows >= 0, column.labels.codes[rows], NONE))
        return found

    def commonest_row(self, *columns: str) -> int:
        """Return the place of a published row that shows the commonest tuple of some columns."""
        codes = codes_of(self.published, columns)
        return int(np.flatnonzero(codes == np.bincount(codes, self.published.weights).argmax())[0])

    def finding(self, attack: str, risk: Risk, hits: Hits, blind: Hits, story: tuple[str, ...] = ()) -> Finding:
        """Return the finding: how many were hit inside, outside, and by one who did not look for them."""
        outside = None
        if self.inside < len(hits):
            outside = Rate(int(hits[self.inside :].sum()), len(hits) - self.inside)
        ours = Rate(int(hits[: self.inside].sum()), self.inside)
        guess = Rate(int(blind[: self.inside].sum()), self.inside)
        return Finding(attack, risk, self.knowledge.words, ours, guess, outside, story, self.notes)

    def victim(self, hits: Hits) -> int | None:
        """Return the first person in the data who was hit."""
        found = np.flatnonzero(hits[: self.inside])
        return int(found[0]) if len(found) else None

    def told(self, person: int, columns: tuple[str, ...]) -> str:
        """Return what is true of a person, in words."""
        row = self.everyone.slice(person, 1).to_pylist()[0]
        return ", ".join(f"{name} {row[name] if row[name] not in (None, '') else 'missing'}" for name in columns)

    def shown(self, row: int, columns: tuple[str, ...]) -> str:
        """Return what a published row shows, in words."""
        found = self.published.table.slice(row, 1).to_pylist()[0]
        return ", ".join(f"{name} {'missing' if found[name] is None else found[name]}" for name in columns)


def first_rows(codes: Codes, wanted: Codes) -> Codes:
    """Return for each wanted code the first row that has it, −1 for −1."""
    known, first = np.unique(codes, return_index=True)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(wanted >= 0, first[places], NONE)
