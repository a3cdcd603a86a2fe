"""The draft of a policy: which columns are released, at which levels, and for what."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from incrowd.core.domain import Dates, Numbers, Text
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Role
from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.workflows.policy.columns import column_of
from incrowd.workflows.policy.sections import ColumnSection
from incrowd.workflows.profile.column_names import KNOWN, spoken
from incrowd.workflows.profile.draft_columns import DraftColumn, drafted_column, public_column
from incrowd.workflows.profile.draft_text import (
    BUDGET,
    TAILS,
    DraftGoal,
    DraftRequest,
    Origin,
    column_text,
    delta_text,
    head_text,
    holding_text,
    mapping_text,
    smallest_text,
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
_TABLE_LINES, _TABLE_CELLS, _TABLE_SIDES = 200, 20_000, 2
_MODEL_CLASSES = 40
_IMPORTANCE = 3


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


def highest_levels(columns: Sequence[Column], keep: Sequence[str]) -> dict[str, int]:
    """Return for each column that must stay the coarsest level that may be chosen: the one below `*`."""
    return {column.name: max(_finest(column), column.hierarchy.height - 1) for column in columns if column.name in keep}


def class_levels(columns: Sequence[Column]) -> dict[str, int]:
    """Return for each column the finest level whose classes are known and at most forty; `*` where there is none."""
    levels = {}
    for column in columns:
        fit = (level for level in range(column.hierarchy.height) if 1 < _classes(column, level) <= _MODEL_CLASSES)
        levels[column.name] = next(fit, column.hierarchy.height)
    return {name: level for name, level in levels.items() if level}


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


def table_levels(columns: Sequence[Column], keep: Sequence[str]) -> dict[str, int]:
    """Return two columns of a table with totals, or up to three that must stay, at the finest levels that fit.

    Columns with declared categories come before numbers and days, each in the order of the file.

    >>> from incrowd.core.domain import Categories, Type
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> age = Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 99)))
    >>> sex, area = (Column(name, hierarchy=Flat(Categories(("a", "b")))) for name in ("sex", "area"))
    >>> table_levels([age, sex, area], ()), table_levels([age, sex, area], ("age",))
    ({'sex': 0, 'area': 0}, {'age': 0, 'sex': 0})
    """
    sides, chosen, cells = max(_TABLE_SIDES, min(_DIMENSIONS, len(keep))), dict[str, int](), 1
    for column in sorted(columns, key=lambda column: (column.name not in keep, _measured(column))):
        levels = range(column.hierarchy.height)
        level = next((level for level in levels if 1 < _classes(column, level) <= _TABLE_LINES), None)
        if level is not None and cells * _classes(column, level) <= _TABLE_CELLS and len(chosen) < sides:
            chosen[column.name] = level
            cells *= _classes(column, level)
    return chosen


def _measured(column: Column) -> bool:
    return isinstance(column.domain, Numbers | Dates)


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
_LEAST_COLUMNS = 1
_ROLES = ("sensitive", "quasi", "plain")
_BY_FORM = (DraftGoal.CLASSIC, DraftGoal.TABLE)
_EVERY_COLUMN = (DraftGoal.COUNTS, DraftGoal.QUERIES, *_BY_FORM)


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
        return tuple(column for column in self.columns if column.section["role"] == "withheld")

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The released columns of which neither bounds nor values are declared: a model has one class for them, `*`."""
        return _undeclared(self.columns)


def draft(profile: TableProfile, origin: Origin, wish: DraftRequest = DraftRequest()) -> Draft:  # noqa: B008 - frozen
    """Draft a policy that releases something useful: what comes from the data is not released, or marked.

    Nothing in it depends on the number of rows or their cells; a classic draft uses the data.
    """
    names = {column.name for column in profile.columns}
    purposes = (("give a public source for", wish.public), ("keep", wish.keep), ("confirm", wish.confirmed))
    for purpose, listed_names in purposes:
        for name in listed_names:
            if name not in names:
                raise InvalidParameter(f"there is no column {name!r} to {purpose}.")
    person = person_column(profile, wish.unit)
    doubtful = {question.name for question in person_questions(profile, wish.unit)}
    columns = tuple(
        _bounded(_column_of(column, wish, person)) if column.name not in doubtful else _in_doubt(column)
        for column in profile.columns
    )
    columns = columns if wish.goal in _EVERY_COLUMN else _chosen(columns, wish.keep)
    for column in columns:
        if column.name in wish.keep and not column.released:
            raise InvalidParameter(f"{column.name!r} cannot be kept as it is: {_way_out(column)}")
    head = head_text(origin, wish, person)
    tail, released = release_text(columns, replace(wish, unit=None if person is None else person.name))
    return Draft(head + "".join(map(column_text, columns)) + tail, columns, released, person)


