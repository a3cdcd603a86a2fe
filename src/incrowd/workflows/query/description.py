"""Description: the tables of a catalog as they are declared, for whoever may ask about them; no row is read."""

from __future__ import annotations

from typing import Any

from incrowd.core.domain import Categories, Dates, Domain, Numbers
from incrowd.core.schema import Column, Role
from incrowd.queries.question import Catalog, Relation

_LISTED = 200


def describe_catalog(catalog: Catalog) -> dict[str, Any]:
    """Return the tables with their columns and domains, as declared; identifiers are not among them."""
    return {"tables": [_table(relation) for relation in catalog.relations]}


def _table(relation: Relation) -> dict[str, Any]:
    columns = [_column(column) for column in relation.schema.columns if not Role.IDENTIFIER.covers(column.role)]
    told: dict[str, Any] = {"name": relation.name, "public": not relation.private, "columns": columns}
    if relation.private:
        unit = relation.unit
        told |= {"dataset": relation.dataset, "unit": str(unit), "person": unit.column}
    return told


def _column(column: Column) -> dict[str, Any]:
    return {"name": column.name, "type": str(column.type), **_domain(column.domain)}


def _domain(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Categories):
        return {"values": list(domain.values[:_LISTED]), "more": max(0, len(domain.values) - _LISTED)}
    if isinstance(domain, Numbers | Dates):
        bounds = (getattr(domain, "low", None), getattr(domain, "high", None))
        return {"bounds": [None if bound is None else str(bound) for bound in bounds]}
    return {}
