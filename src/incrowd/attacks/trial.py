"""Trial: people in the data and a control group, attacked in the same way; and the columns that both sides have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import (
    NEAR,
    NONE,
    CandidateSearch,
    Codes,
    ColumnMatch,
    codes_of,
    match,
    sampled,
    together,
)
from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.masked import NearestSearch, are_numbers, masked_columns
from incrowd.errors import InvalidParameter

Hits = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Trial:
    """Everybody who is attacked: people in the data, then the control group; at most `knowledge.trials` of each.

    Attacks on one table by one attacker have the same people, and find them in the same classes of rows.
    """

    published: PublishedTable
    knowledge: Knowledge
    everyone: pa.Table
    inside: int

    @classmethod
    def of(cls, published: PublishedTable, knowledge: Knowledge, control: pa.Table | None) -> Trial:
        """Sample those who are attacked."""
        draw, of = ("people", knowledge.trials, knowledge.seed), (knowledge.people, control)
        everyone, inside = published.once(draw, lambda: _everyone(knowledge, control), *of)
        if not inside or not published.table.num_rows:
            raise InvalidParameter("nobody can be attacked: the data and the published table both need rows.")
        return cls(published, knowledge, everyone, inside)

    @cached_property
    def known_columns(self) -> tuple[str, ...]:
        """The published columns that the attacker knows."""
        columns = tuple(name for name in self.knowledge.known_columns if name in self.published.columns)
        if not columns:
            raise InvalidParameter("none of the known columns was published: name others with --known.")
        return columns

    @property
    def secret(self) -> str:
        """The column that the attacker wants to learn."""
        name = self.knowledge.secret
        if name is None or name not in self.published.columns:
            raise InvalidParameter("this attack needs a secret: name a published column with --secret.")
        return name

    @cached_property
    def rest(self) -> tuple[str, ...]:
        """The published columns that both sides have and that the attacker does not know."""
        hidden = (*self.known_columns, self.knowledge.person)
        return tuple(
            name for name in self.published.columns if name in self.everyone.column_names and name not in hidden
        )

    @cached_property
    def search(self) -> CandidateSearch:
        """The published rows that fit everybody in the known columns."""
        return self._once("search", CandidateSearch.of)

    @cached_property
    def matches(self) -> CandidateSearch:
        """The same by distance in masked columns: the nearest published rows count as a person's."""
        return self._once("matches", NearestSearch.of)

    def _once(self, what: str, make: Callable[..., CandidateSearch]) -> CandidateSearch:
        people, knowledge, columns = self.everyone, self.knowledge, self.known_columns
        return self.published.once(
            (what, columns), lambda: make(self.published, people, columns, knowledge), people, knowledge
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """How masked columns were matched and judged, as text."""
        columns = masked_columns(self.published, self.everyone, (*self.known_columns, *self.rest))
        moved = [name for name in columns if self.column(name).near is not None]
        unknown = " (the method is unknown)" if self.published.masks is None else ""
        # `matches` is cached: it is there only if this attack matched by distance, and computing it here would be slow.
        nearest = isinstance(self.__dict__.get("matches"), NearestSearch)
        by = f"People are matched to the nearest published rows, since values were masked{unknown}." if nearest else ""
        right = (
            f"A number in {', '.join(moved)} counts as right if at most {NEAR:.0%} of the people have one that is "
            f"nearer to it{'' if nearest else unknown}."
        )
        return tuple(filter(None, (by, right if moved else "")))

    def as_published(self, attack: str, *, numbers: bool = True) -> tuple[str, ...]:
        """Return a note that an attack compares masked values unchanged, perhaps not `numbers`; nothing without any."""
        moved = [name for name in self.published.masks or () if name in self.everyone.column_names]
        moved = [name for name in moved if numbers or not are_numbers(self.column(name))]
        if not moved:
            return ()
        words = f"{attack} compares masked values as they were published"
        return (f"{words} ({', '.join(moved)}): a low success rate does not show that the mask protects them.",)

    def column(self, name: str) -> ColumnMatch:
        """Return a published column with the true values of everybody."""
        return match(self.published, self.everyone, name)

    def columns(self, names: Iterable[str]) -> list[ColumnMatch]:
        """Return published columns with the true values, numbers within the slack of the knowledge."""
        return [match(self.published, self.everyone, name, self.knowledge.slack.get(name)) for name in names]

    def fits(self, rows: Codes, columns: tuple[str, ...] | None = None) -> Hits:
        """Return whether a published row (its place, −1 for none) is true of each person, in the unknown columns."""
        fitting = rows >= 0
        for name in self.rest if columns is None else columns:
            column = self.column(name)
            fitting &= column.fits(np.where(rows >= 0, column.labels.codes[rows], NONE))
        return fitting

    def commonest_row(self, *columns: str) -> int:
        """Return the place of a published row that shows the commonest tuple of some columns."""
        codes = codes_of(self.published, columns)
        return int(np.flatnonzero(codes == np.bincount(codes, self.published.weights).argmax())[0])

    @property
    def commonest_secret(self) -> Hits:
        """Whether each person's secret is the commonest published one: the baseline of attacks on a secret."""
        secret = self.column(self.secret)
        return secret.fits(np.full(self.everyone.num_rows, secret.labels.codes[self.commonest_row(self.secret)]))

    def finding(self, attack: str, risk: Risk, hits: Hits, baseline_hits: Hits, story: tuple[str, ...] = ()) -> Finding:
        """Return the success rate, the baseline and the success rate on the control group."""
        control = None
        if self.inside < len(hits):
            control = Rate(int(hits[self.inside :].sum()), len(hits) - self.inside)
        success = Rate(int(hits[: self.inside].sum()), self.inside)
        baseline = Rate(int(baseline_hits[: self.inside].sum()), self.inside)
        return Finding(attack, risk, self.knowledge.words, success, baseline, control, story, self.notes)

    def victim(self, hits: Hits) -> int | None:
        """Return the first person in the data who was hit."""
        victims = np.flatnonzero(hits[: self.inside])
        return int(victims[0]) if len(victims) else None

    def story(
        self, hits: Hits, steps: Callable[[int], Sequence[str]], truth: tuple[str, ...] | None = None
    ) -> tuple[str, ...]:
        """Return how the first victim is attacked: what is known, the steps, and the truth; empty if there is none."""
        person = self.victim(hits)
        if person is None:
            return ()
        return (
            f"The attacker knows of a person: {self.person_text(person, self.known_columns)}.",
            *steps(person),
            f"The truth about the person: {self.person_text(person, truth or (self.secret,))}.",
        )

    def person_text(self, person: int, columns: tuple[str, ...]) -> str:
        """Return true values of a person as text."""
        row = self.everyone.slice(person, 1).to_pylist()[0]
        return ", ".join(f"{name} {row[name] if row[name] not in (None, '') else 'missing'}" for name in columns)

    def row_text(self, row: int, columns: tuple[str, ...]) -> str:
        """Return values of a published row as text."""
        values = self.published.table.slice(row, 1).to_pylist()[0]
        return ", ".join(f"{name} {'missing' if values[name] is None else values[name]}" for name in columns)


def first_rows(codes: Codes, codes_sought: Codes) -> Codes:
    """Return for each code the first row that has it, −1 for −1."""
    distinct_codes, first = np.unique(codes, return_index=True)
    places = np.minimum(np.searchsorted(distinct_codes, codes_sought), len(distinct_codes) - 1)
    return np.where(codes_sought >= 0, first[places], NONE)


def _everyone(knowledge: Knowledge, control: pa.Table | None) -> tuple[pa.Table, int]:
    """Return samples of the people in the data and of the control group in one table, and the size of the first."""
    people = sampled(knowledge.people, knowledge.trials, knowledge.seed)
    outside = None if control is None else sampled(control, knowledge.trials, knowledge.seed)
    return together(people, outside), people.num_rows