def origin_of(profile: TableProfile, address: str, keys: Mapping[str, Any]) -> Origin:
    """Return the origin of a draft: how the rows are read, without those that are sums of others."""
    return Origin(address, dict(keys) | ({"totals": list(profile.totals)} if profile.totals else {}))


def _column_of(column: ColumnProfile, wish: DraftRequest, person: PersonColumn | None) -> DraftColumn:
    """Return the column of a draft, after its suggested cleaning; that is marked unless it is confirmed."""
    if column.clean is None or (person is not None and column.name == person.name):
        return _plain_column(column, wish, person)
    clean = clean_section(column.clean.cleaning)
    confirmed = {"confirmed": _HOLDER} if column.name in wish.confirmed else {}
    return _plain_column(column.cleaned, wish, person).cleaned(clean | confirmed)


def _bounded(column: DraftColumn) -> DraftColumn:
    """Return a column whose section says what becomes of values beyond its bounds; numbers may have no label."""
    decided = column.released and "bounds" in column.section
    rule = "ends" if column.section.get("type") == "date" else "bound"
    return replace(column, section=column.section | {"outside": rule}) if decided else column


def _plain_column(column: ColumnProfile, wish: DraftRequest, person: PersonColumn | None) -> DraftColumn:
    period = None if wish.period is None else wish.period.bounds
    if person is not None and column.name == person.name:
        return DraftColumn(column.name, {"role": "identifier"}, "the person ID column")
    source = wish.public.get(column.name)
    if wish.goal in _BY_FORM:
        drafted = drafted_column(column, period)
        return drafted if source is None else drafted.vouched(source)
    drafted = public_column(column, period)
    if wish.goal in _EVERY_COLUMN and source is None:
        return drafted
    bare = drafted.released and "hierarchy" not in drafted.section and drafted.public is None
    if source is None:
        return drafted_column(column, period) if bare else drafted
    return drafted_column(column, period).vouched(source) if drafted.released else drafted


def _in_doubt(column: ColumnProfile) -> DraftColumn:
    why = "its values repeat like ids of people; if each is one person, draft again with --unit; else let role be quasi"
    return DraftColumn(column.name, {"role": "withheld", "type": str(column.type)}, why)


def _way_out(column: DraftColumn) -> str:
    """Return why a column that must stay is not released, and what to do."""
    if column.section["role"] == "identifier":
        return "it identifies people. Leave it out of --keep."
    source = f'--public "{column.name}=WHERE IT IS PUBLISHED"'
    if column.unconfirmed:
        return f"its cleaning comes from the data. Check it, and confirm it with --confirm {shlex.quote(column.name)}."
    if len(column.section) > 1:
        return f"its values come from the data. Name a public list with {source}, or draft --for classic."
    return "it is free text, or its values are not all of one kind. Correct them first, or give it a hierarchy."


def _chosen(columns: Sequence[DraftColumn], keep: Sequence[str] = ()) -> tuple[DraftColumn, ...]:
    """Release only columns with public values, if enough remain, and at most eight columns; those to keep first."""
    sound = [column for column in columns if column.released and not column.marked]
    free = sound if len(sound) >= _LEAST_COLUMNS else [column for column in columns if column.released]
    chosen = sorted(free, key=lambda column: (column.name not in keep, *_precedence(column)))[:_MOST_COLUMNS]
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


