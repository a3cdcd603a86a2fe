"""Columns and roles: what each column could do to a person, why, and whom the guarantee protects."""

from __future__ import annotations

import re
from typing import Any

from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.errors import InvalidParameter
from incrowd.web.studio.cleaning import cleaning_changes, cleaning_lines, mergeable_values
from incrowd.web.studio.mending import mended
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.policy_file import PolicyFile, provenance
from incrowd.web.studio.rows import PROFILE
from incrowd.workflows.policy.edit import Place, Value
from incrowd.workflows.profile.profile import TableProfile, person_column, person_questions

_SUBSETS = 5
_NUMBERS = ("rows", "population")
_WORDS = ("name", "period")
_BOUNDED = (Type.INTEGER, Type.DECIMAL, Type.DATE)
MEANING = {
    Role.IDENTIFIER: "names a person; not released",
    Role.WITHHELD: "not released",
    Role.QUASI: "others may know it about a person",
    Role.SENSITIVE: "nobody should learn it about a person",
    Role.PLAIN: "neither of these",
}

OUTSIDES = {
    "": "as usual for its type",
    "ends": "an open-ended label at the nearest bound",
    "bound": "the nearest bound, as a number",
    "other": "one class, other",
    "drop": "suppress the row",
}
"""The rules for values outside the declared domain, in words."""


def show(request: PageRequest) -> PageContent:
    """Show each column with its role, and what the rows say of it once they were looked at."""
    file = request.policy_file()
    job = PROFILE.job(request, file)
    profile: TableProfile | None = result(job)
    person = None if profile is None else person_column(profile)
    content = {
        "columns": _columns(file, profile),
        "roles": {str(role): words for role, words in MEANING.items()},
        "types": [str(type_) for type_ in Type],
        "outsides": OUTSIDES,
        "unfolded": request.value("column"),
        "dataset": _dataset(file),
        "looked": profile is not None,
        "table_rows": None if profile is None else profile.rows,
        "person": None if person is None else person.to_json(),
        "questions": [] if profile is None else _questions(file, profile),
        "nearly": [] if profile is None else _nearly(request, file, profile),
        "left_out": re.findall(r"^# Not imported: (.+)$", file.text, re.MULTILINE),
        "totals": list(map(str, file.at("source", "totals") or ())),
        "subsets": [] if profile is None else _subsets(profile),
        "notes": [] if profile is None else list(profile.notes),
        "seen": list(file.seen.what),
    }
    line = command("incrowd", "profile", "--policy", file.name)
    return PageContent(content, commands=(line,), job=foremost(job))


def _columns(file: PolicyFile, profile: TableProfile | None) -> list[dict[str, Any]]:
    declared = file.at("columns") or {}
    facts = {} if profile is None else {column.name: column for column in profile.columns}
    columns = []
    for name, section in declared.items():
        written = section if isinstance(section, dict) else {}
        met, clean = facts.get(name), written.get("clean") or {}
        columns.append(
            {
                "name": name,
                "role": str(written.get("role", Role.QUASI)),
                "type": str(written.get("type", Type.TEXT)),
                "bounds": list(map(str, written.get("bounds") or ("", ""))),
                "bounded": str(written.get("type", Type.TEXT)) in _BOUNDED,
                "outside": str(written.get("outside") or ""),
                "public": _public(written),
                "clean": [line.words for line in cleaning_lines(written)],
                "mergeable": mergeable_values(written),
                "waits": bool(clean.get("derived") and not clean.get("confirmed")),
                "confirmed": bool(clean.get("confirmed")),
                "drafted": _drafted(written),
                "guess": None
                if met is None
                else {"role": str(met.role), "why": met.why_role, "why_type": met.why_type},
                "identity": None if met is None or met.identity is None else met.identity.sentence,
                "distinct": None if met is None else met.facts.spread.distinct,
                "missing": None if met is None else met.facts.missing,
                "alone": None if met is None else met.facts.spread.unique_share,
                "shown": "" if met is None else met.summary,
            }
        )
    return columns


