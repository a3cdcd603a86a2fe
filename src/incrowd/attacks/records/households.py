"""Household linkage: what is known of all members of a household finds it, where nobody alone would be found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import NONE, CandidateSearch, Codes, codes_of, together
from incrowd.attacks.cover import texts
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.masked import masked_columns
from incrowd.attacks.trial import Trial
from incrowd.errors import InvalidParameter

_OUTSIDE = "\N{SYMBOL FOR UNIT SEPARATOR}outside"
Members = Mapping[str, Sequence[int]]


def household_linkage(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Find the one published household whose members can be those of a known one, and read the rest of their rows.

    Knows: some columns of every member of a household, and which published rows are one household, by its pseudonym
    (`--person` names the column in both tables).  Success: exactly one published household of that size has a
    different row for each member that fits; the rows in it that fit the person agree in everything else, and that is
    true.  Baseline: the commonest of the other values.  Masked columns are not used to match, if there are others.

    Meaningless if households of one person are most: then it is linkage; and if the control group has no households.

    Source: Ravindra et al. 2017 and sdcMicro (household risk); Sweeney 1997 for linkage.
    """
    name = knowledge.person
    if name is None or any(name not in table.column_names for table in (published.table, knowledge.people)):
        raise InvalidParameter(
            "household-linkage needs the column of households, in the data and as a pseudonym in the published table: "
            "name it with --person."
        )
    trial = _trial(published, knowledge, control, name)
    search = _HouseholdSearch(trial, name)
    rest = codes_of(published, trial.rest) if trial.rest else np.arange(published.table.num_rows)
    rows = np.full(trial.everyone.num_rows, NONE)
    for members in search.ours.values():
        household = search.match(members)
        for person in members if household is not None else ():
            fitting = [row for row in search.theirs[household or ""] if row in search.fitting(person)]
            rows[person] = fitting[0] if len({int(rest[row]) for row in fitting}) == 1 else NONE
    hits = trial.fits(rows) if trial.rest else trial.fits(rows, trial.known_columns)
    baseline = np.zeros(len(hits), bool)
    if trial.rest:
        baseline = trial.fits(np.full(len(hits), trial.commonest_row(*trial.rest)))

    def steps(person: int) -> list[str]:
        size = len(search.ours[search.names[person]])
        return [f"Of all published households, only one can be this person's, by all {size} members."]

    story = trial.story(hits, steps, trial.rest or trial.known_columns)
    return trial.finding("household-linkage", Risk.LINKABILITY, hits, baseline, story)


def _trial(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None, name: str) -> Trial:
    """Return at most `trials` people in whole households, of the data and of the control group."""
    plain = set(knowledge.known_columns) - {name}
    plain -= set(masked_columns(published, knowledge.people, [*plain])) if published.masks else set()
    columns = tuple(column for column in knowledge.known_columns if column in (plain or {*knowledge.known_columns}))
    sides = [_whole(knowledge.people, knowledge, name, "")]
    sides += [] if control is None else [_whole(control, knowledge, name, _OUTSIDE)]
    if not sides[0].num_rows or not published.table.num_rows:
        raise InvalidParameter("nobody can be attacked: the data and the published table both need rows.")
    everyone = together(sides[0], sides[1] if control is not None else None)
    return Trial(published, replace(knowledge, known_columns=columns), everyone, sides[0].num_rows)


def _whole(table: pa.Table, knowledge: Knowledge, name: str, mark: str) -> pa.Table:
    """Return the people of random households, at most `trials`, with households marked apart from those of others."""
    if name not in table.column_names:
        raise InvalidParameter(f"the control group has no column {name!r}: it needs the households of its people.")
    households = texts(table.column(name))
    distinct, codes = np.unique(households, return_inverse=True)
    rank = knowledge.chance.permutation(len(distinct))[codes]
    order = np.argsort(rank, kind="stable")
    most = max(1, int(np.searchsorted(np.cumsum(np.bincount(rank)), knowledge.trials, side="right")))
    chosen = np.sort(order[rank[order] < most])
    marked = pa.array([f"{mark}{household}" for household in households[chosen].tolist()])
    return table.take(pa.array(chosen)).set_column(table.column_names.index(name), name, marked)


class _HouseholdSearch:
    """Households on both sides, and the published rows that fit each person."""

    def __init__(self, trial: Trial, name: str) -> None:
        self.trial = trial
        self.names = texts(trial.everyone.column(name)).tolist()
        self.ours = _grouped(self.names)
        self.published = texts(trial.published.table.column(name)).tolist()
        self.theirs = _grouped(self.published)

    @cached_property
    def classes(self) -> dict[int, list[int]]:
        """The classes of published rows that fit each target."""
        fitting: dict[int, list[int]] = defaultdict(list)
        for owner, classes in self.trial.search.blocks():
            for target, place in zip(owner.tolist(), classes.tolist(), strict=True):
                fitting[target].append(place)
        return fitting

    @cached_property
    def rows(self) -> list[Codes]:
        """The published rows of each class."""
        search: CandidateSearch = self.trial.search
        order = np.argsort(search.class_of, kind="stable")
        return np.split(order, np.searchsorted(search.class_of[order], np.arange(1, len(search.classes))))

    def fitting(self, person: int) -> set[int]:
        """Return the published rows that fit a person."""
        classes = self.classes.get(int(self.trial.search.target_of[person]), [])
        return {int(row) for place in classes for row in self.rows[place]}

    def match(self, members: Sequence[int]) -> str | None:
        """Return the one published household that can be these people, or None."""
        fitting = [self.fitting(person) for person in members]
        possible = set.intersection(*({self.published[row] for row in rows} for rows in fitting))
        matches = [
            household
            for household in possible
            if len(self.theirs[household]) == len(members) and _assigned(fitting, self.theirs[household])
        ]
        return matches[0] if len(matches) == 1 else None


def _grouped(names: Sequence[str]) -> Members:
    members: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        members[name].append(place)
    return members


def _assigned(fitting: Sequence[set[int]], rows: Sequence[int]) -> bool:
    """Whether each member can have a row of their own."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    edges: NDArray[np.bool_] = np.array([[row in own for row in rows] for own in fitting])
    return bool((maximum_bipartite_matching(csr_matrix(edges), perm_type="column") >= 0).all())
