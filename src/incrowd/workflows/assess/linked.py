"""Assessment of linked tables: how far what joins them is from the original; internal, as it is made from rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.linked import LinkedSchema, LinkedTables
from incrowd.core.recoding import Classes
from incrowd.core.steps.around import gate_of
from incrowd.core.table import Engine, Table
from incrowd.errors import InvalidParameter
from incrowd.measures.utility.relational import Link, LinkDistance, LinkedRows
from incrowd.methods.shared.columns import text_of
from incrowd.methods.synthesis.linked.rows import LevelRows, read_levels
from incrowd.methods.synthesis.marginals.synthetic_model import drawn_number
from incrowd.noise.system import SystemCoins
from incrowd.verifier.files import CERTIFICATE, tables_of
from incrowd.verifier.judge import statement_of
from incrowd.workflows.attack.attack import INTERNAL
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.consent.snapshot import linked_gate, taking_part_linked
from incrowd.workflows.policy.linked_tables import linked_schema, open_tables
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import check_of, linked_method_names


@dataclass(frozen=True)
class LinkedAssessment:
    """How many people there are, before and after, and the distances of each table below them."""

    people: int
    people_before: int
    tables: Mapping[str, LinkDistance]

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        tables = {name: distance.to_json() for name, distance in self.tables.items()}
        return {"internal": INTERNAL, "people": self.people, "people before": self.people_before, "tables": tables}


def is_linked_release(release: Path) -> bool:
    """Whether a folder holds a release of linked tables."""
    file = release / CERTIFICATE
    return file.is_file() and read_certificate(release).method.name in linked_method_names()


def assess_linked(release: Path, policy: Policy, data: object, engine: Engine) -> LinkedAssessment:
    """Compare released tables with the rows that a release reads of the original."""
    schema, certificate = linked_schema(policy), read_certificate(release)
    files = tuple(release / file.name for file in tables_of(certificate))
    tables = check_of(certificate.method.name).reopen(statement_of(certificate), files).tables
    if tuple(tables) != schema.table_names:
        raise InvalidParameter("the release has other tables than the policy: give the policy of the release.")
    method: Any = policy.method
    classes: dict[str, tuple[Classes, ...]] = method.classes(schema)
    consent = linked_gate(policy, gate_of(certificate.steps))
    sources = taking_part_linked(engine, open_tables(policy, data, engine), policy, consent)
    parts = zip(schema.table_names, sources, strict=True)
    true = LinkedTables(schema, tuple(Table(schema.columns_of(name), source, engine) for name, source in parts))
    before = read_levels(true, tuple(classes.values()), SystemCoins())
    after = {name: released_rows(schema, name, classes[name], tables[name]) for name in schema.table_names}
    links = {
        child.name: (_link(after, classes, child.parent, child.name, child.max_rows)).distance(
            _link(before, classes, child.parent, child.name, child.max_rows)
        )
        for child in schema.tables
    }
    return LinkedAssessment(len(after[schema.name]), len(before[schema.name]), links)


def _link(
    rows: Mapping[str, LevelRows], classes: Mapping[str, tuple[Classes, ...]], parent: str, child: str, most: int
) -> Link:
    sides = [
        LinkedRows(tuple(map(len, classes[name])), rows[name].codes, rows[name].parent) for name in (parent, child)
    ]
    return Link(sides[0], sides[1], most)


def released_rows(schema: LinkedSchema, name: str, classes: tuple[Classes, ...], table: pa.Table) -> LevelRows:
    """Return the rows of a released table as codes of their classes, each with the place of its parent."""
    codes = [_codes(item, table[item.recoding.column.name].combine_chunks()) for item in classes]
    parent = np.full(table.num_rows, -1)
    if name != schema.name:
        parent = table[schema.table(name).foreign_key].to_numpy() - 1
    names = tuple(item.recoding.column.name for item in classes)
    return LevelRows(names, np.array(codes, np.int64).reshape(len(classes), table.num_rows), parent, parent)


def _codes(classes: Classes, values: pa.Array) -> Any:
    """Return the class of each released value: of its label, or of the interval that a drawn number lies in."""
    if drawn_number(classes):
        return classes.recoding.codes(pc.cast(values, pa.string()))
    places = pc.index_in(pc.cast(values, pa.string()), value_set=text_of(classes.values()))
    return places.fill_null(len(classes) - 1).to_numpy(zero_copy_only=False)