def _drafted(section: dict[str, Any]) -> bool:
    """Whether something of a column was read off the rows, and nobody vouched for it."""
    rule = section.get("hierarchy")
    clean = section.get("clean") or {}
    parts = [section, *([rule] if isinstance(rule, dict) else [])]
    unconfirmed = bool(clean.get("derived") and not clean.get("confirmed"))
    return unconfirmed or any(part.get("derived") and not part.get("public") for part in parts)


def _public(section: dict[str, Any]) -> str:
    """Return the public source that a column names, for its values or its rule."""
    rule = section.get("hierarchy")
    parts = [section, *([rule] if isinstance(rule, dict) else [])]
    return next((str(part["public"]) for part in parts if part.get("public")), "")


def _dataset(file: PolicyFile) -> dict[str, Any]:
    values = {name: file.at("dataset", name) or "" for name in (*_WORDS, *_NUMBERS)}
    unit = file.at("dataset", "unit") or {}
    return {**values, "unit": unit.get("column") or "", "max_rows": unit.get("max_rows") or "1"}


def _subsets(profile: TableProfile) -> list[dict[str, Any]]:
    most = [subset for subset in profile.subsets if subset.spread.unique][:_SUBSETS]
    return [{"columns": list(subset.columns), "share": subset.spread.unique_share} for subset in most]


def _questions(file: PolicyFile, profile: TableProfile) -> list[dict[str, str]]:
    """Return the columns that repeat like ids and of which nobody has decided yet whether they are people."""
    declared = file.at("columns") or {}
    open_names = [name for name, section in declared.items() if (section or {}).get("role") == Role.WITHHELD]
    questions = person_questions(profile, file.at("dataset", "unit", "column"))
    return [
        {"column": question.name, "sentence": question.sentence.partition(" If so")[0]}
        for question in questions
        if question.name in open_names
    ]


def _nearly(request: PageRequest, file: PolicyFile, profile: TableProfile) -> list[dict[str, str]]:
    """Return the columns that are of one type but for a few texts, and where these can be read as missing values."""
    source = file.path.parent / str(file.at("source", "path") or file.at("source") or "")
    root, nulls = request.folder.root, [text for text in file.at("source", "nulls") or () if text]
    data = request.folder.name(source) if source.is_file() and source.is_relative_to(root) else None
    return [
        {"sentence": f"{column.name}: {column.facts.nearly.sentence.rpartition(':')[0]}."}
        | ({} if data is None else {"data": data, "nulls": ", ".join([*nulls, *column.facts.nearly.exceptions])})
        for column in profile.columns
        if column.facts.nearly is not None and column.role is not Role.IDENTIFIER
    ]


def declare_person(request: PageRequest) -> Redirect:
    """Declare that each value of a column is one person."""
    file, name = request.policy_file(), request.value("column")
    if name not in (file.at("columns") or {}):
        raise InvalidParameter("this column does not exist.")
    changes: dict[Place, Value] = {("dataset", "unit"): {"column": name, "max_rows": "1"}}
    changes |= {("columns", name, "role"): str(Role.IDENTIFIER)} | _unreleased(file, name)
    file.save(mended(file, changes), request.value("base"))
    return request.to("columns")


def look(request: PageRequest) -> Redirect:
    """Look at the rows, which is recorded."""
    PROFILE.begin(request, request.policy_file())
    return request.to("columns")


def save(request: PageRequest) -> Redirect:
    """Write roles and types; the lines of columns that stay as they are stay as they are."""
    file = request.policy_file()
    changes: dict[Place, Value] = {}
    for place, (name, section) in enumerate((file.at("columns") or {}).items()):
        declared = section if isinstance(section, dict) else {}
        for key, least in (("role", Role.QUASI), ("type", Type.TEXT)):
            chosen = request.form.get(f"{key}-{place}")
            if chosen is not None and chosen != str(declared.get(key, least)):
                changes["columns", name, key] = chosen
                if key == "role" and Role.IDENTIFIER.covers(declared.get("role")):  # it is to leave, by a look
                    changes |= provenance(name, declared, "", file.seen)
                if key == "role" and Role.IDENTIFIER.covers(chosen):
                    changes |= _unreleased(file, name)
        changes |= _declared(request, file, place, name)
    file.save(mended(file, changes), request.value("base"))
    return request.saved("columns")


