"""Cleaning: the rules of a column one by one, and the values that are spellings of one label, chosen by clicks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from incrowd.core.schema import Role
from incrowd.errors import InvalidParameter
from incrowd.web.studio.page import PageRequest
from incrowd.web.studio.policy_file import PolicyFile, provenance
from incrowd.workflows.policy.edit import Place, Value

_HOLDER = "by the data holder"
_MOST = 60
_WORDS = {
    "mend": "text misread as {} is repaired",
    "trim": "outer and repeated spaces are removed",
    "unicode": "written in the Unicode form {}",
    "case": "written in {} letters",
    "missing": "“{}” is a missing value",
    "units": "the unit {} is removed",
    "decimal": "the decimal mark is “{}”",
    "thousands": "groups of three digits are separated by “{}”",
}


@dataclass(frozen=True)
class CleaningLine:
    """One rule of a column: its key, which of its entries, and what it does in words."""

    key: str
    entry: str | None
    words: str


def cleaning_lines(section: Mapping[str, Any]) -> tuple[CleaningLine, ...]:
    """Return the rules of a column one by one.

    >>> lines = cleaning_lines({"clean": {"trim": "true", "missing": ["s/d"], "spellings": {"Forlì": ["FORLI", "F."]}}})
    >>> [line.words for line in lines][1:]
    ['“s/d” is a missing value', 'FORLI → Forlì', 'F. → Forlì']
    """
    return tuple(_lines(section.get("clean") or {}))


def _lines(clean: Mapping[str, Any]) -> Iterator[CleaningLine]:
    for key, value in clean.items():
        if isinstance(value, dict):
            yield from (CleaningLine(key, text, f"{text} → {label}") for label, part in value.items() for text in part)
        elif isinstance(value, list):
            yield from (CleaningLine(key, str(entry), _WORDS.get(key, "{}").format(entry)) for entry in value)
        elif key in _WORDS:
            yield CleaningLine(key, None, _WORDS[key].format(value))


def mergeable_values(section: Mapping[str, Any]) -> list[str]:
    """Return the listed values of a column, if they are few enough to be shown one by one.

    >>> mergeable_values({"categories": ["a", "b"]}), mergeable_values({"hierarchy": {"tree": {"x": ["a"]}}})
    (['a', 'b'], [])
    """
    values = section.get("categories")
    return list(map(str, values)) if isinstance(values, list) and len(values) <= _MOST else []


def cleaning_changes(request: PageRequest, file: PolicyFile, place: int, name: str) -> dict[Place, Value]:
    """Return what a form changes in the cleaning of a column: rules without a check mark go, chosen values are merged.

    Changed rules have to be confirmed again.  Confirmed rules release a column that nothing else holds back.
    """
    section = file.at("columns", name)
    section = section if isinstance(section, dict) else {}
    clean: dict[str, Any] = section.get("clean") or {}
    lines = cleaning_lines(section) if request.form.get(f"rules-{place}") else ()
    dropped = [line for at, line in enumerate(lines) if not request.form.get(f"rule-{place}-{at}")]
    same = [value for at, value in enumerate(mergeable_values(section)) if request.form.get(f"same-{place}-{at}")]
    label = request.form.get(f"label-{place}", "").strip()
    if bool(same) != bool(label):
        raise InvalidParameter(f"{name}: select the values that mean the same, and write the label for all of them.")
    changes: dict[Place, Value] = {}
    if dropped or same:
        clean = merged_rules(_without(clean, dropped), same, label)
        if file.seen.what and clean:
            clean |= {"derived": "rows"}
        changes["columns", name, "clean"] = {key: part for key, part in clean.items() if key != "confirmed"} or None
        changes |= _listed(request, file, place, name, _categories(section, dropped, same, label))
        clean = {key: part for key, part in clean.items() if key != "confirmed"}
    if request.form.get(f"confirm-{place}") and clean.get("derived") and not clean.get("confirmed"):
        changes |= {("columns", name, "clean", "confirmed"): _HOLDER}
        if _waits(request, section, place) and not _drafted(section, changes, name):
            changes["columns", name, "role"] = str(Role.QUASI)
    return changes


def merged_rules(clean: Mapping[str, Any], same: Sequence[str], label: str) -> dict[str, Any]:
    """Return rules in which some values are spellings of a label; what was written as one of them is, too.

    >>> merged_rules({"spellings": {"Forli": ["FORLI"]}}, ["Forli", "Forlì"], "Forlì")
    {'spellings': {'Forlì': ['Forli', 'FORLI']}}
    """
    if not same:
        return dict(clean)
    spellings = {str(key): list(map(str, part)) for key, part in (clean.get("spellings") or {}).items()}
    texts = [*spellings.pop(label, []), *(text for value in same for text in (value, *spellings.pop(value, [])))]
    others = [text for text in dict.fromkeys(texts) if text != label]
    return dict(clean) | {"spellings": spellings | ({label: others} if others else {})}


def _without(clean: Mapping[str, Any], dropped: Sequence[CleaningLine]) -> dict[str, Any]:
    """Return the rules but some; nothing where none is left."""
    gone = {(line.key, line.entry) for line in dropped}
    rest: dict[str, Any] = {}
    for key, value in clean.items():
        if isinstance(value, dict):
            parts = {label: [text for text in part if (key, str(text)) not in gone] for label, part in value.items()}
            rest[key] = {label: part for label, part in parts.items() if part}
        elif isinstance(value, list):
            rest[key] = [entry for entry in value if (key, str(entry)) not in gone]
        elif (key, None) not in gone:
            rest[key] = value
    rest = {key: value for key, value in rest.items() if value}
    return rest if any(key in _WORDS or key == "spellings" for key in rest) else {}


def _categories(
    section: Mapping[str, Any], dropped: Sequence[CleaningLine], same: Sequence[str], label: str
) -> list[str] | None:
    """Return the listed values as they are then: merged ones go, texts that are no longer rewritten come back."""
    if not isinstance(section.get("categories"), list):
        return None
    back = [str(line.entry) for line in dropped if line.key == "spellings"]
    values = [*map(str, section["categories"]), *back]
    moved = [label if value in same else value for value in values]
    return list(dict.fromkeys(moved))


def _listed(
    request: PageRequest, file: PolicyFile, place: int, name: str, values: list[str] | None
) -> dict[Place, Value]:
    if values is None or values == file.at("columns", name, "categories"):
        return {}
    source = request.form.get(f"source-{place}", "").strip()
    return {("columns", name, "categories"): values} | provenance(name, {}, source, file.seen)


def _waits(request: PageRequest, section: Mapping[str, Any], place: int) -> bool:
    """Whether a column is withheld, and stays so by the form."""
    return {section.get("role"), request.form.get(f"role-{place}")} == {str(Role.WITHHELD)}


def _drafted(section: Mapping[str, Any], changes: Mapping[Place, Value], name: str) -> bool:
    """Whether the values or the rule of a column come from the rows, and nobody named a public source."""
    rule = section.get("hierarchy")
    declared = {key: changes.get(("columns", name, key), section.get(key)) for key in ("derived", "public")}
    parts = [declared, *([rule] if isinstance(rule, dict) else [])]
    return any(part.get("derived") and not part.get("public") for part in parts)