def release_text(
    columns: Sequence[DraftColumn], wish: DraftRequest, folder: Path = Path()
) -> tuple[str, tuple[str, ...]]:
    """Return the text after the columns of a policy, and the released columns; `folder` has their files.

    Columns to keep come first, and no level of theirs is `*`.  δ is far below one over the public population.  A table
    with totals counts every row, those of one person in a cell as one contribution.

    >>> sex = DraftColumn("sex", {"role": "quasi", "categories": ["F", "M"]}, "declared")
    >>> print(release_text([sex], DraftRequest(DraftGoal.COUNTS))[0].splitlines()[2])
      columns: [sex]
    """
    goal, keep = wish.goal, wish.keep
    released = (column for column in columns if column.released)
    ranked = sorted(released, key=lambda column: (column.name not in keep, *_precedence(column)))
    free = [column_of(column.name, ColumnSection(**column.section), folder) for column in ranked]
    if not free:
        raise InvalidParameter("every column is an identifier or free text: none can be released.")
    names = tuple(column.name for column in columns if column.released)
    filled = {"budget": budget_text(goal, wish.population), "delta": delta_text(wish.population)}
    filled |= {"smallest": smallest_text(wish.readers)} | holding_text(wish.unit)
    if goal is DraftGoal.MICRODATA:
        filled |= _chosen_levels(free, keep)
    if goal is DraftGoal.SYNTHETIC:
        filled["levels"] = wrapped(mapping_text(class_levels(free)), 4) + _open_text(_undeclared(columns))
    if goal in (DraftGoal.COUNTS, DraftGoal.TABLE):
        order = {column.name: place for place, column in enumerate(columns)}
        listed_columns = sorted(free, key=lambda column: order[column.name])
        bins = bin_levels(free) if goal is DraftGoal.COUNTS else table_levels(listed_columns, keep) or bin_levels(free)
        absent = [name for name in keep if name not in bins]
        if absent and absent[0] not in {column.name for column in ranked}:
            raise InvalidParameter(f"{absent[0]!r} is not released now: decide on its values first.")
        if absent:
            raise InvalidParameter(
                f"{absent[0]!r} has no place in a table of counts: it takes {_DIMENSIONS} columns with at most "
                f"{_BINS_EACH} declared classes each. Declare its values or bounds, or keep fewer columns."
            )
        names, filled["levels"] = tuple(bins), mapping_text(bins)
        filled["columns"] = "[" + ", ".join(word(name) for name in bins) + "]"
    if goal is DraftGoal.CLASSIC:
        quasi = [column for column in free if column.role is Role.QUASI]
        stay = highest_levels(quasi, keep)
        highest = f"\n  highest: {wrapped(mapping_text(stay), 4)}   # these must stay: none becomes *" if stay else ""
        filled["lowest"] = wrapped(mapping_text(open_levels(quasi)), 4) + highest
        others = [column for column in free if column not in quasi]
        filled["levels"] = wrapped(mapping_text({c.name: level for c in others if (level := _finest(c))}), 4)
    return TAILS[goal].format(**filled), names


def _undeclared(columns: Sequence[DraftColumn]) -> tuple[str, ...]:
    return tuple(
        column.name
        for column in columns
        if column.released and not {"bounds", "categories"} & column.section.keys()
        if {"intervals", "prefix"} & column.section.get("hierarchy", {}).keys()
    )


def _open_text(names: Sequence[str]) -> str:
    """Return comments that say how columns without declared bounds or values get them."""
    if not names:
        return ""
    return (
        f"\n  # * in every row: {', '.join(map(word, names))}. Write bounds: [LOWEST, HIGHEST] of numbers, or"
        "\n  # categories, from public knowledge, and a finer level; or draft again with --public COLUMN=WHERE."
    )


def budget_text(goal: DraftGoal, population: int | None) -> str:
    """Return the line of the budget: more than the first release spends."""
    delta = "0" if goal is DraftGoal.COUNTS else delta_text(population, BUDGET)
    spends = "" if goal is DraftGoal.QUERIES else "; this release spends about half of it"
    return f"budget: {{epsilon: {BUDGET}, delta: {delta}}}   # for these people, permanently{spends}\n"


def _chosen_levels(columns: Sequence[Column], keep: Sequence[str]) -> dict[str, str]:
    """Return the levels among which a private choice is made, with the importance of columns that must stay."""
    lowest, highest = lowest_levels(columns), highest_levels(columns, keep)
    lowest |= {name: min(lowest.get(name, 0), level) for name, level in highest.items() if name in lowest}
    lines = ""
    if highest:
        importance = dict.fromkeys(highest, _IMPORTANCE)
        lines = f"\n  highest: {wrapped(mapping_text(highest), 4)}   # these must stay: none becomes *"
        lines += f"\n  importance: {wrapped(mapping_text(importance), 4)}"
    return {"levels": wrapped(mapping_text(lowest), 4), "highest": lines}


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
