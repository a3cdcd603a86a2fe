"""Mending: what a change of columns makes impossible in the release below them is changed along with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from incrowd.core.domain import Dates, Numbers, Text
from incrowd.core.schema import Column, Role
from incrowd.errors import IncrowdError
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.workflows.policy.columns import column_of
from incrowd.workflows.policy.edit import Place, Value, replaced_at
from incrowd.workflows.policy.sections import ColumnSection

_LEVELS = ("levels", "lowest", "highest")
_BY_FORM = ("full-domain", "mondrian", "local-recoding", "cell-suppression")


def mended(file: PolicyFile, changes: Mapping[Place, Value]) -> dict[Place, Value]:
    """Return the changes, and with them levels that fit the changed columns.

    A level above the top becomes the top, or the one below it where a column must stay; level 0 of free text becomes
    level 1; a sensitive number with a hierarchy is never released exactly under k-anonymity alone.
    """
    touched = {place[1] for place in changes if place[0] == "columns" and len(place) > 1}
    content: Any = file.content
    for place, value in changes.items():
        content = replaced_at(content, place, value)
    release = content.get("release") if isinstance(content, dict) else None
    if not isinstance(release, dict):
        return dict(changes)
    more: dict[Place, Value] = {}
    for name in touched:
        try:
            column = column_of(name, ColumnSection(**(content["columns"][name] or {})), file.path.resolve().parent)
        except (IncrowdError, ValueError, TypeError, KeyError):
            continue  # the file says what is wrong with it, when it is read
        more |= _levels(column, release)
    return dict(changes) | more


def _levels(column: Column, release: Mapping[str, Any]) -> dict[Place, Value]:
    top = column.hierarchy.height
    changes: dict[Place, Value] = {}
    released = not Role.IDENTIFIER.covers(column.role)
    for key in _LEVELS:
        stated = (release.get(key) or {}).get(column.name) if isinstance(release.get(key), dict) else None
        if stated is not None and str(stated).isdigit():
            most = max(0, top - 1) if key in ("highest", "lowest") else top
            if int(stated) > most:
                changes["release", key, column.name] = str(most)
    least = _least(column, release)
    key = "levels" if not Role.QUASI.covers(column.role) or "lowest" not in release else "lowest"
    holder = release.get(key)
    if released and least and isinstance(holder, dict) and not str(holder.get(column.name, "0")).strip("0"):
        changes["release", key, column.name] = str(least)
    return changes


def _least(column: Column, release: Mapping[str, Any]) -> int:
    """Return the finest level that may be released: not free text, and no exact sensitive number by form alone."""
    if isinstance(column.domain, Text):
        return 1
    number = isinstance(column.domain, Numbers | Dates) and column.hierarchy.depth > 0
    return 1 if number and column.role is Role.SENSITIVE and release.get("method") in _BY_FORM else 0
