"""Choices of a release that are made by clicks: levels by name, l and t, and the columns of a table of counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from incrowd.core.hierarchy.hierarchy import Hierarchy, RuleKind
from incrowd.core.schema import Role, Schema
from incrowd.errors import InvalidParameter
from incrowd.web.studio.page import PageRequest
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.workflows.policy.edit import Place, Value

_WITH_CRITERIA = ("full-domain", "mondrian", "local-recoding")
_TABLES = ("private-histogram", "blended-histogram", "suppressed-histogram", "most-common", "protected-table")
_FEW, _LONG = 2, 24
PROTECTIONS = {
    "suppression": "small cells are left out, and others that would give them away",
    "adjustment": "small counts become zero or the smallest one, others change a little",
    "rounding": "every number is a multiple of a base",
}
"""How small counts of a table with totals are protected, in words."""
_OTHER_RULES = ("protection", "dominance", "p", "q", "prior", "earlier", "coalition", "open", "empty", "shift")
_LEAST = "5"
_KEYS = {"l": "l, different values per class", "t": "t, distance from the whole table"}
_NAMES = {
    RuleKind.PREFIX: "first {} characters",
    RuleKind.REDACTION: "{} characters hidden",
    RuleKind.INTERVALS: "intervals of {}",
    RuleKind.CUTS: "cut at {}",
    RuleKind.CALENDAR: "{}",
}


def level_name(hierarchy: Hierarchy, level: int) -> str:
    """Return the name of a level, with how many classes it has.

    >>> from incrowd.core.domain import Numbers
    >>> from incrowd.core.hierarchy.intervals import Intervals
    >>> ages = Intervals(Numbers(0, 99), (10, 50))
    >>> [level_name(ages, level) for level in range(4)]
    ['the value itself (100 classes)', 'intervals of 10 (10 classes)', 'intervals of 50 (2 classes)', 'nothing: *']
    """
    name, members = short_level_name(hierarchy, level), hierarchy.members(level)
    if members is None or level == hierarchy.height:
        return name
    return f"{name} ({len(members):,} {'class' if len(members) == 1 else 'classes'})"


def short_level_name(hierarchy: Hierarchy, level: int) -> str:
    """Return the name of a level alone."""
    rule = hierarchy.rule
    if level == hierarchy.height:
        return "nothing: *"
    if level and rule.kind in _NAMES and rule.levels is not None and len(rule.levels) >= level:
        return _NAMES[rule.kind].format(", ".join(rule.levels[level - 1]))
    return "the value itself" if level == 0 else _groups_name(hierarchy, level)


def _groups_name(hierarchy: Hierarchy, level: int) -> str:
    """Return a level without a rule of its own by its first labels."""
    members = hierarchy.members(level)
    if members is None or not len(members):
        return f"groups of level {level}"
    labels = [str(label) for label in hierarchy.names(members.slice(0, _FEW), level).to_pylist()]
    words = ", ".join(label if len(label) <= _LONG else f"{label[: _LONG - 1]}…" for label in labels)
    return f"groups: {words}{', …' if len(members) > _FEW else ''}"


def levels_text(schema: Schema, levels: Mapping[str, int]) -> str:
    """Return a combination of levels by their names."""
    return "; ".join(f"{name}: {short_level_name(schema[name].hierarchy, level)}" for name, level in levels.items())


def criteria(request: PageRequest, file: PolicyFile) -> list[dict[str, str]]:
    """Return the fields for l and t of each sensitive column, where the method knows them beside k."""
    if file.at("release", "method") not in _WITH_CRITERIA:
        return []
    return [
        {"name": f"{key}-{place}", "column": column.name, "label": label}
        | {"value": request.value(f"{key}-{place}", str(file.at("release", "sensitive", column.name, key) or ""))}
        for place, column in enumerate(file.policy.schema.released)
        if column.role is Role.SENSITIVE
        for key, label in _KEYS.items()
    ]


def criteria_changes(request: PageRequest, file: PolicyFile) -> dict[Place, Value]:
    """Return the l and t that a form would write; an empty field takes one away."""
    changes: dict[Place, Value] = {}
    for field in criteria(request, file):
        key, column = field["name"].partition("-")[0], field["column"]
        sections = dict(file.at("release", "sensitive") or {})
        declared = dict(sections.get(column) or {})
        sent = request.form.get(field["name"], request.query.get(field["name"]))
        if sent is None or sent.strip() == str(declared.get(key) or ""):
            continue
        staged: Any = changes.get(("release", "sensitive"), sections)
        rules = dict(staged.get(column) or {}) | {key: sent.strip()}
        merged = dict(staged) | {column: {name: value for name, value in rules.items() if value}}
        changes["release", "sensitive"] = {name: rules for name, rules in merged.items() if rules} or None
    return changes


def table_columns(file: PolicyFile) -> list[str] | None:
    """Return the columns of the table, or of all tables of a list; None where the release names none."""
    tables = file.at("release", "tables")
    if isinstance(tables, list):
        listed = [table.get("columns") or [] for table in tables if isinstance(table, dict)]
        return list(dict.fromkeys(str(name) for columns in listed for name in columns))
    columns = file.at("release", "columns")
    return columns if isinstance(columns, list) else None


def protection(request: PageRequest, file: PolicyFile) -> str | None:
    """Return how the table is protected, as the form or the policy says; None for other methods and other ways."""
    if file.at("release", "method") != "protected-table":
        return None
    way = request.value("protect") or str(file.at("release", "protect") or "suppression")
    return way if way in PROTECTIONS else None


def protection_changes(request: PageRequest, file: PolicyFile) -> dict[Place, Value]:
    """Return what another way of protection writes: its number stays, and the rules of the former way go."""
    now, way = str(file.at("release", "protect") or "suppression"), protection(request, file)
    if way is None or way == now:
        return {}
    number = str(file.at("release", "minimum") or file.at("release", "base") or _LEAST)
    own, other = ("base", "minimum") if way == "rounding" else ("minimum", "base")
    gone: dict[Place, Value] = {("release", key): None for key in (*_OTHER_RULES, other) if file.at("release", key)}
    return {**gone, ("release", "protect"): way, ("release", own): number}


def tabled(request: PageRequest, file: PolicyFile) -> list[dict[str, Any]]:
    """Return the columns that a table of counts can have, and which it has."""
    listed = file.at("release", "columns")
    if file.at("release", "method") not in _TABLES or not isinstance(listed, list):
        return []
    return [
        {"name": f"tabled-{place}", "column": column.name, "chosen": column.name in _requested(request, file)}
        for place, column in enumerate(file.policy.schema.released)
    ]


def _requested(request: PageRequest, file: PolicyFile) -> list[str]:
    """Return the columns of the table, as the form or the policy says."""
    if not request.value("tabled"):
        return list(file.at("release", "columns") or [])
    released = enumerate(file.policy.schema.released)
    return [column.name for place, column in released if request.value(f"tabled-{place}") == "yes"]


def tabled_changes(request: PageRequest, file: PolicyFile) -> dict[Place, Value]:
    """Return the columns of a table that a form would write; the levels of others go."""
    if not tabled(request, file) or not request.value("tabled"):
        return {}
    names, before = _requested(request, file), list(file.at("release", "columns") or [])
    if names == before:
        return {}
    if not names:
        raise InvalidParameter("a table of counts has at least one column.")
    ordered = [name for name in before if name in names] + [name for name in names if name not in before]
    levels = {name: level for name, level in (file.at("release", "levels") or {}).items() if name in names}
    changes: dict[Place, Value] = {("release", "columns"): ordered}
    if levels != (file.at("release", "levels") or {}):
        changes["release", "levels"] = levels
    return changes
