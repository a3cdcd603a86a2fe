"""Grouping: values of a column that readers see under one name, chosen by mouse or keyboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from incrowd.errors import InvalidParameter
from incrowd.web.studio.page import PageRequest
from incrowd.web.studio.policy_file import PolicyFile, provenance
from incrowd.workflows.policy.edit import Place, Value

_MOST = 200


def groups_of(file: PolicyFile, name: str) -> dict[str, list[str]] | None:
    """Return the declared values of a column by group, each its own where there is none; None where none are listed."""
    section = file.at("columns", name)
    declared = section if isinstance(section, dict) else {}
    tree, values = (declared.get("hierarchy") or {}).get("tree"), declared.get("categories")
    if isinstance(tree, dict) and all(isinstance(part, list) for part in tree.values()):
        groups = {str(label): list(map(str, part)) for label, part in tree.items()}
    elif isinstance(values, list) and not declared.get("hierarchy"):
        groups = {str(value): [str(value)] for value in values}
    else:
        return None
    return groups if sum(map(len, groups.values())) <= _MOST else None


def shelves_of(groups: Mapping[str, Sequence[str]]) -> list[tuple[str, list[tuple[int, str]]]]:
    """Return the groups with the place of each value among all; values alone under their own name come first.

    >>> shelves_of({"Gent": ["Gent"], "around": ["Aalst", "Rand"], "Lier": ["Lier"]})
    [('In no group', [(0, 'Gent'), (3, 'Lier')]), ('around', [(1, 'Aalst'), (2, 'Rand')])]
    """
    places = iter(range(sum(map(len, groups.values()))))
    placed = {label: [(next(places), value) for value in part] for label, part in groups.items()}
    alone = [part[0] for label, part in placed.items() if groups[label] == [label]]
    rest = [(label, part) for label, part in placed.items() if groups[label] != [label]]
    return [("In no group", alone), *rest] if alone else rest


def regrouped(groups: Mapping[str, Sequence[str]], values: Sequence[str], label: str) -> dict[str, list[str]]:
    """Return the groups with some values moved under a label; without one, each becomes a group of its own.

    >>> regrouped({"Gent": ["Gent"], "Aalst": ["Aalst"], "Rand": ["Rand"]}, ["Aalst", "Rand"], "around")
    {'Gent': ['Gent'], 'around': ['Aalst', 'Rand']}
    >>> regrouped({"around": ["Aalst", "Rand"]}, ["Rand"], "")
    {'around': ['Aalst'], 'Rand': ['Rand']}
    """
    everything = [value for part in groups.values() for value in part]
    if not values:
        raise InvalidParameter("select the values to group.")
    rest = {name: [value for value in part if value not in values] for name, part in groups.items()}
    moved = {name: list(part) for name, part in rest.items() if part}
    for value in values if not label else ():
        moved[value] = [*moved.get(value, []), value]
    if label:
        moved[label] = [*moved.get(label, []), *values]
    wrong = next((name for name, part in moved.items() if name in everything and part != [name]), None)
    if wrong is not None:
        raise InvalidParameter(f"{wrong!r} is a value itself and cannot name a group of others: choose another name.")
    return moved


def group_changes(request: PageRequest, file: PolicyFile, name: str) -> dict[Place, Value]:
    """Return what grouping the selected values writes; the list of values moves into the groups."""
    groups = groups_of(file, name)
    if groups is None:
        raise InvalidParameter("only listed values can be grouped: list the categories first.")
    values = [value for part in groups.values() for value in part]
    chosen = [value for place, value in enumerate(values) if request.value(f"value-{place}") == "yes"]
    moved = regrouped(groups, chosen, request.value("label"))
    section: dict[str, Any] = file.at("columns", name) or {}
    marks = {key: section[key] for key in ("derived", "public") if section.get(key)}
    rule = dict((section.get("hierarchy") or {}) | marks | {"tree": moved})
    gone: dict[Place, Value] = {
        ("columns", name, key): None for key in ("categories", "derived", "public") if section.get(key) is not None
    }
    seen = provenance(name, {"hierarchy": rule}, request.value("source") or str(rule.get("public") or ""), file.seen)
    return {**gone, ("columns", name, "hierarchy"): rule, **seen}
