"""The draft of a policy: which columns are released, at which levels, and for what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from incrowd.core.domain import Dates, Numbers, Text
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Role
from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.workflows.policy.columns import column_of
from incrowd.workflows.policy.sections import ColumnSection
from incrowd.workflows.profile.column_names import KNOWN, spoken
from incrowd.workflows.profile.draft_columns import DraftColumn, drafted_column, public_column
from incrowd.workflows.profile.draft_text import (
    TAILS,
    DraftGoal,
    DraftRequest,
    Origin,
    column_text,
    head_text,
    mapping_text,
    word,
    wrapped,
)
from incrowd.workflows.profile.profile import (
    ColumnProfile,
    PersonColumn,
    TableProfile,
    person_column,
    person_questions,
)
from incrowd.workflows.profile.suggestions import clean_section

_CANDIDATES = 400
_MOST_BINS, _BINS_EACH, _DIMENSIONS = 500, 30, 3


def lowest_levels(columns: Sequence[Column]) -> dict[str, int]:
    """Return for each column the finest level that may be chosen: raised until few combinations remain.

    Only the declarations decide.  No free text and no exact number is released; every column has two levels.
    """
    lowest = {column.name: _finest(column) for column in columns}
    rooms = {column.name: column.hierarchy.height for column in columns}
    while math.prod(rooms[name] - level + 1 for name, level in lowest.items()) > _CANDIDATES:
        widest = max(
            columns,
            key=lambda column: (rooms[column.name] - lowest[column.name], _classes(column, lowest[column.name])),
        )
        if rooms[widest.name] - lowest[widest.name] <= 1:
            break
        lowest[widest.name] += 1
    return {name: level for name, level in lowest.items() if level}


def bin_levels(columns: Sequence[Column]) -> dict[str, int]:
    """Return up to three columns with levels at which their classes are known and few, in the order of the columns."""
    chosen: dict[str, int] = {}
    bins = 1
    for column in columns:
        levels = range(column.hierarchy.height)
        few = next((level for level in levels if 1 < _classes(column, level) <= _BINS_EACH), None)
        if few is not None and bins * _classes(column, few) <= _MOST_BINS and len(chosen) < _DIMENSIONS:
            chosen[column.name] = few
            bins *= _classes(column, few)
    if not chosen:
        raise InvalidParameter(
            "counts need a column with publicly known values, and there is none: name the source of a list with "
            "--public COLUMN=SOURCE."
        )
    return chosen


def open_levels(columns: Sequence[Column]) -> dict[str, int]:
    """Return level 1 for each column whose values are any text: no free text is released.

    >>> from incrowd.core.hierarchy.text import Prefix
    >>> open_levels([Column("zip", hierarchy=Prefix(Text(), (3, 2))), Column("sex")])
    {'zip': 1, 'sex': 1}
    """
    return {column.name: 1 for column in columns if isinstance(column.domain, Text)}


def _finest(column: Column) -> int:
    """Return the finest level that is not free text and not an exact number or day."""
    fine = isinstance(column.domain, Text | Numbers | Dates) and column.hierarchy.depth > 0
    return 1 if fine or isinstance(column.domain, Text) else 0


def _classes(column: Column, level: int) -> int:
    """Return how many classes a level has, 0 if that is not declared."""
    members = Recoding(column, level).classes
    return 0 if members is None else len(members.marks)


_HOLDER = "by the data holder"
_MOST_COLUMNS = 8
_LEAST_COLUMNS = 2
_ROLES = ("sensitive", "quasi", "plain")


@dataclass(frozen=True)
class Draft:
    """A policy that can be run unchanged, and its released columns."""

    text: str
    columns: tuple[DraftColumn, ...]
    released: tuple[str, ...]
    person: PersonColumn | None

    @property
    def held_back(self) -> tuple[DraftColumn, ...]:
        """The columns that could be released, and why they are not."""
        return tuple(column for column in self.columns if not column.released and len(column.section) > 1)


def draft(profile: TableProfile, origin: Origin, wish: DraftRequest = DraftRequest()) -> Draft:  # noqa: B008 - frozen
    """Draft a policy that releases something useful: what comes from the data is not released, or marked.

    Nothing in it depends on the number of rows or their cells; a classic draft uses the data.
    """
    unknown = [
        name for name in (*wish.public, *wish.confirmed) if name not in {column.name for column in profile.columns}
    ]
    if unknown:
        raise InvalidParameter(f"there is no column {unknown[0]!r} to give a public source for, or to confirm.")
    person = person_column(profile, wish.unit)
    doubtful = {question.name for question in person_questions(profile, wish.unit)}
    columns = tuple(
        _bounded(_column_of(column, wish, person)) if column.name not in doubtful else _in_doubt(column)
        for column in profile.columns
    )
    columns = _chosen(columns) if wish.goal is DraftGoal.MICRODATA else columns
    head = head_text(origin, wish, person)
    tail, released = release_text(columns, wish.goal)
    return Draft(head + "".join(map(column_text, columns)) + tail, columns, released, person)


def _column_of(column: ColumnProfile, wish: DraftRequest, person: PersonColumn | None) -> DraftColumn:
    """Return the column of a draft, after its suggested cleaning; that is marked unless it is confirmed."""
    if column.clean is None or (person is not None and column.name == person.name):
        return _plain_column(column, wish, person)
    clean = clean_section(column.clean.cleaning)
    confirmed = {"confirmed": _HOLDER} if column.name in wish.confirmed else {}
    return _plain_column(column.cleaned, wish, person).cleaned(clean | confirmed)


def _bounded(column: DraftColumn) -> DraftColumn:
    """Return a column whose section says what becomes of values beyond its bounds."""
    decided = column.released and "bounds" in column.section
    return replace(column, section=column.section | {"outside": "ends"}) if decided else column


def _plain_column(column: ColumnProfile, wish: DraftRequest, person: PersonColumn | None) -> DraftColumn:
    period = None if wish.period is None else wish.period.bounds
    if person is not None and column.name == person.name:
        return DraftColumn(column.name, {"role": "identifier"}, "the person ID column")
    source = wish.public.get(column.name)
    if wish.goal is DraftGoal.CLASSIC:
        drafted = drafted_column(column, period)
        return drafted if source is None else drafted.vouched(source)
    drafted = public_column(column, period)
    if wish.goal is not DraftGoal.MICRODATA and source is None:
        return drafted
    bare = drafted.released and "hierarchy" not in drafted.section and drafted.public is None
    if source is None:
        return drafted_column(column, period) if bare else drafted
    return drafted_column(column, period).vouched(source) if drafted.released else drafted


def _in_doubt(column: ColumnProfile) -> DraftColumn:
    why = "its values repeat like ids of people; if each is one person, draft again with --unit; else let role be quasi"
    return DraftColumn(column.name, {"role": "withheld", "type": str(column.type)}, why)


def _chosen(columns: Sequence[DraftColumn]) -> tuple[DraftColumn, ...]:
    """Release only columns with public values, if enough remain, and at most eight columns."""
    sound = [column for column in columns if column.released and not column.marked]
    free = sound if len(sound) >= _LEAST_COLUMNS else [column for column in columns if column.released]
    chosen = sorted(free, key=_precedence)[:_MOST_COLUMNS]
    few = f"with more than {_MOST_COLUMNS} columns nearly all rows are unique; write role: quasi to release it"
    clean = "its cleaning comes from the data: check it, and draft again with --confirm"
    rows = 'its values come from the data; with a public list write role: quasi, and public: "that list"'
    return tuple(
        column
        if column in chosen or not column.released
        else column.held_back(few if column in free else clean if column.unconfirmed else rows)
        for column in columns
    )


def _precedence(column: DraftColumn) -> tuple[int, bool, bool]:
    return _ROLES.index(column.section["role"]), not spoken(column.name, KNOWN), column.public is None


def release_text(columns: Sequence[DraftColumn], goal: DraftGoal, folder: Path = Path()) -> tuple[str, tuple[str, ...]]:
    """Return the text after the columns of a policy, and the released columns; `folder` has their files.

    >>> sex = DraftColumn("sex", {"role": "quasi", "categories": ["F", "M"]}, "declared")
    >>> print(release_text([sex], DraftGoal.COUNTS)[0].splitlines()[2])
      columns: [sex]
    """
    ranked = sorted((column for column in columns if column.released), key=_precedence)
    free = [column_of(column.name, ColumnSection(**column.section), folder) for column in ranked]
    if not free:
        raise InvalidParameter("every column is an identifier or free text: none can be released.")
    names = tuple(column.name for column in columns if column.released)
    filled: dict[str, str] = {}
    if goal is DraftGoal.MICRODATA:
        filled["levels"] = wrapped(mapping_text(lowest_levels(free)), 4)
    if goal is DraftGoal.COUNTS:
        bins = bin_levels(free)
        names, filled["levels"] = tuple(bins), mapping_text(bins)
        filled["columns"] = "[" + ", ".join(word(name) for name in bins) + "]"
    if goal is DraftGoal.CLASSIC:
        quasi = [column for column in free if column.role is Role.QUASI]
        filled["lowest"] = wrapped(mapping_text(open_levels(quasi)), 4)
        filled["levels"] = wrapped(mapping_text(open_levels([c for c in free if c not in quasi])), 4)
    return TAILS[goal].format(**filled), names


def write_draft(text: str, path: Path) -> None:
    """Write a draft to a new file."""
    failure = "a file of this name exists and is not overwritten"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
            return
    except FileExistsError:
        pass
    except OSError as error:
        failure = error.strerror or "the operating system refused"
    raise OutputUnavailable(f"{path} was not written: {failure}. Choose another name.")
