"""Hierarchies: how each column becomes coarser, level by level; what is missing there, and sizes of classes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.hierarchy.hierarchy import Hierarchy
from incrowd.core.reading import canonical
from incrowd.core.schema import Column, Role
from incrowd.core.table import Engine, Rows
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.web.studio.choices import short_level_name
from incrowd.web.studio.grouping import group_changes, groups_of, shelves_of
from incrowd.web.studio.mending import mended
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.policy_file import PolicyFile, provenance
from incrowd.web.studio.rows import RowAccess
from incrowd.workflows.hierarchies.build import LISTED_KINDS, Built, HierarchyRequest
from incrowd.workflows.hierarchies.check import Report, check_file, check_policy
from incrowd.workflows.hierarchies.public_lists import LISTS, from_list
from incrowd.workflows.policy.columns import delimiter_of
from incrowd.workflows.policy.edit import Place, Value
from incrowd.workflows.policy.policy import Policy

KINDS = {
    "intervals": "widths, each a multiple of the last: 5, 10, 20",
    "cuts": "cut points, levels separated by semicolons: 18, 65; 65",
    "prefix": "length of the prefix: 3, 2, 1",
    "dates": "week, month, quarter, year, decade",
    "groups": "sizes of groups of neighboring categories: 2, 4",
    "classification": "icd-10, isco-08 or nace-2",
    "none": "the value itself, or *",
}
"""The rules that can be written here, with what is written for each."""
_SHOWN, _NAMED = 12, 30


def _sizes(policy: Policy, rows: Rows, engine: Engine) -> dict[str, Any]:
    """Return values that are outside of what is declared, and for each column how large classes are at each level."""
    return {
        "report": check_policy(policy, rows),
        "classes": {column.name: _classes(column, policy, rows, engine) for column in policy.schema.released},
    }


def _classes(column: Column, policy: Policy, rows: Rows, engine: Engine) -> list[dict[str, Any]]:
    """Return for each level how many classes occur and how many rows the smallest, the middle and the largest has."""
    if column.separator is not None:
        return []
    finest = engine.count(rows, Cells.of(policy.schema, {}, [column.name]))
    classes = []
    for level in range(int(column.pseudonymous), column.hierarchy.height + 1):
        sizes = finest.rollup({column.name: level}).counts if level else finest.counts
        if len(sizes):
            parts = {"smallest": sizes.min(), "middle": np.median(sizes), "largest": sizes.max()}
            classes.append({"level": level, "classes": len(sizes), **{name: int(size) for name, size in parts.items()}})
    return classes


SIZES = RowAccess("check", "sizes of classes", "Reading every row, once for each column", _sizes)
"""What the rows hold beside what is declared."""


def show(request: PageRequest) -> PageContent:
    """Show one column's levels, as they are or as a form would have them."""
    file = request.policy_file()
    policy = file.policy
    columns = policy.schema.columns
    names = [column.name for column in columns if column in policy.schema.released or column.role is Role.WITHHELD]
    name = request.value("column") or (names[0] if names else "")
    if name not in names:
        raise InvalidParameter("this column identifies people and is not released: change its role first.")
    job = SIZES.job(request, file)
    sizes: Mapping[str, Any] | None = result(job)
    changes, problem, tried = _changes(request, file, name), None, policy
    if changes:
        try:
            tried = file.trial(mended(file, changes))
        except IncrowdError as error:
            problem = str(error)
    column = tried.schema[name]
    content = {
        "columns": [_line(policy.schema[column]) for column in names],
        "column": _line(column),
        "levels": _levels(column),
        "kinds": KINDS,
        "kind": request.value("kind") or _kind(file, name),
        "steps": request.value("steps") or _steps(file, name),
        "source": request.value("source"),
        "file": request.value("file"),
        "faults": _faults(request),
        "problem": problem,
        "changed": bool(changes),
        "sizes": None if sizes is None else sizes["classes"].get(name, []),
        "outside": None if sizes is None else _outside(sizes["report"], name),
        "seen": list(file.seen.what),
        "groups": groups_of(file, name),
        "shelves": shelves_of(groups_of(file, name) or {}),
        "lists": {kind: public.about for kind, public in LISTS.items()},
    }
    commands = (command("incrowd", "hierarchy", "check", "--policy", file.name),)
    return PageContent(content, commands=commands, job=foremost(job))


