"""Names and phrases that say nothing stay out: of variables, fields and functions, and of what people read."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.names import PACKAGE, banned_bindings
from tests.house.phrases import uses

KEYS = {"given"}
"""Keys of policies that are fields of a method or a step: data, which the policy language keeps."""


def test_no_banned_name_is_bound() -> None:
    assert [(binding.place, binding.name) for binding in banned_bindings() if binding.name not in KEYS] == []


def test_the_kept_keys_are_fields_of_methods_and_steps() -> None:
    places = {binding.place.rpartition(":")[0] for binding in banned_bindings() if binding.name in KEYS}
    assert all(place.startswith("methods/") for place in places)


def test_no_listed_phrase_is_read_by_people() -> None:
    assert [(use.phrase, use.place, use.text) for use in uses()] == []


def test_a_banned_name_and_a_listed_phrase_are_found(tmp_path: Path) -> None:
    package = tmp_path / "src" / "incrowd"
    package.mkdir(parents=True)
    lines = [
        "def message(told: str) -> str:",
        "    for each in told:",
        '        kept = f"{each} hangs on {told}"',
        "    return kept",
    ]
    (package / "module.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert [binding.name for binding in banned_bindings(package)] == ["told", "each", "kept"]
    assert [use.phrase for use in uses(tmp_path)] == ["hang on"]


def test_no_two_classes_of_the_package_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
