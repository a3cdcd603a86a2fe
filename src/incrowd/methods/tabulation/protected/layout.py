"""Layout: which columns each table of a release has, at which levels, and what these columns must be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from incrowd.core.cells import Cells
from incrowd.core.domain import Numbers, Type
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Outside, Schema
from incrowd.core.unit import ExtraRowsRule, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame
from incrowd.methods.tabulation.protected.output import TABLE

MOST_TABLES = 20


@dataclass(frozen=True)
class TableLayout:
    """One table of several: its columns, and levels where they are not those of all tables."""

    columns: tuple[str, ...]
    levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= len(self.columns) <= 3 or len(set(self.columns)) < len(self.columns):
            raise InvalidParameter("a protected table has one to three columns beside its numbers, each named once.")
        if extra := [name for name in self.levels if name not in self.columns]:
            raise InvalidParameter(f"a level is given for {extra[0]!r}, which is not a column of the table.")

    def recodings(self, schema: Schema) -> tuple[Recoding, ...]:
        """Return the columns at their levels."""
        return Cells.of(schema, self.levels, self.columns).recodings


def layouts_of(
    columns: tuple[str, ...], tables: Sequence[TableLayout], levels: Mapping[str, int]
) -> tuple[TableLayout, ...]:
    """Return the tables of a release: those of a list, or one; levels of all tables come with each that has them."""
    if bool(columns) == bool(tables):
        raise InvalidParameter("name the columns of one table under columns, or several tables under tables: not both.")
    if len(tables) > MOST_TABLES:
        raise InvalidParameter(f"at most {MOST_TABLES} tables are protected together.")
    parts = tables or (TableLayout(columns),)
    if extra := [name for name in levels if not any(name in part.columns for part in parts)]:
        raise InvalidParameter(f"a level is given for {extra[0]!r}, which is not a column of the table.")
    layouts = tuple(
        TableLayout(
            part.columns, {**{name: level for name, level in levels.items() if name in part.columns}, **part.levels}
        )
        for part in parts
    )
    twice = [one for place, one in enumerate(layouts) if one in layouts[:place]]
    if twice:
        raise InvalidParameter(f"the table over {', '.join(twice[0].columns)} is listed twice.")
    if len(layouts) > 1 and any(TABLE in layout.columns for layout in layouts):
        raise InvalidParameter(f"a column {TABLE!r} numbers the tables of a release: give yours another name.")
    return layouts


def finest_levels(schema: Schema, layouts: Iterable[TableLayout]) -> dict[str, int]:
    """Return the finest level of each column over all tables."""
    levels: dict[str, int] = {}
    for layout in layouts:
        for recoding in layout.recodings(schema):
            name = recoding.column.name
            levels[name] = min(levels.get(name, recoding.level), recoding.level)
    return levels


def frame_of(schema: Schema, layout: TableLayout, total: str) -> TableFrame:
    """Return the cells of a table."""
    recodings = layout.recodings(schema)
    for recoding in recodings:
        if recoding.column.pseudonymous and recoding.level == 0:
            raise InvalidParameter(
                f"{recoding.column.name!r} has a pseudonym: level 0 would release the name behind it."
            )
    return TableFrame(tuple(TableAxis.of(recoding, total)[0] for recoding in recodings))


def check_given(schema: Schema, layout: TableLayout) -> None:
    """Refuse columns of a given table whose labels are not text."""
    for name in layout.columns:
        if schema[name].type is not Type.TEXT:
            raise InvalidParameter(f"the labels of a given table are text: declare {name!r} as text.")


def check_value(schema: Schema, name: str) -> tuple[Fraction, Fraction] | None:
    """Return the bounds of a value that may be negative, None where it may not; refuse what cannot be summed."""
    column = schema[name]
    low, high = column.domain.bounds if isinstance(column.domain, Numbers) else (None, None)
    if low is None or (low < 0 and high is None):
        raise InvalidParameter(
            f"{name!r} is summed: declare it as a number with bounds from 0 on or, if it can be negative, with both "
            "bounds: readers are taken to know between which numbers a contribution lies."
        )
    if column.rule_outside is Outside.OTHER or column not in schema.released:
        raise InvalidParameter(
            f"{name!r} is summed: it is no identifier, and values outside its bounds go to the ends or drop."
        )
    return (low, max(Fraction(0), Fraction(high or 0))) if low < 0 else None


def check_weight(schema: Schema, name: str) -> None:
    """Refuse weights that are not numbers."""
    if schema[name].type not in (Type.INTEGER, Type.DECIMAL):
        raise InvalidParameter(f"{name!r} holds survey weights, which are numbers: let type be decimal.")


def check_records(unit: Unit, *, plain: bool) -> None:
    """Refuse cell keys for anything but plain counts of rows that are named once each."""
    if not plain:
        raise InvalidParameter("cell keys are for counts of rows: leave value, weight, holding and given out.")
    if unit.column is None or unit.more is not ExtraRowsRule.REFUSE or unit.max_rows > 1:
        raise InvalidParameter(
            "every record has one key, in every table: write unit: {column: …, more: refuse} with the column that "
            "names records, each once."
        )
