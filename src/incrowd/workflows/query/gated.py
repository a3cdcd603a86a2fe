"""Gated questions: who consented is read anew for each, so that a withdrawal counts from the next question on."""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.core.unit import ExtraRowsRule
from incrowd.engines.sql.engine import QueryTables
from incrowd.errors import InvalidParameter, Refused
from incrowd.queries.question import Catalog, Relation
from incrowd.workflows.consent.snapshot import ConsentSnapshot, admit
from incrowd.workflows.policy.policy import Policy


def admission_to(policies: Sequence[Policy], data: object = None) -> ConsentSnapshot | None:
    """Read who may take part in an answer about some datasets now; None where none of them names a purpose."""
    gated = [policy for policy in policies if policy.gate is not None]
    if not gated:
        return None
    if len(policies) > 1:
        raise Refused(
            "a question about several datasets is not answered where one of them asks for consent: ask about one."
        )
    return admit(gated[0], data)


def gated_rows(rows: QueryTables, catalog: Catalog, dataset: str, admission: ConsentSnapshot | None) -> QueryTables:
    """Return the tables of a dataset with the rows of those alone who were admitted."""
    if admission is None:
        return rows
    own = [relation for relation in catalog.relations if relation.dataset == dataset]
    return rows.admitting({each.name: admission.by(each.schema[_person(each)]) for each in own})


def require_gateable(policies: Sequence[Policy]) -> None:
    """Refuse, before a desk is opened, what a gate cannot do: a check of all people."""
    for policy in policies:
        if policy.gate is None:
            continue
        units = [policy.schema.unit, *(other.schema.unit for other in policy.tables if not other.public)]
        if any(unit.more is ExtraRowsRule.REFUSE for unit in units):
            raise InvalidParameter(
                "more: refuse would look at people who did not consent when a desk is opened: write more: drop, or "
                "leave it out."
            )


def _person(relation: Relation) -> str:
    if relation.unit.column is None:
        raise InvalidParameter(f"table {relation.name!r} does not tell people apart: give it a unit.")
    return relation.unit.column
