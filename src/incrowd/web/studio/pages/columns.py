"""Columns and roles: what each column could do to a person, why, and whom the guarantee protects."""

from __future__ import annotations

from typing import Any

from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.errors import InvalidParameter
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.web.studio.row_access import provenance
from incrowd.web.studio.rows import PROFILE
from incrowd.workflows.policy.edit import Place, Value
from incrowd.workflows.profile.profile import TableProfile, person_column

_SUBSETS = 5
_NUMBERS = ("rows", "population")
_WORDS = ("name", "period")
MEANING = {
    Role.IDENTIFIER: "never released",
    Role.QUASI: "others may know it of a person",
    Role.SENSITIVE: "nobody should learn it of a person",
    Role.PLAIN: "tells nothing of a person",
}


def show(asked: PageRequest) -> PageContent:
    """Show each column with its role, and what the rows say of it once they were looked at."""
    file = asked.policy_file()
    job = PROFILE.known(asked, file)
    found: TableProfile | None = result(job)
    person = None if found is None else person_column(found)
    content = {
        "columns": _columns(file, found),
        "roles": {str(role): words for role, words in MEANING.items()},
        "types": [str(each) for each in Type],
        "dataset": _dataset(file),
        "looked": found is not None,
        "table_rows": None if found is None else found.rows,
        "person": None if person is None else person.to_json(),
        "subsets": [] if found is None else _subsets(found),
        "notes": [] if found is None else list(found.notes),
        "seen": list(file.seen.what),
    }
    line = command("incrowd", "profile", "--policy", file.name)
    return PageContent(content, commands=(line,), job=foremost(job))


def _columns(file: PolicyFile, found: TableProfile | None) -> list[dict[str, Any]]:
    declared = file.at("columns") or {}
    facts = {} if found is None else {column.name: column for column in found.columns}
    columns = []
    for name, section in declared.items():
        told = section if isinstance(section, dict) else {}
        met = facts.get(name)
        columns.append(
            {
                "name": name,
                "role": str(told.get("role", Role.QUASI)),
                "type": str(told.get("type", Type.TEXT)),
                "drafted": _drafted(told),
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


def _drafted(told: dict[str, Any]) -> bool:
    """Whether something of a column was read off the rows, and nobody vouched for it."""
    rule = told.get("hierarchy")
    parts = [told, *([rule] if isinstance(rule, dict) else [])]
    return any(part.get("derived") and not part.get("public") for part in parts)


def _dataset(file: PolicyFile) -> dict[str, Any]:
    told = {name: file.at("dataset", name) or "" for name in (*_WORDS, *_NUMBERS)}
    unit = file.at("dataset", "unit") or {}
    return {**told, "unit": unit.get("column") or "", "max_rows": unit.get("max_rows") or "1"}


def _subsets(found: TableProfile) -> list[dict[str, Any]]:
    most = [subset for subset in found.subsets if subset.spread.unique][:_SUBSETS]
    return [{"columns": list(each.columns), "share": each.spread.unique_share} for each in most]


def look(asked: PageRequest) -> Redirect:
    """Look at the rows, which is recorded."""
    PROFILE.begin(asked, asked.policy_file())
    return asked.to("columns")


def save(asked: PageRequest) -> Redirect:
    """Write roles and types; the lines of columns that stay as they are stay as they are."""
    file = asked.policy_file()
    changes: dict[Place, Value] = {}
    for place, (name, section) in enumerate((file.at("columns") or {}).items()):
        told = section if isinstance(section, dict) else {}
        for key, least in (("role", Role.QUASI), ("type", Type.TEXT)):
            wanted = asked.form.get(f"{key}-{place}")
            if wanted is not None and wanted != str(told.get(key, least)):
                changes["columns", name, key] = wanted
                if key == "role" and Role.IDENTIFIER.covers(told.get("role")):  # it is to leave, by a look
                    changes |= provenance(name, told, "", file.seen)
                if key == "role" and Role.IDENTIFIER.covers(wanted):
                    changes |= _unreleased(file, name)
    file.save(changes, asked.value("base"))
    return asked.to("columns")


def _unreleased(file: PolicyFile, name: str) -> dict[Place, Value]:
    """Return what a release no longer says of a column that it does not hold."""
    places: list[Place] = [("release", key, name) for key in ("levels", "lowest", "highest")]
    changes: dict[Place, Value] = {place: None for place in places if file.at(*place) is not None}
    listed = file.at("release", "columns")
    if isinstance(listed, list) and name in listed:
        changes["release", "columns"] = [each for each in listed if each != name]
    return changes


def dataset(asked: PageRequest) -> Redirect:
    """Write what the dataset is called, how many rows and people there are, and whom the guarantee protects."""
    file = asked.policy_file()
    changes: dict[Place, Value] = {}
    for name in (*_WORDS, *_NUMBERS):
        wanted = asked.value(name).replace(",", "") if name in _NUMBERS else asked.value(name)
        if wanted != (file.at("dataset", name) or ""):
            changes["dataset", name] = wanted or None
    column, most = asked.value("unit"), asked.value("max_rows") or "1"
    told = _dataset(file)
    if (column, most) != (told["unit"], told["max_rows"]):
        if column and column not in (file.at("columns") or {}):
            raise InvalidParameter("there is no such column to tell people apart.")
        if column:
            changes["dataset", "unit", "column"], changes["dataset", "unit", "max_rows"] = column, most
        else:
            changes["dataset", "unit"] = None
    file.save(changes, asked.value("base"))
    return asked.to("columns")


PAGE = Page(
    "columns",
    "Columns and roles",
    "What each column could do to a person. The guess is yours to overrule.",
    show,
    {"look": look, "save": save, "dataset": dataset},
    step=2,
    needs=("policy",),
)