def _line(column: Column) -> dict[str, Any]:
    source = column.hierarchy.provenance
    return {
        "name": column.name,
        "role": str(column.role),
        "rule": str(column.hierarchy.rule),
        "height": column.hierarchy.height,
        "drafted": not source.sound,
        "public": source.public,
        "classes": [_count(column.hierarchy, level) for level in range(column.hierarchy.height + 1)],
    }


def _count(hierarchy: Hierarchy, level: int) -> int | None:
    members = hierarchy.members(level)
    return None if members is None else len(members)


def _levels(column: Column) -> dict[str, Any]:
    """Return some values with their label on each level; where values are open, the rule alone tells."""
    hierarchy = column.hierarchy
    heights = range(hierarchy.height + 1)
    heads = [short_level_name(hierarchy, level) for level in heights]
    members = hierarchy.members(0)
    if members is None:
        return {"heads": heads, "rows": [], "more": 0}
    values = canonical(members.take(_places(hierarchy, len(members)))).to_pylist() if len(members) else []
    rows = [[hierarchy.generalize(value, level) or "" for level in heights] for value in values]
    return {"heads": heads, "rows": rows, "more": max(0, len(members) - len(rows))}


def _places(hierarchy: Hierarchy, many: int) -> NDArray[np.int64]:
    """Return the places of some values: of different classes at level 1 first, then evenly over all."""
    firsts = np.unique(hierarchy.rise(0, 1), return_index=True)[1] if hierarchy.depth else np.arange(many)
    firsts = np.sort(firsts)
    chosen = firsts[np.unique(np.linspace(0, len(firsts) - 1, min(_SHOWN, len(firsts))).astype(np.int64))]
    others = np.linspace(0, many - 1, min(many, _SHOWN - len(chosen))).astype(np.int64)
    return np.unique(np.concatenate([chosen, others]))


def _kind(file: PolicyFile, name: str) -> str:
    rule = file.at("columns", name, "hierarchy") or {}
    return next((kind for kind in KINDS if kind in rule), "none" if not rule else "")


def _steps(file: PolicyFile, name: str) -> str:
    rule = file.at("columns", name, "hierarchy") or {}
    value = rule.get(_kind(file, name), "")
    if isinstance(value, list):
        nested = [", ".join(map(str, level)) if isinstance(level, list) else str(level) for level in value]
        return ("; " if any(isinstance(level, list) for level in value) else ", ").join(nested)
    return str(value)


def _changes(request: PageRequest, file: PolicyFile, name: str) -> dict[Place, Value]:
    """Return what a form would write: another rule, or a file in ARX's format, with where it comes from."""
    place: Place = ("columns", name, "hierarchy")
    if request.value("file"):
        return _of_file(file, name, request.folder.file(request.value("file")), request.value("source"))
    kind, steps = request.value("kind"), request.value("steps")
    if not kind or (kind == _kind(file, name) and steps == _steps(file, name)):
        return {}
    if kind not in KINDS:
        raise InvalidParameter("this rule does not exist.")
    if kind == "none":
        return {place: None, **provenance(name, None, request.value("source"), file.seen)}
    return {place: _rule(kind, steps), **provenance(name, {"hierarchy": {}}, request.value("source"), file.seen)}


def _of_file(file: PolicyFile, name: str, path: Path, source: str) -> dict[Place, Value]:
    """Return what a file in ARX's format changes in a column: it replaces values, bounds and type."""
    local = path.resolve().relative_to(file.path.resolve().parent).as_posix()
    mark = delimiter_of(path.read_bytes())
    rule: dict[str, Any] = {"file": local} | ({} if mark == ";" else {"delimiter": mark})
    replaced = (("columns", name, key) for key in ("categories", "bounds", "outside", "type", "derived", "public"))
    gone: dict[Place, Value] = {place: None for place in replaced if file.at(*place) is not None}
    place: Place = ("columns", name, "hierarchy")
    return {**gone, place: rule, **provenance(name, {"hierarchy": rule}, source, file.seen)}


def _rule(kind: str, steps: str) -> dict[str, Any]:
    words = [part.strip() for part in steps.split(",") if part.strip()]
    if kind == "classification":
        return {kind: steps.strip()}
    if kind == "cuts":
        return {kind: [[part.strip() for part in level.split(",") if part.strip()] for level in steps.split(";")]}
    return {kind: words}


