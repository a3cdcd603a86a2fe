"""Write the tables of reference/policy.md from the models that read policies.

python docs/policy.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from incrowd.workflows.policy.policy import json_schema

PAGE = Path(__file__).parent / "reference" / "policy.md"
BEGIN, END = "<!-- tables -->\n", "<!-- end of tables -->\n"


def tables() -> str:
    """Return a heading and a table for each section, from the published JSON Schema."""
    schema = json_schema()
    named = {"the whole file": schema, **schema["$defs"]}
    for method in schema["properties"]["release"]["anyOf"]:
        named[f"release, method {method['title'].removesuffix('Section').lower()}"] = method
    return "\n".join(_table(name, section) for name, section in named.items() if "properties" in section)


def _table(name: str, section: dict[str, Any]) -> str:
    title = name.removesuffix("Section").lower()
    rows = [
        f"| `{field}` | {_kind(about)} | {_default(field, about, section)} | {about.get('description', '')} |"
        for field, about in section["properties"].items()
    ]
    told = section.get("description", "").split("\n\n", maxsplit=1)[0].replace("\n", " ")
    return "\n".join(
        [f"## {title}\n", f"{told}\n", "| key | value | default | meaning |", "|---|---|---|---|", *rows, ""]
    )


def _kind(about: dict[str, Any]) -> str:
    choices = [each for each in about.get("anyOf", about.get("oneOf", [about])) if each.get("type") != "null"]
    words = []
    for each in choices:
        if "$ref" in each:
            words.append(each["$ref"].rsplit("/", 1)[-1].removesuffix("Section").lower())
        elif "enum" in each or "const" in each:
            words.append(", ".join(f"`{value}`" for value in each.get("enum", [each.get("const")])))
        elif "anyOf" in each:
            words.append("number")
        else:
            kind = each.get("type", "anything")
            most = f", at most {each['maximum']:,}" if "maximum" in each else ""
            words.append("text or number" if isinstance(kind, list) else _NAMES.get(kind, kind) + most)
    return " or ".join(dict.fromkeys(words))


_NAMES = {"string": "text", "array": "list", "object": "mapping", "boolean": "true or false", "integer": "whole number"}


def _default(field: str, about: dict[str, Any], section: dict[str, Any]) -> str:
    if field in section.get("required", []):
        return "required"
    default = about.get("default")
    return "" if default is None or isinstance(default, dict) else f"`{default}`"


def updated(page: str) -> str:
    """Return the page with its tables made anew."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + tables() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
