"""Keys of linked tables: rows that name nobody, or two, counted for the data holder alone before anything is charged.

Nothing is refused for what is counted here, as it is about several people: a release may not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.linked import ChildTable, LinkedSchema
from incrowd.core.subjects import alike_form
from incrowd.core.table import Engine, Rows
from incrowd.core.unit import ExtraRowsRule
from incrowd.core.words import counted
from incrowd.methods.synthesis.linked.rows import KeyTexts, LevelRows, Places, parents_of

_NOBODY = -1


def key_notes(schema: LinkedSchema, tables: Sequence[Rows], engine: Engine) -> tuple[str, ...]:
    """Return what is left out, and what leads to two rows, in words; nothing where every key names one row."""
    column, notes = schema[schema.unit.column or ""], []
    names = engine.learn(tables[0], [column.name], partial(KeyTexts, (column,))).ids(column.name)
    notes += [f"{schema.name}: {text}" for text in _people_notes(schema, names)]
    owners = {schema.name: np.arange(len(names))}
    keys = {schema.name: names}
    for child, rows in zip(schema.tables, tables[1:], strict=True):
        columns = tuple(child.schema[key] for key in child.keys)
        own = engine.learn(rows, list(child.keys), partial(KeyTexts, columns))
        above = LevelRows((), np.zeros((0, len(owners[child.parent])), np.int64), *[owners[child.parent]] * 2)
        parent = parents_of(child, own, above, (keys[child.parent], names))
        person = np.where(parent >= 0, np.append(owners[child.parent], _NOBODY)[parent], _NOBODY)
        notes += [f"{child.name}: {text}" for text in _notes(child, own, (parent, person), keys[child.parent])]
        if child.id is not None:
            taking = np.flatnonzero(parent >= 0)
            keys[child.name], owners[child.name] = own.ids(child.id).take(pa.array(taking)), person[taking]
            by_row = any(table.person is None for table in schema.below(child.name))
            shared = _twice(keys[child.name], owners[child.name], by_row=by_row)
            notes += [f"{child.name}: {text}" for text in shared]
    return tuple(notes)


def _people_notes(schema: LinkedSchema, names: pa.Array) -> Iterator[str]:
    more = len(names) - names.null_count - pc.count_distinct(names).as_py()
    if more and schema.unit.more is ExtraRowsRule.DROP:
        yield f"{counted(more, 'row')} too many for people with one row each; these people are left out"
    elif more:
        yield f"{counted(more, 'row')} of people who have another one; of each person one is read, a random one"


def _notes(child: ChildTable, rows: KeyTexts, places: tuple[Places, Places], above: pa.Array) -> Iterator[str]:
    """Yield how many rows of a table take no part, and why."""
    parent, person = places
    named = rows.ids(child.foreign_key)
    missing = named.null_count if child.foreign_key != child.person else 0  # of people they are counted elsewhere
    if missing:
        yield f"left out: {counted(missing, 'row')} without a value in {child.foreign_key!r}, the foreign key"
    orphans = named.filter(pa.array(parent < 0)).drop_null()
    if len(orphans):
        where = child.parent if child.person in (None, child.foreign_key) else f"{child.parent} of the same person"
        yield (
            f"left out: {counted(len(orphans), 'row')} of {len(parent):,} whose {child.foreign_key!r} names no row of "
            f"{where}{'' if child.id is None else ', and what is below'}{_alike(orphans, above)}"
        )
    numbers = np.bincount(person[person >= 0], minlength=1)
    many = numbers[numbers > child.max_rows]
    if len(many) and child.more is ExtraRowsRule.DROP:
        yield f"left out: {counted(int(many.sum()), 'row')} of people with more than {child.max_rows:,}"
    elif len(many):
        beyond = int((many - child.max_rows).sum())
        yield f"not read: {counted(beyond, 'row')} of people with more than {child.max_rows:,} (max_rows)"


def _alike(orphans: pa.Array, above: pa.Array) -> str:
    """Return how many orphans have a key that is another one but for zeros, case or invisible characters."""
    names = set(above.drop_null().to_pylist())
    forms = set(map(alike_form, names))
    times = {item["values"]: item["counts"] for item in pc.value_counts(orphans).to_pylist()}
    alike = sum(number for name, number in times.items() if name not in names and alike_form(name) in forms)
    if not alike:
        return ""
    return (
        f". {counted(alike, 'row')} of them would name one but for leading zeros, case or invisible characters: type: "
        "integer in both tables reads 007 as 7, and clean: makes case and spaces alike"
    )


def _twice(names: pa.Array, person: Places, *, by_row: bool) -> Iterator[str]:
    """Yield how many row IDs name several rows: of one person, and of several where nothing else tells them apart."""
    pairs = pa.table({"id": names, "person": person}).filter(pc.is_valid(names))
    different = pairs.group_by(["id", "person"]).aggregate([([], "count_all")])
    repeated = pairs.num_rows - different.num_rows
    if repeated:
        yield f"{counted(repeated, 'row')} with the row ID of another row of the same person; rows below belong to one"
    shared = different.num_rows - pc.count_distinct(different["id"]).as_py()
    if shared and by_row:
        yield (
            f"{counted(shared, 'row')} with a row ID that somebody else has, too. The guarantee assumes that there is "
            "none: name the person ID column (unit:) in the table below, or make row IDs unique"
        )
