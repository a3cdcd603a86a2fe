"""Linked tables of a policy: where the rows of each are, by the policy or by a caller, and how they are opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from incrowd.core.linked import LinkedSchema
from incrowd.core.table import Engine, Opened, SourceOptions
from incrowd.engines.columns import require
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy


def linked_schema(policy: Policy) -> LinkedSchema:
    """Return the schema of a policy of linked tables, or refuse another policy."""
    if not isinstance(policy.schema, LinkedSchema):
        raise InvalidParameter("this policy is of one table: write tables: with a parent: each, and method: linked.")
    return policy.schema


def places_of(policy: Policy, data: object) -> dict[str, tuple[object, SourceOptions]]:
    """Return where each table is and how it is read; None for a table that neither caller nor policy names."""
    schema = linked_schema(policy)
    named = _named(schema, data)
    places = {schema.name: (policy.source, policy.options)} | {item.table.name: item.place for item in policy.linked}
    return {name: (named.get(name, address), options) for name, (address, options) in places.items()}


def open_tables(policy: Policy, data: object, engine: Engine) -> tuple[Opened, ...]:
    """Open the tables that the caller gives by name, else the sources of the policy; every column must be there."""
    schema, sources = linked_schema(policy), []
    for name, (place, options) in places_of(policy, data).items():
        if place is None:
            raise InvalidParameter(f"no data for {name!r}: write source: there, or give the table by its name.")
        source = engine.open(place, options)
        require(source.names, schema.columns_of(name).names)
        sources.append(source)
    return tuple(sources)


def tables_in(schema: LinkedSchema, place: str) -> Mapping[str, object]:
    """Return what is in a folder by the tables that it is named after; another place is the people's table."""
    inside = sorted(Path(place).iterdir()) if Path(place).is_dir() else []
    named: dict[str, object] = {file.stem: str(file) for file in inside if file.stem in schema.table_names}
    return named or {schema.name: place}


def _named(schema: LinkedSchema, data: object) -> Mapping[str, object]:
    """Return what the caller gives for each table: a mapping by name, a folder, or the table of the people alone."""
    if data is None:
        return {}
    if isinstance(data, str | Path):
        return tables_in(schema, str(data))
    if not isinstance(data, Mapping):
        return {schema.name: data}
    unknown = [str(name) for name in data if name not in schema.table_names]
    if unknown:
        raise InvalidParameter(f"there is no table {unknown[0]!r}; there are {', '.join(schema.table_names)}.")
    return data