def _faults(request: PageRequest) -> list[dict[str, Any]] | None:
    """Return what is wrong with a file that was dropped, by its lines alone."""
    if not request.value("file"):
        return None
    path = request.folder.file(request.value("file"))
    report = check_file(path, delimiter_of(path.read_bytes()), None, None)
    return [{"what": problem.what, "value": problem.value, "fix": problem.fix} for problem in report.problems[:_NAMED]]


def _outside(report: Report, name: str) -> dict[str, Any]:
    problems = [problem for problem in report.problems if problem.column == name]
    named = [{"value": problem.value, "rows": problem.rows, "fix": problem.fix} for problem in problems[:_NAMED]]
    return {"named": named, "values": len(problems), "rows": sum(problem.rows or 0 for problem in problems)}


def look(request: PageRequest) -> Redirect:
    """Look at the rows, which is recorded."""
    SIZES.begin(request, request.policy_file())
    return request.to("hierarchies", column=request.value("column"))


def save(request: PageRequest) -> Redirect:
    """Write the rule into the policy; a dropped file that does not fit is shown with its problems instead."""
    file, name = request.policy_file(), request.value("column")
    changes = mended(file, _changes(request, file, name))
    if request.value("dropped") and not _fits(file, changes, _faults(request)):
        return request.to("hierarchies", column=name, file=request.value("file"))
    file.save(changes, request.value("base"))
    return request.saved("hierarchies", column=name)


def _fits(file: PolicyFile, changes: Mapping[Place, Value], faults: list[dict[str, Any]] | None) -> bool:
    try:
        file.trial(changes)
    except IncrowdError:
        return False
    return not faults


def use_list(request: PageRequest) -> Redirect:
    """Write a public list beside the policy and attach it; a column that waited for public values is released."""
    file, name = request.policy_file(), request.value("column")
    kind, step = request.value("list"), request.value("step").lower()
    if kind not in LISTED_KINDS:
        raise InvalidParameter("this list does not exist.")
    steps = (step,) if step and kind != "icd-10" else ()
    built = from_list(HierarchyRequest(name, kind, steps))
    path = _stored(request.folder.place(request.folder.name(file.path.parent / "hierarchies")), [kind, *steps], built)
    changes = _of_file(file, name, path, str(built.public))
    changes["columns", name, "hierarchy", "public"] = str(built.public)
    if file.at("columns", name, "role") == str(Role.WITHHELD):
        changes["columns", name, "role"] = str(Role.QUASI)
    file.save(mended(file, changes), request.value("base"))
    return request.to("hierarchies", column=name)


def _stored(folder: Path, words: Sequence[str], built: Built) -> Path:
    """Return the file with a list: one that is there already, or a new one."""
    folder.mkdir(mode=0o700, exist_ok=True)
    content = built.table.text().encode()
    for number in itertools.count(1):
        path = folder / f"{'-'.join([*words, *([str(number)] if number > 1 else [])])}.csv"
        if not path.exists():
            path.write_bytes(content)
        if path.read_bytes() == content:
            return path
    raise AssertionError(folder)


def group(request: PageRequest) -> Redirect:
    """Write the selected values into a group, or out of it."""
    file, name = request.policy_file(), request.value("column")
    file.save(mended(file, group_changes(request, file, name)), request.value("base"))
    return request.to("hierarchies", column=name)


def vouch(request: PageRequest) -> Redirect:
    """Write a public source below every mark of a column."""
    file, name, source = request.policy_file(), request.value("column"), request.value("source")
    if not source:
        raise InvalidParameter("name the public source of the same values: a yearbook, a law, a code list.")
    places: list[Place] = [("columns", name), ("columns", name, "hierarchy")]
    marked = [place for place in places if isinstance(file.at(*place), dict) and file.at(*place, "derived")]
    file.save({(*place, "public"): source for place in marked}, request.value("base"))
    return request.to("hierarchies", column=name)


PAGE = Page(
    "hierarchies",
    "Hierarchies",
    "How each column is generalized, level by level. Rules must be public, independent of the rows.",
    show,
    {"look": look, "save": save, "group": group, "list": use_list, "vouch": vouch},
    step=3,
    needs=("policy",),
)
