"""Linked tables under attack: each table with the columns above it, and of each person one row; internal.

A person may have many rows in a table below, which say much the same.  So of each person one row is attacked, a random
one: confidence intervals need people who are independent of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.core.linked import LinkedSchema
from incrowd.core.schema import Role
from incrowd.core.steps.around import gate_of
from incrowd.core.table import Rows
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.local.views import DividedRows
from incrowd.engines.people import names_of
from incrowd.errors import InvalidParameter
from incrowd.verifier.files import tables_of
from incrowd.verifier.judge import statement_of
from incrowd.workflows.attack.attack import AttackTarget
from incrowd.workflows.attack.publication import as_classes, check_belongs, lookup_of, masks_of, table_of
from incrowd.workflows.consent.snapshot import linked_gate, taking_part_linked
from incrowd.workflows.policy.linked_tables import linked_schema, open_tables, tables_in
from incrowd.workflows.policy.rows import require_named
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.outsiders import held_out_of

if TYPE_CHECKING:
    from incrowd.core.certificate import Certificate
    from incrowd.workflows.attack.inputs import AttackInput
    from incrowd.workflows.policy.policy import Policy

_NOBODY = -1


@dataclass(frozen=True, eq=False)
class JoinedTable:
    """The rows of one table with all columns above them, and the person of each."""

    table: pa.Table
    person: NDArray[np.int64]

    def one_each(self) -> pa.Table:
        """Return one random row of each person; the choice protects nobody, so it is repeatable."""
        order = np.random.default_rng(0).permutation(len(self.person))
        _, first = np.unique(self.person[order], return_index=True)
        return self.table.take(pa.array(np.sort(order[first])))


def linked_targets(inputs: AttackInput, certificate: Certificate) -> tuple[AttackTarget, ...]:
    """Return every table of a release of linked ones, with what is known of its people."""
    policy = inputs.policy
    if policy is None or policy.hash != certificate.policy_hash:
        raise InvalidParameter("linked tables are attacked with the policy of their release: give it with --policy.")
    if inputs.also or inputs.count or any(inputs.histories):
        raise InvalidParameter("linked tables are attacked by themselves: leave out --also, --count, --person, --item.")
    schema = linked_schema(policy)
    published = _joined(schema, _released(inputs.release, schema, policy, certificate))
    people, control = _groups(inputs, schema, policy, certificate)
    masks = masks_of(certificate.steps)
    targets = []
    for name in schema.table_names:
        rows, others = people[name].one_each(), None if control is None else control[name].one_each()
        knowledge = _knowledge(inputs, schema, rows, published[name].table)
        if knowledge is None:
            continue
        table = PublishedTable(published[name].table, _lookups(schema), masks=masks)
        check_belongs(table, rows, knowledge.known_columns)
        targets.append(AttackTarget(name, table, knowledge, others))
    if not targets:
        raise InvalidParameter("none of the known columns is in a table: name others with --known, such as stays.ward.")
    return tuple(targets)


def _released(release: Path, schema: LinkedSchema, policy: Policy, certificate: Certificate) -> dict[str, pa.Table]:
    """Return released tables with classes in place of numbers, which say nothing more."""
    files = tuple(release / file.name for file in tables_of(certificate))
    tables: Mapping[str, pa.Table] = check_of(certificate.method.name).reopen(statement_of(certificate), files).tables
    method: Any = policy.method
    classes = method.classes(schema)
    return {name: as_classes(tables[name], classes[name]) for name in schema.table_names}


def _groups(
    inputs: AttackInput, schema: LinkedSchema, policy: Policy, certificate: Certificate
) -> tuple[dict[str, JoinedTable], dict[str, JoinedTable] | None]:
    """Return the people in the data, and the control group: a folder with a file a table, or who was held out."""
    require_named(inputs.data, policy)
    data = None if inputs.data is None else tables_in(schema, inputs.data)
    consent = linked_gate(policy, gate_of(certificate.steps))
    rows = taking_part_linked(LOCAL, open_tables(policy, data, LOCAL), policy, consent)
    sources: dict[str, Rows] = dict(zip(schema.table_names, rows, strict=True))
    _ = inputs.look
    if inputs.held_out:
        if inputs.control is not None:
            raise InvalidParameter("the control group is a folder (--control) or the holdout group (--held-out).")
        held = held_out_of(policy, certificate.id)
        divided = (DividedRows(sources[schema.name], held, alone) for alone in (False, True))
        some, others = (_joined(schema, _read(sources | {schema.name: rows}, schema)) for rows in divided)
        return some, others
    if inputs.control is None:
        return _joined(schema, _read(sources, schema)), None
    named = tables_in(schema, inputs.control)
    if missing := [name for name in schema.table_names if name not in named]:
        raise InvalidParameter(f"the control group has no table {missing[0]!r}: give a folder with a file for each.")
    control = zip(schema.table_names, open_tables(policy, named, LOCAL), strict=True)
    return _joined(schema, _read(sources, schema)), _joined(schema, _read(dict(control), schema))


def _read(sources: Mapping[str, Rows], schema: LinkedSchema) -> dict[str, pa.Table]:
    return {name: table_of(rows, schema.columns_of(name).names) for name, rows in sources.items()}


def _joined(schema: LinkedSchema, tables: Mapping[str, pa.Table]) -> dict[str, JoinedTable]:
    """Return each table with the columns above it, and how many rows each row has in the tables below it."""
    column = schema.unit.column or ""
    keys = {schema.name: _texts(schema, schema.name, tables[schema.name], column)}
    own = {
        schema.name: JoinedTable(_columns(schema, schema.name, tables[schema.name]), np.arange(len(keys[schema.name])))
    }
    places = {}
    for child in schema.tables:
        rows, above = tables[child.name], own[child.parent]
        named = _texts(schema, child.name, rows, child.foreign_key)
        parents, whole = keys[child.parent], np.arange(len(named))
        if child.person not in (None, child.foreign_key):
            people = _places(_texts(schema, child.name, rows, child.person or ""), keys[schema.name])
            named, parents = _paired(named, people), _paired(parents, above.person)
        parent = _places(named, parents)
        whole = np.flatnonzero(parent >= 0)
        places[child.name], rows = parent[whole], rows.take(pa.array(whole))
        person = above.person[places[child.name]]
        own[child.name] = JoinedTable(_columns(schema, child.name, rows), person)
        if child.id is not None:
            keys[child.name] = _texts(schema, child.name, rows, child.id)
    for child in schema.tables:
        numbers = np.bincount(places[child.name], minlength=len(own[child.parent].person))
        above = own[child.parent]
        counted = above.table.append_column(f"number of {child.name}", pa.array(numbers).cast(pa.string()))
        own[child.parent] = replace(above, table=counted)
    for child in schema.tables:  # each stands after its parent
        joined = own[child.name].table
        higher = own[child.parent].table.take(pa.array(places[child.name]))
        for name in higher.column_names:
            joined = joined.append_column(name, higher[name])
        own[child.name] = replace(own[child.name], table=joined)
    return own


def _columns(schema: LinkedSchema, name: str, table: pa.Table) -> pa.Table:
    """Return the released columns of a table by their titles."""
    released = [column.name for column in schema.columns_of(name).released]
    return table.select(released).rename_columns([schema.title(name, column) for column in released])


def _texts(schema: LinkedSchema, name: str, table: pa.Table, column: str) -> pa.Array:
    """Return a key column as text; numbers of a release are written as they are."""
    cells = table[column].combine_chunks()
    if pa.types.is_integer(cells.type):
        return cells.cast(pa.string())
    return names_of(cells, schema.columns_of(name)[column]).dictionary_decode().cast(pa.string())


def _places(names: pa.Array, among: pa.Array) -> NDArray[np.int64]:
    places = pc.index_in(names, value_set=among, skip_nulls=True).fill_null(_NOBODY)
    return places.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _paired(names: pa.Array, people: NDArray[np.int64]) -> pa.Array:
    return pc.binary_join_element_wise(pa.array(people).cast(pa.string()), names, "|")


def _lookups(schema: LinkedSchema) -> dict[str, Any]:
    return {
        schema.title(name, column.name): lookup_of(column)
        for name in schema.table_names
        for column in schema.columns_of(name).released
    }


def _knowledge(inputs: AttackInput, schema: LinkedSchema, people: pa.Table, published: pa.Table) -> Knowledge | None:
    """Return what the attacker knows of the rows of one table; None if none of the named columns is there."""
    common = [name for name in people.column_names if name in published.column_names]
    roles = {column.name: str(column.role) for column in schema.everywhere}
    sensitive = [name for name in common if Role.SENSITIVE.covers(roles.get(name))]
    named = None if inputs.known_columns is None else tuple(name for name in inputs.known_columns if name in common)
    if named == ():
        return None
    secret = inputs.secret if inputs.secret in common else next((n for n in sensitive if n not in (named or ())), None)
    quasi = [name for name in common if name not in roles or Role.QUASI.covers(roles[name])]
    known_columns = named or tuple(name for name in quasi or common if name != secret)
    few, trials, diversity = inputs.sizes
    knowledge = Knowledge(people, known_columns, secret, inputs.slack or {})
    return replace(knowledge, few=few, trials=trials, diversity=diversity)