def _declared(request: PageRequest, file: PolicyFile, place: int, name: str) -> dict[Place, Value]:
    """Return the bounds, the rule for values outside and the public source that a form declares for a column."""
    section = file.at("columns", name)
    declared = section if isinstance(section, dict) else {}
    changes: dict[Place, Value] = {}
    low, high = (request.form.get(f"{end}-{place}", "").strip() for end in ("low", "high"))
    if (low or high) and [low, high] != list(map(str, declared.get("bounds") or ("", ""))):
        if not (low and high):
            raise InvalidParameter(f"{name}: give both bounds, the lowest and the highest value.")
        changes["columns", name, "bounds"] = [low, high]
        changes |= provenance(name, {}, request.form.get(f"source-{place}", "").strip(), file.seen)
    outside = request.form.get(f"outside-{place}")
    if outside is not None and outside != str(declared.get("outside") or ""):
        changes["columns", name, "outside"] = outside or None
    changes |= cleaning_changes(request, file, place, name)
    source = request.form.get(f"source-{place}", "").strip()
    if source and source != _public(declared):
        marked = [key for key in ((), ("hierarchy",)) if (file.at("columns", name, *key) or {}).get("derived")]
        changes |= {("columns", name, *key, "public"): source for key in marked}
        if declared.get("role") == Role.WITHHELD and request.form.get(f"role-{place}") == Role.WITHHELD:
            changes["columns", name, "role"] = str(Role.QUASI)  # its source was named so that it can be released
    return changes


def _unreleased(file: PolicyFile, name: str) -> dict[Place, Value]:
    """Return what a release no longer says of a column that it does not hold."""
    places: list[Place] = [("release", key, name) for key in ("levels", "lowest", "highest")]
    changes: dict[Place, Value] = {place: None for place in places if file.at(*place) is not None}
    listed = file.at("release", "columns")
    if isinstance(listed, list) and name in listed:
        changes["release", "columns"] = [column for column in listed if column != name]
    tables = file.at("release", "tables")
    if isinstance(tables, list) and any(name in (table.get("columns") or ()) for table in tables):
        without = [_without(table, name) for table in tables]
        changes["release", "tables"] = [table for table in without if table["columns"]]
    return changes


def _without(table: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a table of a list without a column."""
    levels = {column: level for column, level in (table.get("levels") or {}).items() if column != name}
    rest = {"columns": [column for column in table.get("columns") or () if column != name]}
    return (
        {key: value for key, value in table.items() if key != "levels"} | rest | ({"levels": levels} if levels else {})
    )


def dataset(request: PageRequest) -> Redirect:
    """Write what the dataset is called, how many rows and people there are, and whom the guarantee protects."""
    file = request.policy_file()
    changes: dict[Place, Value] = {}
    for name in (*_WORDS, *_NUMBERS):
        value = request.value(name).replace(",", "") if name in _NUMBERS else request.value(name)
        if value != (file.at("dataset", name) or ""):
            changes["dataset", name] = value or None
    column, most = request.value("unit"), request.value("max_rows") or "1"
    declared = _dataset(file)
    if (column, most) != (declared["unit"], declared["max_rows"]):
        if column and column not in (file.at("columns") or {}):
            raise InvalidParameter("the person ID column does not exist.")
        if column:
            changes["dataset", "unit", "column"], changes["dataset", "unit", "max_rows"] = column, most
        else:
            changes["dataset", "unit"] = None
    file.save(changes, request.value("base"))
    return request.to("columns")


PAGE = Page(
    "columns",
    "Columns and roles",
    "How each column can identify or expose a person. You can change every guess.",
    show,
    {"look": look, "save": save, "person": declare_person, "dataset": dataset},
    step=2,
    needs=("policy",),
)
