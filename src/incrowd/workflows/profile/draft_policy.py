"""The draft of a policy: which columns leave, what is held back, and what it is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from incrowd.core.schema import Role
from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.workflows.policy.columns import column_of
from incrowd.workflows.policy.sections import ColumnSection
from incrowd.workflows.profile.column_names import KNOWN, spoken
from incrowd.workflows.profile.draft_columns import DraftColumn, drafted_column, public_column
from incrowd.workflows.profile.draft_levels import bin_levels, lowest_levels, open_levels
from incrowd.workflows.profile.draft_request import DraftGoal, DraftRequest, Origin
from incrowd.workflows.profile.draft_text import TAILS, column_text, head_text, mapping_text, word, wrapped
from incrowd.workflows.profile.person_column import PersonColumn, person_column
from incrowd.workflows.profile.profile import ColumnProfile, TableProfile

_MOST_COLUMNS = 8
_LEAST_COLUMNS = 2
_ROLES = ("sensitive", "quasi", "plain")


@dataclass(frozen=True)
class Draft:
    """A policy that can be read and run as it is, and which of its columns leave."""

    text: str
    columns: tuple[DraftColumn, ...]
    released: tuple[str, ...]
    person: PersonColumn | None

    @property
    def held_back(self) -> tuple[DraftColumn, ...]:
        """The columns that could leave, and why they do not."""
        return tuple(column for column in self.columns if not column.released and len(column.section) > 1)


def draft(profile: TableProfile, origin: Origin, wish: DraftRequest = DraftRequest()) -> Draft:  # noqa: B008 - frozen
    """Draft a policy that releases something useful at once: what only rows could tell is held back, or marked.

    Nothing in it depends on how many rows there are or how they fall into cells; a classic draft is read off the rows.
    """
    unknown = [name for name in wish.public if name not in {column.name for column in profile.columns}]
    if unknown:
        raise InvalidParameter(f"a public source was given for {unknown[0]!r}, and there is no such column.")
    person = person_column(profile)
    columns = tuple(_column_of(column, wish, person) for column in profile.columns)
    columns = _chosen(columns) if wish.goal is DraftGoal.MICRODATA else columns
    head = head_text(origin, wish, person)
    tail, released = release_text(columns, wish.goal)
    return Draft(head + "".join(map(column_text, columns)) + tail, columns, released, person)


def _column_of(column: ColumnProfile, wish: DraftRequest, person: PersonColumn | None) -> DraftColumn:
    period = None if wish.period is None else wish.period.bounds
    if person is not None and column.name == person.name:
        return DraftColumn(column.name, {"role": "identifier"}, "it tells people apart")
    source = wish.public.get(column.name)
    if wish.goal is DraftGoal.CLASSIC:
        found = drafted_column(column, period)
        return found if source is None else found.vouched(source)
    found = public_column(column, period)
    if wish.goal is not DraftGoal.MICRODATA and source is None:
        return found
    bare = found.released and "hierarchy" not in found.section and found.known is None
    if source is None:
        return drafted_column(column, period) if bare else found
    return drafted_column(column, period).vouched(source) if found.released else found


def _chosen(columns: Sequence[DraftColumn]) -> tuple[DraftColumn, ...]:
    """Hold back what only the rows told, if enough is left, and of very many columns those that tell least."""
    sound = [column for column in columns if column.released and not column.marked]
    free = sound if len(sound) >= _LEAST_COLUMNS else [column for column in columns if column.released]
    kept = sorted(free, key=_precedence)[:_MOST_COLUMNS]
    few = f"among more than {_MOST_COLUMNS} columns hardly anybody has company; write role: quasi to release it"
    rows = 'its values were read off the rows; with a public list write role: quasi, and public: "that list"'
    return tuple(
        column if column in kept or not column.released else column.held_back(rows if column not in free else few)
        for column in columns
    )


def _precedence(column: DraftColumn) -> tuple[int, bool, bool]:
    return _ROLES.index(column.section["role"]), not spoken(column.name, KNOWN), column.known is None


def release_text(columns: Sequence[DraftColumn], goal: DraftGoal, folder: Path = Path()) -> tuple[str, tuple[str, ...]]:
    """Return everything behind the columns of a policy for a goal, and which of them leave; `folder` has their files.

    >>> sex = DraftColumn("sex", {"role": "quasi", "categories": ["F", "M"]}, "declared")
    >>> print(release_text([sex], DraftGoal.COUNTS)[0].splitlines()[2])
      columns: [sex]
    """
    ranked = sorted((column for column in columns if column.released), key=_precedence)
    free = [column_of(column.name, ColumnSection(**column.section), folder) for column in ranked]
    if not free:
        raise InvalidParameter("every column is an identifier or free text: there is nothing to release.")
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
    """Write a draft where nothing is yet."""
    failure = "a file of this name exists, and nothing is overwritten"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
            return
    except FileExistsError:
        pass
    except OSError as error:
        failure = error.strerror or "the operating system refused"
    raise OutputUnavailable(f"{path} was not written: {failure}. Choose another name.")
